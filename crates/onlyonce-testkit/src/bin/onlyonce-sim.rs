//! The simulator's command line: many seeds and a summary, or one seed and its story.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use onlyonce::time::{Clock, SystemClock};
use onlyonce_testkit::sim::{Counts, Mutant, Options, Report, Simulator, Sometimes};

const HELP: &str = "\
usage: onlyonce-sim [--seeds N] [--from S] [--threads T] [--mutant NAME] [--hash]
       onlyonce-sim --seed N [--mutant NAME] [--hash]
       onlyonce-sim --mutants

Walks N seeds from S (10000 from 0) and stops at the first that breaks a promise. With --seed, walks one and
tells its story. With --mutant, the run has a deliberate bug in it; --mutants lists them. With --hash, prints
one number that stands for the way everything went. Exit status 1: a promise was broken.
";

#[derive(Default)]
struct Args {
    seed: Option<u64>,
    from: u64,
    seeds: Option<u64>,
    threads: Option<u64>,
    mutant: Option<Mutant>,
    hash: bool,
    list: bool,
    help: bool,
}

fn main() -> ExitCode {
    match parse(std::env::args().skip(1)) {
        Err(wrong) => {
            eprintln!("{wrong}\n\n{HELP}");
            ExitCode::from(64)
        }
        Ok(args) if args.help => {
            print!("{HELP}");
            ExitCode::SUCCESS
        }
        Ok(args) if args.list => {
            Mutant::ALL.iter().for_each(|mutant| println!("{}", mutant.name()));
            ExitCode::SUCCESS
        }
        Ok(args) => match args.seed {
            Some(seed) => tell(seed, &args),
            None => walk(&args),
        },
    }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Args, String> {
    let mut args = Args::default();
    while let Some(word) = words.next() {
        let mut number = || {
            let text = words.next().ok_or_else(|| format!("{word} needs a number"))?;
            text.replace('_', "").parse::<u64>().map_err(|_| format!("{word} {text}: not a number"))
        };
        match word.as_str() {
            "--seed" => args.seed = Some(number()?),
            "--seeds" => args.seeds = Some(number()?),
            "--from" => args.from = number()?,
            "--threads" => args.threads = Some(number()?),
            "--mutant" => {
                let name = words.next().ok_or("--mutant needs a name")?;
                let named = Mutant::named(&name);
                args.mutant =
                    Some(named.ok_or_else(|| format!("there is no mutant {name:?}; see --mutants"))?);
            }
            "--mutants" => args.list = true,
            "--hash" => args.hash = true,
            "--help" | "-h" => args.help = true,
            other => return Err(format!("{other}: not an option")),
        }
    }
    Ok(args)
}

fn options(args: &Args) -> Options {
    let options = Options::default();
    args.mutant.map_or(options, |mutant| options.mutant(mutant))
}

/// One seed, and its story.
fn tell(seed: u64, args: &Args) -> ExitCode {
    let report = Simulator::new().run(seed, &options(args).trace());
    if args.hash {
        println!("{:016x}", report.hash);
    } else {
        print!("{}", report.trace);
    }
    verdict(Some(&report).filter(|report| report.violation.is_some()), args)
}

fn verdict(broken: Option<&Report>, args: &Args) -> ExitCode {
    let Some(report) = broken else { return ExitCode::SUCCESS };
    let Some(violation) = &report.violation else { return ExitCode::SUCCESS };
    let seed = report.seed;
    let mutant = args.mutant.map_or_else(String::new, |mutant| format!(" --mutant {}", mutant.name()));
    eprintln!("seed {seed} broke {}: {}", violation.rule.name(), violation.what);
    eprintln!("its story: cargo xtask sim --seed {seed}{mutant}");
    ExitCode::from(1)
}

/// What all threads have found so far.
#[derive(Default)]
struct Tally {
    next: AtomicU64,
    done: AtomicU64,
    stop: AtomicBool,
    found: Mutex<Found>,
}

#[derive(Default)]
struct Found {
    counts: Counts,
    steps: u64,
    hash: u64,
    broken: Option<Report>,
}

/// Seeds a thread takes at a time.
const BATCH: u64 = 500;

fn walk(args: &Args) -> ExitCode {
    let seeds = args.seeds.unwrap_or(10_000);
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let threads = args.threads.unwrap_or(cores).max(1);
    let clock = SystemClock::new();
    let tally = Tally::default();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| work(args, seeds, &tally, &clock));
        }
    });
    let took = clock.monotonic();
    let done = tally.done.load(Ordering::Relaxed);
    let found = tally.found.into_inner().unwrap_or_else(PoisonError::into_inner);
    if args.hash {
        println!("{:016x}", found.hash);
    } else {
        summary(done, &found, took, threads);
    }
    verdict(found.broken.as_ref(), args)
}

fn work(args: &Args, seeds: u64, tally: &Tally, clock: &SystemClock) {
    let simulator = Simulator::new();
    let options = options(args);
    while !tally.stop.load(Ordering::Relaxed) {
        let from = tally.next.fetch_add(BATCH, Ordering::Relaxed);
        if from >= seeds {
            return;
        }
        let mut own = Found::default();
        for seed in from..(from + BATCH).min(seeds) {
            let report = simulator.run(args.from + seed, &options);
            own.counts.add(&report.counts);
            own.steps += report.steps;
            // A sum, so that it does not matter which thread walked which seed.
            own.hash = own.hash.wrapping_add(report.hash);
            tally.done.fetch_add(1, Ordering::Relaxed);
            if report.violation.is_some() {
                tally.stop.store(true, Ordering::Relaxed);
                own.broken = Some(report);
                break;
            }
        }
        let mut all = tally.found.lock().unwrap_or_else(PoisonError::into_inner);
        all.counts.add(&own.counts);
        all.steps += own.steps;
        all.hash = all.hash.wrapping_add(own.hash);
        let first = all.broken.as_ref().map_or(u64::MAX, |report| report.seed);
        if let Some(report) = own.broken.filter(|report| report.seed < first) {
            all.broken = Some(report);
        }
        drop(all);
        progress(tally.done.load(Ordering::Relaxed), seeds, clock.monotonic());
    }
}

fn progress(done: u64, seeds: u64, took: Duration) {
    let mut err = std::io::stderr();
    if err.is_terminal() {
        // Progress that cannot be shown is not worth stopping for.
        let _ = write!(err, "\r{done} of {seeds} schedules, {}/s ", per_second(done, took));
        let _ = err.flush();
    }
}

fn per_second(done: u64, took: Duration) -> u64 {
    let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX).max(1);
    done * 1000 / millis
}

fn summary(done: u64, found: &Found, took: Duration, threads: u64) {
    println!(
        "{done} schedules, {} steps in {:.1} s on {threads} threads: {} schedules/s",
        found.steps,
        took.as_secs_f64(),
        per_second(done, took)
    );
    for what in Sometimes::ALL {
        println!("{:>12}  {}", found.counts.of(*what), what.text().trim());
    }
}

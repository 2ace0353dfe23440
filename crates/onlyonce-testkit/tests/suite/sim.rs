//! The promises, under everything that can go wrong: a hundred thousand schedules in every test run.

use onlyonce_testkit::sim::{Counts, Mutant, Options, Simulator};

/// Walks these seeds; a broken promise fails the test with the seed that shows it.
fn walk(seeds: std::ops::Range<u64>) -> Counts {
    let simulator = Simulator::new();
    let mut counts = Counts::default();
    for seed in seeds {
        let report = simulator.run(seed, &Options::default());
        counts.add(&report.counts);
        if let Some(violation) = report.violation {
            panic!(
                "seed {seed} broke {}: {}\nits story: cargo xtask sim --seed {seed}",
                violation.rule.name(),
                violation.what
            );
        }
    }
    counts
}

/// A walk that never met what it is about proves nothing.
fn walk_and_meet_everything(seeds: std::ops::Range<u64>) {
    let missing = walk(seeds).missing();
    assert!(missing.is_empty(), "never happened: {missing:?}");
}

#[test]
fn promises_hold_first_quarter() {
    walk_and_meet_everything(0..30_000);
}

#[test]
fn promises_hold_second_quarter() {
    walk_and_meet_everything(30_000..60_000);
}

#[test]
fn promises_hold_third_quarter() {
    walk_and_meet_everything(60_000..90_000);
}

#[test]
fn promises_hold_fourth_quarter() {
    walk_and_meet_everything(90_000..120_000);
}

#[test]
fn every_mutant_is_caught() {
    const WITHIN: u64 = 40_000;
    let simulator = Simulator::new();
    for mutant in Mutant::ALL {
        let options = Options::default().mutant(mutant);
        let caught = (0..WITHIN).map(|seed| simulator.run(seed, &options)).find(|r| r.violation.is_some());
        let Some((seed, violation)) = caught.and_then(|r| Some((r.seed, r.violation?))) else {
            panic!("{} was not caught within {WITHIN} seeds", mutant.name())
        };
        println!("{:>16}: seed {seed:>5} broke {}: {}", mutant.name(), violation.rule.name(), violation.what);
    }
}

#[test]
fn one_seed_goes_one_way() {
    let (one, other) = (Simulator::new(), Simulator::new());
    let options = Options::default().trace();
    for seed in 0..300 {
        let (a, b) = (one.run(seed, &options), other.run(seed, &options));
        assert_eq!(a.trace, b.trace, "seed {seed}");
        assert_eq!((a.hash, a.steps), (b.hash, b.steps), "seed {seed}");
        assert_eq!(a.hash, one.run(seed, &Options::default()).hash, "seed {seed} goes another way untold");
    }
}

/// Keys are hashed differently in every process; nothing may depend on it.
#[test]
fn one_seed_goes_one_way_in_every_process() {
    let run = || {
        let command = env!("CARGO_BIN_EXE_onlyonce-sim");
        let out = std::process::Command::new(command).args(["--seeds", "5000", "--hash"]).output().unwrap();
        String::from_utf8(out.stdout).unwrap()
    };
    let (first, second, third) = (run(), run(), run());
    assert_eq!(first.trim().len(), 16, "{first}");
    assert_eq!(first, second);
    assert_eq!(first, third);
}

//! Measures onlyonce against what it stands on, and against its nearest peer.
//!
//! Figures of a machine mean little; ratios within one run mean something. Each row has two sides that do the
//! same work in turn, round after round, and is judged by the median of the rounds' ratios. The page goes to
//! standard output, progress to standard error; `cargo xtask bench` keeps the page.

mod args;
mod calls;
mod content;
mod json;
mod leases;
mod machine;
mod page;
mod peer;
mod process;
mod rounds;
mod runtime;
mod sqlite;

use std::process::ExitCode;

use args::{Args, Scale};
use page::Row;

/// Why a measurement could not be made.
type Failed = Box<dyn std::error::Error + Send + Sync>;

/// One measurement: a few rows of the page.
struct Bench {
    name: &'static str,
    /// How it is measured, for the page.
    how: &'static str,
    run: fn(Scale) -> Result<Vec<Row>, Failed>,
}

const BENCHES: &[Bench] = &[
    Bench { name: "replay", how: calls::HOW_REPLAY, run: calls::replay },
    Bench { name: "first", how: calls::HOW_FIRST, run: calls::first },
    Bench { name: "sqlite", how: sqlite::HOW_FIRST, run: sqlite::first },
    Bench { name: "sqlite-size", how: sqlite::HOW_SIZE, run: sqlite::size },
    Bench { name: "json", how: json::HOW, run: json::keys },
    Bench { name: "file", how: content::HOW, run: content::file },
    Bench { name: "leases", how: leases::HOW, run: leases::many },
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match args.first().map(String::as_str) {
        Some(leases::CHILD) => leases::child(&args[1..]),
        _ => Args::read(&args).and_then(|args| measure(&args)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(args: &Args) -> Result<(), Failed> {
    let mut rows = Vec::new();
    for bench in BENCHES.iter().filter(|bench| args.wants(bench.name)) {
        eprintln!("{} …", bench.name);
        let found = (bench.run)(args.scale)?;
        found.iter().for_each(|row| eprintln!("  {row}"));
        rows.push((bench, found));
    }
    print!("{}", page::page(args.scale, &rows)?);
    Ok(())
}

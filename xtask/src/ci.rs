//! `cargo xtask ci`: everything a change must pass, each step timed.

use std::time::Duration;

use crate::proc::{cargo, has_cargo, run, succeeds_quietly, timed};
use crate::{sim, test, tidy};

pub(crate) const HELP: &str = "\
usage: cargo xtask ci

Format, lints, tidy, dependencies, documentation, simulation, tests. All steps run, also after one has failed;
a table of times comes at the end, then the test runner's closing lines. A step whose program is missing is *not run*;
with CI set in the environment, a missing rustfmt or clippy fails.
";

/// How a step ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Passed,
    Failed(String),
    NotRun(&'static str),
}

impl From<Result<(), String>> for End {
    fn from(result: Result<(), String>) -> Self {
        result.map_or_else(Self::Failed, |()| Self::Passed)
    }
}

/// A line of the table.
#[derive(Debug)]
struct Line {
    step: &'static str,
    end: End,
    took: Duration,
}

type Step = (&'static str, fn() -> End);

const STEPS: &[Step] = &[
    ("format", format),
    ("lints", lints),
    ("tidy", tidy),
    ("dependencies", dependencies),
    ("advisories", advisories),
    ("docs", docs),
    ("simulation", simulation),
];

pub(crate) fn command(args: &[String]) -> Result<(), String> {
    if let Some(arg) = args.first() {
        return Err(format!("`ci` takes no arguments, and got `{arg}`\n\n{HELP}"));
    }
    let mut table: Vec<Line> = STEPS.iter().map(|(step, work)| take(step, work)).collect();
    let (tests, closing) = tests();
    table.push(tests);
    print!("\n{}{closing}", shown(&table));
    verdict(&table)
}

fn take(step: &'static str, work: impl FnOnce() -> End) -> Line {
    println!("\n== {step}");
    let (end, took) = timed(work);
    Line { step, end, took }
}

fn tests() -> (Line, String) {
    let mut closing = String::new();
    let line = take("tests", || {
        let verdict = test::run(&[]).and_then(|report| {
            closing = report.closing();
            report.verdict()
        });
        verdict.into()
    });
    (line, closing)
}

fn format() -> End {
    if !has_cargo("fmt") {
        return missing("rustfmt is not installed: rustup component add rustfmt");
    }
    let checked = run(&mut cargo(["fmt", "--all", "--check"]));
    checked.map_err(|_| "run `cargo fmt --all`".to_owned()).into()
}

fn lints() -> End {
    if !has_cargo("clippy") {
        return missing("clippy is not installed: rustup component add clippy");
    }
    run(&mut cargo(["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"])).into()
}

fn tidy() -> End {
    tidy::check()
        .map_err(|findings| {
            eprintln!("{findings}");
            "see its findings above".to_owned()
        })
        .into()
}

const NO_DENY: End = End::NotRun("cargo-deny is not installed: cargo install --locked cargo-deny");

fn dependencies() -> End {
    if !has_cargo("deny") {
        return NO_DENY;
    }
    run(&mut cargo(["deny", "--all-features", "check", "bans", "licenses", "sources"])).into()
}

/// Apart from the dependencies, because the list of advisories has to be fetched.
fn advisories() -> End {
    if !has_cargo("deny") {
        return NO_DENY;
    }
    if !succeeds_quietly(&mut cargo(["deny", "fetch", "db"])) {
        return End::NotRun("the list of advisories cannot be fetched from here");
    }
    run(&mut cargo(["deny", "--all-features", "check", "advisories"])).into()
}

fn docs() -> End {
    run(cargo(["doc", "--workspace", "--no-deps", "--quiet"]).env("RUSTDOCFLAGS", "--deny warnings")).into()
}

/// How many seeds every change is walked through.
const SEEDS: &str = "200000";

fn simulation() -> End {
    match sim::is_there() {
        Ok(true) => sim::command(&["--seeds".to_owned(), SEEDS.to_owned()]).into(),
        Ok(false) => End::NotRun(sim::MISSING),
        Err(why) => End::Failed(why),
    }
}

/// Not run here, but a failure where the change is judged.
fn missing(reason: &'static str) -> End {
    if std::env::var_os("CI").is_some() { End::Failed(reason.to_owned()) } else { End::NotRun(reason) }
}

fn shown(table: &[Line]) -> String {
    let mut text = String::new();
    for line in table {
        let (word, why) = match &line.end {
            End::Passed => ("passed", ""),
            End::Failed(why) => ("FAILED", why.as_str()),
            End::NotRun(why) => ("not run", *why),
        };
        let row = format!("{:<14}{word:<9}{:>7.1} s  {why}", line.step, line.took.as_secs_f64());
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text
}

fn verdict(table: &[Line]) -> Result<(), String> {
    let failed: Vec<&str> =
        table.iter().filter(|line| matches!(line.end, End::Failed(_))).map(|line| line.step).collect();
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(step: &'static str, end: End) -> Line {
        Line { step, end, took: Duration::from_millis(1250) }
    }

    #[test]
    fn a_failed_step_fails_and_one_that_did_not_run_is_shown() {
        let mut table = vec![line("format", End::Passed), line("dependencies", End::NotRun("no cargo-deny"))];
        assert_eq!(verdict(&table), Ok(()));
        table.push(line("lints", End::Failed("two warnings".to_owned())));
        assert_eq!(verdict(&table), Err("failed: lints".to_owned()));
        let text = shown(&table);
        assert!(text.contains("format        passed       1.2 s\n"), "{text}");
        assert!(text.contains("dependencies  not run      1.2 s  no cargo-deny\n"), "{text}");
        assert!(text.contains("lints         FAILED       1.2 s  two warnings\n"), "{text}");
    }
}

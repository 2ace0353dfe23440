//! `cargo xtask test`: every test this machine can run, and a list of those it cannot.

mod examples;
pub(crate) mod needs;
mod runner;
mod tally;

use needs::Missing;
use runner::Runner;
use tally::Tally;

use crate::proc::tee;

pub(crate) const HELP: &str = "\
usage: cargo xtask test [FILTER ...]

Builds and runs every test of the workspace, then the doc tests, then the examples, whose output is checked.
Needs cargo and a C compiler; uses cargo nextest when it is installed. With filters, only tests with one of these words in their name.

Tests that need a tool (python3, strace, faketime) run where the tool works. The others are listed at the
end under `not run:`, with the package to install.

The last lines are the test runner's own, then `N passed, N failed, N skipped`.
";

/// How a whole test run ended.
#[derive(Debug, Default)]
pub(crate) struct Report {
    missing: Missing,
    summary: Option<String>,
    tally: Tally,
    /// Parts that ended badly, in words.
    wrong: Vec<String>,
}

pub(crate) fn command(args: &[String]) -> Result<(), String> {
    if let Some(option) = args.iter().find(|arg| arg.starts_with('-')) {
        return Err(format!("`{option}` is no filter; for options of the runner, call it itself\n\n{HELP}"));
    }
    let report = run(args)?;
    print!("{}", report.closing());
    report.verdict()
}

/// Builds and runs everything that matches a filter.
pub(crate) fn run(filters: &[String]) -> Result<Report, String> {
    let runner = Runner::find();
    if runner == Runner::CargoTest {
        println!("cargo nextest is not installed; using cargo test, where a hanging test hangs");
    }
    let mut report = Report { missing: needs::look_for_tools(&runner.list_ignored()?), ..Report::default() };
    report.part("tests", &mut runner.run(filters, &report.missing))?;
    report.part("doc tests", &mut runner::doc_tests(filters))?;
    println!("\n== examples");
    report.tally += examples::run(filters)?;
    Ok(report)
}

impl Report {
    fn part(&mut self, name: &str, command: &mut std::process::Command) -> Result<(), String> {
        println!("\n== {name}");
        let heard = tee(command)?;
        if !heard.status.success() {
            self.wrong.push(format!("the {name} ended with {}", heard.status));
        }
        self.add(&heard.text);
        Ok(())
    }

    fn add(&mut self, printed: &str) {
        let closing = tally::closing(printed);
        self.summary = self.summary.take().or(closing.summary);
        self.tally += closing.tally;
    }

    /// What did not run, then the runner's own summary, then the sum with the doc tests.
    pub(crate) fn closing(&self) -> String {
        let mut text = format!("\n{}", self.missing.report());
        if let Some(line) = &self.summary {
            text.push_str(&format!("{line}\n"));
        }
        text.push_str(&format!("{}\n", self.tally));
        text
    }

    /// Whether all is well.
    pub(crate) fn verdict(&self) -> Result<(), String> {
        if !self.wrong.is_empty() {
            return Err(self.wrong.join("; "));
        }
        match self.tally {
            Tally { failed: 1.., .. } => Err(format!("{} failed", self.tally.failed)),
            Tally { passed: 0, .. } => Err("no test ran: no name matches the filter".to_owned()),
            Tally { .. } => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report_of(parts: &[&str]) -> Report {
        let mut report = Report::default();
        parts.iter().for_each(|printed| report.add(printed));
        report
    }

    #[test]
    fn the_sum_stands_alone_on_the_last_line() {
        let tests = "     Summary [ 0.1s] 3 tests run: 3 passed, 1 skipped";
        let docs =
            "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0s";
        let report = report_of(&[tests, docs]);
        let closing = report.closing();
        let lines: Vec<&str> = closing.trim().lines().collect();
        assert_eq!(lines, [tests.trim(), "5 passed, 0 failed, 1 skipped"]);
        assert_eq!(report.verdict(), Ok(()));
    }

    #[test]
    fn failures_crashes_and_empty_runs_are_no_success() {
        assert!(report_of(&["     Summary [ 0.1s] 1 test run: 0 passed, 1 failed"]).verdict().is_err());
        assert!(report_of(&[]).verdict().is_err());
        let mut crashed = report_of(&["     Summary [ 0.1s] 1 test run: 1 passed"]);
        crashed.wrong.push("the doc tests ended with signal 9".to_owned());
        assert!(crashed.verdict().is_err());
    }

    #[test]
    fn an_option_is_refused_with_the_page() {
        let message = command(&["--release".to_owned()]).unwrap_err();
        assert!(message.contains("`--release` is no filter") && message.contains("usage:"), "{message}");
    }
}

//! The two test runners: `cargo nextest` where it is installed, `cargo test` everywhere.

use std::io::IsTerminal;
use std::process::Command;

use super::needs::Missing;
use crate::proc::{cargo, has_cargo, stdout_of};

/// What runs the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runner {
    /// `cargo nextest`: one process per test, a hang fails.
    Nextest,
    /// `cargo test`, which comes with cargo.
    CargoTest,
}

/// Everything but doc tests; benches and examples are no tests.
const TARGETS: [&str; 5] = ["test", "--workspace", "--lib", "--bins", "--tests"];

impl Runner {
    /// The better one of those that are installed.
    pub(crate) fn find() -> Self {
        if has_cargo("nextest") { Self::Nextest } else { Self::CargoTest }
    }

    /// Builds the tests, and gives the names of those that need a tool.
    pub(crate) fn list_needy(self) -> Result<Vec<String>, String> {
        let mut list = match self {
            Self::Nextest => cargo([
                "nextest",
                "list",
                "--workspace",
                "--run-ignored=all",
                "--message-format=oneline",
                "--filterset=test(needs_)",
            ]),
            Self::CargoTest => {
                let mut command = cargo(TARGETS);
                command.args(["--", "--list", "--format=terse", "needs_"]);
                command
            }
        };
        let names = stdout_of(&mut list)?;
        Ok(names.lines().map(|line| line.trim_end_matches(": test").to_owned()).collect())
    }

    /// The run itself: everything that matches a filter and lacks no tool.
    pub(crate) fn run(self, filters: &[String], missing: &Missing) -> Command {
        match self {
            Self::Nextest => nextest(filters, missing),
            Self::CargoTest => cargo_test(filters, missing),
        }
    }
}

fn nextest(filters: &[String], missing: &Missing) -> Command {
    let mut command = cargo(["nextest", "run", "--workspace", "--run-ignored=all", "--no-fail-fast"]);
    // A filter may match only a doc test; `test` itself says when nothing matched at all.
    command.arg("--no-tests=pass");
    if std::io::stderr().is_terminal() {
        command.arg("--color=always");
    }
    if !missing.tools.is_empty() {
        let lacking: Vec<String> = missing.tools.keys().map(|tool| format!("test(needs_{tool})")).collect();
        command.arg(format!("--filterset=not ({})", lacking.join(" | ")));
    }
    command.args(filters);
    command
}

fn cargo_test(filters: &[String], missing: &Missing) -> Command {
    let mut command = cargo(TARGETS);
    command.args(["--no-fail-fast", "--", "--include-ignored"]);
    for tool in missing.tools.keys() {
        command.args(["--skip".to_owned(), format!("needs_{tool}")]);
    }
    command.args(filters);
    command
}

/// The doc tests, which no other runner knows.
pub(crate) fn doc_tests(filters: &[String]) -> Command {
    let mut command = cargo(["test", "--doc", "--workspace", "--no-fail-fast", "--"]);
    command.args(filters);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(command: &Command) -> Vec<String> {
        command.get_args().map(|arg| arg.to_string_lossy().into_owned()).collect()
    }

    fn without_strace() -> Missing {
        let mut missing = Missing::default();
        missing.tools.insert("faketime".to_owned(), "no faketime".to_owned());
        missing.tools.insert("strace".to_owned(), "no ptrace".to_owned());
        missing
    }

    #[test]
    fn both_runners_leave_out_what_lacks_its_tool_and_nothing_else() {
        let filters = ["keys".to_owned()];
        let nextest = args(&Runner::Nextest.run(&filters, &without_strace()));
        assert!(nextest.contains(&"--filterset=not (test(needs_faketime) | test(needs_strace))".to_owned()));
        assert!(nextest.contains(&"--run-ignored=all".to_owned()));
        assert_eq!(nextest.last().unwrap(), "keys");
        let plain = args(&Runner::CargoTest.run(&filters, &without_strace()));
        let after = plain.iter().position(|arg| arg == "--").unwrap();
        assert_eq!(
            plain[after + 1..],
            ["--include-ignored", "--skip", "needs_faketime", "--skip", "needs_strace", "keys"]
        );
    }

    #[test]
    fn nothing_is_left_out_where_every_tool_is() {
        for runner in [Runner::Nextest, Runner::CargoTest] {
            let all = args(&runner.run(&[], &Missing::default()));
            assert!(!all.iter().any(|arg| arg.contains("needs_")), "{all:?}");
        }
    }
}

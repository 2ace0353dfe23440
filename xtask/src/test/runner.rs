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

    /// Builds the tests, and gives the names of those that are ignored unless a tool is there.
    pub(crate) fn list_ignored(self) -> Result<Vec<String>, String> {
        let mut list = match self {
            Self::Nextest => {
                cargo(["nextest", "list", "--workspace", "--run-ignored=only", "--message-format=oneline"])
            }
            Self::CargoTest => {
                let mut command = cargo(TARGETS);
                command.args(["--", "--list", "--format=terse", "--ignored"]);
                command
            }
        };
        let names = stdout_of(&mut list)?;
        Ok(names.lines().map(test_name).collect())
    }

    /// The run itself: everything that matches a filter and lacks no tool.
    pub(crate) fn run(self, filters: &[String], missing: &Missing) -> Command {
        match self {
            Self::Nextest => nextest(filters, missing),
            Self::CargoTest => cargo_test(filters, missing),
        }
    }
}

/// Of `binary module::test` (nextest) or `module::test: test`, the path of the test.
fn test_name(line: &str) -> String {
    let line = line.trim_end_matches(": test");
    line.rsplit(' ').next().unwrap_or(line).to_owned()
}

fn nextest(filters: &[String], missing: &Missing) -> Command {
    let mut command = cargo(["nextest", "run", "--workspace", "--run-ignored=all", "--no-fail-fast"]);
    // A filter may match only a doc test; `test` itself says when nothing matched at all.
    command.arg("--no-tests=pass");
    if std::io::stderr().is_terminal() {
        command.arg("--color=always");
    }
    if !missing.tests.is_empty() {
        let lacking: Vec<String> = missing.tests.iter().map(|test| format!("test(={test})")).collect();
        command.arg(format!("--filterset=not ({})", lacking.join(" | ")));
    }
    command.args(filters);
    command
}

fn cargo_test(filters: &[String], missing: &Missing) -> Command {
    let mut command = cargo(TARGETS);
    command.args(["--no-fail-fast", "--", "--include-ignored"]);
    for test in &missing.tests {
        command.args(["--skip", test]);
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

    #[test]
    fn both_runners_leave_out_what_lacks_its_tool_and_nothing_else() {
        let tests = ["a::needs_faketime", "b::needs_strace"].map(str::to_owned).to_vec();
        let (missing, filters) = (Missing { tests, ..Missing::default() }, ["keys".to_owned()]);
        let nextest = args(&Runner::Nextest.run(&filters, &missing));
        let filterset = "--filterset=not (test(=a::needs_faketime) | test(=b::needs_strace))";
        assert!(nextest.iter().any(|arg| arg == filterset), "{nextest:?}");
        assert!(nextest.iter().any(|arg| arg == "--run-ignored=all"), "{nextest:?}");
        assert_eq!(nextest.last().unwrap(), "keys");
        let plain = args(&Runner::CargoTest.run(&filters, &missing));
        let after = plain.iter().position(|arg| arg == "--").unwrap();
        let expected =
            ["--include-ignored", "--skip", "a::needs_faketime", "--skip", "b::needs_strace", "keys"];
        assert_eq!(plain[after + 1..], expected);
    }

    #[test]
    fn a_test_has_one_name_in_both_lists() {
        assert_eq!(test_name("xtask::bin/xtask sim::needs_x"), "sim::needs_x");
        assert_eq!(test_name("sim::needs_x: test"), "sim::needs_x");
    }

    #[test]
    fn nothing_is_left_out_where_every_tool_is() {
        for runner in [Runner::Nextest, Runner::CargoTest] {
            let all = args(&runner.run(&[], &Missing::default()));
            assert!(!all.iter().any(|arg| arg.contains("needs_")), "{all:?}");
        }
    }
}

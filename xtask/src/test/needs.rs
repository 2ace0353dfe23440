//! Tests that need a tool, and whether this machine has it.
//!
//! Such a test is `#[ignore = "needs strace"]` and has `needs_strace` in its name. It runs where the tool is,
//! and is listed as *not run* where it is not: it never passes by being skipped.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use crate::proc::{root, succeeds_quietly};

/// A tool some tests need.
pub(crate) struct Tool {
    /// As it stands in test names, after `needs_`.
    pub(crate) name: &'static str,
    /// A command that ends well only where the tool really works.
    probe: &'static [&'static str],
    /// What is wrong when it does not, and the package that mends it.
    missing: &'static str,
}

/// Every tool a test may need; a name that is not here is never run, and `tidy` refuses it.
pub(crate) const TOOLS: &[Tool] = &[
    Tool {
        name: "python3",
        probe: &["python3", "-c", "import json, hashlib"],
        missing: "no python3; install the package python3",
    },
    Tool { name: "node", probe: &["node", "--eval", "0"], missing: "no node; install the package nodejs" },
    Tool {
        name: "strace",
        // A container may hold strace and forbid ptrace, so it has to trace something.
        probe: &["strace", "-o", "/dev/null", "true"],
        missing: "strace cannot trace here; install the package strace, and allow ptrace in a container",
    },
    Tool {
        name: "faketime",
        probe: &["faketime", "2001-01-01", "true"],
        missing: "no faketime; install the package faketime",
    },
    Tool {
        name: "vectors",
        probe: &["test", "-d", "../shared/vectors/jcs"],
        missing: "no vectors of RFC 8785 in shared/vectors/jcs beside the workspace",
    },
];

/// The tools a test's name asks for.
pub(crate) fn tools_in(test: &str) -> impl Iterator<Item = &str> {
    test.split("needs_").skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        &rest[..end]
    })
}

/// Which tools are missing, why, and the tests that therefore do not run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Missing {
    /// Tool name to reason.
    pub(crate) tools: BTreeMap<String, String>,
    /// Every test that does not run, as the runner names it.
    pub(crate) tests: Vec<String>,
}

/// Looks for every tool these ignored tests need.
pub(crate) fn look_for_tools(tests: &[String]) -> Missing {
    missing_among(tests, |tool| {
        let (program, args) = tool.probe.split_first()?;
        (!succeeds_quietly(Command::new(program).args(args).current_dir(root())))
            .then(|| tool.missing.to_owned())
    })
}

fn missing_among(tests: &[String], why_missing: impl Fn(&Tool) -> Option<String>) -> Missing {
    let names: BTreeSet<&str> = tests.iter().flat_map(|test| tools_in(test)).collect();
    let reason = |name: &str| match TOOLS.iter().find(|tool| tool.name == name) {
        Some(tool) => why_missing(tool),
        None => Some(format!("`{name}` is not in the list of tools in xtask/src/test/needs.rs")),
    };
    let tools: BTreeMap<String, String> =
        names.into_iter().filter_map(|name| Some((name.to_owned(), reason(name)?))).collect();
    let lacks = |test: &&String| tools_in(test).any(|name| tools.contains_key(name));
    Missing { tests: tests.iter().filter(lacks).cloned().collect(), tools }
}

impl Missing {
    /// The `not run:` part of the report; empty when everything ran.
    pub(crate) fn report(&self) -> String {
        if self.tests.is_empty() {
            return String::new();
        }
        let mut text = String::from("not run:\n");
        for (tool, reason) in &self.tools {
            text.push_str(&format!("  needs {tool}: {reason}\n"));
            for test in self.tests.iter().filter(|test| tools_in(test).any(|name| name == tool)) {
                text.push_str(&format!("    {test}\n"));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tests() -> Vec<String> {
        ["suite a::needs_python3_oracle", "suite b::kill_needs_strace", "suite c::needs_sextant"]
            .map(str::to_owned)
            .to_vec()
    }

    #[test]
    fn the_name_says_which_tools_it_needs() {
        let tools = |name| tools_in(name).collect::<Vec<_>>();
        assert_eq!(tools("suite a::needs_strace_needs_python3_x"), ["strace", "python3"]);
        assert_eq!(tools("suite a::needless"), [""; 0]);
    }

    #[test]
    fn a_test_whose_tool_is_missing_is_listed_with_the_reason() {
        let missing = missing_among(&tests(), |tool| (tool.name == "strace").then(|| "gone".to_owned()));
        assert_eq!(missing.tests, ["suite b::kill_needs_strace", "suite c::needs_sextant"]);
        let report = missing.report();
        assert!(report.starts_with("not run:\n"), "{report}");
        assert!(report.contains("  needs strace: gone\n    suite b::kill_needs_strace\n"), "{report}");
        assert!(report.contains("`sextant` is not in the list"), "{report}");
    }

    #[test]
    fn nothing_is_reported_where_every_tool_is() {
        let missing = missing_among(&tests()[..2], |_| None);
        assert_eq!((missing.report(), missing.tools.len()), (String::new(), 0));
    }
}

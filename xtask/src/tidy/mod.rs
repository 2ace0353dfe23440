//! `cargo xtask tidy`: a test over the repository.
//!
//! What people would have to remember is a rule here, with the reason and what to do instead in its message.
//! Clocks, sleeps and `unwrap` are clippy's to find.

mod allow;
mod bans;
mod changelog;
mod errors;
mod ignored;
mod layout;
mod links;
mod manifests;
mod purity;
mod reach;
mod sizes;
mod source;
mod tree;

use tree::Tree;

use crate::proc::root;

pub(crate) const HELP: &str = "\
usage: cargo xtask tidy

Looks at every file of the repository: pure rules stay pure, nothing is unfinished or unreachable, every error
code has its page, links resolve, files and functions stay short. Prints what to do about each finding, then
notes about what grows long. Exceptions stand in xtask/src/tidy/allow.rs, with their reasons.
";

/// Something that must change.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    path: String,
    /// Counted from one; zero for the file as a whole.
    line: usize,
    /// What is wrong, and what to do instead.
    message: String,
}

impl Finding {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }
}

/// A rule over the whole repository.
struct Rule {
    name: &'static str,
    check: fn(&Tree) -> Vec<Finding>,
    /// A small repository that breaks the rule: a rule that cannot fail is no rule.
    #[cfg_attr(not(test), expect(dead_code, reason = "read by the test of the rule"))]
    broken: &'static [(&'static str, &'static str)],
}

const RULES: &[Rule] = &[
    purity::RULE,
    bans::UNFINISHED,
    bans::ELSEWHERE,
    layout::NAMES,
    reach::RULE,
    errors::RULE,
    links::RULE,
    sizes::RULE,
    manifests::LINTS,
    manifests::LOCK,
    changelog::RULE,
    ignored::RULE,
    layout::MODULE_DOCS,
    layout::EXAMPLES,
];

pub(crate) fn command(args: &[String]) -> Result<(), String> {
    if let Some(arg) = args.first() {
        return Err(format!("`tidy` takes no arguments, and got `{arg}`\n\n{HELP}"));
    }
    check()
}

/// Checks this repository.
pub(crate) fn check() -> Result<(), String> {
    let tree = Tree::read(&root())?;
    for note in sizes::notes(&tree) {
        println!("note: {note}");
    }
    let findings = findings(&tree);
    if findings.is_empty() {
        println!("tidy: {} files, {} rules, nothing found", tree.files().count(), RULES.len());
        return Ok(());
    }
    Err(format!("{}\ntidy: {} to mend", findings.join("\n"), findings.len()))
}

fn findings(tree: &Tree) -> Vec<String> {
    let found =
        RULES.iter().flat_map(|rule| (rule.check)(tree).into_iter().map(|finding| (rule.name, finding)));
    allow::without_allowed(found.collect()).iter().map(|(rule, finding)| shown(rule, finding)).collect()
}

fn shown(rule: &str, finding: &Finding) -> String {
    match finding.line {
        0 => format!("{}: {} [{rule}]", finding.path, finding.message),
        line => format!("{}:{line}: {} [{rule}]", finding.path, finding.message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_tidy() {
        if let Err(findings) = check() {
            panic!("\n{findings}");
        }
    }

    #[test]
    fn every_rule_finds_what_breaks_it() {
        for rule in RULES {
            let found = (rule.check)(&Tree::of(rule.broken));
            assert!(!found.is_empty(), "{} found nothing in its own bad example", rule.name);
        }
    }

    #[test]
    fn a_finding_says_where_and_by_which_rule() {
        let finding = Finding::new("a.rs", 3, "do not; do this");
        assert_eq!(shown("links", &finding), "a.rs:3: do not; do this [links]");
        assert_eq!(shown("links", &Finding::new("a.rs", 0, "no")), "a.rs: no [links]");
    }
}

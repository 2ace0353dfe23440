//! Rules are pure functions: no store, no clock, no chance, no async, no I/O.
//!
//! A rule that asks the store or the time cannot be enumerated in a table, and the simulator no longer runs
//! what production runs. What it needs to know comes in as an argument: entries, statuses and moments are fine.

use super::source::line_at;
use super::tree::{File, Tree};
use super::{Finding, Rule};

pub(super) const RULE: Rule = Rule {
    name: "pure-rules",
    check,
    broken: &[("crates/onlyonce/src/engine/rules.rs", "use crate::store::Store;\n")],
};

/// Words that bring something impure, and what to do instead.
const IMPURE: &[(&str, &str)] = &[
    ("Store", "take the entry as an argument, and return the writes"),
    ("MemoryStore", "take the entry as an argument, and return the writes"),
    ("Clock", "take the moment as an argument: `now: Timestamp`"),
    ("SystemClock", "take the moment as an argument: `now: Timestamp`"),
    ("Instant", "take the moment as an argument: `now: Timestamp`"),
    ("SystemTime", "take the moment as an argument: `now: Timestamp`"),
    ("Chance", "take the drawn value as an argument"),
    ("async", "decide here, act in the caller"),
    ("await", "decide here, act in the caller"),
    ("tokio", "decide here, act in the caller"),
    ("std::fs", "decide here, read and write in the caller"),
    ("std::net", "decide here, read and write in the caller"),
    ("std::env", "take the value as an argument"),
    ("std::thread", "decide here, act in the caller"),
    ("tracing", "return what happened; the caller logs it"),
    ("metrics", "return what happened; the caller counts it"),
];

fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (file, source) in tree.rust().filter(|(file, _)| holds_rules(file)) {
        for (word, instead) in IMPURE {
            found.extend(source.words(word).map(|at| {
                let message = format!("rules are pure, and `{word}` is not; {instead}");
                Finding::new(&file.path, line_at(&file.text, at), message)
            }));
        }
    }
    found
}

fn holds_rules(file: &File) -> bool {
    file.name() == "rules.rs" || file.path.contains("/rules/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<(usize, String)> {
        check(&Tree::of(&[(path, text)])).into_iter().map(|f| (f.line, f.message)).collect()
    }

    #[test]
    fn every_impure_word_is_found_where_it_stands() {
        for (word, instead) in IMPURE {
            let found = found("a/rules.rs", &format!("fn f() {{}}\nuse {word};\n"));
            assert!(found.iter().any(|(line, message)| *line == 2 && message.contains(instead)), "{word}");
        }
    }

    #[test]
    fn entries_statuses_and_words_about_stores_are_fine() {
        let text = "//! The Store decides nothing; no async, no Clock.\nuse crate::store::{Entry, Status, StoreError};\n\
                    fn stored() -> &'static str { \"tokio Store\" }\n";
        assert_eq!(found("a/rules.rs", text), []);
        assert_eq!(found("a/once.rs", "use crate::store::Store;"), []);
        assert_eq!(found("a/rules/claim.rs", "use crate::store::Store;").len(), 1);
    }
}

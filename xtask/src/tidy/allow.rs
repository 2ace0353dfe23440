//! Exceptions to the rules, each with its reason.

use super::Finding;

/// Lets findings of one rule in one file pass.
struct Allow {
    rule: &'static str,
    path: &'static str,
    /// A part of the finding's message, so that a second finding in the file is still found.
    about: &'static str,
    /// Why the rule would make this place worse.
    reason: &'static str,
}

const ALLOWED: &[Allow] = &[
    Allow {
        rule: "unfinished",
        path: "crates/onlyonce-testkit/src/conformance/stamp.rs",
        about: "`#[allow`",
        reason: "a macro's expansion may need the import or not, and `expect` wants to know which",
    },
    Allow {
        rule: "elsewhere",
        path: "crates/onlyonce-stores/src/open.rs",
        about: "me/",
        reason: "the test brings its own HOME, and nothing is read from there",
    },
];

type Found = (&'static str, Finding);

/// What remains to be mended; an exception that excuses nothing is to be mended too.
pub(super) fn without_allowed(found: Vec<Found>) -> Vec<Found> {
    apply(ALLOWED, found)
}

fn apply(allowed: &[Allow], mut found: Vec<Found>) -> Vec<Found> {
    let mut unused = Vec::new();
    for allow in allowed {
        let before = found.len();
        found.retain(|(rule, finding)| !allow.covers(rule, finding));
        if found.len() == before {
            let message =
                format!("the exception for {} ({}) excuses nothing; delete it", allow.path, allow.reason);
            unused.push(("allow", Finding::new("xtask/src/tidy/allow.rs", 0, message)));
        }
    }
    found.extend(unused);
    found
}

impl Allow {
    fn covers(&self, rule: &str, finding: &Finding) -> bool {
        self.rule == rule && self.path == finding.path && finding.message.contains(self.about)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Allow = Allow { rule: "sizes", path: "a.rs", about: "`long`", reason: "a table of states" };

    #[test]
    fn an_exception_covers_one_rule_one_file_and_one_thing() {
        let found = || {
            vec![
                ("sizes", Finding::new("a.rs", 1, "`long` has 70 lines")),
                ("sizes", Finding::new("a.rs", 9, "`other` has 70 lines")),
                ("sizes", Finding::new("b.rs", 1, "`long` has 70 lines")),
                ("links", Finding::new("a.rs", 1, "`long`")),
            ]
        };
        let left = apply(&[LONG], found());
        assert_eq!(left, found()[1..]);
    }

    #[test]
    fn an_exception_that_excuses_nothing_is_found() {
        let left = apply(&[LONG], vec![]);
        assert_eq!(left.len(), 1);
        assert!(left[0].1.message.contains("a table of states"), "{left:?}");
    }
}

//! An ignored test names the tool it needs, so that `cargo xtask test` can run it where the tool is.

use super::source::{Source, identifier, line_at};
use super::tree::{File, Tree};
use super::{Finding, Rule};
use crate::test::needs::{TOOLS, tools_in};

pub(super) const RULE: Rule = Rule {
    name: "ignored-tests",
    check,
    broken: &[("a.rs", "#[test]\n#[ignore = \"slow\"]\nfn takes_long() {}\n")],
};

fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (file, source) in tree.rust() {
        for (at, _) in source.code.match_indices("#[ignore") {
            if let Err(message) = check_ignored(file, source, at) {
                found.push(Finding::new(&file.path, line_at(&file.text, at), message));
            }
        }
    }
    found
}

fn check_ignored(file: &File, source: &Source, at: usize) -> Result<(), String> {
    let reason = file.text[at..].strip_prefix("#[ignore = \"").and_then(|rest| rest.split_once('"'));
    let tool = reason.and_then(|(reason, _)| reason.strip_prefix("needs ")).ok_or(
        "write `#[ignore = \"needs <tool>\"]`; a test that is only slow is made faster, or run with fewer cases",
    )?;
    if !TOOLS.iter().any(|known| known.name == tool) {
        return Err(format!("`{tool}` is unknown; add it to TOOLS in xtask/src/test/needs.rs with a probe"));
    }
    let name = source
        .words("fn")
        .find(|fn_at| *fn_at > at)
        .map(|fn_at| identifier(source.code[fn_at + 2..].trim_start()));
    match name {
        Some(name) if tools_in(name).any(|needed| needed == tool) => Ok(()),
        _ => Err(format!("put `needs_{tool}` into the test's name: the runners choose tests by name")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        check(&Tree::of(&[("a.rs", text)])).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn a_test_that_says_what_it_needs_is_fine() {
        assert_eq!(found("#[test]\n#[ignore = \"needs strace\"]\nfn kill_needs_strace() {}"), [""; 0]);
        assert_eq!(found("// #[ignore]\nconst S: &str = \"#[ignore]\";"), [""; 0]);
    }

    #[test]
    fn one_that_does_not_is_found() {
        assert!(found("#[ignore]\nfn a() {}")[0].contains("write `#[ignore"));
        assert!(
            found("#[ignore = \"needs sextant\"]\nfn needs_sextant() {}")[0].contains("`sextant` is unknown")
        );
        assert!(
            found("#[ignore = \"needs strace\"]\nfn a() {}\nfn needs_strace() {}")[0]
                .contains("put `needs_strace`")
        );
    }
}

//! Files and functions stay short enough to be read at once.

use super::source::line_at;
use super::tree::Tree;
use super::{Finding, Rule};

/// Sixty-one lines: one over what a function may have.
const LONG_FUNCTION: &str = concat!(
    "fn f() {\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n",
    "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n}\n"
);

pub(super) const RULE: Rule = Rule { name: "sizes", check, broken: &[("a.rs", LONG_FUNCTION)] };

/// Above these, a finding.
const MOST: Lines = Lines { file: 600, function: 60 };
/// Above these, a note.
const MANY: Lines = Lines { file: 400, function: 40 };

struct Lines {
    file: usize,
    function: usize,
}

impl Lines {
    /// The limit for this finding: one without a line is about a file.
    fn of(&self, finding: &Finding) -> usize {
        if finding.line == 0 { self.file } else { self.function }
    }
}

fn check(tree: &Tree) -> Vec<Finding> {
    let too_long = |(finding, lines): (Finding, usize)| {
        let most = MOST.of(&finding);
        let message = format!("{}: split it where its second job begins (at most {most})", finding.message);
        (lines > most).then_some(Finding { message, ..finding })
    };
    measured(tree).into_iter().filter_map(too_long).collect()
}

/// What is long, longest first, and not yet too long.
pub(super) fn notes(tree: &Tree) -> Vec<String> {
    let mut long = measured(tree);
    long.retain(|(finding, lines)| *lines > MANY.of(finding));
    long.sort_by_key(|(finding, lines)| (finding.line != 0, std::cmp::Reverse(*lines)));
    long.iter().map(|(finding, _)| format!("{}: {}", finding.path, finding.message)).collect()
}

/// Every file and every function, with its lines.
fn measured(tree: &Tree) -> Vec<(Finding, usize)> {
    let mut all = Vec::new();
    for (file, source) in tree.rust() {
        let lines = file.text.lines().count();
        all.push((Finding::new(&file.path, 0, format!("the file has {lines} lines")), lines));
        for function in source.functions() {
            let message = format!("`{}` has {} lines", function.name, function.lines);
            all.push((
                Finding::new(&file.path, line_at(&file.text, function.offset), message),
                function.lines,
            ));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(lines: usize) -> String {
        format!("fn f() {{{}}}\n", "\n".repeat(lines - 1))
    }

    #[test]
    fn one_line_over_is_found_and_the_limit_is_not() {
        let found = |text: &str| check(&Tree::of(&[("a.rs", text)])).len();
        assert_eq!((found(&function(MOST.function)), found(&function(MOST.function + 1))), (0, 1));
        assert_eq!((found(&"\n".repeat(MOST.file)), found(&"\n".repeat(MOST.file + 1))), (0, 1));
    }

    #[test]
    fn what_grows_long_is_noted_longest_first() {
        let (short, long) = (function(MANY.function + 1), function(MANY.function + 9));
        let file = "\n".repeat(MANY.file + 1);
        let tree = Tree::of(&[
            ("a.rs", &short),
            ("b.rs", &long),
            ("c.rs", &file),
            ("d.rs", &function(MANY.function)),
        ]);
        let paths: Vec<String> = notes(&tree).iter().map(|note| note[..4].to_owned()).collect();
        assert_eq!(paths, ["c.rs", "b.rs", "a.rs"]);
    }
}

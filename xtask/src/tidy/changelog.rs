//! The changelog says what the next release will bring.

use super::tree::Tree;
use super::{Finding, Rule};

const PATH: &str = "CHANGELOG.md";

pub(super) const RULE: Rule = Rule {
    name: "changelog",
    check,
    broken: &[(PATH, "# Changelog\n\n## Unreleased\n\n## 0.1.0\n\n- First.\n")],
};

fn check(tree: &Tree) -> Vec<Finding> {
    let text = tree.file(PATH).map_or("", |file| &file.text);
    let unreleased = text.lines().skip_while(|line| *line != "## Unreleased").skip(1);
    let entries: Vec<&str> = unreleased.take_while(|line| !line.starts_with("## ")).collect();
    if entries.iter().any(|line| line.starts_with("- ")) {
        return Vec::new();
    }
    let message = "write an entry under `## Unreleased`: a sentence a user understands, Safety first";
    vec![Finding::new(PATH, 0, message)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_counts_only_under_unreleased() {
        let found = |text| check(&Tree::of(&[(PATH, text)])).len();
        assert_eq!(found("## Unreleased\n\n### Added\n\n- A thing.\n\n## 0.1.0\n"), 0);
        assert_eq!([found("## 0.1.0\n\n- A thing.\n"), found("")], [1, 1]);
        assert_eq!(check(&Tree::of(&[])).len(), 1);
    }
}

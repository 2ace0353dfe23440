//! How files are named and what stands at their top or beside them.

use super::tree::{File, Tree};
use super::{Finding, Rule};

pub(super) const NAMES: Rule =
    Rule { name: "names", check: names, broken: &[("crates/a/src/utils.rs", "//! Things.\n")] };

pub(super) const MODULE_DOCS: Rule =
    Rule { name: "module-docs", check: module_docs, broken: &[("crates/a/src/b.rs", "use std::fmt;\n")] };

pub(super) const EXAMPLES: Rule =
    Rule { name: "examples", check: examples, broken: &[("crates/a/examples/show.rs", "fn main() {}\n")] };

/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 8] = ["util", "utils", "common", "helper", "helpers", "manager", "misc", "info"];

fn names(tree: &Tree) -> Vec<Finding> {
    let nothing_said = |part: &str| EMPTY_NAMES.contains(&part.trim_end_matches(".rs"));
    tree.rust()
        .filter(|(file, _)| file.path.split('/').any(nothing_said))
        .map(|(file, _)| Finding::new(&file.path, 0, "says nothing; name it for what it does"))
        .collect()
}

fn module_docs(tree: &Tree) -> Vec<Finding> {
    let undocumented = |text: &str| {
        let first = text.lines().find(|line| !line.trim().is_empty() && !line.starts_with("#!["));
        !first.is_some_and(|line| line.starts_with("//!"))
    };
    tree.rust()
        .filter(|(file, _)| file.path.contains("/src/") && undocumented(&file.text))
        .map(|(file, _)| {
            Finding::new(&file.path, 1, "start it with `//!` and one sentence on what it is for")
        })
        .collect()
}

fn examples(tree: &Tree) -> Vec<Finding> {
    let is_example =
        |file: &File| matches!(file.directory().split('/').collect::<Vec<_>>()[..], [_, _, "examples"]);
    tree.rust()
        .filter(|(file, _)| is_example(file) && !tree.has(&file.path.replace(".rs", ".session")))
        .map(|(file, _)| {
            Finding::new(
                &file.path,
                0,
                "put what it prints beside it, as `.session`: `cargo xtask test` plays it",
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_names_are_found_as_files_and_as_directories() {
        for path in ["src/utils.rs", "src/helpers/mod.rs", "crates/common/src/lib.rs"] {
            assert_eq!(names(&Tree::of(&[(path, "//! X.")])).len(), 1, "{path}");
        }
        assert_eq!(names(&Tree::of(&[("src/information.rs", "//! X.")])), []);
    }

    #[test]
    fn a_module_says_what_it_is_for() {
        let found = |text| module_docs(&Tree::of(&[("crates/a/src/b.rs", text)])).len();
        assert_eq!([found("//! For x.\n"), found("#![no_std]\n\n//! For x.\n")], [0, 0]);
        assert_eq!([found(""), found("// For x.\n"), found("use x;\n//! For x.\n")], [1, 1, 1]);
    }

    #[test]
    fn an_example_comes_with_what_it_prints() {
        let example = ("crates/a/examples/show.rs", "fn main() {}");
        assert_eq!(examples(&Tree::of(&[example])).len(), 1);
        assert_eq!(examples(&Tree::of(&[example, ("crates/a/examples/show.session", "")])), []);
    }
}

//! Manifests: one list of lints for all crates, one well-known source for all packages.

use super::tree::Tree;
use super::{Finding, Rule};

pub(super) const LINTS: Rule = Rule {
    name: "lints",
    check: lints,
    broken: &[("Cargo.toml", "[workspace]\n"), ("crates/a/Cargo.toml", "[package]\nname = \"a\"\n")],
};

pub(super) const LOCK: Rule = Rule {
    name: "lock",
    check: lock,
    broken: &[("Cargo.lock", "source = \"registry+https://mirror.example/index\"\n")],
};

fn lints(tree: &Tree) -> Vec<Finding> {
    let members =
        tree.files().filter(|file| file.name() == "Cargo.toml" && !file.text.contains("[workspace]"));
    members
        .filter(|file| !section(&file.text, "[lints]").any(|line| line == "workspace = true"))
        .map(|file| {
            Finding::new(
                &file.path,
                0,
                "add `[lints]` with `workspace = true`: the list stands in the root once",
            )
        })
        .collect()
}

/// The trimmed lines of one section.
fn section<'a>(text: &'a str, title: &'a str) -> impl Iterator<Item = &'a str> {
    let from = text.lines().map(str::trim).skip_while(move |line| *line != title).skip(1);
    from.take_while(|line| !line.starts_with('['))
}

/// What a lock file says where cargo is set up as it comes.
const COMMON_SOURCE: &str = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";

fn lock(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in tree.files().filter(|file| file.name() == "Cargo.lock") {
        let sources = file.text.lines().enumerate().filter(|(_, line)| line.starts_with("source = "));
        found.extend(sources.filter(|(_, line)| *line != COMMON_SOURCE).map(|(at, line)| {
            let message = format!("`{line}` is a source others cannot reach; use a published version");
            Finding::new(&file.path, at + 1, message)
        }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_with_lints_of_its_own_is_found() {
        let found = |text| lints(&Tree::of(&[("crates/a/Cargo.toml", text)])).len();
        assert_eq!(found("[package]\n[lints]\nworkspace = true\n[dependencies]\n"), 0);
        assert_eq!(found("[package]\n[lints.clippy]\nall = \"warn\"\n"), 1);
        assert_eq!(found("[package]\n[lints]\n[other]\nworkspace = true\n"), 1);
    }

    #[test]
    fn a_workspace_of_its_own_decides_for_itself() {
        assert_eq!(lints(&Tree::of(&[("fuzz/Cargo.toml", "[package]\n[workspace]\n")])), []);
    }

    #[test]
    fn a_lock_file_names_the_common_source_only() {
        let text = format!("version = 4\n{COMMON_SOURCE}\nsource = \"git+https://example.com/x\"\n");
        let found = lock(&Tree::of(&[("Cargo.lock", &text)]));
        assert_eq!(found.iter().map(|finding| finding.line).collect::<Vec<_>>(), [3]);
    }
}

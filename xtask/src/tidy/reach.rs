//! No dead file: every `.rs` file is a target of its package or is reached from one by a `mod`.

use std::collections::BTreeSet;

use super::source::{Source, closing_brace, identifier};
use super::tree::{File, Tree, join};
use super::{Finding, Rule};

pub(super) const RULE: Rule = Rule {
    name: "dead-files",
    check,
    broken: &[
        ("crates/a/Cargo.toml", "[package]\n"),
        ("crates/a/src/lib.rs", "mod used;\n"),
        ("crates/a/src/used.rs", ""),
        ("crates/a/src/dead.rs", ""),
    ],
};

fn check(tree: &Tree) -> Vec<Finding> {
    let reached = reached(tree);
    tree.rust()
        .filter(|(file, _)| !reached.contains(&file.path))
        .map(|(file, _)| {
            Finding::new(
                &file.path,
                0,
                "no `mod` leads here, so it is never compiled; declare it or delete it",
            )
        })
        .collect()
}

fn reached(tree: &Tree) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    for manifest in tree.files().filter(|file| file.name() == "Cargo.toml") {
        let package = manifest.directory();
        let mut next: Vec<(String, bool)> =
            roots(tree, manifest).into_iter().map(|path| (path, true)).collect();
        while let Some((path, is_root)) = next.pop() {
            let Some(file) = tree.file(&path) else { continue };
            if !reached.insert(path) {
                continue;
            }
            next.extend(leads_to(file, is_root, package, tree).into_iter().map(|path| (path, false)));
        }
    }
    reached
}

/// The files cargo compiles by itself, and those the manifest names.
fn roots(tree: &Tree, manifest: &File) -> Vec<String> {
    let package = manifest.directory();
    let is_root = |file: &&File| {
        let inside = file.path.strip_prefix(package).map(|rest| rest.trim_start_matches('/'));
        inside.is_some_and(|inside| match inside.split('/').collect::<Vec<_>>()[..] {
            ["build.rs"] | ["src", "lib.rs" | "main.rs"] => true,
            ["src", "bin", _] | ["tests" | "examples" | "benches", _] => inside.ends_with(".rs"),
            ["src", "bin", _, "main.rs"] | ["tests" | "examples" | "benches", _, "main.rs"] => true,
            _ => false,
        })
    };
    let found = tree.files().filter(is_root).map(|file| file.path.clone());
    let named = quoted_after(&manifest.text, "path = ").into_iter().filter_map(|path| join(package, path));
    found.chain(named).collect()
}

/// The files this one brings into the build.
fn leads_to(file: &File, is_root: bool, package: &str, tree: &Tree) -> Vec<String> {
    let Some(source) = &file.source else { return Vec::new() };
    let mut paths = declared(file, source, is_root);
    let beside = |path: &str| join(file.directory(), path);
    paths.extend(quoted_after(&file.text, "include!(").into_iter().filter_map(beside));
    for name in quoted_after(&file.text, "#[path = ") {
        paths.extend(beside(name));
    }
    // trybuild is told its cases by a pattern from the package's directory: `tests/ui/*.rs`.
    for pattern in ["compile_fail(", "pass("].iter().flat_map(|call| quoted_after(&file.text, call)) {
        let Some(directory) = pattern.strip_suffix("/*.rs").and_then(|inside| join(package, inside)) else {
            continue;
        };
        paths.extend(
            tree.rust().filter(|(case, _)| case.directory() == directory).map(|(case, _)| case.path.clone()),
        );
    }
    paths
}

/// The two places where each declared module may be.
fn declared(file: &File, source: &Source, is_root: bool) -> Vec<String> {
    let own = file.name().trim_end_matches(".rs");
    let own_directory = if is_root || own == "mod" { "" } else { own };
    let code = &source.code;
    let inline: Vec<(usize, usize, &str)> =
        source.words("mod").filter_map(|at| inline_module(code, at)).collect();
    let mut paths = Vec::new();
    for at in source.words("mod") {
        let name = identifier(code[at + 3..].trim_start());
        if !after_name(code, at, name).starts_with(';') {
            continue;
        }
        let around =
            inline.iter().filter(|(start, end, _)| (*start..*end).contains(&at)).map(|(.., name)| *name);
        let parts: Vec<&str> = [file.directory(), own_directory].into_iter().chain(around).collect();
        let base = join("", &parts.join("/")).unwrap_or_default();
        paths.extend(join(&base, &format!("{name}.rs")));
        paths.extend(join(&base, &format!("{name}/mod.rs")));
    }
    paths
}

/// Start, end and name of the module with a body that is declared at `at`.
fn inline_module(code: &str, at: usize) -> Option<(usize, usize, &str)> {
    let name = identifier(code[at + 3..].trim_start());
    let rest = after_name(code, at, name);
    let open = code.len() - rest.len();
    rest.starts_with('{').then(|| closing_brace(code, open)).flatten().map(|end| (open, end, name))
}

fn after_name<'a>(code: &'a str, at: usize, name: &str) -> &'a str {
    code[at + 3..].trim_start()[name.len()..].trim_start()
}

/// Every string literal that follows `start` directly.
fn quoted_after<'a>(text: &'a str, start: &str) -> Vec<&'a str> {
    let starts = text.match_indices(start).map(|(at, _)| &text[at + start.len()..]);
    starts.filter_map(|rest| rest.strip_prefix('"')?.split_once('"')).map(|(inside, _)| inside).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dead(files: &[(&str, &str)]) -> Vec<String> {
        let mut all = vec![("c/a/Cargo.toml", "[package]\n[[bin]]\npath = \"odd/place.rs\"\n")];
        all.extend(files);
        check(&Tree::of(&all)).into_iter().map(|finding| finding.path).collect()
    }

    #[test]
    fn a_file_is_dead_until_a_mod_leads_to_it() {
        let lib = ("c/a/src/lib.rs", "// mod dead;\nconst S: &str = \"mod dead;\";\npub mod one;\n");
        assert_eq!(dead(&[lib, ("c/a/src/one.rs", ""), ("c/a/src/dead.rs", "")]), ["c/a/src/dead.rs"]);
        assert_eq!(dead(&[lib, ("c/a/src/one/mod.rs", "")]), [""; 0]);
        assert_eq!(dead(&[lib, ("c/a/src/one.rs", "mod two;"), ("c/a/src/one/two.rs", "")]), [""; 0]);
        assert_eq!(dead(&[lib, ("c/a/src/one.rs", "mod two;"), ("c/a/src/two.rs", "")]), ["c/a/src/two.rs"]);
    }

    #[test]
    fn targets_and_their_modules_live() {
        let files = [
            ("c/a/src/bin/tool.rs", ""),
            ("c/a/tests/suite/main.rs", "mod keys;"),
            ("c/a/tests/suite/keys.rs", ""),
            ("c/a/examples/show.rs", ""),
            ("c/a/build.rs", ""),
            ("c/a/odd/place.rs", ""),
        ];
        assert_eq!(dead(&files), [""; 0]);
        assert_eq!(dead(&[("c/a/tests/suite/keys.rs", "")]), ["c/a/tests/suite/keys.rs"]);
    }

    #[test]
    fn inline_modules_paths_and_includes_are_followed() {
        let lib = "mod outer { mod inner; }\n#[path = \"x.rs\"]\nmod y;\ninclude!(\"z.rs\");";
        let files = [
            ("c/a/src/lib.rs", lib),
            ("c/a/src/outer/inner.rs", ""),
            ("c/a/src/x.rs", ""),
            ("c/a/src/z.rs", ""),
        ];
        assert_eq!(dead(&files), [""; 0]);
    }

    #[test]
    fn cases_of_trybuild_live_where_a_test_names_their_directory() {
        let suite = ("c/a/tests/suite.rs", "fn t() { t.compile_fail(\"tests/ui/*.rs\"); }");
        let case = ("c/a/tests/ui/wrong.rs", "");
        assert_eq!(dead(&[suite, case]), [""; 0]);
        assert_eq!(dead(&[case]), ["c/a/tests/ui/wrong.rs"]);
    }
}

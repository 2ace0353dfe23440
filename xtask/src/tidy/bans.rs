//! Words and paths that have no place in the repository.

use super::source::{line_at, words_in};
use super::tree::{File, Tree};
use super::{Finding, Rule};

pub(super) const UNFINISHED: Rule =
    Rule { name: "unfinished", check: unfinished, broken: &[("a.rs", "fn f() { todo!() }\n")] };

pub(super) const ELSEWHERE: Rule =
    Rule { name: "elsewhere", check: elsewhere, broken: &[("docs/a.md", concat!("cd /ro", "ot/project\n"))] };

/// Words in code, and what to write instead.
const IN_CODE: &[(&str, &str)] = &[
    ("todo!", "finish it, or leave it out"),
    ("unimplemented!", "finish it, or leave it out"),
    ("dbg!", "use a `tracing` event, or an assertion in a test"),
    ("#[allow", "use `#[expect(…, reason = \"…\")]`: it says why, and complains once it is needless"),
    ("#![allow", "use `#![expect(…, reason = \"…\")]`: it says why, and complains once it is needless"),
];

/// Words in comments, and what to write instead.
const IN_COMMENTS: &[(&str, &str)] = &[
    ("TODO", "do it, or open an issue; comments say why, not what is missing"),
    ("FIXME", "mend it, starting with a failing test"),
    ("XXX", "say why it is so, or mend it"),
];

fn unfinished(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (file, source) in tree.rust() {
        found.extend(banned(file, &source.code, IN_CODE));
        found.extend(banned(file, &source.comments, IN_COMMENTS));
    }
    let others = |file: &&File| [".toml", ".sh", ".yml", ".yaml"].iter().any(|end| file.path.ends_with(end));
    for file in tree.files().filter(others) {
        found.extend(banned(file, &file.text, IN_COMMENTS));
    }
    found
}

fn banned(file: &File, text: &str, words: &[(&str, &str)]) -> Vec<Finding> {
    let finding = |(word, instead): &(&str, &str), at| {
        Finding::new(&file.path, line_at(text, at), format!("`{word}`: {instead}"))
    };
    words.iter().flat_map(|ban| words_in(text, ban.0).map(move |at| finding(ban, at))).collect()
}

/// Starts of paths that exist on one machine only. Split, so that this file does not break its own rule.
const MACHINE_PATHS: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("/Us", "ers/"),
    concat!("/tm", "p/"),
];

/// Hosts that serve packages.
const REGISTRY_HOSTS: &[&str] = &[
    concat!("index.", "crates.io"),
    concat!("static.", "crates.io"),
    concat!("pypi.", "org"),
    concat!("registry.", "npmjs.org"),
    concat!("proxy.", "golang.org"),
];

fn elsewhere(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in tree.files() {
        for start in MACHINE_PATHS {
            let stands_alone = |at: &usize| {
                !file.text[..*at].ends_with(|c: char| c.is_alphanumeric() || "._-~}$".contains(c))
            };
            let message =
                format!("`{start}…` is a path of one machine; use a relative one, or a temporary directory");
            let at = file.text.match_indices(start).map(|(at, _)| at).filter(stands_alone);
            found.extend(at.map(|at| Finding::new(&file.path, line_at(&file.text, at), message.clone())));
        }
        for host in REGISTRY_HOSTS {
            let message = format!(
                "`{host}` serves packages; name the package, and leave the host to the reader's cargo"
            );
            let at = file.text.match_indices(host);
            found
                .extend(at.map(|(at, _)| Finding::new(&file.path, line_at(&file.text, at), message.clone())));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(found: &[Finding]) -> Vec<usize> {
        found.iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn every_unfinished_mark_is_found_in_its_place() {
        for (word, instead) in IN_CODE {
            let found = unfinished(&Tree::of(&[("a.rs", &format!("\n{word}(x)"))]));
            assert_eq!(lines(&found), [2], "{word}");
            assert!(found[0].message.contains(instead));
            assert_eq!(unfinished(&Tree::of(&[("a.rs", &format!("// {word}\nlet x = \"{word}\";"))])), []);
        }
        for (word, _) in IN_COMMENTS {
            assert_eq!(
                lines(&unfinished(&Tree::of(&[("a.rs", &format!("x; // {word}: later"))]))),
                [1],
                "{word}"
            );
            assert_eq!(lines(&unfinished(&Tree::of(&[("a.toml", &format!("# {word}"))]))), [1], "{word}");
            assert_eq!(unfinished(&Tree::of(&[("a.rs", &format!("let x = \"{word}\";"))])), []);
        }
    }

    #[test]
    fn a_path_of_one_machine_is_found_also_in_a_string() {
        for start in MACHINE_PATHS {
            assert_eq!(
                lines(&elsewhere(&Tree::of(&[("a.rs", &format!("f(\"{start}x\")"))]))),
                [1],
                "{start}"
            );
            assert_eq!(elsewhere(&Tree::of(&[("a.rs", &format!("see ..{start}x and crates{start}x"))])), []);
        }
        for host in REGISTRY_HOSTS {
            assert_eq!(
                lines(&elsewhere(&Tree::of(&[("a.md", &format!("\nhttps://{host}/x"))]))),
                [2],
                "{host}"
            );
        }
    }
}

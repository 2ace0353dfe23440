//! Every error code has its page, and every page its code.

use super::source::words_in;
use super::tree::{File, Tree};
use super::{Finding, Rule};

const ENUM: &str = "crates/onlyonce/src/error.rs";
const PAGES: &str = "docs/errors";
const INDEX: &str = "docs/errors/README.md";
/// Where the examples on the pages are compiled.
const COMPILED: &str = "crates/onlyonce/src/error_pages.rs";

pub(super) const RULE: Rule = Rule {
    name: "error-pages",
    check,
    broken: &[(ENUM, "const CODES: [&'static str; 1] = [\"lease_lost\"];\n"), (INDEX, "")],
};

/// What every page answers, in this order.
const QUESTIONS: [&str; 5] =
    ["## What happened", "## Is it safe to retry?", "## What to do", "## Exit status", "## Who sees it"];

fn check(tree: &Tree) -> Vec<Finding> {
    let codes = match tree.file(ENUM).map(codes) {
        Some(codes) if !codes.is_empty() => codes,
        _ => return vec![Finding::new(ENUM, 0, "no `CODES: […] = [\"…\"]` found; every code stands there")],
    };
    let index = tree.file(INDEX).map_or("", |file| &file.text);
    let compiled = tree.file(COMPILED).map_or("", |file| &file.text);
    let mut found = Vec::new();
    for code in &codes {
        let path = format!("{PAGES}/{code}.md");
        match tree.file(&path) {
            Some(page) => found.extend(check_page(page, code)),
            None => found.push(Finding::new(&path, 0, format!("write this page: `{code}` is an error code"))),
        }
        if !index.contains(&format!("[`{code}`]({code}.md)")) {
            found.push(Finding::new(INDEX, 0, format!("add a row that links to [`{code}`]({code}.md)")));
        }
        if words_in(compiled, code).next().is_none() {
            found.push(Finding::new(COMPILED, 0, format!("add {code}, so that its page's examples compile")));
        }
    }
    found.extend(pages_without_code(tree, &codes));
    found
}

fn pages_without_code(tree: &Tree, codes: &[&str]) -> Vec<Finding> {
    let pages = tree.ending(".md").filter(|file| file.directory() == PAGES && file.path != INDEX);
    pages
        .filter(|file| !codes.contains(&file.name().trim_end_matches(".md")))
        .map(|file| {
            Finding::new(&file.path, 0, format!("no code of this name in {ENUM}; delete or rename it"))
        })
        .collect()
}

fn check_page(page: &File, code: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    if page.text.lines().next() != Some(&format!("# {code}")) {
        found.push(Finding::new(&page.path, 1, format!("its title is its code: `# {code}`")));
    }
    let headings: Vec<&str> = page.text.lines().filter(|line| line.starts_with("## ")).collect();
    if headings != QUESTIONS {
        found.push(Finding::new(&page.path, 0, format!("its headings are {}", QUESTIONS.join(", "))));
    }
    found
}

/// The strings of `CODES`, in their order.
fn codes(file: &File) -> Vec<&str> {
    let inside = || file.text.split_once("CODES:")?.1.split_once("= [")?.1.split_once(']');
    let Some((list, _)) = inside() else { return Vec::new() };
    list.split('"').skip(1).step_by(2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# a_b\n\nText.\n\n## What happened\n\n## Is it safe to retry?\n\n## What to do\n\n## Exit status\n\n## Who sees it\n";

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let mut all = vec![
            (ENUM, "pub const CODES: [&'static str; 1] = [\n    \"a_b\",\n];\nlet x = \"c\";"),
            (COMPILED, "pages! { a_b }"),
        ];
        all.extend(files);
        check(&Tree::of(&all))
            .into_iter()
            .map(|finding| format!("{}: {}", finding.path, finding.message))
            .collect()
    }

    #[test]
    fn a_code_needs_a_page_and_a_row() {
        let index = (INDEX, "| [`a_b`](a_b.md) | yes |");
        assert_eq!(found(&[index, ("docs/errors/a_b.md", PAGE)]), [""; 0]);
        assert!(found(&[index])[0].starts_with("docs/errors/a_b.md: write this page"));
        assert!(found(&[("docs/errors/a_b.md", PAGE)])[0].contains("add a row"));
    }

    #[test]
    fn a_page_whose_examples_nobody_compiles_is_found() {
        let files = [(INDEX, "[`a_b`](a_b.md)"), ("docs/errors/a_b.md", PAGE)];
        assert_eq!(found(&files), [""; 0]);
        let list = (ENUM, "pub const CODES: [&str; 1] = [\"a_b\"];");
        let without = check(&Tree::of(&[list, files[0], files[1], (COMPILED, "pages! { a_bc }")]));
        assert_eq!(without.len(), 1);
        assert_eq!(without[0].path, COMPILED);
    }

    #[test]
    fn a_page_needs_a_code_a_title_and_its_questions() {
        let index = (INDEX, "| [`a_b`](a_b.md) | yes |");
        let page = ("docs/errors/a_b.md", PAGE);
        assert!(
            found(&[index, page, ("docs/errors/old.md", PAGE)])[0].starts_with("docs/errors/old.md: no code")
        );
        assert!(
            found(&[index, (page.0, &PAGE.replace("# a_b", "# A b"))])[0].contains("its title is its code")
        );
        assert!(
            found(&[index, (page.0, &PAGE.replace("## Exit status\n", ""))])[0].contains("its headings are")
        );
    }

    #[test]
    fn a_list_that_cannot_be_read_is_found() {
        assert_eq!(check(&Tree::of(&[(ENUM, "enum Error {}")])).len(), 1);
        assert_eq!(check(&Tree::of(&[])).len(), 1);
    }
}

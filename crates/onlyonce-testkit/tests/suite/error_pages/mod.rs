//! What the pages in `docs/errors` say is what the code does.

mod provoked;

use onlyonce::Error;
use provoked::samples;

fn page(name: &str) -> String {
    let path = format!("{}/../../docs/errors/{name}.md", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// What a page says under a heading.
fn section(page: &str, heading: &str) -> String {
    let (_, rest) = page.split_once(&format!("\n## {heading}\n")).unwrap();
    rest.split("\n## ").next().unwrap_or_default().trim().to_owned()
}

#[test]
fn every_code_has_a_sample_and_stands_in_the_list_once() {
    let codes: Vec<&str> = samples().iter().map(Error::code).collect();
    assert_eq!(codes, Error::CODES);
}

#[test]
fn the_table_says_what_the_code_does() {
    let index = page("README");
    let rows: Vec<&str> = index.lines().filter(|line| line.starts_with("| [`")).collect();
    assert_eq!(rows.len(), Error::CODES.len());
    for (row, error) in rows.iter().zip(samples()) {
        let code = error.code();
        let cells: Vec<&str> = row.split(" | ").map(|cell| cell.trim_matches(['|', ' '])).collect();
        let retryable = if error.is_retryable() { "yes" } else { "no" };
        assert_eq!(cells[0], format!("[`{code}`]({code}.md)"));
        assert_eq!(cells[2..], [retryable, error.exit_code().to_string().as_str()], "{code}");
    }
}

#[test]
fn every_page_says_what_the_code_does() {
    for error in samples() {
        let (code, page) = (error.code(), page(error.code()));
        let answer = section(&page, "Is it safe to retry?");
        let expected = if error.is_retryable() { "Yes" } else { "No" };
        assert!(answer.starts_with(expected), "{code}: {answer}");
        let status = section(&page, "Exit status");
        let number = status.split(|c: char| !c.is_ascii_digit()).next();
        assert_eq!(number, Some(error.exit_code().to_string().as_str()), "{code}");
    }
}

#[test]
fn every_page_shows_the_message_as_it_is() {
    let shown = |error: &Error| format!("```text\n{error}\n```");
    let lacks = |error: &Error| !section(&page(error.code()), "Who sees it").contains(&shown(error));
    let wrong: Vec<String> = samples()
        .iter()
        .filter(|error| lacks(error))
        .map(|e| format!("{}.md: {}", e.code(), shown(e)))
        .collect();
    assert!(wrong.is_empty(), "these pages should have\n{}", wrong.join("\n"));
}

//! What the pages in `docs/errors` say is what the code does.

use std::time::Duration;

use onlyonce::key::JsonKey;
use onlyonce::store::{StoreError, StoreErrorKind, StoreFacts, check_write_count};
use onlyonce::time::parse_duration;
use onlyonce::{Error, Key, fingerprint_of};

/// One error per code, in the order of the list; from the real thing where a call alone can provoke it.
fn samples() -> Vec<Error> {
    let mut all = guard_samples();
    all.extend(bad_samples());
    all.extend(store_samples());
    all
}

fn guard_samples() -> Vec<Error> {
    let key = || Key::new("shop", "4711").unwrap();
    let text = str::to_owned;
    vec![
        Error::InProgress { key: key(), holder: text("web-1#7"), retry_after: Duration::from_secs(90) },
        Error::DuplicateExecution { key: key() },
        Error::InputChanged { key: key() },
        Error::Parked { key: key(), reason: text("attempt 1 did not come back") },
        Error::LeaseLost { key: key(), reason: text("no heartbeat reached the store for 10 min") },
        Error::FailedBefore { key: key(), message: text("card refused") },
        Error::ResultNotStored { key: key(), reason: text("4194304 bytes, and at most 1048576 are") },
        Error::ResultMismatch { key: key(), reason: text("missing field `currency` at line 1 column 13") },
        Error::NotRecorded {
            key: key(),
            source: StoreError::uncertain("no answer from the server within 5 s"),
        },
        Error::NotFound { key: key() },
        Error::NotAllowed {
            key: key(),
            asked: "resolved",
            status: text("completed"),
            hint: "; only a parked key, or one whose lease ran out, waits for a verdict",
        },
    ]
}

fn bad_samples() -> Vec<Error> {
    let gone = std::io::Error::from_raw_os_error(2);
    vec![
        Key::parse("4711").unwrap_err(),
        JsonKey::new().key("shop", br#"{"a": 1, "a": 2}"#).unwrap_err(),
        fingerprint_of(&f64::NAN).unwrap_err(),
        JsonKey::new().exclude(["sent_at"]).unwrap_err(),
        parse_duration("10").unwrap_err(),
        Error::BadPolicy { reason: "max_lease_total (1 s) is shorter than one lease (10 min)".to_owned() },
        Error::BadStoreUrl {
            url: "sqlit:app.db".to_owned(),
            reason: "there is no \"sqlit\" store; write sqlite:PATH, file:DIR or memory:".to_owned(),
        },
        Error::File { path: "scan.pdf".to_owned(), source: gone },
        Error::BlockingInAsync,
    ]
}

fn store_samples() -> Vec<Error> {
    let delete = |id| onlyonce::store::Write::Delete {
        key: Key::new("shop", id).unwrap(),
        expect: onlyonce::store::Version::new(1),
    };
    let two = [delete("a"), delete("b")];
    let say = |kind, message: &str| Error::from(StoreError::new(kind, message));
    vec![
        say(StoreErrorKind::Unavailable, "the database is locked by another process for more than 5 s"),
        say(StoreErrorKind::Uncertain, "the connection closed before the answer came"),
        say(
            StoreErrorKind::TooLarge,
            "the body of shop/4711 has 4194304 bytes, and this store takes 1048576",
        ),
        say(StoreErrorKind::Corrupt, "what is stored under shop/4711 is no record of a call"),
        check_write_count(&two, &StoreFacts::new("file")).unwrap_err().into(),
    ]
}

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
    for error in samples() {
        let page = page(error.code());
        let shown = format!("```text\n{error}\n```");
        assert!(
            section(&page, "Who sees it").contains(&shown),
            "{}: the page should have\n{shown}",
            error.code()
        );
    }
}

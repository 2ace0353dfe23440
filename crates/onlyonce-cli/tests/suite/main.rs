//! The real binary, run as people run it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::Write;
use std::process::{Command, Output, Stdio};

fn onlyonce(words: &[&str], stdin: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_onlyonce"))
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that refuses its words never reads.
    let _ = child.stdin.take().unwrap().write_all(stdin);
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn a_file_has_the_key_of_its_content() {
    let out = onlyonce(&["key", "file", "-"], b"abc");
    let sha = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(text(&out.stdout), format!("file/sha256:{sha}\n"));
}

#[test]
fn a_payload_has_one_key_in_any_order_without_what_is_excluded() {
    let words = ["key", "json", "-", "--namespace", "orders", "--exclude", "/ts"];
    let first = onlyonce(&words, br#"{"id": 7, "ts": 1}"#);
    let again = onlyonce(&words, br#"{"ts": 2, "id": 7.0}"#);
    assert!(first.status.success());
    assert_eq!(first.stdout, again.stdout);
    assert!(text(&first.stdout).starts_with("orders/"));
}

#[test]
fn events_and_jobs_have_keys() {
    let event = onlyonce(&["key", "event", "-", "--env", "Prod"], br#"{"eventId": "e-1"}"#);
    assert_eq!(text(&event.stdout), "event/prod__e-1\n", "{}", text(&event.stderr));
    let job = onlyonce(&["key", "job", "w-1", "a-1", "https://example.org/x"], b"");
    assert!(text(&job.stdout).starts_with("job/"), "{}", text(&job.stderr));
}

#[test]
fn what_is_wrong_is_said_with_its_code_and_status() {
    let cases: [(&[&str], &[u8], i32, &str); 7] = [
        (&["key", "json", "-"], br#"{"a":1,"a":2}"#, 65, "bad_json"),
        (&["key", "json", "-"], b"\xff", 65, "bad_json"),
        (&["key", "json", "-", "--exclude", "no-slash"], b"{}", 64, "bad_pointer"),
        (&["key", "json", "-", "--namespace", "a b"], b"{}", 65, "bad_key"),
        (&["key", "file", "/does/not/exist"], b"", 65, "file"),
        (&["explain", "nonsense"], b"", 65, "bad_input"),
        (&["frobnicate"], b"", 64, "frobnicate"),
    ];
    for (words, stdin, status, said) in cases {
        let out = onlyonce(words, stdin);
        assert_eq!(out.status.code(), Some(status), "{words:?}: {}", text(&out.stderr));
        assert!(text(&out.stderr).contains(said), "{words:?}: {}", text(&out.stderr));
        assert!(out.stdout.is_empty(), "{words:?}");
    }
}

#[test]
fn an_error_code_is_explained() {
    let out = onlyonce(&["explain", "lease_lost"], b"");
    assert!(text(&out.stdout).contains("safe to retry"));
}

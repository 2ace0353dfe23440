//! A store by its URL: what opens, and what a wrong URL is told.

use onlyonce::Error;
use onlyonce_stores::open;

fn refused(url: &str) -> (String, String) {
    match open(url) {
        Err(Error::BadStoreUrl { url, reason }) => (url, reason),
        other => panic!("{url:?} gave {other:?}"),
    }
}

#[test]
fn memory_opens() {
    assert_eq!(open("memory:").unwrap().facts().name, "memory");
    assert_eq!(open("MEMORY:").unwrap().facts().name, "memory");
}

#[test]
fn a_directory_opens() {
    let place = tempfile::tempdir().unwrap();
    let url = format!("file:{}/a%20b/c", place.path().display());
    assert_eq!(open(&url).unwrap().facts().name, "file");
    assert!(place.path().join("a b/c/store.json").is_file());
    assert_eq!(open(&url).unwrap().facts().name, "file");
    let (_, reason) = refused(&format!("{url}?mode=fast"));
    assert!(reason.contains("\"mode\""), "{reason}");
}

#[test]
fn a_wrong_url_is_told_what_to_write() {
    for url in [
        "",
        "  ",
        "store.db",
        "/var/lib/store",
        "./x",
        ":",
        "nosuch:thing",
        "sqlite3:a.db",
        "memory:x",
        "memory:?a=b",
    ] {
        let (_, reason) = refused(url);
        assert!(reason.contains("write "), "{url:?}: {reason}");
    }
}

#[test]
fn stores_this_build_does_not_have_are_named() {
    for url in ["redis://h", "rediss://h", "postgres://h/d", "postgresql://h/d", "firestore://project"] {
        let (_, reason) = refused(url);
        assert!(reason.contains("no ") && reason.contains(url.split(':').next().unwrap()), "{reason}");
        assert_eq!(open(url).unwrap_err().exit_code(), 78);
    }
}

#[test]
fn a_password_is_never_shown() {
    for (url, shown) in [
        ("redis://:s3cret@host:6379/0", "redis://:***@host:6379/0"),
        ("redis://ann:s3cret@host", "redis://ann:***@host"),
        ("postgres://ann:a/b?s3cret@host/db", "postgres://ann:***@host/db"),
        ("postgres://ann:s3cret@x@host/db", "postgres://ann:***@host/db"),
        ("postgres://host/db?user=ann&password=s3cret", "postgres://host/db?user=***&password=***"),
        ("nosuch://token-s3cret@host", "nosuch://***@host"),
        ("ann:s3cret@host", "ann:***@host"),
        ("https://ann:s3cret@host", "https://ann:***@host"),
        ("//ann:s3cret@host", "//ann:***@host"),
    ] {
        let error = open(url).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
        assert_eq!(refused(url).0, shown);
    }
}

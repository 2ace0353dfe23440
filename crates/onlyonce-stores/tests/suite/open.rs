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
    let url = format!("file:{}/a%20b", place.path().display());
    assert_eq!(open(&url).unwrap().facts().name, "file");
    assert!(place.path().join("a b/store.json").is_file());
    assert_eq!(open(&url).unwrap().facts().name, "file");
    let (_, reason) = refused(&format!("{url}?mode=fast"));
    assert!(reason.contains("\"mode\""), "{reason}");
}

#[test]
fn a_database_opens() {
    use onlyonce::store::Durability::{Crash, PowerCut};
    let place = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}/a%20b.db", place.path().display());
    for (options, durability) in [
        ("", PowerCut),
        ("?", PowerCut),
        ("?synchronous=full", PowerCut),
        ("?synchronous=normal", Crash),
        ("?busy_timeout=250ms&synchronous=NORMAL", Crash),
    ] {
        let facts = open(&format!("{url}{options}")).unwrap().facts();
        assert_eq!((facts.name, facts.durability), ("sqlite", durability), "{options}");
    }
    assert!(place.path().join("a b.db").is_file());
}

#[test]
fn options_nobody_knows_are_told_what_to_write() {
    for options in
        ["?x", "?synchronous", "?synchronous=off", "?mode=ro", "?synchronous=full&synchronous=full"]
    {
        let (_, reason) = refused(&format!("sqlite:/nonexistent/a.db{options}"));
        assert!(reason.contains("write "), "{options}: {reason}");
    }
    let error = open("sqlite:/nonexistent/a.db?busy_timeout=soon").unwrap_err();
    assert_eq!(error.code(), "bad_duration");
    assert!(refused("sqlite::memory:").1.contains("write memory:"));
}

/// The directories of the default store are made, those of another are not.
#[test]
fn the_default_database_opens_where_nothing_is_yet() {
    if std::env::var_os("ONLYONCE_TEST_DEFAULT").is_some() {
        let url = onlyonce_stores::default_url().unwrap();
        assert_eq!(open(&url).unwrap().facts().name, "sqlite");
        let error = open(&url.replace("onlyonce.db", "other/onlyonce.db")).unwrap_err();
        assert_eq!(error.code(), "store_misconfigured", "{error}");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let ran = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "open::the_default_database_opens_where_nothing_is_yet"])
        .env_remove("XDG_DATA_HOME")
        .env("HOME", place.path().join("100% new"))
        .env("ONLYONCE_TEST_DEFAULT", "")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
    assert!(place.path().join("100% new/.local/share/onlyonce/onlyonce.db").is_file());
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

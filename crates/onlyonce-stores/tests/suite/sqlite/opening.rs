//! What opens, what is refused, and that whatever is refused is left as it is.

use std::path::Path;

use onlyonce::store::{Durability, Scan, Store, StoreError, StoreErrorKind};
use onlyonce_stores::sqlite::rusqlite::Connection;
use onlyonce_stores::sqlite::{SqliteOptions, SqliteStore, Synchronous};

use super::{claim, open, place, read, store_one};

/// Opening must fail, in this way, and change nothing in the directory.
fn refused(path: &Path, kind: StoreErrorKind, words: &str) -> StoreError {
    let before = contents(path.parent().unwrap());
    let error = SqliteStore::open(path).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(words), "{error}");
    assert!(contents(path.parent().unwrap()) == before, "something changed");
    error
}

fn contents(dir: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let files =
        std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().path()).filter(|path| path.is_file());
    let mut all: Vec<_> = files.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect();
    all.sort();
    all
}

fn sql(path: &Path, batch: &str) {
    Connection::open(path).unwrap().execute_batch(batch).unwrap();
}

#[test]
fn a_new_file_is_a_wal_database_marked_as_ours() {
    let (_dir, path) = place();
    drop(open(&path));
    let conn = Connection::open(&path).unwrap();
    let text = |query: &str| conn.query_row(query, [], |row| row.get::<_, String>(0)).unwrap();
    assert_eq!(text("PRAGMA journal_mode"), "wal");
    assert_eq!(text("SELECT printf('%x', application_id) FROM pragma_application_id"), "6f6e6365");
    assert_eq!(text("SELECT group_concat(name || '=' || value) FROM onlyonce_meta"), "schema=1,version=0");
}

#[test]
fn a_closed_store_is_one_file() {
    let (dir, path) = place();
    drop(open(&path));
    assert_eq!(contents(dir.path()).len(), 1);
}

#[tokio::test]
async fn synchronous_says_what_survives() {
    let (_dir, path) = place();
    let full = open(&path);
    assert_eq!(full.facts().durability, Durability::PowerCut);
    let normal = SqliteOptions::new().synchronous(Synchronous::Normal).open(&path).unwrap();
    assert_eq!(normal.facts().durability, Durability::Crash);
    store_one(&normal, claim("a")).await;
    assert!(read(&full, "a").await.is_some());
    assert_eq!(Synchronous::parse("NORMAL"), Some(Synchronous::Normal));
    assert_eq!(Synchronous::parse("full"), Some(Synchronous::Full));
    assert_eq!(Synchronous::parse("off"), None);
}

#[test]
fn what_is_no_database_is_corrupt() {
    let (_dir, path) = place();
    for bytes in [&b"hello"[..], &[0; 4096], &[0xff; 10_000], b"SQLite format 2\0 and more"] {
        std::fs::write(&path, bytes).unwrap();
        refused(&path, StoreErrorKind::Corrupt, "not a SQLite database");
    }
}

#[test]
fn a_truncated_database_is_corrupt() {
    let (_dir, path) = place();
    drop(open(&path));
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    refused(&path, StoreErrorKind::Corrupt, "restore it from a copy");
}

#[tokio::test]
async fn damaged_pages_are_told_and_left() {
    let (_dir, path) = place();
    drop(open(&path));
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[8192..].fill(0xa5);
    std::fs::write(&path, &bytes).unwrap();
    let error = match SqliteStore::open(&path) {
        Err(error) => error,
        Ok(store) => store.commit(vec![claim("a")]).await.unwrap_err(),
    };
    assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{error}");
    assert!(std::fs::read(&path).unwrap() == bytes);
}

#[test]
fn somebody_elses_database_is_refused() {
    let (_dir, path) = place();
    sql(&path, "CREATE TABLE customers (name TEXT); INSERT INTO customers VALUES ('Ann')");
    refused(&path, StoreErrorKind::Misconfigured, "not onlyonce's");
    sql(&path, "PRAGMA journal_mode = WAL");
    refused(&path, StoreErrorKind::Misconfigured, "not onlyonce's");
    let (_dir, marked) = place();
    sql(&marked, "PRAGMA application_id = 7");
    refused(&marked, StoreErrorKind::Misconfigured, "not onlyonce's");
}

#[tokio::test]
async fn our_tables_go_beside_others_when_told() {
    let (_dir, path) = place();
    sql(&path, "PRAGMA application_id = 7; CREATE TABLE meta (a); INSERT INTO meta VALUES (1)");
    let store = SqliteOptions::new().beside_others(true).open(&path).unwrap();
    store_one(&store, claim("a")).await;
    drop(store);
    assert!(read(&open(&path), "a").await.is_some(), "from then on it is ours as well");
    let theirs = Connection::open(&path).unwrap();
    let id: i32 = theirs.query_row("PRAGMA application_id", [], |row| row.get(0)).unwrap();
    let rows: i32 = theirs.query_row("SELECT count(*) FROM meta", [], |row| row.get(0)).unwrap();
    assert_eq!((id, rows), (7, 1));
}

#[test]
fn a_newer_schema_is_refused() {
    let (_dir, path) = place();
    drop(open(&path));
    sql(&path, "UPDATE onlyonce_meta SET value = 7 WHERE name = 'schema'");
    let error = refused(&path, StoreErrorKind::Misconfigured, "newer onlyonce");
    assert!(error.to_string().contains("its schema is 7, this one knows 1"), "{error}");
}

#[test]
fn a_database_that_lost_our_tables_is_corrupt() {
    let (_dir, path) = place();
    drop(open(&path));
    sql(&path, "DELETE FROM onlyonce_meta");
    refused(&path, StoreErrorKind::Corrupt, "no schema number");
    sql(&path, "DROP TABLE onlyonce_meta");
    refused(&path, StoreErrorKind::Corrupt, "no table onlyonce_meta");
}

#[test]
fn a_directory_is_never_made() {
    let (dir, _) = place();
    let error = SqliteStore::open(dir.path().join("new/store.db")).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured);
    assert!(error.to_string().contains("there is no directory"), "{error}");
    assert!(!dir.path().join("new").exists());
}

#[test]
fn a_place_that_takes_no_file_is_told() {
    let (dir, _) = place();
    let error = SqliteStore::open(dir.path()).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured);
    assert!(error.to_string().contains("is a directory"), "{error}");
    #[cfg(target_os = "linux")]
    {
        let error = SqliteStore::open("/proc/onlyonce.db").unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Misconfigured);
        assert!(error.to_string().contains("/proc/onlyonce.db"), "{error}");
    }
}

#[tokio::test]
async fn a_path_is_only_ever_a_path() {
    let (dir, _) = place();
    for name in [":memory:", "file:x.db?mode=memory", "a b?c#d%41.db", "-wal", "naïve ☃.db"] {
        let path = dir.path().join(name);
        store_one(&open(&path), claim("a")).await;
        assert!(path.is_file(), "{name}");
        assert!(read(&open(&path), "a").await.is_some(), "{name}");
    }
}

#[test]
fn many_open_a_new_file_at_once() {
    let (_dir, path) = place();
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| open(&path));
        }
    });
    open(&path);
}

#[tokio::test]
async fn a_file_that_is_gone_is_not_made_anew() {
    let (dir, path) = place();
    let store = open(&path);
    std::fs::remove_file(&path).unwrap();
    // The first read opens a connection; an empty file in the old one's place would say: nothing is there.
    let error = store.read(&[super::key("a")]).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
    assert!(!dir.path().join("store.db").exists());
}

#[tokio::test]
async fn tables_that_vanish_are_told() {
    let (_dir, path) = place();
    let store = open(&path);
    store_one(&store, claim("a")).await;
    sql(&path, "DROP TABLE onlyonce_entries");
    let error = store.commit(vec![claim("b")]).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
    let error = store.read(&[super::key("a")]).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
}

#[tokio::test]
async fn a_row_that_somebody_spoilt_fails_its_own_key_and_is_named() {
    let (_dir, path) = place();
    let store = open(&path);
    store_one(&store, claim("good")).await;
    store_one(&store, claim("bad")).await;
    sql(&path, "UPDATE onlyonce_entries SET status = 'Not A Status' WHERE id = 'bad'");
    assert!(read(&store, "good").await.is_some());
    let error = store.read(&[super::key("bad")]).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{error}");
    assert!(error.to_string().contains("Not A Status"), "{error}");
    let error = store.commit(vec![claim("bad")]).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{error}");
    let error = store.scan(Scan { limit: 10, ..Scan::default() }).await.unwrap_err();
    assert!(error.to_string().contains("row 2 of onlyonce_entries"), "{error}");
    store_one(&store, claim("another")).await;
}

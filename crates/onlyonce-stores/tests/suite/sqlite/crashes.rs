//! What a crash leaves: the files as they are at some moment, without the processes.

use std::path::Path;

use onlyonce::store::{Commit, Expect};
use onlyonce_stores::sqlite::rusqlite::{Connection, TransactionBehavior};

use super::{claim, open, place, put, read, store_one};

/// The database and its log as a crash would leave them; the shared memory does not outlive its processes.
fn crash(path: &Path, into: &Path) {
    std::fs::copy(path, into).unwrap();
    let log = |path: &Path| format!("{}-wal", path.display());
    if Path::new(&log(path)).exists() {
        std::fs::copy(log(path), log(into)).unwrap();
    }
}

#[tokio::test]
async fn what_was_answered_is_there_after_a_crash() {
    let (dir, path) = place();
    let store = open(&path);
    for n in 0..50 {
        let version = store_one(&store, claim(&n.to_string())).await;
        let copy = dir.path().join(format!("crash{n}.db"));
        crash(&path, &copy);
        let after = open(&copy);
        assert_eq!(read(&after, &n.to_string()).await.unwrap().version, version);
        assert!(store_one(&after, claim("next")).await > version);
    }
}

#[tokio::test]
async fn a_transaction_that_was_killed_leaves_nothing() {
    let (dir, path) = place();
    let store = open(&path);
    let before = store_one(&store, claim("before")).await;
    let mut conn = Connection::open(&path).unwrap();
    // A small cache makes SQLite write pages to the log before the commit.
    conn.execute_batch("PRAGMA cache_size = 5").unwrap();
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    let mut within = store.within(&tx).unwrap();
    let body = format!("\"{}\"", "x".repeat(100_000));
    for n in 0..10 {
        let answer = within.commit(&[put(&n.to_string(), Expect::Absent, &body)]).unwrap();
        assert!(matches!(answer, Commit::Stored(_)));
    }
    let copy = dir.path().join("crash.db");
    crash(&path, &copy);
    assert!(
        std::fs::metadata(dir.path().join("crash.db-wal")).unwrap().len() > 500_000,
        "pages were in the log"
    );
    let after = open(&copy);
    assert_eq!(read(&after, "before").await.unwrap().version, before);
    for n in 0..10 {
        assert!(read(&after, &n.to_string()).await.is_none());
    }
}

#[tokio::test]
async fn a_torn_log_loses_only_its_end() {
    let (dir, path) = place();
    let store = open(&path);
    for n in 0..20 {
        store_one(&store, claim(&n.to_string())).await;
    }
    let log = std::fs::read(dir.path().join("store.db-wal")).unwrap();
    for cut in (0..log.len()).step_by(1013) {
        let copy = dir.path().join("torn.db");
        std::fs::copy(&path, &copy).unwrap();
        std::fs::write(dir.path().join("torn.db-wal"), &log[..cut]).unwrap();
        let Ok(after) = onlyonce_stores::SqliteStore::open(&copy) else {
            panic!("a log cut at {cut} keeps the store from opening");
        };
        let mut there = 0;
        for n in 0..20 {
            if read(&after, &n.to_string()).await.is_some() {
                assert_eq!(n, there, "a gap before {n} with the log cut at {cut}");
                there += 1;
            }
        }
        drop(after);
        for end in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(dir.path().join(format!("torn.db{end}")));
        }
    }
}

//! Commits that wait at the same time share a transaction, and nothing else.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Duration;

use onlyonce::store::{Commit, Expect, Store, StoreError, StoreErrorKind, Write};
use onlyonce_stores::sqlite::rusqlite::Connection;
use onlyonce_stores::{SqliteOptions, SqliteStore};

use super::{claim, open, place, put, read, store_one, stored};

type Waiting<'a> = Pin<Box<dyn Future<Output = Result<Commit, StoreError>> + Send + 'a>>;

/// Commits that are in the queue and get no answer: somebody else has the write lock.
struct HeldUp<'a> {
    lock: Connection,
    waiting: Vec<Waiting<'a>>,
}

impl<'a> HeldUp<'a> {
    fn new(path: &std::path::Path) -> Self {
        let lock = Connection::open(path).unwrap();
        lock.execute_batch("BEGIN IMMEDIATE").unwrap();
        Self { lock, waiting: Vec::new() }
    }

    fn ask(&mut self, store: &'a SqliteStore, writes: Vec<Write>) {
        let mut commit = store.commit(writes);
        let first = commit.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(first.is_pending());
        self.waiting.push(commit);
    }

    async fn let_go(self) -> Vec<Result<Commit, StoreError>> {
        self.lock.execute_batch("ROLLBACK").unwrap();
        let mut answers = Vec::new();
        for commit in self.waiting {
            answers.push(commit.await);
        }
        answers
    }
}

#[tokio::test]
async fn what_waits_together_is_committed_together() {
    let (_dir, path) = place();
    let store = open(&path);
    let mut held = HeldUp::new(&path);
    for n in 0..100 {
        held.ask(&store, vec![claim(&n.to_string())]);
    }
    let mut versions: Vec<_> = held.let_go().await.into_iter().map(|c| stored(c.unwrap())[0]).collect();
    // The first may have gone ahead alone, before the others were there.
    assert!(store.transactions() <= 2, "{} transactions", store.transactions());
    versions.dedup();
    assert!(versions.is_sorted() && versions.len() == 100);
}

#[tokio::test]
async fn a_conflict_is_nobody_elses() {
    let (_dir, path) = place();
    let store = open(&path);
    let taken = store_one(&store, claim("taken")).await;
    let mut held = HeldUp::new(&path);
    held.ask(&store, vec![claim("first")]);
    held.ask(&store, vec![claim("a")]);
    held.ask(&store, vec![claim("taken")]);
    held.ask(&store, vec![claim("b"), claim("taken")]);
    held.ask(&store, vec![claim("a")]);
    held.ask(&store, vec![put("taken", Expect::Version(taken), "1"), claim("c")]);
    let answers = held.let_go().await;
    let won: Vec<bool> = answers.iter().map(|a| matches!(a, Ok(Commit::Stored(_)))).collect();
    assert_eq!(won, [true, true, false, false, false, true]);
    let Ok(Commit::Conflict(there)) = &answers[3] else { panic!("{answers:?}") };
    assert_eq!(there.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true]);
    assert!(read(&store, "b").await.is_none());
}

#[tokio::test]
async fn an_error_is_nobody_elses() {
    let (_dir, path) = place();
    let store = open(&path);
    Connection::open(&path)
        .unwrap()
        .execute_batch(
            "CREATE TRIGGER refuse BEFORE INSERT ON onlyonce_entries WHEN new.id = 'bad'
             BEGIN SELECT RAISE(ABORT, 'not this one'); END",
        )
        .unwrap();
    let mut held = HeldUp::new(&path);
    for writes in [vec![claim("first")], vec![claim("a")], vec![claim("b"), claim("bad")], vec![claim("c")]] {
        held.ask(&store, writes);
    }
    let answers = held.let_go().await;
    let stored: Vec<bool> = answers.iter().map(|a| matches!(a, Ok(Commit::Stored(_)))).collect();
    assert_eq!(stored, [true, true, false, true]);
    let error = answers[2].as_ref().unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured);
    assert!(error.to_string().contains("not this one"), "{error}");
    assert!(read(&store, "b").await.is_none(), "all or nothing");
}

#[tokio::test]
async fn what_nobody_waits_for_is_not_begun() {
    let (_dir, path) = place();
    let store = open(&path);
    let mut held = HeldUp::new(&path);
    held.ask(&store, vec![claim("first")]);
    held.ask(&store, vec![claim("dropped")]);
    held.ask(&store, vec![claim("last")]);
    drop(held.waiting.remove(1));
    held.let_go().await;
    assert!(read(&store, "last").await.is_some());
    assert!(read(&store, "dropped").await.is_none());
}

#[tokio::test]
async fn a_lock_that_is_never_let_go_is_unavailable() {
    let (_dir, path) = place();
    let store = SqliteOptions::new().busy_timeout(Duration::from_millis(20)).open(&path).unwrap();
    let mut held = HeldUp::new(&path);
    held.ask(&store, vec![claim("a")]);
    let error = held.waiting.remove(0).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    assert!(read(&store, "a").await.is_none(), "reads go on");
    held.let_go().await;
    store_one(&store, claim("a")).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_store_dropped_inside_a_runtime_ends_even_while_locked_out() {
    let (_dir, path) = place();
    let store = SqliteOptions::new().busy_timeout(Duration::from_secs(3600)).open(&path).unwrap();
    read(&store, "a").await;
    let lock = {
        let mut held = HeldUp::new(&path);
        held.ask(&store, vec![claim("a")]);
        held.lock
    };
    drop(store);
    // SQLite keeps the file itself open for as long as the process has any lock on it; the log it does not.
    let log = format!("{}-wal", path.display());
    assert_eq!(open_files(log.as_ref()), 1, "only the other one's connection is left");
    drop(lock);
}

/// How many files of this process are this one.
#[cfg(target_os = "linux")]
fn open_files(path: &std::path::Path) -> usize {
    let files = std::fs::read_dir("/proc/self/fd").unwrap();
    files.filter(|file| std::fs::read_link(file.as_ref().unwrap().path()).is_ok_and(|to| to == path)).count()
}

#[test]
fn it_works_without_a_runtime() {
    let (_dir, path) = place();
    let store = open(&path);
    let commit = store.commit(vec![claim("a")]);
    assert!(matches!(block_on(commit), Ok(Commit::Stored(_))));
    assert!(block_on(store.read(&[super::key("a")])).unwrap()[0].is_some());
}

/// Drives a future on a plain thread.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = std::sync::Arc::new(Unpark(std::thread::current())).into();
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            std::task::Poll::Ready(value) => return value,
            std::task::Poll::Pending => std::thread::park(),
        }
    }
}

//! The SQLite store: the conformance suite, and what only SQLite has to promise.

mod crashes;
mod disk;
mod full;
mod groups;
mod opening;
mod racing;
mod within;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use onlyonce::Key;
use onlyonce::store::{
    Commit, Draft, Entry, Expect, HeaderDraft, Holder, Status, Store, StoreError, Version, Write,
};
use onlyonce_stores::{SqliteOptions, SqliteStore};
use onlyonce_testkit::clock::ManualClock;
use onlyonce_testkit::conformance::Subject;
use tempfile::TempDir;

/// An empty store of the suite's, on a clock that stands still.
fn empty_store() -> Subject {
    let place = TempDir::new().unwrap();
    let clock = ManualClock::new();
    let path = place.path().join("store.db");
    let open = {
        let clock = clock.clone();
        move || SqliteOptions::new().clock(Arc::new(clock.clone())).open(&path)
    };
    let again = open.clone();
    let reopen = move || -> onlyonce::time::BoxFuture<'static, Result<Arc<dyn Store>, StoreError>> {
        let opened = again();
        Box::pin(async move { Ok(Arc::new(opened?) as _) })
    };
    Subject::new(open().unwrap(), clock, "t").reopened_by(Arc::new(reopen)).alone().keeping(place)
}

onlyonce_testkit::conformance!(durable conformance, empty_store());

const RUNNING: Status = Status::new("running");
const LEASE: Duration = Duration::from_secs(600);

/// A directory of the test's own, and a path for a database in it.
fn place() -> (TempDir, PathBuf) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("store.db");
    (dir, path)
}

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path).unwrap()
}

fn key(id: &str) -> Key {
    Key::new("orders", id).unwrap()
}

fn put(id: &str, expect: Expect, body: &str) -> Write {
    let holder = Some(Holder::new("worker".into(), 1));
    let header = HeaderDraft { holder, attempts: 1, due_in: Some(LEASE), ..HeaderDraft::new(RUNNING) };
    Write::Put { key: key(id), expect, draft: Draft { header, body: body.to_owned().into() } }
}

fn claim(id: &str) -> Write {
    put(id, Expect::Absent, "null")
}

fn stored(commit: Commit) -> Vec<Version> {
    match commit {
        Commit::Stored(versions) => versions,
        Commit::Conflict(there) => panic!("conflict with {there:?}"),
    }
}

async fn store_one(store: &dyn Store, write: Write) -> Version {
    stored(store.commit(vec![write]).await.unwrap())[0]
}

async fn read(store: &dyn Store, id: &str) -> Option<Entry> {
    store.read(&[key(id)]).await.unwrap().remove(0)
}

//! The file store: the conformance suite, and what only a store made of files has to promise.

mod crash;
mod damage;
mod names;
mod opening;
mod races;
mod slow;
mod versions;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use onlyonce::Key;
use onlyonce::store::{
    Commit, Draft, Entry, Expect, HeaderDraft, Scan, Status, Store, StoreError, StoreErrorKind, Version,
    Write,
};
use onlyonce::time::BoxFuture;
use onlyonce_stores::file::FileStore;
use onlyonce_testkit::clock::ManualClock;
use onlyonce_testkit::conformance::Subject;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

const PLAIN: Status = Status::new("plain");

/// An empty store of the suite's, on a clock that stands still.
fn empty_store() -> Subject {
    let place = Place::new();
    let clock = ManualClock::new();
    let open = {
        let (path, clock) = (place.path(), clock.clone());
        move || FileStore::with_clock(&path, Arc::new(clock.clone()))
    };
    let again = open.clone();
    let reopen = move || -> BoxFuture<'static, Result<Arc<dyn Store>, StoreError>> {
        let opened = again();
        Box::pin(async move { Ok(Arc::new(opened?) as Arc<dyn Store>) })
    };
    Subject::new(open().unwrap(), clock, "t").reopened_by(Arc::new(reopen)).alone().keeping(place)
}

onlyonce_testkit::conformance!(durable conformance, empty_store());

/// A directory for one store, gone after the test.
struct Place {
    above: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { above: TempDir::new().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.above.path().join("store")
    }

    fn open(&self) -> FileStore {
        FileStore::open(self.path()).unwrap()
    }

    /// The shard a key lives in, as the store's page says.
    fn shard(&self, key: &Key) -> PathBuf {
        let name = file_name(key);
        self.path().join(&name[..1]).join(&name[1..2])
    }

    /// The file a key lives in.
    fn file(&self, key: &Key) -> PathBuf {
        self.shard(key).join(file_name(key))
    }
}

fn file_name(key: &Key) -> String {
    Sha256::digest(key.as_str()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn key(id: &str) -> Key {
    Key::new("n", id).unwrap()
}

/// So many keys that live in the shard of the first.
fn neighbours(many: usize) -> Vec<Key> {
    let shard = |key: &Key| file_name(key)[..2].to_owned();
    let first = shard(&key("0"));
    (0..).map(|n| key(&n.to_string())).filter(|key| shard(key) == first).take(many).collect()
}

fn put(key: &Key, expect: Expect, body: impl Into<Bytes>) -> Write {
    let draft = Draft { header: HeaderDraft::new(PLAIN), body: body.into() };
    Write::Put { key: key.clone(), expect, draft }
}

fn create(key: &Key, body: impl Into<Bytes>) -> Write {
    put(key, Expect::Absent, body)
}

fn delete(key: &Key, expect: Version) -> Write {
    Write::Delete { key: key.clone(), expect }
}

async fn stored(store: &FileStore, write: Write) -> Version {
    match store.commit(vec![write]).await.unwrap() {
        Commit::Stored(versions) => versions[0],
        Commit::Conflict(there) => panic!("there is {there:?}"),
    }
}

async fn refused(store: &FileStore, write: Write) -> (StoreErrorKind, String) {
    let error = store.commit(vec![write]).await.unwrap_err();
    (error.kind(), error.to_string())
}

async fn read(store: &FileStore, key: &Key) -> Result<Option<Entry>, StoreError> {
    Ok(store.read(std::slice::from_ref(key)).await?.pop().unwrap())
}

/// The keys a walk through the whole store finds.
async fn walk(store: &FileStore) -> Vec<Key> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = store.scan(Scan { after, limit: 7, ..Scan::default() }).await.unwrap();
        found.extend(page.entries.into_iter().map(|entry| entry.key));
        match page.next {
            Some(next) => after = Some(next),
            None => return found,
        }
    }
}

/// Every path under `dir`, in order.
fn tree(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(tree(&path));
        }
        found.push(path);
    }
    found.sort();
    found
}

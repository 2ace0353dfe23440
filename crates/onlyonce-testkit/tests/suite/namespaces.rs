//! Whole namespaces and ids that would leave a directory, a table or a prefix, if they could.
//!
//! The conformance cases work under a prefix, so these names, and the longest ones, are tested apart.

use std::path::Path;

use onlyonce::Key;
use onlyonce::key::{MAX_ID, MAX_NAMESPACE};
use onlyonce::store::{Commit, Draft, Expect, HeaderDraft, MemoryStore, Scan, Status, Store, Write};
use onlyonce_stores::SqliteStore;
use onlyonce_stores::file::FileStore;

const NAMES: [&str; 24] = [
    ".",
    "..",
    "...",
    "~",
    "-",
    "-rf",
    "*",
    "?",
    "%",
    "%2e%2e",
    "$HOME",
    "\\",
    "..\\..",
    "'",
    "\"",
    ";",
    "#",
    "CON",
    "nul",
    ".lock",
    "store.db",
    "entries",
    "sqlite_master",
    "null",
];

fn keys() -> Vec<Key> {
    let long = ["x", "%", ".", "\\", "'"].map(|c| c.repeat(MAX_NAMESPACE));
    let last = format!("{}y", "x".repeat(MAX_NAMESPACE - 1));
    let namespaces: Vec<&str> =
        NAMES.iter().copied().chain(long.iter().map(String::as_str)).chain([last.as_str()]).collect();
    let ids = ["..".to_owned(), "../../x".to_owned(), "/etc/passwd".to_owned(), "/".repeat(MAX_ID)];
    let all = namespaces.iter().flat_map(|namespace| ids.iter().map(move |id| Key::new(namespace, id)));
    all.collect::<Result<_, _>>().expect("keys")
}

async fn stays_in_its_place(store: &dyn Store) {
    let mut keys = keys();
    for (n, key) in keys.iter().enumerate() {
        let draft = Draft { header: HeaderDraft::new(Status::new("s")), body: n.to_string().into() };
        let write = Write::Put { key: key.clone(), expect: Expect::Absent, draft };
        let answer = store.commit(vec![write]).await.expect("an answer");
        assert!(matches!(answer, Commit::Stored(_)), "{key:?}: {answer:?}");
    }
    for (n, found) in store.read(&keys).await.expect("entries").into_iter().enumerate() {
        let found = found.unwrap_or_else(|| panic!("{:?} is not there", keys[n]));
        assert_eq!((&found.key, &found.body[..]), (&keys[n], n.to_string().as_bytes()));
    }
    for namespace in NAMES {
        let scan = Scan { namespace: Some(namespace.to_owned()), limit: 100, ..Scan::default() };
        let found = store.scan(scan).await.expect("a page").entries;
        assert_eq!(found.len(), 4, "the entries of {namespace:?}");
        assert!(found.iter().all(|e| e.key.namespace() == namespace));
    }
    let all = store.scan(Scan { limit: 1000, ..Scan::default() }).await.expect("a page").entries;
    let mut found: Vec<_> = all.into_iter().map(|e| e.key).collect();
    found.sort();
    keys.sort();
    assert_eq!(found, keys);
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime").block_on(test);
}

/// What is in a directory, by name.
fn listing(place: &Path) -> Vec<String> {
    let names = std::fs::read_dir(place).expect("a directory").map(|e| e.expect("an entry").file_name());
    let mut names: Vec<_> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn memory_keeps_every_name_in_its_place() {
    run(async { stays_in_its_place(&MemoryStore::new()).await });
}

#[test]
fn sqlite_keeps_every_name_in_its_place() {
    let place = tempfile::tempdir().expect("a directory");
    run(async {
        let store = SqliteStore::open(place.path().join("store.db")).expect("a store");
        stays_in_its_place(&store).await;
    });
    assert!(listing(place.path()).iter().all(|name| name.starts_with("store.db")));
}

#[test]
fn files_keep_every_name_in_their_place() {
    let place = tempfile::tempdir().expect("a directory");
    let above = place.path().join("above");
    std::fs::create_dir(&above).expect("a directory");
    run(async {
        let store = FileStore::open(above.join("store")).expect("a store");
        stays_in_its_place(&store).await;
    });
    assert_eq!(
        (listing(place.path()), listing(&above)),
        (vec!["above".to_owned()], vec!["store".to_owned()])
    );
}

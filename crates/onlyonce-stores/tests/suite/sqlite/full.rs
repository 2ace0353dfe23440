//! A full disk: new writes are refused, and what is there stays.

use onlyonce::store::{Commit, Expect, Store, StoreErrorKind, Write};
use onlyonce_stores::SqliteOptions;

use super::{claim, key, open, place, put, read, store_one};

const BODY: usize = 20_000;

#[tokio::test]
async fn a_full_disk_fails_closed_and_keeps_what_was_there() {
    let (_dir, path) = place();
    let store = SqliteOptions::new().max_size(1024 * 1024).open(&path).unwrap();
    let body = format!("\"{}\"", "x".repeat(BODY));
    let mut versions = Vec::new();
    let error = loop {
        match store.commit(vec![put(&versions.len().to_string(), Expect::Absent, &body)]).await {
            Ok(Commit::Stored(version)) => versions.push(version[0]),
            Ok(Commit::Conflict(there)) => panic!("{there:?}"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("no room"), "{error}");
    assert!(read(&store, &versions.len().to_string()).await.is_none(), "the claim is not there");
    for (n, version) in versions.iter().enumerate() {
        let entry = read(&store, &n.to_string()).await.unwrap();
        assert_eq!((entry.version, entry.body.len()), (*version, body.len()));
    }
    store_one(&store, Write::Delete { key: key("0"), expect: versions[0] }).await;
    store_one(&store, put("room is back", Expect::Absent, &body)).await;
    drop(store);
    store_one(&open(&path), put("a larger disk", Expect::Absent, &body)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn small_writes_go_on_beside_one_that_does_not_fit() {
    let (_dir, path) = place();
    let store = std::sync::Arc::new(SqliteOptions::new().max_size(1024 * 1024).open(&path).unwrap());
    let large = format!("\"{}\"", "x".repeat(2 * 1024 * 1024));
    let tasks: Vec<_> = (0..16)
        .map(|n| {
            let (store, large) = (store.clone(), large.clone());
            let write =
                if n % 2 == 0 { claim(&n.to_string()) } else { put(&n.to_string(), Expect::Absent, &large) };
            tokio::spawn(async move { store.commit(vec![write]).await })
        })
        .collect();
    for (n, task) in tasks.into_iter().enumerate() {
        let answer = task.await.unwrap();
        assert_eq!(answer.is_ok(), n % 2 == 0, "{n}: {answer:?}");
    }
}

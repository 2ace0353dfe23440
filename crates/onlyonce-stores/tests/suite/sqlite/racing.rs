//! Two stores on one file, as two processes have them.

use std::collections::HashMap;
use std::sync::Arc;

use onlyonce::store::{Commit, Expect, Store, Version, Write};

use super::{claim, key, open, place, put, read, store_one};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_claims_on_two_stores_one_wins_each_key() {
    let (_dir, path) = place();
    let stores = [Arc::new(open(&path)), Arc::new(open(&path))];
    let tasks: Vec<_> = (0..32)
        .map(|n| {
            let store = Arc::clone(&stores[n % 2]);
            tokio::spawn(async move {
                let mut won = Vec::new();
                for id in 0..40 {
                    if let Commit::Stored(versions) =
                        store.commit(vec![claim(&id.to_string())]).await.unwrap()
                    {
                        won.push((id, versions[0]));
                    }
                }
                won
            })
        })
        .collect();
    let mut winners: HashMap<i32, Version> = HashMap::new();
    for task in tasks {
        for (id, version) in task.await.unwrap() {
            assert_eq!(winners.insert(id, version), None, "two winners for {id}");
        }
    }
    let mut versions: Vec<_> = winners.values().copied().collect();
    versions.sort();
    versions.dedup();
    assert_eq!((winners.len(), versions.len()), (40, 40));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_stores_take_turns_and_lose_nothing() {
    let (_dir, path) = place();
    let stores = [Arc::new(open(&path)), Arc::new(open(&path))];
    store_one(&*stores[0], put("sum", Expect::Absent, "0")).await;
    let tasks: Vec<_> = (0..8)
        .map(|n| {
            let store = Arc::clone(&stores[n % 2]);
            tokio::spawn(async move {
                for _ in 0..25 {
                    while !increment(&*store).await {}
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(read(&*stores[1], "sum").await.unwrap().body, "200");
}

async fn increment(store: &dyn Store) -> bool {
    let entry = read(store, "sum").await.unwrap();
    let next: u32 = std::str::from_utf8(&entry.body).unwrap().parse::<u32>().unwrap() + 1;
    let write = put("sum", Expect::Version(entry.version), &next.to_string());
    matches!(store.commit(vec![write]).await.unwrap(), Commit::Stored(_))
}

#[tokio::test]
async fn versions_rise_after_the_newest_was_deleted_and_the_file_reopened() {
    let (_dir, path) = place();
    let store = open(&path);
    let version = store_one(&store, claim("a")).await;
    store_one(&store, Write::Delete { key: key("a"), expect: version }).await;
    drop(store);
    assert!(store_one(&open(&path), claim("a")).await > version);
}

#[tokio::test]
async fn the_log_stays_short_under_load() {
    let (dir, path) = place();
    let store = open(&path);
    let body = format!("\"{}\"", "x".repeat(256 * 1024));
    let mut version = store_one(&store, put("a", Expect::Absent, &body)).await;
    // 256 MiB through a log that is copied every 16.
    for _ in 0..1024 {
        version = store_one(&store, put("a", Expect::Version(version), &body)).await;
    }
    let log = std::fs::metadata(dir.path().join("store.db-wal")).unwrap().len();
    assert!(log < 64 * 1024 * 1024, "the log has {log} bytes");
    assert_eq!(read(&store, "a").await.unwrap().body, body);
}

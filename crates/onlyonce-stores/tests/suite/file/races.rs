//! Several stores on one directory, as several processes have them.

use std::collections::BTreeSet;
use std::time::Duration;

use onlyonce::store::{Holder, TakeDue};
use tokio::task::JoinSet;

use super::*;

const STORES: usize = 3;
const TASKS: usize = 4;

/// Runs `task` so many times on each of the stores, all at once.
async fn all_at_once<T: Send + 'static, F>(place: &Place, task: impl Fn(Arc<FileStore>, usize) -> F) -> Vec<T>
where
    F: Future<Output = T> + Send + 'static,
{
    let stores: Vec<Arc<FileStore>> = (0..STORES).map(|_| Arc::new(place.open())).collect();
    let mut running = JoinSet::new();
    for n in 0..STORES * TASKS {
        running.spawn(task(Arc::clone(&stores[n % STORES]), n));
    }
    running.join_all().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_many_creates_a_key() {
    let place = Place::new();
    let keys = [neighbours(4), vec![key("x"), key("y")]].concat();
    let wins = all_at_once(&place, |store, n| {
        let keys = keys.clone();
        async move {
            let mut wins = Vec::new();
            for key in keys {
                match store.commit(vec![create(&key, n.to_string())]).await.unwrap() {
                    Commit::Stored(_) => wins.push((key, n)),
                    Commit::Conflict(there) => assert!(there[0].is_some()),
                }
            }
            wins
        }
    })
    .await
    .concat();
    assert_eq!(wins.len(), keys.len());
    let store = place.open();
    for (key, n) in wins {
        assert_eq!(read(&store, &key).await.unwrap().unwrap().body, n.to_string());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_increment_is_lost_and_no_version_given_twice() {
    const TIMES: usize = 10;
    let place = Place::new();
    let keys = neighbours(2);
    let versions = all_at_once(&place, |store, n| {
        let key = keys[n % keys.len()].clone();
        async move {
            let mut versions = Vec::new();
            let mut there = read(&store, &key).await.unwrap();
            while versions.len() < TIMES {
                let count: u64 =
                    there.as_ref().map_or(0, |e| std::str::from_utf8(&e.body).unwrap().parse().unwrap());
                let expect = there.as_ref().map_or(Expect::Absent, |e| Expect::Version(e.version));
                match store.commit(vec![put(&key, expect, (count + 1).to_string())]).await.unwrap() {
                    Commit::Stored(given) => {
                        versions.extend(given);
                        there = read(&store, &key).await.unwrap();
                    }
                    Commit::Conflict(mut found) => there = found.pop().unwrap(),
                }
            }
            versions
        }
    })
    .await
    .concat();
    assert_eq!(versions.iter().collect::<BTreeSet<_>>().len(), STORES * TASKS * TIMES);
    let store = place.open();
    for key in &keys {
        let body = read(&store, key).await.unwrap().unwrap().body;
        assert_eq!(body, (STORES * TASKS * TIMES / keys.len()).to_string());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_two_takers_get_the_same_entry() {
    const ENTRIES: usize = 60;
    let place = Place::new();
    let store = place.open();
    let header = HeaderDraft { due_in: Some(Duration::ZERO), ..HeaderDraft::new(PLAIN) };
    for n in 0..ENTRIES {
        let draft = Draft { header: header.clone(), body: "1".into() };
        stored(&store, Write::Put { key: key(&n.to_string()), expect: Expect::Absent, draft }).await;
    }
    let taken = all_at_once(&place, |store, n| async move {
        let take = TakeDue {
            namespace: "n".to_owned(),
            statuses: vec![PLAIN],
            holder: Holder::new("w".into(), n as u64),
            lease: Duration::from_secs(3600),
            limit: 7,
        };
        let mut taken = Vec::new();
        loop {
            let entries = store.take_due(take.clone()).await.unwrap();
            if entries.is_empty() {
                return taken;
            }
            assert!(
                entries.len() <= 7 && entries.iter().all(|e| e.header.holder == Some(take.holder.clone()))
            );
            taken.extend(entries.into_iter().map(|e| e.key));
        }
    })
    .await
    .concat();
    assert_eq!(taken.len(), ENTRIES);
    assert_eq!(taken.into_iter().collect::<BTreeSet<_>>().len(), ENTRIES);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_walk_sees_what_stays_exactly_once_while_others_write() {
    let place = Place::new();
    let store = place.open();
    let staying: BTreeSet<Key> = (0..40).map(|n| key(&format!("stays {n}"))).collect();
    for key in &staying {
        stored(&store, create(key, "1")).await;
    }
    let stop = Arc::new(tokio::sync::Notify::new());
    let others = tokio::spawn({
        let (store, stop, staying) = (place.open(), Arc::clone(&stop), staying.clone());
        async move {
            let mut stopped = std::pin::pin!(stop.notified());
            for n in 0.. {
                if futures_util::poll!(stopped.as_mut()).is_ready() {
                    return;
                }
                let passing = key(&format!("passes {n}"));
                let version = stored(&store, create(&passing, "1")).await;
                stored(&store, delete(&passing, version)).await;
                let touched = staying.iter().nth(n % staying.len()).unwrap();
                let version = read(&store, touched).await.unwrap().unwrap().version;
                stored(&store, put(touched, Expect::Version(version), "2")).await;
            }
        }
    });
    for _ in 0..20 {
        let found: Vec<Key> = walk(&store).await.into_iter().filter(|key| staying.contains(key)).collect();
        assert_eq!(found.len(), staying.len());
        assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), staying);
    }
    stop.notify_one();
    others.await.unwrap();
}

//! Histories of many tasks on each store are linearizable, and the judge knows one that is not.

mod judge;

use std::sync::Arc;

use async_trait::async_trait;
use onlyonce::Key;
use onlyonce::store::{
    Commit, Entry, MemoryStore, Page, Scan, Store, StoreError, StoreFacts, TakeDue, Version, Write,
};
use onlyonce_stores::SqliteStore;
use onlyonce_stores::file::FileStore;
use onlyonce_testkit::chance::SeededChance;
use onlyonce_testkit::clock::ManualClock;
use onlyonce_testkit::faults::{FaultyStore, Rates};
use onlyonce_testkit::history::workload::{Size, crowd};
use onlyonce_testkit::history::{Event, Judgement, Log, Recorded, judge};

use crate::mutants::{Bug, BuggyStore};

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build();
    runtime.expect("a runtime").block_on(test)
}

/// What a crowd did to these handles on one store.
async fn history(handles: Vec<Arc<dyn Store>>, size: Size, seed: u64) -> Vec<Event> {
    let log = Log::new();
    let record = |store| Arc::new(Recorded::new(store, log.clone())) as Arc<dyn Store>;
    let handles: Vec<_> = handles.into_iter().map(record).collect();
    crowd(&handles, "history", size, &SeededChance::new(seed)).await.expect("a crowd");
    log.events()
}

fn must_be_linearizable(events: &[Event], seed: u64) {
    match judge(events) {
        Judgement::Linearizable(order) => assert!(order.len() > events.len() / 2),
        Judgement::Impossible(report) => panic!("seed {seed}: {report}"),
        Judgement::Undecided => panic!("seed {seed}: the search gave up"),
    }
}

#[test]
fn memory_is_linearizable() {
    let size = Size { tasks: 6, operations: 60, keys: 3 };
    for seed in 0..40 {
        let events = run(history(vec![Arc::new(MemoryStore::new())], size, seed));
        must_be_linearizable(&events, seed);
    }
}

#[test]
fn sqlite_is_linearizable_over_two_handles() {
    let size = Size { tasks: 6, operations: 25, keys: 3 };
    for seed in 0..8 {
        let place = tempfile::tempdir().expect("a directory");
        let open = || Arc::new(SqliteStore::open(place.path().join("store.db")).expect("a store"));
        let events = run(history(vec![open(), open()], size, seed));
        must_be_linearizable(&events, seed);
    }
}

#[test]
fn file_is_linearizable_over_two_handles() {
    let size = Size { tasks: 6, operations: 25, keys: 3 };
    for seed in 0..8 {
        let place = tempfile::tempdir().expect("a directory");
        let open = || Arc::new(FileStore::open(place.path().join("store")).expect("a store"));
        let events = run(history(vec![open(), open()], size, seed));
        must_be_linearizable(&events, seed);
    }
}

/// Lost, repeated and late calls: what is uncertain may have happened, then or later, or not.
#[test]
fn faults_leave_a_history_that_can_be_explained() {
    let size = Size { tasks: 4, operations: 40, keys: 3 };
    let rates = Rates { refuse: 40, lose_request: 40, lose_reply: 40, late: 40, ..Rates::default() };
    for seed in 0..20 {
        let (events, faults) = run(async {
            let clock = Arc::new(ManualClock::new());
            let store = Arc::new(FaultyStore::new(MemoryStore::with_clock(clock.clone()), clock));
            store.seeded(SeededChance::new(seed), rates);
            let landing = tokio::spawn({
                let store = store.clone();
                async move {
                    loop {
                        store.land().await.expect("memory takes everything");
                        tokio::task::yield_now().await;
                    }
                }
            });
            let events = history(vec![store.clone()], size, seed).await;
            landing.abort();
            (events, store.tally().faults())
        });
        assert!(faults > 5, "seed {seed}: {faults} faults");
        must_be_linearizable(&events, seed);
    }
}

/// The seed with which the judge finds something wrong.
fn first_refused(make: impl Fn() -> Arc<dyn Store>) -> Option<u64> {
    let size = Size { tasks: 5, operations: 40, keys: 3 };
    (0..60).find(|&seed| {
        let events = run(history(vec![make()], size, seed));
        matches!(judge(&events), Judgement::Impossible(_))
    })
}

#[test]
fn the_store_of_the_mutants_is_linearizable_without_a_bug() {
    let found = first_refused(|| Arc::new(BuggyStore::new(Bug::None, ManualClock::new())));
    assert_eq!(found, None);
}

#[test]
fn broken_stores_are_found_by_their_histories() {
    let bugs = [
        Bug::CommitInSteps,
        Bug::CommitCanBeTorn,
        Bug::CommitIsPartial,
        Bug::CommitSkipsFailedWrites,
        Bug::CommitLooksAtFirstOnly,
        Bug::PutInHalves,
        Bug::TakeKeepsVersion,
        Bug::TakeIsNotKept,
        Bug::CreateOverwrites,
        Bug::PutIgnoresVersion,
        Bug::TouchIgnoresVersion,
        Bug::DeleteIgnoresVersion,
        Bug::CheckIgnoresVersion,
        Bug::OldVersionsAreTaken,
        Bug::VersionsRestartAfterDelete,
        Bug::TouchKeepsVersion,
        Bug::TouchDropsBody,
        Bug::ConflictShowsDraft,
        Bug::ConflictIsEmpty,
        Bug::DeleteLeavesEntry,
    ];
    for bug in bugs {
        let found = first_refused(|| Arc::new(BuggyStore::new(bug, ManualClock::new())));
        println!("{bug:?} is found with seed {found:?}");
        assert!(found.is_some(), "{bug:?} is not found in 60 histories");
    }
}

#[test]
fn a_store_that_reads_from_a_stale_copy_is_found() {
    assert!(first_refused(|| Arc::new(Stale::default())).is_some());
}

/// Every second read comes from what the last one saw.
#[derive(Debug, Default)]
struct Stale {
    inner: MemoryStore,
    copy: std::sync::Mutex<std::collections::HashMap<Key, (u64, Option<Entry>)>>,
}

#[async_trait]
impl Store for Stale {
    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<Entry>>, StoreError> {
        let fresh = self.inner.read(keys).await?;
        let mut copy = self.copy.lock().expect("no panic under the lock");
        let found = keys.iter().zip(fresh).map(|(key, fresh)| {
            let (times, kept) = copy.entry(key.clone()).or_insert_with(|| (0, fresh.clone()));
            *times += 1;
            if times.is_multiple_of(2) {
                return kept.clone();
            }
            kept.clone_from(&fresh);
            fresh
        });
        Ok(found.collect())
    }

    async fn commit(&self, writes: Vec<Write>) -> Result<Commit, StoreError> {
        self.inner.commit(writes).await
    }

    async fn take_due(&self, take: TakeDue) -> Result<Vec<Entry>, StoreError> {
        self.inner.take_due(take).await
    }

    async fn scan(&self, scan: Scan) -> Result<Page, StoreError> {
        self.inner.scan(scan).await
    }

    async fn changed(&self, key: &Key, seen: Version) {
        self.inner.changed(key, seen).await;
    }

    fn facts(&self) -> StoreFacts {
        self.inner.facts()
    }
}

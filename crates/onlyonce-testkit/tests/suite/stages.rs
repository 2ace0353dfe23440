//! The stores the scenarios play on.

use std::sync::Arc;

use onlyonce::store::{MemoryStore, Prefixed};
use onlyonce_stores::file::FileStore;
use onlyonce_stores::sqlite::SqliteOptions;
use onlyonce_testkit::clock::ManualClock;
use onlyonce_testkit::scenarios::Stage;

pub(crate) fn memory() -> Stage {
    let clock = ManualClock::new();
    let store = Arc::new(MemoryStore::with_clock(Arc::new(clock.clone())));
    Stage::new(clock, move || store.clone())
}

pub(crate) fn prefixed() -> Stage {
    let clock = ManualClock::new();
    let store = Arc::new(MemoryStore::with_clock(Arc::new(clock.clone())));
    Stage::new(clock, move || Arc::new(Prefixed::new(store.clone(), "tenant").expect("a prefix")))
}

pub(crate) fn file() -> Stage {
    let clock = ManualClock::new();
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("store");
    let its_clock = Arc::new(clock.clone());
    let open = move || -> Arc<dyn onlyonce::store::Store> {
        Arc::new(FileStore::with_clock(&path, its_clock.clone()).expect("a store"))
    };
    Stage::new(clock, open).keeping(place)
}

pub(crate) fn sqlite() -> Stage {
    let clock = ManualClock::new();
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("store.db");
    let its_clock = Arc::new(clock.clone());
    let open = move || -> Arc<dyn onlyonce::store::Store> {
        Arc::new(SqliteOptions::new().clock(its_clock.clone()).open(&path).expect("a store"))
    };
    Stage::new(clock, open).keeping(place)
}

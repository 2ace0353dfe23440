//! The stores under test.

use std::sync::Arc;

use onlyonce::store::{MemoryStore, Observed, Observer, Operation, Prefixed, Store};
use onlyonce_testkit::clock::ManualClock;
use onlyonce_testkit::conformance::{RealTime, Subject};
use onlyonce_testkit::faults::FaultyStore;

fn memory_store() -> (MemoryStore, ManualClock) {
    let clock = ManualClock::new();
    (MemoryStore::with_clock(Arc::new(clock.clone())), clock)
}

pub(crate) fn memory() -> Subject {
    let (store, clock) = memory_store();
    Subject::new(store, clock, "t").alone()
}

/// As a user's own server is checked: with a real clock, and perhaps not alone.
pub(crate) fn memory_in_real_time() -> Subject {
    Subject::new(MemoryStore::new(), RealTime::default(), "check.real")
}

pub(crate) fn shared() -> Subject {
    let (store, clock) = memory_store();
    let shared: Arc<dyn Store> = Arc::new(store);
    Subject::new(shared, clock, "t").alone()
}

pub(crate) fn prefixed() -> Subject {
    let (store, clock) = memory_store();
    Subject::new(Prefixed::new(store, "tenant").expect("a prefix"), clock, "t").alone()
}

pub(crate) fn observed() -> Subject {
    #[derive(Debug)]
    struct Nobody;
    impl Observer for Nobody {
        fn observe(&self, operation: &Operation) {
            assert_eq!(operation.store, "memory");
        }
    }
    let (store, clock) = memory_store();
    Subject::new(Observed::new(store, Arc::new(clock.clone()), Arc::new(Nobody)), clock, "t").alone()
}

pub(crate) fn faultless() -> Subject {
    let (store, clock) = memory_store();
    Subject::new(FaultyStore::new(store, Arc::new(clock.clone())), clock, "t").alone()
}

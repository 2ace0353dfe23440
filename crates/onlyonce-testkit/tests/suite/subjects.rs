//! The stores under test.

use std::sync::Arc;

use onlyonce::store::MemoryStore;
use onlyonce_testkit::clock::ManualClock;
use onlyonce_testkit::conformance::Subject;

pub(crate) fn memory() -> Subject {
    let clock = ManualClock::new();
    Subject::new(MemoryStore::with_clock(Arc::new(clock.clone())), clock, "t").alone()
}

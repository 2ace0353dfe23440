//! The file store: the conformance suite, and what only a store made of files has to promise.

use std::sync::Arc;

use onlyonce::store::StoreError;
use onlyonce_stores::file::FileStore;
use onlyonce_testkit::clock::ManualClock;
use onlyonce_testkit::conformance::Subject;
use tempfile::TempDir;

/// An empty store of the suite's, on a clock that stands still.
fn empty_store() -> Subject {
    let place = TempDir::new().unwrap();
    let clock = ManualClock::new();
    let path = place.path().join("store");
    let open = {
        let clock = clock.clone();
        move || FileStore::with_clock(&path, Arc::new(clock.clone()))
    };
    let again = open.clone();
    let reopen =
        move || -> onlyonce::time::BoxFuture<'static, Result<Arc<dyn onlyonce::store::Store>, StoreError>> {
            let opened = again();
            Box::pin(async move { Ok(Arc::new(opened?) as _) })
        };
    Subject::new(open().unwrap(), clock, "t").reopened_by(Arc::new(reopen)).alone().keeping(place)
}

onlyonce_testkit::conformance!(durable conformance, empty_store());

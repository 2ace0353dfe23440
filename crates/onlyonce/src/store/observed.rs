//! A store that is watched: every operation is counted and timed.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::{
    Commit, Entry, Page, Scan, Store, StoreError, StoreErrorKind, StoreFacts, TakeDue, Version, Write,
};
use crate::key::Key;
use crate::time::Clock;

/// One finished operation on a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Operation {
    /// The store's name.
    pub store: &'static str,
    /// `read`, `commit`, `take_due` or `scan`.
    pub name: &'static str,
    /// How long it took.
    pub took: Duration,
    /// A commit that found something else than it expected.
    pub conflict: bool,
    /// What went wrong, if anything.
    pub error: Option<StoreErrorKind>,
}

/// Is told of every operation.
pub trait Observer: std::fmt::Debug + Send + Sync + 'static {
    /// One operation has finished.
    fn observe(&self, operation: &Operation);
}

/// Tells an [`Observer`] of every operation, and changes nothing.
#[derive(Debug)]
pub struct Observed<S> {
    inner: S,
    clock: Arc<dyn Clock>,
    observer: Arc<dyn Observer>,
}

impl<S: Store> Observed<S> {
    /// Watches `inner`, timed by `clock`.
    pub fn new(inner: S, clock: Arc<dyn Clock>, observer: Arc<dyn Observer>) -> Self {
        Self { inner, clock, observer }
    }

    async fn watch<T>(
        &self,
        name: &'static str,
        run: impl Future<Output = Result<T, StoreError>>,
        conflict: impl FnOnce(&T) -> bool,
    ) -> Result<T, StoreError> {
        let start = self.clock.monotonic();
        let answer = run.await;
        self.observer.observe(&Operation {
            store: self.inner.facts().name,
            name,
            took: self.clock.monotonic().saturating_sub(start),
            conflict: answer.as_ref().is_ok_and(conflict),
            error: answer.as_ref().err().map(StoreError::kind),
        });
        answer
    }
}

#[async_trait]
impl<S: Store> Store for Observed<S> {
    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<Entry>>, StoreError> {
        self.watch("read", self.inner.read(keys), |_| false).await
    }

    async fn commit(&self, writes: Vec<Write>) -> Result<Commit, StoreError> {
        self.watch("commit", self.inner.commit(writes), |c| matches!(c, Commit::Conflict(_))).await
    }

    async fn take_due(&self, take: TakeDue) -> Result<Vec<Entry>, StoreError> {
        self.watch("take_due", self.inner.take_due(take), |_| false).await
    }

    async fn scan(&self, scan: Scan) -> Result<Page, StoreError> {
        self.watch("scan", self.inner.scan(scan), |_| false).await
    }

    async fn changed(&self, key: &Key, seen: Version) {
        self.inner.changed(key, seen).await;
    }

    fn facts(&self) -> StoreFacts {
        self.inner.facts()
    }
}

//! Writes down what is done to a store.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use onlyonce::Key;
use onlyonce::store::{
    Commit, Entry, Page, Scan, Store, StoreError, StoreErrorKind, StoreFacts, TakeDue, Version, Write,
};

use super::{Action, Answer, Event};

/// A history in the making; clones write to the same one.
#[derive(Clone, Debug, Default)]
pub struct Log {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    now: u64,
    events: Vec<Event>,
}

impl Log {
    /// A history of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The operations called so far, in the order of their calls.
    pub fn events(&self) -> Vec<Event> {
        self.lock().events.clone()
    }

    /// Notes a call; until it is answered, nobody knows.
    fn call(&self, action: Action) -> usize {
        let mut inner = self.lock();
        inner.now += 1;
        let event = Event { action, answer: Answer::Unknown, called: inner.now, answered: u64::MAX };
        inner.events.push(event);
        inner.events.len() - 1
    }

    fn answer(&self, number: usize, answer: Answer) {
        let mut inner = self.lock();
        inner.now += 1;
        let now = inner.now;
        let event = &mut inner.events[number];
        event.answered = if answer == Answer::Unknown { u64::MAX } else { now };
        event.answer = answer;
    }
}

/// Writes every read, commit and take on a store down in a [`Log`], and changes nothing.
///
/// Several stores may write to one log: two handles on one file, say.
#[derive(Debug)]
pub struct Recorded<S> {
    inner: S,
    log: Log,
}

impl<S: Store> Recorded<S> {
    /// Writes what is done to `inner` down in `log`.
    pub fn new(inner: S, log: Log) -> Self {
        Self { inner, log }
    }

    /// The store underneath.
    pub fn inner(&self) -> &S {
        &self.inner
    }
}

/// What an error says of whether the operation happened.
fn failed(error: &StoreError) -> Answer {
    match error.kind() {
        StoreErrorKind::Unavailable | StoreErrorKind::TooLarge | StoreErrorKind::Misconfigured => {
            Answer::NotDone
        }
        StoreErrorKind::Uncertain | StoreErrorKind::Corrupt => Answer::Unknown,
    }
}

#[async_trait]
impl<S: Store> Store for Recorded<S> {
    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<Entry>>, StoreError> {
        let calls: Vec<_> = keys.iter().map(|key| self.log.call(Action::Read(key.clone()))).collect();
        let found = self.inner.read(keys).await;
        for (n, call) in calls.into_iter().enumerate() {
            let answer = match &found {
                Ok(found) => Answer::Read(found.get(n).cloned().flatten()),
                Err(_) => Answer::NotDone,
            };
            self.log.answer(call, answer);
        }
        found
    }

    async fn commit(&self, writes: Vec<Write>) -> Result<Commit, StoreError> {
        let call = self.log.call(Action::Commit(writes.clone()));
        let answer = self.inner.commit(writes).await;
        let told = match &answer {
            Ok(Commit::Stored(versions)) => Answer::Stored(versions.clone()),
            Ok(Commit::Conflict(there)) => Answer::Conflict(there.clone()),
            Err(error) => failed(error),
        };
        self.log.answer(call, told);
        answer
    }

    async fn take_due(&self, take: TakeDue) -> Result<Vec<Entry>, StoreError> {
        let call = self.log.call(Action::Take(take.clone()));
        let answer = self.inner.take_due(take).await;
        let told = match &answer {
            Ok(taken) => Answer::Taken(taken.clone()),
            Err(error) => failed(error),
        };
        self.log.answer(call, told);
        answer
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

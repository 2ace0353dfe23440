//! Many tasks that read, compare and swap a few keys, and remember what they saw.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use onlyonce::Key;
use onlyonce::store::{
    Commit, Draft, Entry, Expect, HeaderDraft, Holder, Status, Store, StoreError, TakeDue, Version, Write,
};

use crate::chance::SeededChance;

const STATUS: Status = Status::new("busy");

/// How large a crowd is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// How many tasks.
    pub tasks: u64,
    /// How many operations each does.
    pub operations: u64,
    /// How many keys they share.
    pub keys: u32,
}

/// Lets a crowd loose on a store, each task on one of these handles, and waits until all are done.
///
/// Errors of the store are part of the story and end nothing. Needs a Tokio runtime.
///
/// # Errors
/// A task that panicked, or a namespace that is none.
pub async fn crowd(
    handles: &[Arc<dyn Store>],
    namespace: &str,
    size: Size,
    chance: &SeededChance,
) -> Result<(), String> {
    let keys: Vec<Key> = (0..size.keys)
        .map(|n| Key::new(namespace, format!("key {n}")))
        .collect::<Result<_, _>>()
        .map_err(|e| e.to_string())?;
    let barrier = Arc::new(tokio::sync::Barrier::new(usize::try_from(size.tasks).unwrap_or(1)));
    let begin = |(number, store): (u64, &Arc<dyn Store>)| {
        let mut worker = Worker {
            number,
            store: store.clone(),
            keys: keys.clone(),
            chance: chance.fork(number),
            seen: HashMap::new(),
        };
        let barrier = barrier.clone();
        tokio::spawn(async move {
            barrier.wait().await;
            for turn in 0..size.operations {
                worker.turn(turn).await;
            }
        })
    };
    let tasks: Vec<_> = (0..size.tasks).zip(handles.iter().cycle()).map(begin).collect();
    for task in tasks {
        task.await.map_err(|e| e.to_string())?;
    }
    Ok(())
}

struct Worker {
    number: u64,
    store: Arc<dyn Store>,
    keys: Vec<Key>,
    chance: SeededChance,
    /// What it last knew to be there.
    seen: HashMap<Key, Option<Version>>,
}

impl Worker {
    async fn turn(&mut self, turn: u64) {
        if self.chance.happens(300) {
            tokio::task::yield_now().await;
        }
        if self.chance.happens(50) {
            // Asked once and dropped: it may happen or not, now or later.
            let _ = self.commit(1, turn).now_or_never();
            return;
        }
        // A failure leaves the worker with what it knew; the log has what is to be known of it.
        let _ = match self.chance.below(10) {
            0..3 => self.read().await,
            3..8 => self.commit(1, turn).await,
            8 if self.store.facts().writes_per_commit > 1 => self.commit(2, turn).await,
            _ => self.take().await,
        };
    }

    fn learn(&mut self, key: &Key, entry: Option<&Entry>) {
        self.seen.insert(key.clone(), entry.map(|e| e.version));
    }

    async fn read(&mut self) -> Result<(), StoreError> {
        let Some(key) = self.chance.pick(&self.keys).cloned() else { return Ok(()) };
        let found = self.store.read(std::slice::from_ref(&key)).await?.pop().flatten();
        self.learn(&key, found.as_ref());
        Ok(())
    }

    async fn commit(&mut self, many: usize, turn: u64) -> Result<(), StoreError> {
        let mut keys = self.keys.clone();
        self.chance.shuffle(&mut keys);
        keys.truncate(many);
        let writes: Vec<_> = keys.iter().map(|key| self.write(key, turn)).collect();
        match self.store.commit(writes.clone()).await? {
            Commit::Stored(versions) => {
                for (write, version) in writes.iter().zip(versions) {
                    let there = !matches!(write, Write::Delete { .. }) && version > Version::default();
                    self.seen.insert(write.key().clone(), there.then_some(version));
                }
            }
            Commit::Conflict(there) => {
                for (key, entry) in keys.iter().zip(there) {
                    self.learn(key, entry.as_ref());
                }
            }
        }
        Ok(())
    }

    /// A write that holds if what the worker knows is still so.
    fn write(&self, key: &Key, turn: u64) -> Write {
        let key = key.clone();
        let seen = self.seen.get(&key).copied().flatten();
        let header = HeaderDraft {
            holder: Some(Holder::new(format!("w{}", self.number).into(), turn)),
            due_in: self.chance.happens(500).then_some(Duration::ZERO),
            ..HeaderDraft::new(STATUS)
        };
        let draft = Draft { header: header.clone(), body: format!("[{},{turn}]", self.number).into() };
        match (seen, self.chance.below(8)) {
            (None, 0) => Write::Check { key, expect: Expect::Absent },
            (None, _) => Write::Put { key, expect: Expect::Absent, draft },
            (Some(seen), 0) => Write::Check { key, expect: Expect::Version(seen) },
            (Some(expect), 1) => Write::Delete { key, expect },
            (Some(expect), 2 | 3) => Write::Touch { key, expect, header },
            (Some(_), 4) => Write::Put { key, expect: Expect::Absent, draft },
            (Some(seen), _) => Write::Put { key, expect: Expect::Version(seen), draft },
        }
    }

    async fn take(&mut self) -> Result<(), StoreError> {
        let Some(namespace) = self.keys.first().map(|key| key.namespace().to_owned()) else { return Ok(()) };
        let holder = Holder::new(format!("taker{}", self.number).into(), 0);
        let take = TakeDue { namespace, statuses: vec![STATUS], holder, lease: Duration::ZERO, limit: 2 };
        for entry in self.store.take_due(take).await? {
            self.learn(&entry.key, Some(&entry));
        }
        Ok(())
    }
}

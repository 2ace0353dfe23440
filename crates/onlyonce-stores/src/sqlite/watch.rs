//! Waking those who wait for a key to change, in this process.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};

use onlyonce::Key;
use tokio::sync::Notify;

const SHARDS: usize = 64;

/// Who waits for which keys, roughly: keys share signals, and a wake-up in vain is allowed.
#[derive(Debug)]
pub(super) struct Watch {
    /// While it is zero, a commit pays one load for all this.
    watchers: AtomicUsize,
    shards: Box<[Notify]>,
    hasher: RandomState,
}

/// Somebody waits; dropped when they stop.
#[derive(Debug)]
pub(super) struct Watcher<'a> {
    watch: &'a Watch,
}

impl Watch {
    pub(super) fn new() -> Self {
        Self {
            watchers: AtomicUsize::new(0),
            shards: (0..SHARDS).map(|_| Notify::new()).collect(),
            hasher: RandomState::new(),
        }
    }

    fn shard(&self, key: &Key) -> &Notify {
        #[expect(clippy::cast_possible_truncation, reason = "masked to 64")]
        let index = self.hasher.hash_one(key) as usize % SHARDS;
        &self.shards[index]
    }

    /// Announces a watcher: before it looks, so that no change falls between its look and its wait.
    pub(super) fn watcher(&self) -> Watcher<'_> {
        self.watchers.fetch_add(1, Ordering::SeqCst);
        Watcher { watch: self }
    }

    pub(super) fn is_watched(&self) -> bool {
        self.watchers.load(Ordering::SeqCst) > 0
    }

    pub(super) fn changed(&self, key: &Key) {
        self.shard(key).notify_waiters();
    }
}

impl Watcher<'_> {
    pub(super) fn signal(&self, key: &Key) -> &Notify {
        self.watch.shard(key)
    }
}

impl Drop for Watcher<'_> {
    fn drop(&mut self) {
        self.watch.watchers.fetch_sub(1, Ordering::SeqCst);
    }
}

//! The store in memory: for tests, and for one process that may forget when it ends.
//!
//! - **How is a swap atomic?** Entries are spread over shards, each behind a lock; a commit locks the shards
//!   it touches, in order.
//! - **Whose clock?** The one it was given.
//! - **What survives a crash?** Nothing.
//! - **Limits?** Memory; any number of writes per commit.
//! - **Fail-over?** There is nothing to fail over to. Other processes do not see it.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::Notify;

use super::{
    Commit, Cursor, Durability, Entry, Glimpse, Header, Page, Scan, Store, StoreError, StoreFacts, TakeDue,
    Version, WhoseClock, Write,
};
use crate::key::Key;
use crate::time::{Clock, SystemClock, Timestamp};

const SHARDS: usize = 64;
const MAX_BODY: usize = 16 * 1024 * 1024;

/// Entries in this process's memory.
#[derive(Debug)]
pub struct MemoryStore {
    shards: Box<[Shard]>,
    versions: AtomicU64,
    clock: Arc<dyn Clock>,
}

#[derive(Debug, Default)]
struct Shard {
    slots: Mutex<Slots>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Slots {
    map: HashMap<Key, Slot, BuildHasherDefault<KeyHasher>>,
    /// Every entry that has a `due_at`, earliest first.
    due: BTreeSet<(Timestamp, Key)>,
}

#[derive(Debug)]
struct Slot {
    version: Version,
    header: Header,
    body: Bytes,
}

impl MemoryStore {
    /// An empty store on the system's clock.
    pub fn new() -> Self {
        Self::with_clock(Arc::new(SystemClock::new()))
    }

    /// An empty store on a clock of the caller's.
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        Self { shards: (0..SHARDS).map(|_| Shard::default()).collect(), versions: AtomicU64::new(1), clock }
    }

    fn index(key: &Key) -> usize {
        // The map inside a shard uses the low bits and the top seven; take bits from the middle.
        (key.hash64() >> 40) as usize % SHARDS
    }

    fn lock(&self, index: usize) -> MutexGuard<'_, Slots> {
        self.shards[index].slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_version(&self) -> Version {
        Version::new(self.versions.fetch_add(1, Ordering::Relaxed))
    }

    fn commit_one(&self, write: Write) -> Commit {
        let index = Self::index(write.key());
        let mut slots = self.lock(index);
        // Asked under the lock: a commit that waited for it must not see an entry that has expired meanwhile,
        // and no write may be stamped earlier than the one before it.
        let now = self.clock.now();
        if !slots.holds(&write, now) {
            return Commit::Conflict(vec![slots.entry(write.key(), now)]);
        }
        let version = slots.apply(write, now, || self.next_version());
        drop(slots);
        self.shards[index].changed.notify_waiters();
        Commit::Stored(vec![version])
    }

    fn commit_many(&self, writes: Vec<Write>) -> Commit {
        let places: Vec<usize> = writes.iter().map(|w| Self::index(w.key())).collect();
        let touched: BTreeSet<usize> = places.iter().copied().collect();
        let mut locked: HashMap<usize, MutexGuard<'_, Slots>> =
            touched.iter().map(|&index| (index, self.lock(index))).collect();
        let now = self.clock.now();
        let at = |index: &usize| -> &MutexGuard<'_, Slots> { &locked[index] };
        if !writes.iter().zip(&places).all(|(write, index)| at(index).holds(write, now)) {
            return Commit::Conflict(
                writes.iter().zip(&places).map(|(w, i)| at(i).entry(w.key(), now)).collect(),
            );
        }
        let mut versions = Vec::with_capacity(writes.len());
        for (write, index) in writes.into_iter().zip(&places) {
            if let Some(slots) = locked.get_mut(index) {
                versions.push(slots.apply(write, now, || self.next_version()));
            }
        }
        drop(locked);
        touched.iter().for_each(|&index| self.shards[index].changed.notify_waiters());
        Commit::Stored(versions)
    }

    fn version_of(&self, key: &Key) -> Option<Version> {
        self.lock(Self::index(key)).map.get(key).map(|slot| slot.version)
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl Slots {
    fn holds(&self, write: &Write, now: Timestamp) -> bool {
        write.holds(self.map.get(write.key()).map(|slot| (slot.version, &slot.header)), now)
    }

    fn entry(&self, key: &Key, now: Timestamp) -> Option<Entry> {
        let (key, slot) = self.map.get_key_value(key)?;
        (!slot.header.is_expired(now)).then(|| slot.entry(key, now))
    }

    fn apply(&mut self, write: Write, now: Timestamp, next: impl FnOnce() -> Version) -> Version {
        match write {
            Write::Put { key, draft, .. } => {
                let created_at = self
                    .map
                    .get(&key)
                    .filter(|s| !s.header.is_expired(now))
                    .map_or(now, |s| s.header.created_at);
                let slot =
                    Slot { version: next(), header: draft.header.at(now, created_at), body: draft.body };
                self.replace(key, slot)
            }
            Write::Touch { key, header, .. } => {
                let Some(old) = self.map.get(&key) else { return Version::default() };
                let header = header.at(now, old.header.created_at);
                let slot = Slot { version: next(), header, body: old.body.clone() };
                self.replace(key, slot)
            }
            Write::Check { key, .. } => self.entry(&key, now).map_or_else(Version::default, |e| e.version),
            Write::Delete { key, expect } => {
                if let Some(old) = self.map.remove(&key) {
                    self.forget_due(old.header.due_at, &key);
                }
                expect
            }
        }
    }

    fn replace(&mut self, key: Key, slot: Slot) -> Version {
        let (version, due_at) = (slot.version, slot.header.due_at);
        let old_due_at = self.map.get(&key).and_then(|old| old.header.due_at);
        if old_due_at != due_at {
            self.forget_due(old_due_at, &key);
            self.due.extend(due_at.map(|at| (at, key.clone())));
        }
        self.map.insert(key, slot);
        version
    }

    fn forget_due(&mut self, due_at: Option<Timestamp>, key: &Key) {
        if let Some(due_at) = due_at {
            self.due.remove(&(due_at, key.clone()));
        }
    }

    fn due_keys(&self, take: &TakeDue, now: Timestamp) -> Vec<(Timestamp, Key)> {
        let wanted = |key: &Key| {
            key.namespace() == take.namespace
                && self.map.get(key).is_some_and(|slot| {
                    take.statuses.contains(&slot.header.status) && !slot.header.is_expired(now)
                })
        };
        self.due
            .iter()
            .take_while(|(at, _)| *at <= now)
            .filter(|(_, key)| wanted(key))
            .take(take.limit)
            .cloned()
            .collect()
    }

    fn take(&mut self, key: &Key, take: &TakeDue, now: Timestamp, version: Version) -> Option<Entry> {
        let old = self.map.get(key)?;
        let header = Header {
            holder: Some(take.holder.clone()),
            attempts: old.header.attempts.saturating_add(1),
            due_at: Some(now.plus(take.lease)),
            updated_at: now,
            ..old.header.clone()
        };
        let slot = Slot { version, header, body: old.body.clone() };
        let entry = slot.entry(key, now);
        self.replace(key.clone(), slot);
        Some(entry)
    }
}

impl Slot {
    fn entry(&self, key: &Key, read_at: Timestamp) -> Entry {
        Entry {
            key: key.clone(),
            version: self.version,
            header: self.header.clone(),
            body: self.body.clone(),
            read_at,
        }
    }
}

fn check(writes: &[Write]) -> Result<(), StoreError> {
    super::check_keys_differ(writes)?;
    super::check_body_sizes(writes, MAX_BODY)
}

#[async_trait]
impl Store for MemoryStore {
    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<Entry>>, StoreError> {
        let look = |key| {
            let slots = self.lock(Self::index(key));
            slots.entry(key, self.clock.now())
        };
        Ok(keys.iter().map(look).collect())
    }

    async fn commit(&self, mut writes: Vec<Write>) -> Result<Commit, StoreError> {
        check(&writes)?;
        if writes.len() > 1 {
            return Ok(self.commit_many(writes));
        }
        Ok(writes.pop().map_or(Commit::Stored(Vec::new()), |write| self.commit_one(write)))
    }

    async fn take_due(&self, take: TakeDue) -> Result<Vec<Entry>, StoreError> {
        // All shards at once: earliest first holds over the whole store, and the step is one.
        let mut locked: Vec<_> = (0..SHARDS).map(|index| self.lock(index)).collect();
        let now = self.clock.now();
        let mut due: Vec<(Timestamp, Key)> =
            locked.iter().flat_map(|slots| slots.due_keys(&take, now)).collect();
        due.sort();
        due.truncate(take.limit);
        let taken = due
            .iter()
            .filter_map(|(_, key)| locked[Self::index(key)].take(key, &take, now, self.next_version()))
            .collect();
        drop(locked);
        due.iter().for_each(|(_, key)| self.shards[Self::index(key)].changed.notify_waiters());
        Ok(taken)
    }

    async fn scan(&self, scan: Scan) -> Result<Page, StoreError> {
        let after = scan.after.as_ref().map(|cursor| cursor.0.as_str());
        let mut found = Vec::new();
        for index in 0..SHARDS {
            let slots = self.lock(index);
            let now = self.clock.now();
            let wanted = slots.map.iter().filter(|(key, slot)| {
                after.is_none_or(|after| key.as_str() > after)
                    && scan.namespace.as_ref().is_none_or(|n| n == key.namespace())
                    && (scan.statuses.is_empty() || scan.statuses.contains(&slot.header.status))
                    && slot.header.is_expired(now) == scan.expired
            });
            found.extend(wanted.map(|(key, slot)| slot.entry(key, now)));
        }
        found.sort_by(|a, b| a.key.cmp(&b.key));
        let limit = scan.limit.max(1);
        let more = found.len() > limit;
        found.truncate(limit);
        let next = if more { found.last().map(|e| Cursor(e.key.as_str().to_owned())) } else { None };
        Ok(Page { entries: found, next })
    }

    async fn changed(&self, key: &Key, seen: Version) {
        loop {
            let changed = self.shards[Self::index(key)].changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.version_of(key) != Some(seen) {
                return;
            }
            changed.await;
        }
    }

    fn glance(&self, key: &Key) -> Option<Glimpse> {
        let slots = self.lock(Self::index(key));
        let Slot { header, body, .. } = slots.map.get(key)?;
        let expired = header.is_expired(self.clock.now());
        let (status, attempts, body) = (header.status, header.attempts, body.clone());
        drop(slots);
        (!expired).then_some(Glimpse { status, attempts, body })
    }

    fn facts(&self) -> StoreFacts {
        StoreFacts {
            clock: WhoseClock::Injected,
            durability: Durability::Process,
            writes_per_commit: usize::MAX,
            max_body: MAX_BODY,
            notifies: true,
            ..StoreFacts::new("memory")
        }
    }
}

/// Keys carry their hash; this passes it on.
#[derive(Debug, Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("a key hashes as one u64");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

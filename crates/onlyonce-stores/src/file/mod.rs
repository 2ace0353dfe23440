//! The store in a directory: for a shell, with no database, and many processes at once.
//!
//! - **How is a swap atomic?** Keys are spread over 256 shards. A write locks its shard (the kernel's lock, free
//!   again when a writer is killed), compares, writes a new file, waits until it is on disk, renames it over the
//!   old one, and waits for the directory. One write per commit.
//! - **Whose clock?** This machine's; all workers are on it. Not for network file systems.
//! - **What survives a crash?** Every answered commit, also through a power cut. A reader never sees what could
//!   still be lost. Versions go on rising through deletes and crashes.
//! - **Limits?** 16 MiB per body, which a touch rewrites. `take_due` and `scan` look at every entry there is:
//!   good for thousands, slow for millions. Two waits for the disk per commit; writes to one shard that come
//!   together share the second.
//! - **Fail-over?** There is none; a copy of the directory is a backup. Each file carries a checksum: a damaged
//!   one fails its own key (`store_corrupt`) with what to do, is passed over by walks with an error in the log,
//!   and leaves all others alone.
//!
//! A disk that fails while a commit waits for it is answered with what is true: `store_unavailable` when the new
//! file never took its name, `store_uncertain` when it did. An entry nobody can be sure of is not shown: a reader
//! waits for the disk itself, and fails if that fails.
//!
//! `take_due` first looks, without a lock, then takes the earliest of what it saw, each entry in one atomic step
//! under its shard's lock, and looks further down its list where others were faster. An entry that becomes due
//! behind its back waits for the next call; when it is dropped half-way, what it took is due again after the
//! lease.

mod dir;
mod format;
mod locked;
mod queue;
mod root;
mod shard;
mod threads;
mod trouble;
mod walk;
mod word;

use std::path::Path;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use onlyonce::Key;
use onlyonce::store::StoreErrorKind::{Corrupt, Unavailable, Uncertain};
use onlyonce::store::{
    Commit, Durability, Entry, Page, Scan, Store, StoreError, StoreFacts, TakeDue, Version, Write,
    check_body_sizes, check_keys_differ, check_write_count,
};
use onlyonce::time::{Clock, SystemClock, Timestamp};
use tokio::sync::{Notify, oneshot};

use format::Kept;
use locked::{Done, Locked};
use queue::{Answer, Queue};
use root::{Name, Root, SHARDS, Shard};
use shard::ShardDir;
use threads::Threads;
use trouble::Trouble;
use walk::Due;

const MAX_BODY: usize = 16 * 1024 * 1024;
/// They mostly wait for the disk, which serves many at once better than one after the other.
const WRITERS: usize = 16;
const READERS: usize = 4;
/// In how many pieces the whole store is looked through.
const WALK_PARTS: usize = 16;
/// How long an operation may stand in line, and how long it may then take, before the caller is told.
const PATIENCE: Duration = Duration::from_secs(10);

/// Entries in the files of one directory.
///
/// # Example
/// ```
/// use onlyonce::store::Store;
/// use onlyonce_stores::file::FileStore;
/// # let place = tempfile::tempdir()?;
/// # let place = place.path().join("store");
/// let store = FileStore::open(&place)?;
/// assert_eq!(store.facts().writes_per_commit, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FileStore {
    inner: Arc<Inner>,
    writers: Threads,
    readers: Threads,
}

#[derive(Debug)]
struct Inner {
    root: Root,
    clock: Arc<dyn Clock>,
    queues: Box<[Queue]>,
    changed: Box<[Notify]>,
}

impl FileStore {
    /// The store in the directory `path`, on the system's clock; begun if the directory is empty or not there.
    ///
    /// Blocks for as long as that takes: a few waits for the disk where a store is begun.
    ///
    /// # Errors
    /// `Misconfigured` when the directory is something else's, of a format this version does not know, or not to
    /// be made or read by this user. It is left as it is.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::with_clock(path, Arc::new(SystemClock::new()))
    }

    /// The store in the directory `path`, on a clock of the caller's.
    ///
    /// # Errors
    /// As for [`FileStore::open`].
    pub fn with_clock(path: impl AsRef<Path>, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        let inner = Inner {
            root: Root::open(path.as_ref())?,
            clock,
            queues: (0..SHARDS).map(|_| Queue::default()).collect(),
            changed: (0..SHARDS).map(|_| Notify::new()).collect(),
        };
        Ok(Self { inner: Arc::new(inner), writers: Threads::new(WRITERS), readers: Threads::new(READERS) })
    }

    /// Does `work` on a thread for readers.
    async fn look<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, Trouble> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (sender, receiver) = oneshot::channel();
        let inner = Arc::clone(&self.inner);
        self.readers.run(move || {
            let _ = sender.send(work(&inner));
        })?;
        match self.patiently(receiver).await {
            Some(Ok(answer)) => Ok(answer?),
            Some(Err(_)) => Err(StoreError::unavailable("a thread of the file store broke off; try again")),
            None => Err(self.slow(Unavailable)),
        }
    }

    /// Puts `work` in line for a shard, at once; the future it gives waits for the answer.
    fn ask<T: Send + 'static>(
        &self,
        shard: Shard,
        work: impl FnOnce(&mut Locked<'_>, Timestamp) -> Result<Done<T>, Trouble> + Send + 'static,
    ) -> impl Future<Output = Result<T, StoreError>> + Send {
        let (answer, send_thread) = self.inner.queues[shard.index()].push(work);
        if send_thread {
            let inner = Arc::clone(&self.inner);
            if let Err(trouble) = self.writers.run(move || inner.serve(shard)) {
                self.inner.queues[shard.index()].refuse(&trouble);
            }
        }
        self.answered(answer)
    }

    /// Every entry the taker could have, earliest first.
    async fn due(&self, take: &Arc<TakeDue>) -> Result<Vec<Due>, StoreError> {
        let mut found = Vec::new();
        // In parts, so that the time it takes is never mistaken for a disk that hangs.
        for part in 0..WALK_PARTS {
            let take = Arc::clone(take);
            let look = move |inner: &Inner| {
                let shards = Shard::FIRST.onward().skip(part).step_by(WALK_PARTS);
                walk::due(&inner.root, shards, &take, inner.clock.now())
            };
            found.extend(self.look(look).await?);
        }
        found.sort_unstable();
        Ok(found)
    }

    fn take_one(
        &self,
        due: Due,
        take: &Arc<TakeDue>,
    ) -> impl Future<Output = Result<Option<Entry>, StoreError>> + Send {
        let take = Arc::clone(take);
        self.ask(due.name.shard(), move |shard, now| shard.take(&due.name, &take, now))
    }

    async fn answered<T>(&self, mut answer: Answer<T>) -> Result<T, StoreError> {
        let mut answered = self.patiently(&mut answer.receiver).await;
        if answered.is_none() {
            if answer.take_back() {
                return Err(self.slow(Unavailable));
            }
            answered = self.patiently(&mut answer.receiver).await;
        }
        match answered {
            Some(Ok(answer)) => Ok(answer?),
            Some(Err(_)) => Err(StoreError::uncertain("a thread of the file store broke off; read back")),
            None => Err(self.slow(Uncertain)),
        }
    }

    /// Waits for `future`, but not for ever.
    async fn patiently<F: Future>(&self, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        let mut late = self.inner.clock.sleep_until(self.inner.clock.monotonic().saturating_add(PATIENCE));
        std::future::poll_fn(|context| {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                return Poll::Ready(Some(output));
            }
            Pin::new(&mut late).poll(context).map(|()| None)
        })
        .await
    }

    fn slow(&self, kind: onlyonce::store::StoreErrorKind) -> StoreError {
        let path = self.inner.root.path.display();
        let seconds = PATIENCE.as_secs();
        StoreError::new(
            kind,
            format!(
                "the file store in {path} gave no answer for {seconds} s; its disk hangs, or a stopped process \
                 has a lock there (`fuser` names it)"
            ),
        )
    }
}

impl Inner {
    fn serve(&self, shard: Shard) {
        let changed = &self.changed[shard.index()];
        self.queues[shard.index()].serve(&self.root, shard, &*self.clock, || changed.notify_waiters());
    }

    fn read(&self, key: &Key) -> Result<Option<Entry>, Trouble> {
        let there = self.kept(key)?.and_then(Kept::into_record);
        let now = self.clock.now();
        Ok(there.filter(|r| !r.header.is_expired(now)).map(|r| r.into_entry(now)))
    }

    fn kept(&self, key: &Key) -> Result<Option<Kept>, Trouble> {
        let name = Name::of(key);
        let Some(dir) = ShardDir::open(&self.root, name.shard())? else { return Ok(None) };
        let kept = dir.read(&name, key)?;
        dir.make_sure()?;
        Ok(kept)
    }
}

#[async_trait]
impl Store for FileStore {
    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<Entry>>, StoreError> {
        let keys = keys.to_vec();
        self.look(move |inner| keys.iter().map(|key| inner.read(key)).collect()).await
    }

    async fn commit(&self, mut writes: Vec<Write>) -> Result<Commit, StoreError> {
        check_keys_differ(&writes)?;
        check_write_count(&writes, &self.facts())?;
        check_body_sizes(&writes, MAX_BODY)?;
        let Some(write) = writes.pop() else { return Ok(Commit::Stored(Vec::new())) };
        let shard = Name::of(write.key()).shard();
        self.ask(shard, move |shard, now| shard.commit(write, now)).await
    }

    async fn take_due(&self, take: TakeDue) -> Result<Vec<Entry>, StoreError> {
        if take.limit == 0 {
            return Ok(Vec::new());
        }
        let take = Arc::new(take);
        let mut due = self.due(&take).await?.into_iter();
        let (mut taken, mut failed) = (Vec::new(), None);
        while taken.len() < take.limit && failed.is_none() {
            let wave = due.by_ref().take(take.limit - taken.len());
            let asked: Vec<_> = wave.map(|due| self.take_one(due, &take)).collect();
            if asked.is_empty() {
                break;
            }
            for answer in asked {
                match answer.await {
                    Ok(entry) => taken.extend(entry),
                    Err(error) if error.kind() == Corrupt => tracing::error!(%error, "entry_damaged"),
                    Err(error) => failed = Some(error),
                }
            }
        }
        match failed {
            // What was taken is the caller's now; only the caller can give it back.
            Some(error) if taken.is_empty() => Err(error),
            _ => Ok(taken),
        }
    }

    async fn scan(&self, scan: Scan) -> Result<Page, StoreError> {
        self.look(move |inner| walk::page(&inner.root, &scan, inner.clock.now())).await
    }

    async fn changed(&self, key: &Key, seen: Version) {
        let changed = &self.inner.changed[Name::of(key).shard().index()];
        loop {
            let mut changed = pin!(changed.notified());
            changed.as_mut().enable();
            let sought = key.clone();
            let kept = self.look(move |inner| inner.kept(&sought)).await;
            if kept.is_ok_and(|kept| kept.and_then(Kept::into_record).map(|r| r.version) != Some(seen)) {
                return;
            }
            changed.await;
        }
    }

    fn facts(&self) -> StoreFacts {
        let mut facts = StoreFacts::new("file");
        facts.durability = Durability::PowerCut;
        facts.shared = true;
        facts.max_body = MAX_BODY;
        facts
    }
}

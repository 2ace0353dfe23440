//! The socket: what the engine needs from a place that remembers.
//!
//! > **The store remembers. The engine decides.**
//!
//! A store keeps small versioned entries and replaces one only if it is still the version you saw. It knows
//! nothing of leases, outcomes or policies; those are rules, and rules live in `rules.rs` files. If a store
//! starts to look at what a status means, stop.

mod entry;
mod error;
mod memory;
mod observed;
mod prefixed;

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;

pub use entry::{
    Commit, Cursor, Draft, Entry, Expect, Glimpse, Header, HeaderDraft, Holder, Page, Scan, Status, TakeDue,
    Version, Write,
};
pub use error::{StoreError, StoreErrorKind};
pub use memory::MemoryStore;
pub use observed::{Observed, Observer, Operation};
pub use prefixed::Prefixed;

use crate::key::Key;
use crate::time::BoxFuture;

/// A place that remembers entries.
///
/// # Promise
/// Each sentence is a named case of the conformance suite (`onlyonce-testkit`), run on every store.
///
/// - **Versions** are given by the store, rise per key, and never repeat: not after a delete, not after an
///   expiry, not after a restart.
/// - **A commit is all or nothing**, and every write in it names what it expects. When one expectation fails,
///   nothing is written and the answer is [`Commit::Conflict`] with what is there, one item per write, in
///   order. A conflict is an answer, not an error.
/// - A commit that returned [`Commit::Stored`] **survives** what [`StoreFacts::durability`] says.
/// - **Durations go in, moments come out**: the store's own clock turns `due_in` into `due_at` and `keep_for`
///   into `expires_at`, and stamps [`Entry::read_at`]. Two workers with bad clocks agree on every moment.
/// - **An entry past its `expires_at` is not there**: `read` gives `None`, [`Expect::Absent`] holds, `take_due`
///   and a plain `scan` pass over it. Two exceptions let a sweep do its work: a scan for expired entries lists
///   it for as long as the store still keeps it, and [`Write::Delete`] removes it at its version.
/// - `created_at` is the moment of the put that found the key absent, and stays through later puts and touches.
///   `updated_at` is the moment of the last write of any kind.
/// - **`Touch` leaves the body as it is**, byte for byte, and gives a new version.
/// - **Bodies come back byte for byte.** They are JSON; a store may rely on that, and on nothing more.
/// - **Keys are data**: no key can escape its namespace, directory, table or script.
/// - `take_due` hands each due entry to one taker, earliest first, in one atomic step: it sets the holder,
///   `due_at = now + lease`, `attempts + 1`, and gives a new version; status and body stay.
/// - **One key at most once per commit**; a second write to the same key is [`StoreErrorKind::Misconfigured`],
///   as is a commit of more than [`StoreFacts::writes_per_commit`] writes. A commit of no writes stores nothing.
///
/// # If dropped
/// The operation may or may not happen, as a whole; what was there is never torn.
#[async_trait]
pub trait Store: Debug + Send + Sync + 'static {
    /// What is there now, one item per key, in order.
    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<Entry>>, StoreError>;

    /// Applies all `writes`, or none.
    async fn commit(&self, writes: Vec<Write>) -> Result<Commit, StoreError>;

    /// Hands due entries to one holder.
    async fn take_due(&self, take: TakeDue) -> Result<Vec<Entry>, StoreError>;

    /// One page of entries, in an order of the store's own that stays the same from page to page.
    ///
    /// An entry that is there during the whole walk is seen exactly once.
    async fn scan(&self, scan: Scan) -> Result<Page, StoreError>;

    /// Resolves when `key` may have changed from `seen`, at once if it already has.
    ///
    /// A hint that saves polling: it may resolve early, and a store without a signal never resolves. Whoever
    /// waits looks again, and has a timer of its own.
    async fn changed(&self, key: &Key, seen: Version);

    /// A glance at what is there now, where that costs next to nothing and waits for nobody.
    ///
    /// A hint that saves a claim, and the one method with a body of its own: `None` says nothing, not even that
    /// the key is free. What is given is part of the entry [`read`](Store::read) would give.
    fn glance(&self, key: &Key) -> Option<Glimpse> {
        let _ = key;
        None
    }

    /// What this store is, promises and allows.
    fn facts(&self) -> StoreFacts;
}

/// What a store is, promises and allows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreFacts {
    /// One word: `memory`, `file`, `sqlite`, …
    pub name: &'static str,
    /// Whose clock decides when a lease ends.
    pub clock: WhoseClock,
    /// What a stored commit survives.
    pub durability: Durability,
    /// Whether other processes see the same entries.
    pub shared: bool,
    /// How many writes one commit may hold.
    pub writes_per_commit: usize,
    /// How many bytes one body may hold.
    pub max_body: usize,
    /// Whether [`Store::changed`] ever resolves for a change made by another process.
    pub notifies: bool,
}

impl StoreFacts {
    /// Facts with the most careful answers; stores state the rest.
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            clock: WhoseClock::Local,
            durability: Durability::Process,
            shared: false,
            writes_per_commit: 1,
            max_body: 1024 * 1024,
            notifies: false,
        }
    }
}

/// Whose clock decides when a lease ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhoseClock {
    /// The clock given to the store by its owner.
    Injected,
    /// This machine's wall clock: all workers are on this machine.
    Local,
    /// The server's clock.
    Server,
}

/// What a stored commit survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Nothing but the life of this process.
    Process,
    /// `kill -9` of every worker; a power cut may lose the last commits.
    Crash,
    /// A power cut: the commit was on disk before it was answered.
    PowerCut,
}

/// Refuses a commit that writes one key twice; every store asks first.
///
/// # Errors
/// [`StoreErrorKind::Misconfigured`].
pub fn check_keys_differ(writes: &[Write]) -> Result<(), StoreError> {
    let twice = match writes {
        [] | [_] => None,
        [a, b] => (a.key() == b.key()).then(|| a.key()),
        many => {
            let mut seen = std::collections::HashSet::with_capacity(many.len());
            many.iter().map(Write::key).find(|key| !seen.insert(*key))
        }
    };
    match twice {
        Some(key) => Err(StoreError::misconfigured(format!(
            "one commit writes {key} twice; give it one write per key"
        ))),
        None => Ok(()),
    }
}

/// Refuses a commit of more writes than the store takes.
///
/// # Errors
/// [`StoreErrorKind::Misconfigured`].
pub fn check_write_count(writes: &[Write], facts: &StoreFacts) -> Result<(), StoreError> {
    let (most, name) = (facts.writes_per_commit, facts.name);
    if writes.len() <= most {
        return Ok(());
    }
    let many = writes.len();
    Err(StoreError::misconfigured(format!(
        "the {name} store takes {most} writes per commit, this one has {many}"
    )))
}

/// Refuses bodies larger than the store takes.
///
/// # Errors
/// [`StoreErrorKind::TooLarge`].
pub fn check_body_sizes(writes: &[Write], max_body: usize) -> Result<(), StoreError> {
    for write in writes {
        if let Write::Put { key, draft, .. } = write
            && draft.body.len() > max_body
        {
            let len = draft.body.len();
            return Err(StoreError::too_large(format!(
                "the body of {key} has {len} bytes, and this store takes {max_body}"
            )));
        }
    }
    Ok(())
}

/// A shared store is a store; it hands on the inner one's futures, so that sharing costs nothing.
impl<S: Store + ?Sized> Store for Arc<S> {
    fn read<'a, 'b, 'f>(&'a self, keys: &'b [Key]) -> Answer<'f, Vec<Option<Entry>>>
    where
        'a: 'f,
        'b: 'f,
    {
        (**self).read(keys)
    }

    fn commit<'a, 'f>(&'a self, writes: Vec<Write>) -> Answer<'f, Commit>
    where
        'a: 'f,
    {
        (**self).commit(writes)
    }

    fn take_due<'a, 'f>(&'a self, take: TakeDue) -> Answer<'f, Vec<Entry>>
    where
        'a: 'f,
    {
        (**self).take_due(take)
    }

    fn scan<'a, 'f>(&'a self, scan: Scan) -> Answer<'f, Page>
    where
        'a: 'f,
    {
        (**self).scan(scan)
    }

    fn changed<'a, 'b, 'f>(&'a self, key: &'b Key, seen: Version) -> BoxFuture<'f, ()>
    where
        'a: 'f,
        'b: 'f,
    {
        (**self).changed(key, seen)
    }

    fn glance(&self, key: &Key) -> Option<Glimpse> {
        (**self).glance(key)
    }

    fn facts(&self) -> StoreFacts {
        (**self).facts()
    }
}

type Answer<'f, T> = BoxFuture<'f, Result<T, StoreError>>;

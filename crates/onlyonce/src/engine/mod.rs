//! The engine: claims, leases, heartbeats, fences, records and replays.
//!
//! ```text
//! once(key).run(body)
//!    │  one flight per key in this process            flights.rs
//!    ▼
//! conditional create ── stored ──▶ lease ──▶ body ──▶ conditional completion
//!    │ conflict carries the record   │ heartbeat.rs          │ guard.rs
//!    ▼                               ▼                       ▼
//! rules.rs: replay, wait, refuse,  extended together       refused when somebody
//! take over, probe or park         while the body runs     else has the key now
//! ```

mod admin;
mod blocking;
mod claim;
mod effect;
mod flights;
mod guard;
mod heartbeat;
mod lease;
mod look;
mod many;
mod once;
mod pending;
mod record;
pub mod rules;
mod sweep;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub use admin::{Forget, Listing, View};
pub use blocking::{Blocking, BlockingEffect, BlockingLease, BlockingOnce};
pub use effect::Effect;
pub use guard::{Claimed, Completion, Guard};
pub use lease::Lease;
pub use once::{Once, Ran};
pub use record::{AuditLine, EffectRecord, EffectState, Failure, Record};
pub use sweep::{Sweep, Swept};

use crate::background::{Background, Tasks};
use crate::chance::{Chance, SystemChance};
use crate::error::Error;
use crate::key::Key;
use crate::policy::Policy;
use crate::store::{Holder, Store};
use crate::telemetry::Stats;
use crate::time::{Clock, SystemClock};
use flights::Flights;
use heartbeat::Heart;

/// Results larger than this are not stored, unless the engine is told otherwise.
const MAX_RESULT: usize = 1024 * 1024;

/// Makes calls happen once, on one store.
///
/// Cheap to clone; clones are the same engine. One engine per process and store is enough, and lets
/// concurrent calls of the process meet before they reach the store.
///
/// # Example
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use onlyonce::{Engine, Error, Key, store::MemoryStore};
/// let engine = Engine::new(MemoryStore::new());
/// for _ in 0..3 {
///     let paid = engine
///         .once::<Error>(Key::new("orders.charge", "4711")?)
///         .input(&("EUR", 1999))
///         .run(async |lease| Ok(format!("receipt {}", lease.attempt())))
///         .await
///         .map_err(|e| e.merge())?;
///     assert_eq!(paid.value, "receipt 1");
/// }
/// # Ok::<(), Error>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct Engine {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) chance: Arc<dyn Chance>,
    pub(crate) tasks: Arc<dyn Tasks>,
    pub(crate) policy: Arc<Policy>,
    pub(crate) worker: Arc<str>,
    pub(crate) max_result: usize,
    pub(crate) flights: Flights,
    pub(crate) heart: Arc<Heart>,
    pub(crate) stats: Stats,
    claims: AtomicU64,
    policy_works: bool,
}

impl Inner {
    /// Whether the policy of calls that bring none of their own can work; checked once.
    #[inline]
    pub(crate) fn default_policy(&self) -> Result<(), Error> {
        if self.policy_works { Ok(()) } else { self.policy.check() }
    }

    pub(crate) fn next_holder(&self) -> Holder {
        Holder::new(self.worker.clone(), self.claims.fetch_add(1, Ordering::Relaxed))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.heart.stop();
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("store", &self.inner.store.facts().name)
            .field("worker", &self.inner.worker)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// An engine on this store, with the default policy.
    pub fn new(store: impl Store) -> Self {
        Self::builder(store).build()
    }

    /// An engine on this store, with choices.
    pub fn builder(store: impl Store) -> Builder {
        Builder {
            store: Arc::new(store),
            clock: None,
            chance: None,
            tasks: None,
            policy: Policy::default(),
            worker: None,
            max_result: MAX_RESULT,
        }
    }

    /// Begins a guarded call for this key.
    pub fn once<E>(&self, key: Key) -> Once<'_, E> {
        Once::new(&self.inner, key)
    }

    /// The store underneath.
    pub fn store(&self) -> &dyn Store {
        &*self.inner.store
    }

    /// Counts of what became of this engine's calls.
    pub fn stats(&self) -> &Stats {
        &self.inner.stats
    }

    /// How many leases this engine holds right now.
    pub fn live_leases(&self) -> usize {
        self.inner.heart.live()
    }

    /// The sync face of this engine.
    pub fn blocking(&self) -> Blocking<'_> {
        Blocking::new(self)
    }
}

/// Builds an [`Engine`].
#[derive(Debug)]
pub struct Builder {
    store: Arc<dyn Store>,
    clock: Option<Arc<dyn Clock>>,
    chance: Option<Arc<dyn Chance>>,
    tasks: Option<Arc<dyn Tasks>>,
    policy: Policy,
    worker: Option<String>,
    max_result: usize,
}

impl Builder {
    /// The policy of calls that bring none of their own.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// The name of this worker in records; the default has the host and the process in it.
    ///
    /// A random part follows it, so that a worker that starts again is never taken for the one before.
    #[must_use]
    pub fn worker(mut self, worker: impl Into<String>) -> Self {
        self.worker = Some(worker.into());
        self
    }

    /// The largest result that is stored, in bytes of JSON. Default: 1 MiB, or what the store takes.
    #[must_use]
    pub fn max_result(mut self, bytes: usize) -> Self {
        self.max_result = bytes;
        self
    }

    /// Where time comes from.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Where chance comes from.
    #[must_use]
    pub fn chance(mut self, chance: Arc<dyn Chance>) -> Self {
        self.chance = Some(chance);
        self
    }

    /// Where heartbeats run.
    #[must_use]
    pub fn tasks(mut self, tasks: Arc<dyn Tasks>) -> Self {
        self.tasks = Some(tasks);
        self
    }

    /// The engine.
    pub fn build(self) -> Engine {
        let chance = self.chance.unwrap_or_else(|| Arc::new(SystemChance::new()));
        let worker = worker_name(self.worker, &*chance);
        // A record has a little more in it than the result.
        let room = self.store.facts().max_body.saturating_sub(4096);
        Engine {
            inner: Arc::new(Inner {
                clock: self.clock.unwrap_or_else(|| Arc::new(SystemClock::new())),
                tasks: self.tasks.unwrap_or_else(|| Arc::new(Background::get().clone())),
                policy_works: self.policy.check().is_ok(),
                policy: Arc::new(self.policy),
                worker: worker.into(),
                max_result: self.max_result.min(room),
                flights: Flights::new(),
                heart: Arc::new(Heart::new()),
                stats: Stats::default(),
                claims: AtomicU64::new(1),
                store: self.store,
                chance,
            }),
        }
    }
}

/// What it is called, or host and process, and a random part: no two workers share a name.
fn worker_name(given: Option<String>, chance: &dyn Chance) -> String {
    let name = given.unwrap_or_else(|| {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host = if host.trim().is_empty() { "host" } else { host.trim() };
        format!("{host}:{}", std::process::id())
    });
    format!("{name}:{:08x}", chance.next() & 0xFFFF_FFFF)
}

/// The shortest and longest pause between two looks at a key another process runs.
const WAIT_PAUSES: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(500));

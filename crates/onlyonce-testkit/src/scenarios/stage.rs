//! Where a scenario plays: one store, several workers, and time that passes when told.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::{Either, select};
use onlyonce::background::Tasks;
use onlyonce::store::Store;
use onlyonce::time::BoxFuture;
use onlyonce::{Engine, Key, Policy};
use tokio::runtime::Handle;

use super::wire::{Traffic, Wire, Wired};
use crate::chance::SeededChance;
use crate::clock::ManualClock;

/// How long a lease is in a scenario, unless it says otherwise.
pub const LEASE: Duration = Duration::from_secs(60);
/// How long an outcome is kept in a scenario, unless it says otherwise.
pub const KEEP: Duration = Duration::from_secs(3600);

/// Opens the store under test once more, as another process does.
pub type OpenStore = Arc<dyn Fn() -> Arc<dyn Store> + Send + Sync>;

/// One store, several workers, and time that passes when told.
///
/// Everything but the store itself runs on the test's own thread, and time stands still while the store has
/// not answered: a slow disk changes nothing of what a scenario sees.
#[derive(Clone)]
pub struct Stage {
    open: OpenStore,
    store: Arc<dyn Store>,
    clock: ManualClock,
    traffic: Traffic,
    workers: Arc<AtomicU64>,
    kept: Vec<Arc<dyn Any + Send + Sync>>,
}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stage").field("store", &self.store).finish_non_exhaustive()
    }
}

impl Stage {
    /// A stage on the store that `open` opens; the store must be on this clock.
    pub fn new(clock: ManualClock, open: impl Fn() -> Arc<dyn Store> + Send + Sync + 'static) -> Self {
        let store = open();
        Self {
            open: Arc::new(open),
            store,
            clock,
            traffic: Traffic::new(),
            workers: Arc::default(),
            kept: Vec::new(),
        }
    }

    /// Keeps something, a temporary directory say, for as long as the stage stands.
    #[must_use]
    pub fn keeping(mut self, kept: impl Any + Send + Sync) -> Self {
        self.kept.push(Arc::new(kept));
        self
    }

    /// The store, as somebody sees it who is no worker.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The clock of the store and of every worker that has none of its own.
    pub fn clock(&self) -> &ManualClock {
        &self.clock
    }

    /// A worker: an engine with a connection of its own, on the stage's clock.
    pub fn worker(&self) -> Worker {
        self.worker_on(self.clock.clone())
    }

    /// A worker whose clock stands still until it is told: a paused process that does not know it.
    pub fn sleeper(&self) -> Worker {
        self.worker_on(ManualClock::new())
    }

    /// A worker on a clock of its own.
    pub fn worker_on(&self, clock: ManualClock) -> Worker {
        self.worker_with(clock, |builder| builder)
    }

    /// A worker on a clock of its own, and with choices.
    pub fn worker_with(
        &self,
        clock: ManualClock,
        choose: impl FnOnce(onlyonce::engine::Builder) -> onlyonce::engine::Builder,
    ) -> Worker {
        let number = self.workers.fetch_add(1, Ordering::Relaxed);
        let wire = Wire::new(self.traffic.clone());
        let store = Wired { store: (self.open)(), wire: wire.clone() };
        let builder = Engine::builder(store)
            .clock(Arc::new(clock.clone()))
            .chance(Arc::new(SeededChance::new(number)))
            .tasks(Arc::new(Here(Handle::current())))
            .policy(policy())
            .worker(format!("worker-{number}"));
        Worker { engine: choose(builder).build(), clock, wire }
    }

    /// Resolves once every task waits for time or for a signal, and the store for nobody.
    pub async fn idle(&self) {
        const ENOUGH: u32 = 64;
        let mut quiet = 0;
        while quiet < ENOUGH {
            tokio::task::yield_now().await;
            quiet += 1;
            if !self.traffic.is_still() {
                self.traffic.until_still().await;
                quiet = 0;
            }
        }
    }

    /// Lets time pass on the stage's clock, moment by moment: every timer sees its own.
    pub async fn pass(&self, span: Duration) {
        let mut left = span;
        self.idle().await;
        while !left.is_zero() {
            left -= self.clock.advance_to_next(left);
            self.idle().await;
        }
    }

    /// Lets time pass until the future is ready.
    ///
    /// # Panics
    /// When nothing is left that could make it ready.
    pub async fn play<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        loop {
            let idle = pin!(self.idle());
            future = match select(future, idle).await {
                Either::Left((output, _)) => return output,
                Either::Right(((), future)) => future,
            };
            assert!(self.clock.next_wake().is_some(), "nothing will ever happen: a call hangs");
            self.clock.advance_to_next(Duration::MAX);
        }
    }

    /// What the future gives without any time passing.
    ///
    /// # Panics
    /// When it needs time to pass.
    pub async fn at_once<F: Future>(&self, future: F) -> F::Output {
        let before = self.clock.sleepers();
        match select(pin!(future), pin!(self.idle())).await {
            Either::Left((output, _)) => output,
            Either::Right(_) => panic!("this should need no time; {before} timers were set before"),
        }
    }
}

/// The policy of every worker: a lease of a minute, an outcome kept for an hour.
pub fn policy() -> Policy {
    Policy::default().lease(LEASE).keep(KEEP)
}

/// One worker of a scenario; as an engine in a process of its own.
#[derive(Clone, Debug)]
pub struct Worker {
    /// Its engine.
    pub engine: Engine,
    /// Its clock.
    pub clock: ManualClock,
    /// Its line to the store.
    pub wire: Arc<Wire>,
}

impl Deref for Worker {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}

/// Runs background tasks on the test's own runtime, so that [`Stage::idle`] knows of them.
#[derive(Debug)]
struct Here(Handle);

impl Tasks for Here {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.0.spawn(task);
    }
}

/// A key in the namespace of the scenarios.
///
/// # Panics
/// When the id cannot be one.
#[expect(clippy::panic, reason = "a scenario fails by panicking")]
pub fn key(id: impl AsRef<str>) -> Key {
    Key::new("scenes", id).unwrap_or_else(|error| panic!("{error}"))
}

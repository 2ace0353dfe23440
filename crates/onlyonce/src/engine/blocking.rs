//! The sync face of the engine: the same calls, without `await`.
//!
//! Works with and without a tokio runtime around. The calling thread waits; heartbeats and timers go on on the
//! background thread. On a thread that is running async code it refuses, because waiting there would stop
//! everything else on that thread, and in the end itself.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Effect, Engine, Forget, Lease, Listing, Once, Ran, Sweep, Swept, View, rules::State};
use crate::error::{Error, RunError};
use crate::key::{Fingerprint, Key};
use crate::policy::{FailureDecision, Policy, Verdict};
use crate::store::Scan;

/// The sync face of an engine.
#[derive(Clone, Copy, Debug)]
pub struct Blocking<'e> {
    engine: &'e Engine,
}

impl<'e> Blocking<'e> {
    pub(crate) fn new(engine: &'e Engine) -> Self {
        Self { engine }
    }

    /// Begins a guarded call for this key.
    pub fn once<E>(self, key: Key) -> BlockingOnce<'e, E> {
        BlockingOnce { once: self.engine.once(key) }
    }

    /// As [`Engine::look`].
    ///
    /// # Errors
    /// As there, and `blocking_in_async`.
    pub fn look(self, key: &Key) -> Result<Option<View>, Error> {
        block_on(self.engine.look(key))?
    }

    /// As [`Engine::list`].
    ///
    /// # Errors
    /// As there, and `blocking_in_async`.
    pub fn list(self, scan: Scan) -> Result<Listing, Error> {
        block_on(self.engine.list(scan))?
    }

    /// As [`Engine::resolve`].
    ///
    /// # Errors
    /// As there, and `blocking_in_async`.
    pub fn resolve(self, key: &Key, verdict: Verdict, by: &str) -> Result<State, Error> {
        block_on(self.engine.resolve(key, verdict, by))?
    }

    /// As [`Engine::forget`].
    ///
    /// # Errors
    /// As there, and `blocking_in_async`.
    pub fn forget(self, key: &Key, forget: Forget) -> Result<(), Error> {
        block_on(self.engine.forget(key, forget))?
    }

    /// As [`Engine::sweep`].
    ///
    /// # Errors
    /// As there, and `blocking_in_async`.
    pub fn sweep(self, sweep: Sweep) -> Result<Swept, Error> {
        block_on(self.engine.sweep(sweep))?
    }
}

/// A guarded sync call in the making; the words are those of [`Once`].
#[must_use = "nothing runs until `run` is called"]
pub struct BlockingOnce<'e, E> {
    once: Once<'e, E>,
}

impl<E> fmt::Debug for BlockingOnce<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.once.fmt(f)
    }
}

impl<E> BlockingOnce<'_, E> {
    /// As [`Once::input`].
    pub fn input<I: Serialize + ?Sized>(mut self, input: &I) -> Self {
        self.once = self.once.input(input);
        self
    }

    /// As [`Once::fingerprint`].
    pub fn fingerprint(mut self, fingerprint: Fingerprint) -> Self {
        self.once = self.once.fingerprint(fingerprint);
        self
    }

    /// As [`Once::policy`].
    pub fn policy(mut self, policy: impl Into<Arc<Policy>>) -> Self {
        self.once = self.once.policy(policy);
        self
    }

    /// As [`Once::on_error`].
    pub fn on_error<D: Into<FailureDecision>>(
        mut self,
        decide: impl Fn(&E) -> D + Send + Sync + 'static,
    ) -> Self {
        self.once = self.once.on_error(decide);
        self
    }

    /// As [`Once::run`]; a sync body cannot be cancelled, so it asks [`Lease::check`](crate::Lease::check).
    ///
    /// # Errors
    /// As [`Once::run`], and `blocking_in_async`.
    pub fn run<T, F>(self, body: F) -> Result<Ran<T>, RunError<E>>
    where
        T: Serialize + DeserializeOwned,
        E: fmt::Display,
        F: FnOnce(BlockingLease) -> Result<T, E>,
    {
        block_on(self.once.run(async |lease| body(BlockingLease { lease })))?
    }

    /// As [`Once::run_keeping_errors`].
    ///
    /// # Errors
    /// As [`Once::run_keeping_errors`], and `blocking_in_async`.
    pub fn run_keeping_errors<T, F>(self, body: F) -> Result<Ran<T>, RunError<E>>
    where
        T: Serialize + DeserializeOwned,
        E: fmt::Display + Serialize + DeserializeOwned,
        F: FnOnce(BlockingLease) -> Result<T, E>,
    {
        block_on(self.once.run_keeping_errors(async |lease| body(BlockingLease { lease })))?
    }
}

/// The right to run a sync body.
#[derive(Clone, Debug)]
pub struct BlockingLease {
    lease: Lease,
}

impl std::ops::Deref for BlockingLease {
    type Target = Lease;

    fn deref(&self) -> &Lease {
        &self.lease
    }
}

impl BlockingLease {
    /// One change in the outside world, recorded before and after; hides [`Lease::effect`].
    pub fn effect<'a>(&'a self, name: &'a str) -> BlockingEffect<'a> {
        BlockingEffect { effect: self.lease.effect(name) }
    }
}

/// One change in the outside world, within a sync body.
#[derive(Debug)]
pub struct BlockingEffect<'a> {
    effect: Effect<'a>,
}

impl BlockingEffect<'_> {
    /// As [`Effect::key`].
    ///
    /// # Errors
    /// `blocking_in_async`.
    pub fn key(&self) -> Result<String, Error> {
        block_on(self.effect.key())
    }

    /// As [`Effect::undo`].
    #[must_use]
    pub fn undo<T, U, F>(mut self, undo: F) -> Self
    where
        T: DeserializeOwned + Send + 'static,
        U: fmt::Display,
        F: FnOnce(T) -> Result<(), U> + Send + 'static,
    {
        self.effect = self.effect.undo(move |value: T| {
            let undone = undo(value).map_err(|e| e.to_string());
            std::future::ready(undone)
        });
        self
    }

    /// As [`Effect::run`].
    ///
    /// # Errors
    /// As [`Effect::run`], and `blocking_in_async`.
    pub fn run<T, E, F>(self, body: F) -> Result<T, RunError<E>>
    where
        T: Serialize + DeserializeOwned,
        F: FnOnce(String) -> Result<T, E>,
    {
        block_on(self.effect.run(async |key| body(key)))?
    }
}

/// Waits on this thread for `future`.
pub(crate) fn block_on<F: Future>(future: F) -> Result<F::Output, Error> {
    if on_async_thread() {
        return Err(Error::BlockingInAsync);
    }
    let parker = Arc::new(Parker::default());
    let waker = Waker::from(parker.clone());
    let mut cx = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(output) => return Ok(output),
            Poll::Pending => parker.park(),
        }
    }
}

/// Whether a tokio task is being polled on this thread.
///
/// Tokio gives every task it polls a budget of 128 steps, and gives none to `spawn_blocking` and
/// `block_in_place`, where waiting is allowed. So: whoever runs out of budget is a task. The steps are given
/// back as they are dropped.
fn on_async_thread() -> bool {
    use tokio::task::coop::poll_proceed;
    if tokio::runtime::Handle::try_current().is_err() {
        return false;
    }
    let mut cx = Context::from_waker(Waker::noop());
    let mut steps = Vec::with_capacity(256);
    let ran_out = (0..256).any(|_| match poll_proceed(&mut cx) {
        Poll::Ready(step) => {
            steps.push(step);
            false
        }
        Poll::Pending => true,
    });
    // Last taken, first given back: each drop restores the budget it found.
    while steps.pop().is_some() {}
    ran_out
}

#[derive(Default)]
struct Parker {
    woken: Mutex<bool>,
    changed: Condvar,
}

impl Parker {
    fn park(&self) {
        let mut woken = self.woken.lock().unwrap_or_else(PoisonError::into_inner);
        while !std::mem::take(&mut *woken) {
            woken = self.changed.wait(woken).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        *self.woken.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_one();
    }
}

//! The few words the scenarios are written in.

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use onlyonce::engine::View;
use onlyonce::engine::rules::State;
use onlyonce::time::Clock;
use onlyonce::{Error, Key, Lease, OnCrash, Policy, Probe, Ran, RunError, Suspect, Verdict};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::stage::{LEASE, Stage, Worker, policy};
use crate::clock::ManualClock;

/// How a scenario ends.
pub type Scene<T = ()> = Result<T, Box<dyn StdError + Send + Sync>>;

/// The error of a scenario's bodies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trouble(pub String);

impl Trouble {
    /// A trouble that says this.
    pub fn new(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl StdError for Trouble {}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self(format!("{}: {error}", error.code()))
    }
}

impl From<RunError<Trouble>> for Trouble {
    fn from(error: RunError<Trouble>) -> Self {
        error.merge()
    }
}

/// What became of a call.
pub type Outcome<T = u64> = Result<Ran<T>, RunError<Trouble>>;

/// What became of a call, in one word: `ran`, `replayed`, `failed`, or the code of the guard's answer.
pub fn word<T, E>(outcome: &Result<Ran<T>, RunError<E>>) -> &'static str {
    match outcome {
        Ok(ran) if ran.replayed => "replayed",
        Ok(_) => "ran",
        Err(RunError::Body(_)) => "failed",
        Err(RunError::Guard(error)) => error.code(),
    }
}

/// The guard's answer.
///
/// # Panics
/// When the call gave a value or its body's own error.
#[expect(clippy::panic, reason = "a scenario fails by panicking")]
pub fn refusal<T: fmt::Debug, E: fmt::Debug>(outcome: Result<Ran<T>, RunError<E>>) -> Error {
    match outcome {
        Err(RunError::Guard(error)) => error,
        other => panic!("the guard should have refused this, it was {other:?}"),
    }
}

/// How often something happened.
#[derive(Clone, Debug, Default)]
pub struct Tally(Arc<AtomicU64>);

impl Tally {
    /// It happened once more; gives how often that was.
    pub fn add(&self) -> u64 {
        self.0.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// How often it happened.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// A call whose body waits to be told how to end.
#[derive(Debug)]
pub struct Underway {
    /// Its lease, as the body has it.
    pub lease: Lease,
    end: oneshot::Sender<Result<u64, Trouble>>,
    call: JoinHandle<Outcome>,
}

impl Underway {
    /// Lets the body end like this, and gives what became of the call.
    ///
    /// # Errors
    /// As the call's.
    pub async fn ends(self, with: Result<u64, Trouble>) -> Outcome {
        self.told(with).await
    }

    /// Lets the body end like this; what becomes of the call can be awaited.
    pub fn told(self, with: Result<u64, Trouble>) -> impl Future<Output = Outcome> {
        // A body that was cancelled does not listen any more.
        let _ = self.end.send(with);
        outcome_of(self.call)
    }

    /// Waits for the call to end by itself.
    ///
    /// # Errors
    /// As the call's.
    pub async fn gives_up(self) -> Outcome {
        outcome_of(self.call).await
    }

    /// Drops the call's future in the middle of its body.
    pub async fn dropped(self) {
        self.call.abort();
        let _ = self.call.await;
    }

    /// Whether the call has come to an end.
    pub fn is_over(&self) -> bool {
        self.call.is_finished()
    }
}

#[expect(clippy::panic, reason = "a scenario fails by panicking")]
async fn outcome_of(call: JoinHandle<Outcome>) -> Outcome {
    call.await.unwrap_or_else(|error| panic!("the call did not end: {error}"))
}

impl Worker {
    /// Calls with a body that gives this value at once.
    ///
    /// # Errors
    /// As the call's.
    pub async fn run(&self, key: &Key, policy: Policy, value: u64) -> Outcome {
        self.once(key.clone()).policy(policy).run(async |_| Ok(value)).await
    }

    /// Calls with a body that fails at once.
    ///
    /// # Errors
    /// As the call's.
    pub async fn fail(&self, key: &Key, policy: Policy, why: &str) -> Outcome {
        self.once(key.clone()).policy(policy).run(async |_| Err(Trouble::new(why))).await
    }

    /// Calls in the background, with a body that gives this value at once.
    pub fn start(&self, key: &Key, policy: Policy, value: u64) -> JoinHandle<Outcome> {
        let (worker, key) = (self.clone(), key.clone());
        tokio::spawn(async move { worker.run(&key, policy, value).await })
    }

    /// Calls in the background, and comes back once the body runs and waits.
    ///
    /// # Panics
    /// When the call does not come to its body.
    pub async fn hold(&self, key: &Key) -> Underway {
        self.hold_under(key, policy()).await
    }

    /// As [`hold`](Worker::hold), under this policy.
    ///
    /// # Panics
    /// When the call does not come to its body.
    #[expect(clippy::panic, reason = "a scenario fails by panicking")]
    pub async fn hold_under(&self, key: &Key, policy: Policy) -> Underway {
        let (started, running) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let (engine, key) = (self.engine.clone(), key.clone());
        let call = tokio::spawn(async move {
            let body = async |lease: Lease| {
                let _ = started.send(lease);
                ended.await.unwrap_or_else(|_| Err(Trouble::new("nobody told it how to end")))
            };
            engine.once(key).policy(policy).run(body).await
        });
        match running.await {
            Ok(lease) => Underway { lease, end, call },
            Err(_) => panic!("the body should run, and the call ended with {:?}", call.await),
        }
    }

    /// What is recorded under the key.
    ///
    /// # Errors
    /// `not_found`, and those of the store.
    pub async fn view(&self, key: &Key) -> Result<View, Error> {
        self.look(key).await?.ok_or_else(|| Error::NotFound { key: key.clone() })
    }

    /// The state of the key; `None`: there is nothing.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn state(&self, key: &Key) -> Result<Option<State>, Error> {
        Ok(self.look(key).await?.map(|view| view.state))
    }

    /// Dies without a word: nothing it sends from now on arrives.
    pub fn dies(&self) {
        self.wire.cut();
    }
}

impl Stage {
    /// A worker claims the key and dies in the middle of its body; its lease of a minute runs out.
    pub async fn crash(&self, key: &Key) {
        let victim = self.sleeper();
        let call = victim.hold(key).await;
        victim.dies();
        self.pass(LEASE).await;
        call.dropped().await;
    }

    /// A worker that claimed the key and was paused until its lease had run out.
    pub async fn zombie(&self, key: &Key) -> (Worker, Underway) {
        self.zombie_under(key, policy()).await
    }

    /// As [`zombie`](Stage::zombie), under this policy, whose lease is a minute too.
    pub async fn zombie_under(&self, key: &Key, policy: Policy) -> (Worker, Underway) {
        let zombie = self.sleeper();
        let call = zombie.hold_under(key, policy).await;
        self.pass(LEASE).await;
        (zombie, call)
    }
}

/// A probe that always says the same, and remembers what it was asked.
#[derive(Debug)]
pub struct Oracle {
    verdict: Verdict,
    asked: Mutex<Vec<Suspect>>,
    takes: Option<(ManualClock, Duration)>,
}

impl Oracle {
    /// A probe that says this at once.
    pub fn says(verdict: Verdict) -> Arc<Self> {
        Arc::new(Self { verdict, asked: Mutex::default(), takes: None })
    }

    /// A probe that says this after so long on this clock.
    pub fn says_after(verdict: Verdict, clock: &ManualClock, takes: Duration) -> Arc<Self> {
        Arc::new(Self { verdict, asked: Mutex::default(), takes: Some((clock.clone(), takes)) })
    }

    /// What it was asked, in order.
    pub fn asked(&self) -> Vec<Suspect> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The policy of asking it.
    pub fn policy(self: &Arc<Self>) -> Policy {
        policy().on_crash(OnCrash::Probe(self.clone()))
    }
}

#[async_trait]
impl Probe for Oracle {
    async fn ask(&self, suspect: &Suspect) -> Verdict {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(suspect.clone());
        if let Some((clock, takes)) = &self.takes {
            clock.sleep_until(clock.monotonic() + *takes).await;
        }
        self.verdict.clone()
    }
}

/// It happened, and gave this.
///
/// # Panics
/// Never: every number has a JSON form.
#[expect(clippy::panic, reason = "a scenario fails by panicking")]
pub fn happened(value: u64) -> Verdict {
    Verdict::happened_with(&value).unwrap_or_else(|error| panic!("{error}"))
}

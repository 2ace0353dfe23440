//! Wraps any function: the payload is the key, and a payload that comes again is given back its result.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::engine::Engine;
use crate::error::{Error, RunError};
use crate::key::{Form, JsonKey, Key};
use crate::policy::{OnDuplicate, Policy};
use crate::telemetry::{Outcome, Stats};

/// Makes a function idempotent by what it is given.
///
/// Concurrent deliveries of one payload run the function once; the others wait and get its result. A failure
/// is not kept: the next delivery runs again.
///
/// # Example
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use onlyonce::{Engine, Error, Processor, store::MemoryStore};
/// use serde_json::{Value, json};
/// let engine = Engine::new(MemoryStore::new());
/// let price = Processor::new(engine, "pricing", async |payload: &Value| {
///     Ok::<_, Error>(payload["turnover"].as_u64().unwrap_or(0) / 100)
/// })
/// .exclude(["/received_at"])?;
/// let first = price.process(&json!({"turnover": 5000, "received_at": 1})).await.map_err(|e| e.merge())?;
/// let again = price.process(&json!({"received_at": 2, "turnover": 5000})).await.map_err(|e| e.merge())?;
/// assert_eq!((first.value, again.value), (50, 50));
/// assert!(!first.was_replay && again.was_replay);
/// # Ok::<(), Error>(()) }).unwrap();
/// ```
pub struct Processor<F> {
    engine: Engine,
    namespace: String,
    function: F,
    keys: JsonKey,
    policy: Arc<Policy>,
    stats: Stats,
}

impl<F> fmt::Debug for Processor<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Processor").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

/// What became of one payload.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Processed<T> {
    /// The function's value: of this run, or of the first.
    pub value: T,
    /// Whether it was given back without running.
    pub was_replay: bool,
    /// The payload's key.
    pub key: Key,
}

impl<F> Processor<F> {
    /// Wraps `function`; its results live in this namespace.
    pub fn new(engine: Engine, namespace: impl Into<String>, function: F) -> Self {
        let policy = Arc::new(Policy::clone(&engine.inner.policy).on_duplicate(OnDuplicate::Wait));
        Self {
            engine,
            namespace: namespace.into(),
            function,
            keys: JsonKey::new(),
            policy,
            stats: Stats::default(),
        }
    }

    /// Leaves these parts of the payload out of its key: delivery times, retry counts, correlation ids.
    ///
    /// # Errors
    /// `bad_pointer`.
    pub fn exclude<P: AsRef<str>>(mut self, pointers: impl IntoIterator<Item = P>) -> Result<Self, Error> {
        self.keys = self.keys.exclude(pointers)?;
        Ok(self)
    }

    /// Makes the key of these parts of the payload only.
    ///
    /// # Errors
    /// `bad_pointer`.
    pub fn select<P: AsRef<str>>(mut self, pointers: impl IntoIterator<Item = P>) -> Result<Self, Error> {
        self.keys = self.keys.select(pointers)?;
        Ok(self)
    }

    /// The canonical form of the payload; `Form::Python` gives the keys a Python predecessor gave.
    #[must_use]
    pub fn form(mut self, form: Form) -> Self {
        self.keys = self.keys.form(form);
        self
    }

    /// A policy of its own; the default is the engine's, but waits for a payload that is being processed.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = Arc::new(policy);
        self
    }

    /// Replays among the payloads that gave a value; `None` before the first.
    ///
    /// Over 5 %, somebody upstream retries too eagerly; 0 % over weeks, every delivery has a key of its own.
    pub fn replay_rate(&self) -> Option<f64> {
        self.stats.replay_rate()
    }

    /// Processes a payload, or gives back what it gave.
    ///
    /// # Errors
    /// As [`Once::run`](crate::Once::run), and `bad_input` when no key can be made of the payload.
    pub async fn process<P, T, E>(&self, payload: &P) -> Result<Processed<T>, RunError<E>>
    where
        P: Serialize + ?Sized,
        T: Serialize + DeserializeOwned,
        E: fmt::Display,
        F: AsyncFn(&P) -> Result<T, E>,
    {
        let key = self.keys.key_of(&self.namespace, payload)?;
        let run = async |_lease| (self.function)(payload).await;
        self.processed(key.clone(), self.engine.once(key).policy(self.policy.clone()).run(run)).await
    }

    /// As [`process`](Processor::process), for a payload that is JSON text: the function gets the bytes.
    ///
    /// # Errors
    /// As [`process`](Processor::process), and `bad_json`.
    pub async fn process_json<T, E>(&self, payload: &[u8]) -> Result<Processed<T>, RunError<E>>
    where
        T: Serialize + DeserializeOwned,
        E: fmt::Display,
        F: AsyncFn(&[u8]) -> Result<T, E>,
    {
        let key = self.keys.key(&self.namespace, payload)?;
        let run = async |_lease| (self.function)(payload).await;
        self.processed(key.clone(), self.engine.once(key).policy(self.policy.clone()).run(run)).await
    }

    async fn processed<T, E>(
        &self,
        key: Key,
        run: impl Future<Output = Result<crate::Ran<T>, RunError<E>>>,
    ) -> Result<Processed<T>, RunError<E>> {
        let ran = run.await?;
        self.stats.count_quietly(if ran.replayed { Outcome::Replay } else { Outcome::First });
        Ok(Processed { value: ran.value, was_replay: ran.replayed, key })
    }
}

//! One guarded call, from its key to its outcome.

use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::pin::pin;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{Either, select};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};

use super::Inner;
use super::claim::{Call, Entered};
use super::guard::{Claimed, Guard, Left, Probed};
use super::lease::Lease;
use super::look::value_to_replay;
use super::record::{Failure, Record, Sighting};
use super::rules::State;
use crate::error::{Error, RunError};
use crate::key::{Fingerprint, Key, fingerprint_of};
use crate::policy::{FailureDecision, OnLeaseLost, Policy};
use crate::telemetry::{self, Outcome};

/// What a guarded call gave.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ran<T> {
    /// The body's value: of this run, or of the one that is recorded.
    pub value: T,
    /// Whether it was given back without running.
    pub replayed: bool,
    /// Whether this call waited for another one.
    pub waited: bool,
    /// Whether a store stands behind it; `false` under `on_store_down = open`.
    pub guarded: bool,
    /// The attempt that gave it.
    pub attempt: u32,
}

type Decide<E> = Box<dyn Fn(&E) -> FailureDecision + Send + Sync>;

/// A guarded call in the making; see [`Engine::once`](crate::Engine::once).
#[must_use = "nothing runs until `run` is called and awaited"]
pub struct Once<'e, E> {
    engine: &'e Arc<Inner>,
    key: Key,
    /// The error is boxed, so that the common call is cheap to move.
    fingerprint: Result<Option<Fingerprint>, Box<Error>>,
    policy: Option<Arc<Policy>>,
    decide: Option<Decide<E>>,
    error: PhantomData<fn() -> E>,
}

impl<E> fmt::Debug for Once<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once").field("key", &self.key).finish_non_exhaustive()
    }
}

/// How a body's own error is kept and given back.
struct Keeping<E> {
    encode: fn(&E) -> Option<Box<RawValue>>,
    decode: fn(&RawValue) -> Option<E>,
}

impl<'e, E> Once<'e, E> {
    pub(crate) fn new(engine: &'e Arc<Inner>, key: Key) -> Self {
        Self { engine, key, fingerprint: Ok(None), policy: None, decide: None, error: PhantomData }
    }

    /// The input: the same key with another input is `input_changed`, not a replay.
    pub fn input<I: Serialize + ?Sized>(mut self, input: &I) -> Self {
        self.fingerprint = fingerprint_of(input).map(Some).map_err(Box::new);
        self
    }

    /// The input's fingerprint, where it is known already.
    pub fn fingerprint(mut self, fingerprint: Fingerprint) -> Self {
        self.fingerprint = Ok(Some(fingerprint));
        self
    }

    /// A policy of its own, instead of the engine's.
    pub fn policy(mut self, policy: impl Into<Arc<Policy>>) -> Self {
        self.policy = Some(policy.into());
        self
    }

    /// Decides per error what becomes of the key, and for how long; goes before the policy's `on_failure`.
    pub fn on_error<D: Into<FailureDecision>>(
        mut self,
        decide: impl Fn(&E) -> D + Send + Sync + 'static,
    ) -> Self {
        self.decide = Some(Box::new(move |error| decide(error).into()));
        self
    }

    /// The key.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Runs `body`, unless the key has an outcome: then gives that back.
    ///
    /// # Promise
    /// At most one live lease exists for the key. What is given back is what is recorded, in every process, until
    /// it expires or is forgotten on purpose.
    ///
    /// # Errors
    /// [`RunError::Body`] is the body's own error, as it is. [`RunError::Guard`] is the guard's answer; its
    /// [`code`](Error::code) has a page. A failure that is the outcome (`on_failure = lock`) comes back as
    /// `failed_before`; use [`run_keeping_errors`](Once::run_keeping_errors) to get the error itself back.
    ///
    /// # If dropped
    /// While the body runs, the lease ends at once, and the next call follows its `on_crash`.
    #[expect(
        clippy::manual_async_fn,
        reason = "an `async fn` moves its arguments first, and a replay feels it"
    )]
    pub fn run<T, F>(self, body: F) -> impl Future<Output = Result<Ran<T>, RunError<E>>>
    where
        T: Serialize + DeserializeOwned,
        E: fmt::Display,
        F: AsyncFnOnce(Lease) -> Result<T, E>,
    {
        async move {
            match self.look() {
                Some(ran) => Ok(ran),
                None => self.go(Keeping { encode: |_| None, decode: |_| None }, body).await,
            }
        }
    }

    /// As [`run`](Once::run), and a failure that is the outcome is given back as the error it was.
    ///
    /// # Errors
    /// As [`run`](Once::run), without `failed_before` unless the body panicked.
    pub async fn run_keeping_errors<T, F>(self, body: F) -> Result<Ran<T>, RunError<E>>
    where
        T: Serialize + DeserializeOwned,
        E: fmt::Display + Serialize + DeserializeOwned,
        F: AsyncFnOnce(Lease) -> Result<T, E>,
    {
        if let Some(ran) = self.look() {
            return Ok(ran);
        }
        let keeping = Keeping {
            encode: |error: &E| to_raw_value(error).ok(),
            decode: |raw: &RawValue| serde_json::from_str(raw.get()).ok(),
        };
        self.go(keeping, body).await
    }

    /// Claims the key by hand: for work that does not fit into one future.
    ///
    /// # Errors
    /// The guard's answers, as for [`run`](Once::run).
    pub async fn claim<T: DeserializeOwned>(self) -> Result<Claimed<T>, Error> {
        let engine = self.engine;
        if let Some(ran) = self.look() {
            return Ok(Claimed::Replay(ran));
        }
        let (call, _) = self.call()?;
        match call.enter(engine).await.inspect_err(|error| engine.stats.count_error(error))? {
            Entered::Settled { sighting, waited } => {
                count_replay(engine, &sighting.entry.key, waited);
                let ran = replay(&sighting, waited, &Keeping::<Error> { encode: |_| None, decode: |_| None });
                ran.map(Claimed::Replay).map_err(RunError::merge)
            }
            Entered::Mine(guard) => {
                let key = guard.held().key.clone();
                match probed(guard).await? {
                    Probed::Run(mut guard) => {
                        guard.begin();
                        Ok(Claimed::Run(guard))
                    }
                    Probed::Happened(value, attempt) => Ok(Claimed::Replay(known(value, &key, attempt)?)),
                }
            }
        }
    }

    /// The policy that counts, once it is known to work.
    fn checked_policy(&self) -> Result<&Arc<Policy>, Error> {
        match &self.policy {
            Some(policy) => policy.check().map(|()| policy),
            None => self.engine.default_policy().map(|()| &self.engine.policy),
        }
    }

    /// The recorded value, where the store can tell at once that there is one.
    #[inline]
    fn look<T: DeserializeOwned>(&self) -> Option<Ran<T>> {
        let Ok(fingerprint) = &self.fingerprint else { return None };
        let seen = self.engine.store.glance(&self.key);
        let seen = seen.as_ref()?;
        let policy = self.checked_policy().ok()?;
        let mut json = serde_json::Deserializer::from_slice(value_to_replay(seen, *fingerprint, policy)?);
        let value = T::deserialize(&mut json).ok()?;
        json.end().ok()?;
        count_replay(self.engine, &self.key, false);
        Some(Ran { value, replayed: true, waited: false, guarded: true, attempt: seen.attempts })
    }

    fn call(self) -> Result<(Call, Option<Decide<E>>), Error> {
        let policy = self.checked_policy()?.clone();
        Ok((
            Call { key: self.key, fingerprint: self.fingerprint.map_err(|error| *error)?, policy },
            self.decide,
        ))
    }

    async fn go<T, F>(self, keeping: Keeping<E>, body: F) -> Result<Ran<T>, RunError<E>>
    where
        T: Serialize + DeserializeOwned,
        E: fmt::Display,
        F: AsyncFnOnce(Lease) -> Result<T, E>,
    {
        let engine = self.engine;
        let (call, decide) = self.call()?;
        match call.enter(engine).await.inspect_err(|error| engine.stats.count_error(error))? {
            Entered::Settled { sighting, waited } => {
                count_replay(engine, &sighting.entry.key, waited);
                replay(&sighting, waited, &keeping)
            }
            Entered::Mine(guard) => guarded(guard, keeping, decide, body).await,
        }
    }
}

/// Runs the body under its lease, and settles it.
async fn guarded<T, E, F>(
    guard: Guard,
    keeping: Keeping<E>,
    decide: Option<Decide<E>>,
    body: F,
) -> Result<Ran<T>, RunError<E>>
where
    T: Serialize + DeserializeOwned,
    E: fmt::Display,
    F: AsyncFnOnce(Lease) -> Result<T, E>,
{
    let key = guard.held().key.clone();
    let mut guard = match probed(guard).await? {
        Probed::Run(guard) => guard,
        Probed::Happened(value, attempt) => return known(value, &key, attempt).map_err(RunError::Guard),
    };
    let held = guard.held().clone();
    let ended = {
        let lease = guard.begin();
        // Called inside: what a body does before its first await may panic too.
        let body = pin!(AssertUnwindSafe(async move { body(lease).await }).catch_unwind());
        match held.policy.on_lease_lost {
            OnLeaseLost::Tell => body.await,
            OnLeaseLost::Cancel => match select(body, pin!(held.lost())).await {
                Either::Left((ended, _)) => ended,
                Either::Right(((), _)) => {
                    held.engine.stats.count(Outcome::LeaseLost);
                    return Err(held.lost_error("its time ran out while the body ran").into());
                }
            },
        }
    };
    match ended {
        Ok(Ok(value)) => {
            let (guarded, attempt) = (held.guarded, held.attempt);
            guard.complete(&value).await?;
            Ok(Ran { value, replayed: false, waited: false, guarded, attempt })
        }
        Ok(Err(error)) => {
            let decision = decide.map_or_else(|| held.policy.on_failure.into(), |decide| decide(&error));
            let failure =
                Failure { message: error.to_string(), error: (keeping.encode)(&error), panicked: false };
            settle_failure(guard, failure, decision).await;
            Err(RunError::Body(error))
        }
        Err(panic) => {
            let failure = Failure { message: panic_message(&*panic), error: None, panicked: true };
            settle_failure(guard, failure, held.policy.on_failure.into()).await;
            resume_unwind(panic)
        }
    }
}

/// Asks the probe first when the claim was taken from a worker that died and the policy says so.
async fn probed(guard: Guard) -> Result<Probed, Error> {
    if guard.probe_first { guard.ask_probe().await } else { Ok(Probed::Run(guard)) }
}

/// Records a failure; the body's own error goes to the caller whatever the store says.
async fn settle_failure(guard: Guard, failure: Failure, decision: FailureDecision) {
    let held = guard.held().clone();
    match guard.fail_with(failure, decision).await {
        Ok(Left::Recorded) => {}
        Ok(Left::Parked(_)) => telemetry::parked(held.key.as_str()),
        Err(error) => telemetry::failure_not_recorded(held.key.as_str(), &error),
    }
}

/// The recorded outcome, as this call's own.
fn replay<T: DeserializeOwned, E>(
    sighting: &Sighting,
    waited: bool,
    keeping: &Keeping<E>,
) -> Result<Ran<T>, RunError<E>> {
    let record = Record::decode(&sighting.entry)?;
    let key = || sighting.entry.key.clone();
    if sighting.sight.state == State::Failed {
        let failure = record.failure;
        let kept = failure.as_ref().and_then(|f| f.error.as_deref()).and_then(keeping.decode);
        return Err(match kept {
            Some(error) => RunError::Body(error),
            None => {
                let message = failure.map_or_else(|| "it failed".to_owned(), |failure| failure.message);
                Error::FailedBefore { key: key(), message }.into()
            }
        });
    }
    let value =
        record.value.ok_or_else(|| record.not_stored.unwrap_or_else(|| "no value was recorded".to_owned()));
    let mut ran = known(value, &sighting.entry.key, sighting.sight.attempts)?;
    ran.waited = waited;
    Ok(ran)
}

/// A value that was recorded, as a call's own.
fn known<T: DeserializeOwned>(
    value: Result<Box<RawValue>, String>,
    key: &Key,
    attempt: u32,
) -> Result<Ran<T>, Error> {
    let raw = value.map_err(|reason| Error::ResultNotStored { key: key.clone(), reason })?;
    let value = serde_json::from_str(raw.get())
        .map_err(|e| Error::ResultMismatch { key: key.clone(), reason: e.to_string() })?;
    Ok(Ran { value, replayed: true, waited: false, guarded: true, attempt })
}

pub(crate) fn count_replay(engine: &Inner, key: &Key, waited: bool) {
    engine.stats.count(if waited { Outcome::ReplayAfterWait } else { Outcome::Replay });
    telemetry::lock_skipped_duplicate(key.as_str());
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("the body panicked: {}", text.unwrap_or("(no message)"))
}

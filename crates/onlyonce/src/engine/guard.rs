//! A lease that must be settled, and what becomes of its record.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::MutexGuard;

use super::lease::{Held, Lease, Work};
use super::once::Ran;
use super::record::{Failure, Record, Sighting};
use super::rules::{self, End, Standing, State};
use crate::error::Error;
use crate::key::check_json_form;
use crate::policy::{FailureDecision, OnCrash, OnStoreDown, Suspect, Verdict};
use crate::store::{Commit, Draft, Entry, Expect, HeaderDraft, StoreError, StoreErrorKind, Write};
use crate::telemetry::{self, Outcome};

/// What a claim by hand came to.
#[derive(Debug)]
pub enum Claimed<T> {
    /// The caller is the one who runs.
    Run(Guard),
    /// There is an outcome already.
    Replay(Ran<T>),
}

/// A lease that its owner must settle.
///
/// # If dropped
/// The lease ends at once, unsettled: the next call finds a crash and follows its `on_crash`.
pub struct Guard {
    held: Arc<Held>,
    over: bool,
    /// Nothing was unsure when the key was claimed.
    fresh: bool,
    /// The body has the lease: from here on, only it knows what happened outside.
    begun: bool,
    /// The policy wants the outside to be asked before anything runs.
    pub(crate) probe_first: bool,
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("key", &self.held.key)
            .field("fence", &self.held.fence)
            .finish_non_exhaustive()
    }
}

/// What a settled lease left behind.
pub(crate) enum Left {
    /// What the body ended with.
    Recorded,
    /// A parked key: something only the outside can tell.
    Parked(String),
}

impl Guard {
    pub(crate) fn new(held: Arc<Held>, fresh: bool, probe_first: bool) -> Self {
        held.engine.heart.add(&held);
        Self { held, over: false, fresh, begun: false, probe_first }
    }

    pub(crate) fn unguarded(held: Arc<Held>) -> Self {
        Self { held, over: false, fresh: true, begun: false, probe_first: false }
    }

    /// The lease, for a body that begins now.
    pub(crate) fn begin(&mut self) -> Lease {
        self.begun = true;
        self.lease()
    }

    pub(crate) fn held(&self) -> &Arc<Held> {
        &self.held
    }

    /// The lease, for the work.
    pub fn lease(&self) -> Lease {
        Lease { held: self.held.clone() }
    }

    /// Records the value: it is the outcome from now on.
    ///
    /// # Errors
    /// `lease_lost` when somebody else has the key now; `not_recorded` when the store did not answer until the
    /// lease ran out; `parked` when an effect or an undo left something unsure.
    pub async fn complete<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        let stored = storable(value, self.held.engine.max_result);
        if stored.is_err() {
            telemetry::result_not_stored(self.held.key.as_str());
        }
        self.complete_raw(stored, Outcome::First).await
    }

    async fn complete_raw(self, value: Result<Box<RawValue>, String>, counts: Outcome) -> Result<(), Error> {
        let key = self.held.key.clone();
        let fill = |record: &mut Record| match value {
            Ok(value) => record.value = Some(value),
            Err(reason) => record.not_stored = Some(reason),
        };
        match self.settle(End::Value, counts, fill).await? {
            Left::Recorded => Ok(()),
            Left::Parked(reason) => Err(Error::Parked { key, reason }),
        }
    }

    /// Records a failure; whether it is the outcome is for the decision to say.
    ///
    /// # Errors
    /// As [`complete`](Guard::complete).
    pub async fn fail(self, message: String, decision: impl Into<FailureDecision>) -> Result<(), Error> {
        self.fail_with(Failure { message, error: None, panicked: false }, decision.into()).await.map(drop)
    }

    pub(crate) async fn fail_with(self, failure: Failure, decision: FailureDecision) -> Result<Left, Error> {
        let failure = failure.short(self.held.engine.max_result);
        // What is unsure stays as it is until somebody has looked.
        let unsure = self.held.work.lock().await.trail.as_ref().is_some_and(|trail| trail.unsure.is_some());
        if !unsure {
            self.undo_all().await;
        }
        let fill = |record: &mut Record| record.failure = Some(failure);
        self.settle(End::Failure(decision), Outcome::Failed, fill).await
    }

    /// Asks the probe before anything runs; the guard comes back when the body may run.
    pub(crate) async fn ask_probe(self) -> Result<Probed, Error> {
        let OnCrash::Probe(probe) = self.held.policy.on_crash.clone() else { return Ok(Probed::Run(self)) };
        let suspect = Suspect {
            key: self.held.key.clone(),
            attempt: self.held.attempt.saturating_sub(1),
            effect: None,
            effect_key: None,
        };
        match probe.ask(&suspect).await {
            Verdict::DidNot => {
                // A probe may take longer than heartbeats get through; the body must not begin then.
                self.held.check()?;
                Ok(Probed::Run(self))
            }
            Verdict::Happened(value) => {
                let known =
                    value.ok_or_else(|| "a probe found that it happened, and knew no value".to_owned());
                let attempt = self.held.attempt;
                self.complete_raw(known.clone(), Outcome::Replay).await?;
                Ok(Probed::Happened(known, attempt))
            }
            Verdict::CannotTell => {
                let key = self.held.key.clone();
                let reason = format!("attempt {} died, and the probe cannot tell", suspect.attempt);
                self.held.work.lock().await.trail().unsure = Some(reason.clone());
                self.settle(End::Unsure, Outcome::Parked, |_| {}).await?;
                Err(Error::Parked { key, reason })
            }
        }
    }

    /// Writes the last record of this lease.
    async fn settle(
        mut self,
        end: End,
        counts: Outcome,
        fill: impl FnOnce(&mut Record),
    ) -> Result<Left, Error> {
        if !self.held.guarded {
            self.over = true;
            return Ok(Left::Recorded);
        }
        let held = self.held.clone();
        let mut work = held.work.lock().await;
        let unsure = work.trail.as_mut().and_then(|trail| trail.unsure.take());
        let end = if unsure.is_some() { End::Unsure } else { end };
        let mut record = work.record();
        let has_effects = !record.effects.is_empty();
        let (state, keep) = rules::settle(end, held.policy.keep, held.policy.keep_failed(), has_effects);
        record.fence = Some(held.fence);
        record.parked.clone_from(&unsure);
        fill(&mut record);
        let written = self.write(&mut work, state, keep, record).await;
        let stats = &held.engine.stats;
        let finished =
            self.finish(&work, state, keep, written).inspect_err(|error| stats.count_error(error))?;
        stats.count(match finished {
            Finished::Recorded if unsure.is_some() => Outcome::Parked,
            Finished::Recorded => counts,
            Finished::Open => Outcome::FailOpen,
        });
        Ok(unsure.map_or(Left::Recorded, Left::Parked))
    }

    /// Gives what was written; `None`: this lease had been settled before, perhaps with something else.
    async fn write(
        &self,
        work: &mut Work,
        state: State,
        keep: Option<Duration>,
        mut record: Record,
    ) -> Result<Option<bytes::Bytes>, Error> {
        let header = self.held.settled(state, keep);
        let mut body = record.encode()?;
        let standing = match self.held.put(work, header.clone(), body.clone()).await {
            Err(Error::Store(error)) if error.kind() == StoreErrorKind::TooLarge => {
                if record.value.take().is_some() {
                    record.not_stored = Some(format!("larger than the store takes: {error}"));
                }
                record.failure.iter_mut().for_each(Failure::shorten);
                body = record.encode()?;
                self.held.put(work, header, body.clone()).await
            }
            other => other,
        };
        match standing? {
            Standing::Mine => Ok(Some(body)),
            Standing::Settled => Ok(None),
            Standing::Lost => Err(self.held.lost_error("another holder has it now")),
        }
    }

    /// Ends heartbeat and flight, and tells the followers what is recorded now, where that is known.
    fn finish(
        &mut self,
        work: &Work,
        state: State,
        keep: Option<Duration>,
        written: Result<Option<bytes::Bytes>, Error>,
    ) -> Result<Finished, Error> {
        self.over = true;
        let held = &self.held;
        held.engine.heart.remove(held);
        telemetry::lock_released(held.key.as_str(), state.status().as_str(), written.is_ok());
        let left = written.as_ref().ok().cloned().flatten();
        held.land(|| {
            let (header, body) = (held.settled(state, keep), left?);
            let now = held.engine.clock.now();
            let entry = Entry {
                key: held.key.clone(),
                version: work.version,
                header: header.at(now, now),
                body,
                read_at: now,
            };
            Sighting::of(entry).ok()
        });
        match written {
            // A parked key that is not recorded as parked is none.
            Err(Error::NotRecorded { source, .. })
                if held.policy.on_store_down == OnStoreDown::Open && state != State::Parked =>
            {
                telemetry::fail_open(held.key.as_str(), &source);
                Ok(Finished::Open)
            }
            other => other.map(|_| Finished::Recorded),
        }
    }
}

/// How a settlement ended.
enum Finished {
    /// It is recorded.
    Recorded,
    /// The store is down, and the policy is to go on.
    Open,
}

/// What a probe found.
pub(crate) enum Probed {
    /// The body may run.
    Run(Guard),
    /// It happened; the key is completed with this, by this attempt.
    Happened(Result<Box<RawValue>, String>, u32),
}

/// The value as JSON, or why it cannot be stored.
pub(crate) fn storable<T: Serialize + ?Sized>(value: &T, most: usize) -> Result<Box<RawValue>, String> {
    let raw = to_raw_value(value).map_err(|e| format!("it has no JSON form: {e}"))?;
    // What is not finite is written as `null`, and would come back as something else.
    if raw.get().contains("null") {
        check_json_form(value).map_err(|e| format!("it has no JSON form: {e}"))?;
    }
    let len = raw.get().len();
    if len > most {
        return Err(format!("it has {len} bytes of JSON, and at most {most} are stored"));
    }
    Ok(raw)
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        let held = self.held.clone();
        held.engine.heart.remove(&held);
        if held.guarded {
            held.land(|| None);
            let tasks = held.engine.tasks.clone();
            let header = if self.begun || !self.fresh {
                HeaderDraft { due_in: Some(Duration::ZERO), ..held.running() }
            } else {
                held.settled(State::Released, Some(held.policy.keep_unused()))
            };
            tasks.spawn(Box::pin(abandon(held, header)));
        }
    }
}

/// Ends a lease whose owner was dropped, so that the next call need not wait it out.
///
/// If the body had begun, nobody knows how far it got: the lease is over, and the next call finds a crash. If it
/// had not, the key is free.
async fn abandon(held: Arc<Held>, header: HeaderDraft) {
    let work = held.work.lock().await;
    if held.is_lost() {
        return;
    }
    let write = Write::Touch { key: held.key.clone(), expect: work.version, header };
    // Once: if it fails, the lease runs out by itself.
    let ended = held.engine.store.commit(vec![write]).await;
    telemetry::lock_abandoned(held.key.as_str(), matches!(ended, Ok(Commit::Stored(_))));
}

impl Lease {
    /// A completion to be written by the caller, in a transaction of its own on the same database.
    ///
    /// Heartbeats of this lease pause until the [`Completion`] is dropped. When the body then returns, the
    /// engine finds its own completion and leaves it as it is.
    ///
    /// # Errors
    /// `result_not_stored` when the value cannot be stored; `lease_lost` when there is no lease any more.
    pub async fn completion<T: Serialize + ?Sized>(&self, value: &T) -> Result<Completion<'_>, Error> {
        let held = &self.held;
        let raw = storable(value, held.engine.max_result)
            .map_err(|reason| Error::ResultNotStored { key: held.key.clone(), reason })?;
        let work = held.work.lock().await;
        self.check()?;
        let mut record = work.record();
        record.fence = Some(held.fence);
        record.value = Some(raw);
        let draft =
            Draft { header: held.settled(State::Completed, Some(held.policy.keep)), body: record.encode()? };
        let write = Write::Put { key: held.key.clone(), expect: Expect::Version(work.version), draft };
        Ok(Completion { write, _work: work })
    }
}

/// A completion on its way into the caller's own transaction.
pub struct Completion<'a> {
    write: Write,
    _work: MutexGuard<'a, Work>,
}

impl fmt::Debug for Completion<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completion").field("key", self.write.key()).finish_non_exhaustive()
    }
}

impl Completion<'_> {
    /// The write to commit together with the effect.
    pub fn writes(&self) -> Vec<Write> {
        vec![self.write.clone()]
    }

    /// Reads the answer: anything but `Stored` means that the transaction must be rolled back.
    ///
    /// # Errors
    /// `lease_lost` on a conflict.
    pub fn check(&self, answer: Result<Commit, StoreError>) -> Result<(), Error> {
        match answer? {
            Commit::Stored(_) => Ok(()),
            Commit::Conflict(_) => Err(Error::LeaseLost {
                key: self.write.key().clone(),
                reason: "another holder has it now; roll the transaction back".to_owned(),
            }),
        }
    }
}

//! One change in the outside world, recorded before and after.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::guard::{Guard, storable};
use super::lease::{Held, Work};
use super::record::{EffectRecord, EffectState};
use super::rules::{self, EffectStep, Trace};
use crate::error::{Error, RunError};
use crate::key::Key;
use crate::policy::{OnCrash, Suspect, Verdict};
use crate::store::StoreErrorKind;
use crate::telemetry;
use crate::time::BoxFuture;

/// Never locked: the mutex makes whoever holds an undo `Sync`, so that bodies with effects can be spawned.
type UndoBody = Mutex<Box<dyn FnOnce(&RawValue) -> BoxFuture<'static, Result<(), String>> + Send>>;

/// How to take one effect back.
pub(crate) struct Undo {
    name: String,
    body: UndoBody,
}

/// One change in the outside world, within a lease.
///
/// # Promise
/// `started` is recorded before the effect begins and `done`, with its value, after it ended. A later run of
/// the same key gives back a done effect without running it, and applies `on_crash` to a started one.
pub struct Effect<'a> {
    at: At<'a>,
    undo: Option<UndoBody>,
}

/// What a run finds before an effect.
enum Before {
    /// It is recorded as begun; this is its key.
    Begun(String),
    /// It is done already, and gave this.
    Done(Box<RawValue>),
}

/// Which effect of which lease.
#[derive(Clone, Copy)]
struct At<'a> {
    held: &'a Arc<Held>,
    name: &'a str,
}

impl fmt::Debug for Effect<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Effect")
            .field("key", &self.at.held.key)
            .field("name", &self.at.name)
            .finish_non_exhaustive()
    }
}

/// The key of an effect: hand it to the outside system as its idempotency key.
pub(crate) fn effect_key(key: &Key, name: &str, undone: u32) -> String {
    let mut hash = Sha256::new();
    hash.update((key.as_str().len() as u64).to_be_bytes());
    hash.update(key.as_str());
    hash.update(undone.to_be_bytes());
    hash.update(name);
    let hex: String = hash.finalize().iter().take(20).map(|byte| format!("{byte:02x}")).collect();
    format!("once_{hex}")
}

impl<'a> Effect<'a> {
    pub(crate) fn new(held: &'a Arc<Held>, name: &'a str) -> Self {
        Self { at: At { held, name }, undo: None }
    }

    /// The effect's own key: hand it to the outside system as its idempotency key.
    ///
    /// Stable across retries and takeovers. An effect that was taken back and is done again has another one,
    /// because for the outside it is another effect.
    pub fn key(&self) -> impl Future<Output = String> + Send + use<'a> {
        self.at.key()
    }

    /// How to take it back, should the body fail later: undos run in reverse order, each recorded.
    #[must_use]
    pub fn undo<T, U, F, R>(mut self, undo: F) -> Self
    where
        T: DeserializeOwned,
        U: fmt::Display,
        F: FnOnce(T) -> R + Send + 'static,
        R: Future<Output = Result<(), U>> + Send + 'static,
    {
        self.undo = Some(Mutex::new(Box::new(move |value| match serde_json::from_str::<T>(value.get()) {
            Ok(value) => {
                let undo = undo(value);
                Box::pin(async move { undo.await.map_err(|e| e.to_string()) })
            }
            Err(error) => Box::pin(async move { Err(format!("its value cannot be read back: {error}")) }),
        })));
        self
    }

    /// Runs it, or gives back what it gave before. `body` is handed the effect's key.
    ///
    /// A name stands for one effect of the key: a second call with the same name is given the first one's value.
    /// An error of the body says that the effect did **not** happen, and a later run begins it again. When a
    /// timeout leaves that open, ask the outside before giving an error back, or rely on the effect's key there.
    ///
    /// # Errors
    /// The body's own; `not_allowed` while another call runs the same effect; `parked` when an earlier run began
    /// it and the policy is not to run it again; `lease_lost`, before the body runs or after.
    pub async fn run<T, E, F>(self, body: F) -> Result<T, RunError<E>>
    where
        T: Serialize + DeserializeOwned,
        F: AsyncFnOnce(String) -> Result<T, E>,
    {
        let Self { at, undo } = self;
        if !at.held.guarded {
            return body(at.key().await).await.map_err(RunError::Body);
        }
        let this_call = Arc::new(());
        let key = match at.before(&this_call).await? {
            Before::Begun(key) => key,
            Before::Done(done) => {
                let value = serde_json::from_str(done.get()).map_err(|e| at.mismatch(&e))?;
                at.register_undo(undo).await;
                return Ok(value);
            }
        };
        match body(key).await {
            Ok(value) => {
                // First: should the record not get through, the effect is there all the same.
                at.register_undo(undo).await;
                at.done(&value).await?;
                Ok(value)
            }
            Err(error) => {
                // The body's error is what the caller needs to see; a lost lease shows at the next step.
                let _ = at.after(EffectState::Failed, None).await;
                Err(RunError::Body(error))
            }
        }
    }
}

impl At<'_> {
    async fn key(self) -> String {
        let work = self.held.work.lock().await;
        effect_key(&self.held.key, self.name, undone(&work, self.name))
    }

    /// Records that it begins, unless it is done already.
    async fn before(self, call: &Arc<()>) -> Result<Before, Error> {
        if self.held.is_lost() {
            return Err(self.held.lost_error("before the effect began"));
        }
        let mut work = self.held.work.lock().await;
        self.enter(&mut work, call)?;
        let trace = record_of(&work, self.name).map_or(Trace::None, |effect| effect.state.trace());
        match rules::effect_step(trace, self.held.on_crash()) {
            EffectStep::Replay => {
                let value = record_of(&work, self.name).and_then(|effect| effect.value.clone());
                value.map(Before::Done).ok_or_else(|| self.no_value())
            }
            EffectStep::Run => self.begin(&mut work).await,
            EffectStep::Park if trace == Trace::Undoing => {
                Err(self
                    .park(&mut work, "an earlier run began to take it back, and nobody knows how that ended"))
            }
            EffectStep::Park => {
                Err(self.park(&mut work, "an earlier run began it, and nobody knows how it ended"))
            }
            EffectStep::Probe => {
                // Heartbeats must go on while the outside is asked.
                drop(work);
                self.probe().await
            }
        }
    }

    /// One call of an effect at a time: two at once would both run it.
    fn enter(self, work: &mut Work, call: &Arc<()>) -> Result<(), Error> {
        let under_way = &mut work.trail().under_way;
        under_way.retain(|(_, call)| call.strong_count() > 0);
        if under_way.iter().any(|(name, _)| name == self.name) {
            return Err(Error::NotAllowed {
                key: self.held.key.clone(),
                asked: "given one effect twice at once",
                status: format!("running effect {:?}", self.name),
                hint: "; await the first, or give the second a name of its own",
            });
        }
        under_way.push((self.name.to_owned(), Arc::downgrade(call)));
        Ok(())
    }

    async fn begin(self, work: &mut Work) -> Result<Before, Error> {
        let before = record_of(work, self.name).cloned();
        set(work, self.name, EffectState::Started, None);
        // The answer may have taken longer than the lease.
        if let Err(error) = self.held.save(work).await.and_then(|()| self.held.check()) {
            // It does not begin. Should the settlement get through, nobody has to wonder.
            put_back(work, self.name, before);
            return Err(error);
        }
        Ok(Before::Begun(effect_key(&self.held.key, self.name, undone(work, self.name))))
    }

    async fn probe(self) -> Result<Before, Error> {
        let OnCrash::Probe(probe) = &self.held.policy.on_crash else {
            return self.begin(&mut *self.held.work.lock().await).await;
        };
        let suspect = Suspect {
            key: self.held.key.clone(),
            attempt: self.held.attempt.saturating_sub(1),
            effect: Some(self.name.to_owned()),
            effect_key: Some(self.key().await),
        };
        let verdict = probe.ask(&suspect).await;
        let mut work = self.held.work.lock().await;
        match verdict {
            Verdict::Happened(value) => {
                set(&mut work, self.name, EffectState::Done, value.clone());
                self.held.save(&mut work).await?;
                value.map(Before::Done).ok_or_else(|| self.no_value())
            }
            Verdict::DidNot => {
                // One that was taken back is, done again, another effect for the outside.
                if let Some(state) = record_of(&work, self.name).map(|effect| effect.state.did_not()) {
                    set(&mut work, self.name, state, None);
                }
                self.begin(&mut work).await
            }
            Verdict::CannotTell => {
                Err(self.park(&mut work, "an earlier run began it, and the probe cannot tell"))
            }
        }
    }

    fn park(self, work: &mut Work, why: &str) -> Error {
        let reason = format!("effect {:?}: {why}", self.name);
        work.trail().unsure = Some(reason.clone());
        Error::Parked { key: self.held.key.clone(), reason }
    }

    /// Records that it is done, without its value where that cannot be kept: it must not happen twice.
    async fn done<T: Serialize>(self, value: &T) -> Result<(), Error> {
        let kept = storable(value, self.held.engine.max_result);
        if kept.is_err() {
            telemetry::result_not_stored(self.held.key.as_str());
        }
        match self.after(EffectState::Done, kept.ok()).await {
            Err(Error::Store(error)) if error.kind() == StoreErrorKind::TooLarge => {
                telemetry::result_not_stored(self.held.key.as_str());
                self.after(EffectState::Done, None).await
            }
            other => other,
        }
    }

    async fn after(self, state: EffectState, value: Option<Box<RawValue>>) -> Result<(), Error> {
        let mut work = self.held.work.lock().await;
        set(&mut work, self.name, state, value);
        match self.held.save(&mut work).await {
            // What happened has happened: better to know that without its value than not at all.
            Err(Error::Store(error)) if error.kind() == StoreErrorKind::TooLarge => {
                telemetry::result_not_stored(self.held.key.as_str());
                set(&mut work, self.name, state, None);
                self.held.save(&mut work).await
            }
            other => other,
        }
    }

    async fn register_undo(self, undo: Option<UndoBody>) {
        if let Some(body) = undo {
            self.held.work.lock().await.trail().undos.push(Undo { name: self.name.to_owned(), body });
        }
    }

    fn mismatch(self, error: &serde_json::Error) -> Error {
        let reason = format!("effect {:?}: {error}", self.name);
        Error::ResultMismatch { key: self.held.key.clone(), reason }
    }

    fn no_value(self) -> Error {
        let reason = format!("effect {:?} happened, and its value is not known", self.name);
        Error::ResultNotStored { key: self.held.key.clone(), reason }
    }
}

fn record_of<'a>(work: &'a Work, name: &str) -> Option<&'a EffectRecord> {
    work.trail.as_ref()?.effects.iter().find(|effect| effect.name == name)
}

fn undone(work: &Work, name: &str) -> u32 {
    record_of(work, name).map_or(0, |effect| effect.undone)
}

fn set(work: &mut Work, name: &str, state: EffectState, value: Option<Box<RawValue>>) {
    let effects = &mut work.trail().effects;
    match effects.iter_mut().find(|effect| effect.name == name) {
        Some(effect) => {
            effect.undone += u32::from(state == EffectState::Undone);
            effect.state = state;
            effect.value = value;
        }
        None => effects.push(EffectRecord { name: name.to_owned(), state, value, undone: 0 }),
    }
}

fn put_back(work: &mut Work, name: &str, before: Option<EffectRecord>) {
    let effects = &mut work.trail().effects;
    effects.retain(|effect| effect.name != name || before.is_some());
    if let (Some(place), Some(before)) = (effects.iter_mut().find(|effect| effect.name == name), before) {
        *place = before;
    }
}

impl Guard {
    /// Takes the effects of a failed body back, last first.
    ///
    /// An undo that fails leaves something only a person can mend: the key is parked.
    pub(crate) async fn undo_all(&self) {
        let held = self.held();
        loop {
            let mut work = held.work.lock().await;
            let Some(undo) = work.trail.as_mut().and_then(|trail| trail.undos.pop()) else { return };
            let Some(effect) = record_of(&work, &undo.name).filter(|e| e.state == EffectState::Done) else {
                continue;
            };
            let Some(value) = effect.value.clone() else {
                let why =
                    format!("effect {:?} was not taken back: its value was too large to keep", undo.name);
                work.trail().unsure = Some(why);
                return;
            };
            set(&mut work, &undo.name, EffectState::Undoing, Some(value.clone()));
            // The answer may have taken longer than the lease: then another run may have begun.
            if let Err(error) = held.save(&mut work).await.and_then(|()| held.check()) {
                // Not begun, so it still stands. Should the store take the settlement all the same, it says so.
                set(&mut work, &undo.name, EffectState::Done, Some(value));
                work.trail().unsure = Some(format!("effect {:?} was not taken back: {error}", undo.name));
                return;
            }
            drop(work);
            let body = undo.body.into_inner().unwrap_or_else(PoisonError::into_inner);
            let undone = body(&value).await;
            let mut work = held.work.lock().await;
            match undone {
                Ok(()) => set(&mut work, &undo.name, EffectState::Undone, None),
                Err(error) => {
                    set(&mut work, &undo.name, EffectState::Done, Some(value));
                    work.trail().unsure = Some(format!("the undo of effect {:?} failed: {error}", undo.name));
                    return;
                }
            }
            // The settlement that follows records the last one, should this write not get through.
            let _ = held.save(&mut work).await;
        }
    }
}

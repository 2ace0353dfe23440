//! The right to run until a time, and what its holder may do with it.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Mutex, Notify};

use super::Inner;
use super::effect::{Effect, Undo, effect_key};
use super::flights::Number;
use super::record::{AuditLine, EffectRecord, Record, Sighting, whose};
use super::rules::{self, Crash, Standing, State};
use crate::chance::jitter;
use crate::error::Error;
use crate::key::{Fingerprint, Key};
use crate::policy::{OnCrash, Policy};
use crate::store::{
    Commit, Draft, Entry, Expect, HeaderDraft, Holder, StoreError, StoreErrorKind, Version, Write,
};

/// One lease, shared by the body, the heartbeat and the settlement.
pub(crate) struct Held {
    pub(crate) engine: Arc<Inner>,
    pub(crate) key: Key,
    pub(crate) holder: Holder,
    pub(crate) fence: Version,
    pub(crate) attempt: u32,
    pub(crate) guarded: bool,
    pub(crate) policy: Arc<Policy>,
    /// The flight of this process's calls for the key; `None` when it ended before the body began.
    flight: Option<Number>,
    born_us: u64,
    /// When to beat next; `u64::MAX` while a beat is under way.
    next_beat_us: AtomicU64,
    /// When the holder itself gives the lease up, on its monotonic clock.
    deadline_us: AtomicU64,
    /// Its place in the heart; `u32::MAX` when it has none.
    pub(crate) slot: AtomicU32,
    /// Settled or dropped: no further beat.
    pub(crate) over: AtomicBool,
    is_lost: AtomicBool,
    lost: Notify,
    /// Writers take turns: a heartbeat, an effect and the settlement each build on the last version.
    pub(crate) work: Mutex<Work>,
}

/// What the next write builds on.
pub(crate) struct Work {
    pub(crate) version: Version,
    pub(crate) fingerprint: Option<Fingerprint>,
    /// Boxed: most leases have none.
    pub(crate) trail: Option<Box<Trail>>,
}

/// What a lease carries beside its outcome.
#[derive(Default)]
pub(crate) struct Trail {
    pub(crate) effects: Vec<EffectRecord>,
    pub(crate) audit: Vec<AuditLine>,
    pub(crate) undos: Vec<Undo>,
    /// Effects whose bodies run now, each alive for as long as its call.
    pub(crate) under_way: Vec<(String, Weak<()>)>,
    /// Something only the outside can tell; the key is parked when the body ends.
    pub(crate) unsure: Option<String>,
}

impl Work {
    pub(crate) fn trail(&mut self) -> &mut Trail {
        self.trail.get_or_insert_default()
    }

    /// The record as it stands, without an outcome.
    pub(crate) fn record(&self) -> Record {
        let mut record = Record::new(self.fingerprint);
        if let Some(trail) = &self.trail {
            record.effects.clone_from(&trail.effects);
            record.audit.clone_from(&trail.audit);
        }
        record
    }
}

pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX - 1)
}

impl Held {
    pub(crate) fn new(engine: Arc<Inner>, claim: Claim, policy: Arc<Policy>) -> Arc<Self> {
        let beat = claim.sent.saturating_add(policy.beat_every());
        let deadline = rules::own_deadline(claim.sent, policy.lease);
        Arc::new(Self {
            engine,
            key: claim.key,
            holder: claim.holder,
            fence: claim.version,
            attempt: claim.attempt,
            guarded: claim.guarded,
            flight: claim.flight,
            policy,
            born_us: micros(claim.sent),
            next_beat_us: AtomicU64::new(micros(beat)),
            deadline_us: AtomicU64::new(micros(deadline)),
            slot: AtomicU32::new(u32::MAX),
            over: AtomicBool::new(false),
            is_lost: AtomicBool::new(false),
            lost: Notify::new(),
            work: Mutex::new(Work {
                version: claim.version,
                fingerprint: claim.fingerprint,
                trail: claim.trail,
            }),
        })
    }

    pub(crate) fn deadline_us(&self) -> u64 {
        self.deadline_us.load(Ordering::Relaxed)
    }

    pub(crate) fn next_beat_us(&self) -> u64 {
        self.next_beat_us.load(Ordering::Relaxed)
    }

    pub(crate) fn beat_at(&self, at_us: u64) {
        self.next_beat_us.store(at_us, Ordering::Relaxed);
    }

    /// Whether one more heartbeat would keep this lease alive for longer than it may be.
    pub(crate) fn is_spent(&self, now_us: u64) -> bool {
        let age_us = now_us.saturating_sub(self.born_us);
        age_us.saturating_add(micros(self.policy.lease)) > micros(self.policy.max_lease_total)
    }

    pub(crate) fn extended(&self, sent: Duration) {
        self.deadline_us.store(micros(rules::own_deadline(sent, self.policy.lease)), Ordering::Relaxed);
    }

    /// The outcome is recorded: there is nothing left to extend or to lose.
    pub(crate) fn mark_settled(&self) {
        self.deadline_us.store(u64::MAX, Ordering::Relaxed);
    }

    pub(crate) fn lose(&self) {
        if !self.is_lost.swap(true, Ordering::AcqRel) {
            self.lost.notify_waiters();
            // It speaks for the key no longer, however long its body goes on.
            self.land(|| None);
        }
    }

    /// Ends the flight of this process's calls for the key, and leaves this behind.
    pub(crate) fn land(&self, left: impl FnOnce() -> Option<Sighting>) {
        if let Some(flight) = self.flight {
            self.engine.flights.end(&self.key, flight, left);
        }
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    pub(crate) async fn lost(&self) {
        let lost = self.lost.notified();
        tokio::pin!(lost);
        lost.as_mut().enable();
        if !self.is_lost() {
            lost.await;
        }
    }

    /// Whether it is still held, also when its time has run out and nobody has noticed yet.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.over.load(Ordering::Acquire) {
            return Err(self.lost_error("its body has ended"));
        }
        let now = micros(self.engine.clock.monotonic());
        if self.guarded && (self.is_lost() || now >= self.deadline_us()) {
            return Err(self.lost_error("its time ran out"));
        }
        Ok(())
    }

    pub(crate) fn on_crash(&self) -> Crash {
        crash_of(&self.policy.on_crash)
    }

    pub(crate) fn lost_error(&self, reason: &str) -> Error {
        Error::LeaseLost { key: self.key.clone(), reason: reason.to_owned() }
    }

    /// The header of a lease that goes on.
    pub(crate) fn running(&self) -> HeaderDraft {
        HeaderDraft {
            holder: Some(self.holder.clone()),
            attempts: self.attempt,
            due_in: Some(self.policy.lease),
            ..HeaderDraft::new(State::Running.status())
        }
    }

    /// The header of a lease that is over.
    pub(crate) fn settled(&self, state: State, keep_for: Option<Duration>) -> HeaderDraft {
        HeaderDraft {
            holder: Some(self.holder.clone()),
            attempts: self.attempt,
            keep_for,
            ..HeaderDraft::new(state.status())
        }
    }

    /// Writes what the lease has so far, and extends it.
    pub(crate) async fn save(&self, work: &mut Work) -> Result<(), Error> {
        // Only the settlement writes after the end; a clone of the lease may still be around.
        if self.over.load(Ordering::Acquire) {
            return Err(self.lost_error("its body has ended"));
        }
        let body = work.record().encode()?;
        let sent = self.engine.clock.monotonic();
        match self.put(work, self.running(), body).await? {
            Standing::Mine => {
                self.extended(sent);
                Ok(())
            }
            Standing::Settled => Err(self.lost_error("it was settled already")),
            Standing::Lost => Err(self.lost_error("another holder has it now")),
        }
    }

    /// Replaces the record while it is ours, through lost replies and a store that comes and goes.
    ///
    /// `Mine`: written. `Settled`: this lease had been settled before. `Lost`: somebody else has the key.
    pub(crate) async fn put(
        &self,
        work: &mut Work,
        header: HeaderDraft,
        body: Bytes,
    ) -> Result<Standing, Error> {
        let mut pause = Duration::from_millis(5);
        let mut uncertain = None;
        loop {
            let expect = Expect::Version(work.version);
            let draft = Draft { header: header.clone(), body: body.clone() };
            match self.engine.store.commit(vec![Write::Put { key: self.key.clone(), expect, draft }]).await {
                Ok(Commit::Stored(versions)) => {
                    work.version = versions.first().copied().unwrap_or(work.version);
                    return Ok(Standing::Mine);
                }
                Ok(Commit::Conflict(there)) => {
                    let there = there.into_iter().next().flatten();
                    match self.standing(there.as_ref()) {
                        Standing::Mine => work.version = there.map_or(work.version, |entry| entry.version),
                        Standing::Settled => return Ok(Standing::Settled),
                        Standing::Lost => return self.lost_after(uncertain, &header),
                    }
                }
                // Should a lost reply have hidden a stored write, the next try conflicts with our own record.
                Err(error) => {
                    if error.kind() == StoreErrorKind::Uncertain {
                        uncertain = Some(StoreError::uncertain(error.to_string()));
                    }
                    self.pause(&mut pause, error).await?;
                }
            }
        }
    }

    /// A settlement whose reply was lost may have been stored, and be gone again by now.
    fn lost_after(&self, uncertain: Option<StoreError>, header: &HeaderDraft) -> Result<Standing, Error> {
        match uncertain {
            Some(source) if header.status != State::Running.status() => {
                Err(Error::NotRecorded { key: self.key.clone(), source })
            }
            _ => Ok(Standing::Lost),
        }
    }

    pub(crate) fn standing(&self, there: Option<&Entry>) -> Standing {
        let standing = rules::standing(&self.holder, whose(there));
        if standing == Standing::Lost {
            self.lose();
        }
        standing
    }

    /// Waits before the next try, or gives the error back when there is no point or no time.
    async fn pause(&self, pause: &mut Duration, error: StoreError) -> Result<(), Error> {
        let may_pass = matches!(error.kind(), StoreErrorKind::Unavailable | StoreErrorKind::Uncertain);
        let now = self.engine.clock.monotonic();
        if !may_pass {
            return Err(error.into());
        }
        if micros(now) >= self.deadline_us() {
            return Err(Error::NotRecorded { key: self.key.clone(), source: error });
        }
        let wait = jitter(&*self.engine.chance, *pause);
        *pause = (*pause * 2).min(Duration::from_secs(1));
        self.engine.clock.sleep_until(now + wait).await;
        Ok(())
    }
}

pub(crate) fn crash_of(on_crash: &OnCrash) -> Crash {
    match on_crash {
        OnCrash::Retry => Crash::Retry,
        OnCrash::Park => Crash::Park,
        OnCrash::Probe(_) => Crash::Probe,
    }
}

/// A claim that was won.
pub(crate) struct Claim {
    pub(crate) key: Key,
    pub(crate) holder: Holder,
    pub(crate) version: Version,
    pub(crate) attempt: u32,
    pub(crate) guarded: bool,
    pub(crate) flight: Option<Number>,
    pub(crate) sent: Duration,
    pub(crate) fingerprint: Option<Fingerprint>,
    pub(crate) trail: Option<Box<Trail>>,
}

/// The right to run a body, as the body sees it.
///
/// Cheap to clone. What the body sends to the outside world can carry the [`fence`](Lease::fence): a system
/// that refuses a lower fence than it has seen can never be changed by a worker that lost its lease.
#[derive(Clone)]
pub struct Lease {
    pub(crate) held: Arc<Held>,
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("key", &self.held.key)
            .field("fence", &self.held.fence)
            .finish_non_exhaustive()
    }
}

impl Lease {
    /// The key it is for.
    pub fn key(&self) -> &Key {
        &self.held.key
    }

    /// Its number: a later lease of the same key has a higher one.
    ///
    /// Zero when the call runs unguarded because the store is down and the policy is to go on.
    pub fn fence(&self) -> u64 {
        self.held.fence.get()
    }

    /// Which attempt this is, counted from one.
    pub fn attempt(&self) -> u32 {
        self.held.attempt
    }

    /// Who holds it, as `records show` prints it.
    pub fn holder(&self) -> String {
        self.held.holder.to_string()
    }

    /// Whether a store stands behind it; `false` under `on_store_down = open`.
    pub fn is_guarded(&self) -> bool {
        self.held.guarded
    }

    /// Whether it is lost: what the body does now may be done by another one too.
    pub fn is_lost(&self) -> bool {
        self.held.is_lost()
    }

    /// Resolves when the lease is lost.
    pub async fn lost(&self) {
        self.held.lost().await;
    }

    /// A place to ask before a step that cannot be taken back.
    ///
    /// # Errors
    /// `lease_lost`, also when its time has run out and nobody has noticed yet.
    pub fn check(&self) -> Result<(), Error> {
        self.held.check()
    }

    /// One change in the outside world, recorded before and after.
    pub fn effect<'a>(&'a self, name: &'a str) -> Effect<'a> {
        Effect::new(&self.held, name)
    }

    /// The key of an effect as it would be begun first; see [`Effect::key`].
    pub fn effect_key(&self, name: &str) -> String {
        effect_key(&self.held.key, name, 0)
    }
}

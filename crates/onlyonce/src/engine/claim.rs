//! Trying to become the one who runs.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use tokio::sync::watch;

use super::flights::{Join, Lead, Phase};
use super::guard::Guard;
use super::lease::{Claim, Held, Trail, crash_of, micros};
use super::pending::Pending;
use super::record::{Record, Sighting, claim_body, whose};
use super::rules::{self, Arrival, Ask, Sight, Standing, State};
use super::{Inner, WAIT_PAUSES};
use crate::chance::jitter;
use crate::error::{Error, human};
use crate::key::{Fingerprint, Key};
use crate::policy::{OnStoreDown, Policy};
use crate::store::{
    Commit, Draft, Entry, Expect, HeaderDraft, Holder, StoreError, StoreErrorKind, Version, Write,
};
use crate::telemetry::{self, Outcome};

/// How often a claim is tried again when the store did not answer.
const TRIES: u32 = 3;
/// How often a claim goes round before it gives up: every round somebody else got ahead.
const ROUNDS: u32 = 100;

/// A call on its way in.
pub(crate) struct Call {
    pub(crate) key: Key,
    pub(crate) fingerprint: Option<Fingerprint>,
    pub(crate) policy: Arc<Policy>,
}

/// What a call on its way in comes to.
pub(crate) enum Entered {
    /// It may run.
    Mine(Guard),
    /// There is an outcome.
    Settled { sighting: Arc<Sighting>, waited: bool },
}

/// One try at writing a claim.
enum Tried {
    Won(Claim),
    Saw(Option<Entry>),
}

/// What a claim is written over.
struct Over {
    expect: Expect,
    attempt: u32,
    /// The input that was told before, where the key still stands for it.
    fingerprint: Option<Fingerprint>,
    trail: Option<Box<Trail>>,
    how: How,
}

impl Over {
    const NOTHING: Self =
        Self { expect: Expect::Absent, attempt: 1, fingerprint: None, trail: None, how: How::Fresh };
}

/// What a claim finds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// A free key.
    Fresh,
    /// A worker that did not come back.
    TakeOver,
    /// The same, and the outside is asked first.
    Probe,
}

impl Call {
    fn ask(&self) -> Ask {
        Ask {
            fingerprint: self.fingerprint,
            on_duplicate: self.policy.on_duplicate,
            on_crash: crash_of(&self.policy.on_crash),
            max_attempts: self.policy.max_attempts,
        }
    }

    /// Claims the key, or finds out why not.
    pub(crate) async fn enter(self, engine: &Arc<Inner>) -> Result<Entered, Error> {
        let until = engine.clock.monotonic().saturating_add(self.policy.wait_at_most());
        let mut waited = false;
        loop {
            match engine.flights.join(&self.key) {
                Join::Lead(lead) => return self.lead(engine, lead, until, waited).await,
                Join::Follow(phases) => match self.follow(engine, phases, until, &mut waited).await? {
                    Some(sighting) => return Ok(Entered::Settled { sighting, waited }),
                    None => continue,
                },
            }
        }
    }

    /// Shares another call's flight; `None`: it is over, and this call may lead the next.
    async fn follow(
        &self,
        engine: &Inner,
        mut phases: watch::Receiver<Phase>,
        until: Duration,
        waited: &mut bool,
    ) -> Result<Option<Arc<Sighting>>, Error> {
        loop {
            let phase = phases.borrow_and_update().clone();
            let over = matches!(phase, Phase::Ended(_));
            let arrival = match &phase {
                Phase::Asking => None,
                Phase::Ended(None) => return Ok(None),
                Phase::Running(running) => Some(rules::arrive(Some(&running.0), &self.ask())),
                Phase::Seen(seen) | Phase::Ended(Some(seen)) => {
                    Some(rules::arrive(Some(&seen.sight), &self.ask()))
                }
            };
            match (arrival, &phase) {
                (Some(Arrival::Replay), Phase::Seen(seen) | Phase::Ended(Some(seen))) => {
                    return Ok(Some(seen.clone()));
                }
                (Some(arrival), _) => self.refused(arrival, holder_of(&phase))?,
                (None, _) => {}
            }
            if over {
                return Ok(None);
            }
            *waited |= arrival.is_some();
            let changed = pin!(phases.changed());
            if let Either::Right(_) = select(changed, engine.clock.sleep_until(until)).await {
                return Err(self.in_progress(Duration::ZERO, holder_of(&phase)));
            }
        }
    }

    /// The answers that end a call without a value.
    fn refused(&self, arrival: Arrival, holder: String) -> Result<(), Error> {
        let key = self.key.clone();
        match arrival {
            Arrival::InProgress(left) => Err(self.in_progress(left, holder)),
            Arrival::Duplicate => Err(Error::DuplicateExecution { key }),
            Arrival::InputChanged => Err(Error::InputChanged { key }),
            Arrival::Claim
            | Arrival::TakeOver
            | Arrival::TakeOverAndProbe
            | Arrival::Park
            | Arrival::Replay
            | Arrival::Wait(_)
            | Arrival::Parked => Ok(()),
        }
    }

    fn in_progress(&self, retry_after: Duration, holder: String) -> Error {
        Error::InProgress { key: self.key.clone(), holder, retry_after }
    }

    /// Asks the store, and does what the rules say of its answer.
    async fn lead(
        self,
        engine: &Arc<Inner>,
        lead: Lead<'_>,
        until: Duration,
        waited: bool,
    ) -> Result<Entered, Error> {
        let mut waited = waited;
        let mut over = Over::NOTHING;
        for _ in 0..ROUNDS {
            let mut there = match self.try_claim(engine, &mut over).await {
                Ok(Tried::Won(claim)) => return self.won(engine, lead, claim, over.how),
                Ok(Tried::Saw(there)) => there,
                Err(error) => return self.store_is_down(engine, error),
            };
            // Until there is something to claim: look, decide, wait.
            over = loop {
                let Some(entry) = there else { break Over::NOTHING };
                let sighting = Sighting::of(entry)?;
                let arrival = rules::arrive(Some(&sighting.sight), &self.ask());
                there = match arrival {
                    Arrival::Claim => break over_entry(&sighting, How::Fresh)?,
                    Arrival::TakeOver => break over_entry(&sighting, How::TakeOver)?,
                    Arrival::TakeOverAndProbe => break over_entry(&sighting, How::Probe)?,
                    Arrival::Replay => {
                        lead.end(&sighting);
                        return Ok(Entered::Settled { sighting: Arc::new(sighting), waited });
                    }
                    Arrival::Parked => return Err(self.parked(&sighting)),
                    Arrival::Park => self.park(engine, &sighting).await?,
                    Arrival::Wait(left) => {
                        lead.see(&sighting);
                        waited = true;
                        self.wait_for_change(engine, &sighting, left, until).await?
                    }
                    Arrival::InProgress(_) | Arrival::Duplicate | Arrival::InputChanged => {
                        let refused = self.refused(arrival, entry_holder(&sighting.entry));
                        lead.end(&sighting);
                        return Err(refused
                            .err()
                            .unwrap_or_else(|| Error::InputChanged { key: self.key.clone() }));
                    }
                };
            };
        }
        let message =
            format!("{} changed hands {ROUNDS} times while this call tried to claim it; try again", self.key);
        Err(StoreError::unavailable(message).into())
    }

    async fn try_claim(&self, engine: &Arc<Inner>, over: &mut Over) -> Result<Tried, StoreError> {
        let holder = engine.next_holder();
        let fingerprint = self.fingerprint.or(over.fingerprint);
        let body = match &over.trail {
            None => claim_body(fingerprint),
            Some(trail) => {
                let mut record = Record::new(fingerprint);
                record.effects.clone_from(&trail.effects);
                record.audit.clone_from(&trail.audit);
                record.encode().map_err(|e| StoreError::corrupt(e.to_string()))?
            }
        };
        let header = HeaderDraft {
            holder: Some(holder.clone()),
            attempts: over.attempt,
            due_in: Some(self.policy.lease),
            ..HeaderDraft::new(State::Running.status())
        };
        let mut pending = Pending::new(engine, &self.key, &holder, over.how, &header);
        let sent = engine.clock.monotonic();
        for tries in 1_u32.. {
            let draft = Draft { header: header.clone(), body: body.clone() };
            let write = Write::Put { key: self.key.clone(), expect: over.expect, draft };
            pending.asked();
            let error = match engine.store.commit(vec![write]).await {
                Ok(Commit::Stored(versions)) => {
                    pending.answered();
                    let version = versions.first().copied().unwrap_or_default();
                    return Ok(Tried::Won(self.claim(over, holder, version, sent)));
                }
                Ok(Commit::Conflict(there)) => {
                    let uncertain = pending.answered();
                    let there = there.into_iter().next().flatten();
                    let mine = uncertain && rules::standing(&holder, whose(there.as_ref())) == Standing::Mine;
                    return Ok(match there {
                        // Our own claim: an earlier try was stored, and its reply was lost.
                        Some(entry) if mine => Tried::Won(self.claim(over, holder, entry.version, sent)),
                        there => Tried::Saw(there),
                    });
                }
                Err(error) => error,
            };
            pending.failed(error.kind());
            if tries >= TRIES || !may_pass(&error) {
                return Err(error);
            }
            let pause = jitter(&*engine.chance, Duration::from_millis(20) * 4_u32.pow(tries - 1));
            engine.clock.sleep_until(engine.clock.monotonic() + pause).await;
        }
        unreachable!("the loop above ends by returning")
    }

    fn claim(&self, over: &mut Over, holder: Holder, version: Version, sent: Duration) -> Claim {
        Claim {
            key: self.key.clone(),
            holder,
            version,
            attempt: over.attempt,
            guarded: true,
            flight: None,
            sent,
            fingerprint: self.fingerprint.or(over.fingerprint),
            trail: over.trail.take(),
        }
    }

    /// The claim is stored: from here on the lease decides.
    fn won(self, engine: &Arc<Inner>, lead: Lead<'_>, mut claim: Claim, how: How) -> Result<Entered, Error> {
        let sight = Sight {
            state: State::Running,
            lease_left: self.policy.lease,
            fingerprint: claim.fingerprint,
            attempts: claim.attempt,
            has_effects: claim.trail.as_ref().is_some_and(|trail| !trail.effects.is_empty()),
        };
        claim.flight = Some(lead.running(sight, claim.holder.clone()));
        let held = Held::new(engine.clone(), claim, self.policy);
        let guard = Guard::new(held, how == How::Fresh, how == How::Probe);
        if micros(engine.clock.monotonic()) >= guard.held().deadline_us() {
            return Err(guard.held().lost_error("the store's answer took longer than the lease"));
        }
        telemetry::lock_acquired(guard.held().key.as_str(), guard.held().attempt);
        if how != How::Fresh {
            engine.stats.count(Outcome::Takeover);
            telemetry::lock_taken_over(guard.held().key.as_str(), guard.held().attempt);
        }
        Ok(Entered::Mine(guard))
    }

    fn store_is_down(self, engine: &Arc<Inner>, error: StoreError) -> Result<Entered, Error> {
        engine.stats.acquisition_failed();
        if !may_pass(&error) || self.policy.on_store_down == OnStoreDown::Closed {
            return Err(error.into());
        }
        telemetry::fail_open(self.key.as_str(), &error);
        engine.stats.count(Outcome::FailOpen);
        let claim = Claim {
            holder: engine.next_holder(),
            version: Version::default(),
            attempt: 1,
            guarded: false,
            flight: None,
            sent: engine.clock.monotonic(),
            fingerprint: self.fingerprint,
            trail: None,
            key: self.key,
        };
        Ok(Entered::Mine(Guard::unguarded(Held::new(engine.clone(), claim, self.policy))))
    }

    fn parked(&self, sighting: &Sighting) -> Error {
        let reason = Record::decode(&sighting.entry).ok().and_then(|record| record.parked);
        let reason = reason.unwrap_or_else(|| "a worker died while it ran".to_owned());
        Error::Parked { key: self.key.clone(), reason }
    }

    /// Marks a key whose worker died as parked; gives what is there when somebody was faster.
    async fn park(&self, engine: &Inner, sighting: &Sighting) -> Result<Option<Entry>, Error> {
        let entry = &sighting.entry;
        let mut record = Record::decode(entry)?;
        let holder = entry_holder(entry);
        let since = human(entry.read_at.since(entry.header.due_at.unwrap_or(entry.read_at)));
        record.parked =
            Some(format!("attempt {} by {holder} ended without a word {since} ago", entry.header.attempts));
        let header =
            HeaderDraft { attempts: entry.header.attempts, ..HeaderDraft::new(State::Parked.status()) };
        let draft = Draft { header, body: record.encode()? };
        let write = Write::Put { key: self.key.clone(), expect: Expect::Version(entry.version), draft };
        match engine.store.commit(vec![write]).await? {
            Commit::Stored(_) => {
                telemetry::parked(self.key.as_str());
                Err(Error::Parked { key: self.key.clone(), reason: record.parked.unwrap_or_default() })
            }
            Commit::Conflict(there) => Ok(there.into_iter().next().flatten()),
        }
    }

    /// Waits for another process to finish, and looks again.
    async fn wait_for_change(
        &self,
        engine: &Inner,
        sighting: &Sighting,
        left: Duration,
        until: Duration,
    ) -> Result<Option<Entry>, Error> {
        let (mut pause, longest) = WAIT_PAUSES;
        let lease_ends = engine.clock.monotonic().saturating_add(left);
        loop {
            let now = engine.clock.monotonic();
            if now >= until {
                return Err(self.in_progress(lease_ends.saturating_sub(now), entry_holder(&sighting.entry)));
            }
            let next = (now + jitter(&*engine.chance, pause)).min(until);
            let changed = engine.store.changed(&self.key, sighting.entry.version);
            select(changed, engine.clock.sleep_until(next)).await;
            pause = (pause * 2).min(longest);
            let found = match engine.store.read(std::slice::from_ref(&self.key)).await {
                Ok(found) => found.into_iter().next().flatten(),
                Err(error) if error.kind() == StoreErrorKind::Unavailable => continue,
                Err(error) => return Err(error.into()),
            };
            let same = found.as_ref().is_some_and(|entry| entry.version == sighting.entry.version);
            if !same || engine.clock.monotonic() >= lease_ends {
                return Ok(found);
            }
        }
    }
}

/// A claim over what is there keeps its trail, and its effects where the rules say so.
fn over_entry(sighting: &Sighting, how: How) -> Result<Over, Error> {
    let entry = &sighting.entry;
    let record = Record::decode(entry)?;
    let effects = if rules::keeps_effects(sighting.sight.state) { record.effects } else { Vec::new() };
    let trail = Trail { effects, audit: record.audit, ..Trail::default() };
    let empty = trail.effects.is_empty() && trail.audit.is_empty();
    Ok(Over {
        expect: Expect::Version(entry.version),
        attempt: entry.header.attempts.saturating_add(1),
        fingerprint: sighting.sight.fingerprint.filter(|_| !rules::is_freed(&sighting.sight)),
        trail: (!empty).then(|| Box::new(trail)),
        how,
    })
}

/// Whether the same request may be answered later.
fn may_pass(error: &StoreError) -> bool {
    matches!(error.kind(), StoreErrorKind::Unavailable | StoreErrorKind::Uncertain)
}

fn entry_holder(entry: &Entry) -> String {
    entry.header.holder.as_ref().map_or_else(|| "nobody".to_owned(), Holder::to_string)
}

fn holder_of(phase: &Phase) -> String {
    match phase {
        Phase::Running(running) => running.1.to_string(),
        Phase::Seen(seen) | Phase::Ended(Some(seen)) => entry_holder(&seen.entry),
        Phase::Asking | Phase::Ended(None) => "this process".to_owned(),
    }
}

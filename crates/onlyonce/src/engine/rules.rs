//! Who may run, what a late worker may do, when to replay: the rules of a guarded call.
//!
//! Pure functions: no store, no clock, nothing asynchronous. The engine reads, asks here, and writes what it
//! is told. The simulator and every store run these same lines.
//!
//! ```text
//!               claim              body gave a value, or failed under on_failure = lock
//!   (absent) ──────────▶ running ───────────────────────────────────▶ completed, failed
//!                        ▲  │  │                                              │
//!                  claim │  │  │ lease ran out: on_crash                      │ kept long enough
//!                        │  │  ├── retry: running again, a new holder         ▼
//!      body failed under │  │  └── park, or nobody can tell: parked        (absent)
//!     on_failure = unlock│  ▼                                │
//!                       released ◀── it did not happen ──────┤
//!                                                            └── it happened ──▶ completed
//!   any of them, on purpose ──▶ forgotten ── claim ──▶ running
//! ```

use std::time::Duration;

use crate::key::Fingerprint;
use crate::policy::{FailureDecision, OnDuplicate, OnFailure};
use crate::store::{Holder, Status};

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Somebody has a lease, or had one and did not come back.
    Running,
    /// The outcome is a value.
    Completed,
    /// The outcome is a failure.
    Failed,
    /// A body failed, and the next call may run.
    Released,
    /// A worker died, and an answer from outside is wanted.
    Parked,
    /// Freed on purpose; the next call may run.
    Forgotten,
}

impl State {
    /// Every state there is.
    pub const ALL: [Self; 6] =
        [Self::Running, Self::Completed, Self::Failed, Self::Released, Self::Parked, Self::Forgotten];

    /// The word for it in the store.
    pub const fn status(self) -> Status {
        match self {
            Self::Running => const { Status::new("running") },
            Self::Completed => const { Status::new("completed") },
            Self::Failed => const { Status::new("failed") },
            Self::Released => const { Status::new("released") },
            Self::Parked => const { Status::new("parked") },
            Self::Forgotten => const { Status::new("forgotten") },
        }
    }

    /// The state behind a word, if it is one of ours.
    pub fn from_status(status: Status) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.status() == status)
    }
}

/// What a caller sees under its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sight {
    /// What the record is.
    pub state: State,
    /// How much of the lease is left, by the store's clock; zero when it ran out or there is none.
    pub lease_left: Duration,
    /// The input it was called with, if that was told.
    pub fingerprint: Option<Fingerprint>,
    /// How often somebody began.
    pub attempts: u32,
    /// Whether effects were recorded under it.
    pub has_effects: bool,
}

/// What a caller brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Its input, if it tells.
    pub fingerprint: Option<Fingerprint>,
    /// What it wants when it is not the first.
    pub on_duplicate: OnDuplicate,
    /// What it wants when somebody died.
    pub on_crash: Crash,
    /// After how many begun attempts a further crash parks.
    pub max_attempts: Option<u32>,
}

/// What a caller wants when somebody died, without the probe itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// Run again.
    Retry,
    /// Park.
    Park,
    /// Ask.
    Probe,
}

/// What an arriving caller does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Claims the key: nobody has it and nothing is unsure.
    Claim,
    /// Claims the key from a worker that did not come back.
    TakeOver,
    /// As `TakeOver`, then asks the probe before running anything.
    TakeOverAndProbe,
    /// Marks the key as parked and says so.
    Park,
    /// Gives back the recorded outcome, value or failure.
    Replay,
    /// Says that another one runs it, and when to ask again.
    InProgress(Duration),
    /// Waits: at most so long before looking again makes sense.
    Wait(Duration),
    /// Says that it is a duplicate.
    Duplicate,
    /// Says that the key stands for another input.
    InputChanged,
    /// Says that the key is parked.
    Parked,
}

/// What an arriving caller does, given what it sees.
#[inline]
pub fn arrive(sight: Option<&Sight>, ask: &Ask) -> Arrival {
    let Some(sight) = sight else { return Arrival::Claim };
    if input_changed(sight, ask) {
        return Arrival::InputChanged;
    }
    match sight.state {
        State::Released | State::Forgotten => Arrival::Claim,
        State::Completed | State::Failed => match ask.on_duplicate {
            OnDuplicate::Return | OnDuplicate::Wait => Arrival::Replay,
            OnDuplicate::Raise => Arrival::Duplicate,
        },
        State::Running if sight.lease_left > Duration::ZERO => match ask.on_duplicate {
            OnDuplicate::Return => Arrival::InProgress(sight.lease_left),
            OnDuplicate::Wait => Arrival::Wait(sight.lease_left),
            OnDuplicate::Raise => Arrival::Duplicate,
        },
        State::Running => after_crash(sight, ask),
        State::Parked => match ask.on_crash {
            Crash::Probe => Arrival::TakeOverAndProbe,
            Crash::Retry | Crash::Park => Arrival::Parked,
        },
    }
}

/// A key stands for one input, unless it is free again.
#[inline]
fn input_changed(sight: &Sight, ask: &Ask) -> bool {
    let differs = matches!((sight.fingerprint, ask.fingerprint), (Some(then), Some(now)) if then != now);
    differs && !is_freed(sight)
}

/// Whether a key may stand for another input: nothing is recorded of it but that it was tried.
#[inline]
pub fn is_freed(sight: &Sight) -> bool {
    match sight.state {
        State::Released => !sight.has_effects,
        State::Forgotten => true,
        State::Running | State::Completed | State::Failed | State::Parked => false,
    }
}

/// A lease ran out: nobody knows whether the effect happened.
fn after_crash(sight: &Sight, ask: &Ask) -> Arrival {
    let spent = ask.max_attempts.is_some_and(|most| sight.attempts >= most);
    match ask.on_crash {
        Crash::Park => Arrival::Park,
        Crash::Retry if spent => Arrival::Park,
        Crash::Retry => Arrival::TakeOver,
        Crash::Probe => Arrival::TakeOverAndProbe,
    }
}

/// Whether a new lease keeps the effects of the record it replaces.
///
/// Effects stay with the key for as long as the key is about the same work; a forgotten key starts anew.
pub fn keeps_effects(state: State) -> bool {
    match state {
        State::Running | State::Released | State::Parked => true,
        State::Completed | State::Failed | State::Forgotten => false,
    }
}

/// Whose record a writer finds when its own write was refused, or its reply was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Still the writer's own lease, perhaps at a later version: go on from there.
    Mine,
    /// The writer's own settlement: it was stored, only the reply was lost.
    Settled,
    /// Somebody else's, or gone: the lease is lost.
    Lost,
}

/// Whose record this is, asked by the holder of a lease.
///
/// A settled record names the holder that settled it, so a lost reply to a completion is told apart from
/// somebody else's completion.
pub fn standing(me: &Holder, there: Option<(State, Option<&Holder>)>) -> Standing {
    match there {
        Some((state, Some(holder))) if holder == me => match state {
            State::Running => Standing::Mine,
            State::Completed | State::Failed | State::Released | State::Parked => Standing::Settled,
            State::Forgotten => Standing::Lost,
        },
        Some(_) | None => Standing::Lost,
    }
}

/// How a body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With a value.
    Value,
    /// With an error or a panic, and what the policy says of it.
    Failure(FailureDecision),
    /// With something only the outside can tell: a begun effect under `park`, or an undo that failed.
    Unsure,
}

/// What a record becomes when its body ended, and how long it is kept (`None`: until somebody decides).
///
/// A freed key with effects is remembered at least as long as an outcome: the next run must find them, or it
/// would do again what is done.
pub fn settle(
    end: End,
    keep: Duration,
    keep_failures: Duration,
    has_effects: bool,
) -> (State, Option<Duration>) {
    match end {
        End::Value => (State::Completed, Some(keep)),
        End::Failure(decision) => {
            let keep_failure = decision.keep.unwrap_or(keep_failures);
            match decision.then {
                OnFailure::Unlock if has_effects => (State::Released, Some(keep_failure.max(keep))),
                OnFailure::Unlock => (State::Released, Some(keep_failure)),
                OnFailure::Lock => (State::Failed, Some(keep_failure)),
            }
        }
        End::Unsure => (State::Parked, None),
    }
}

/// What a person, or a probe, has found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The effect happened.
    Happened,
    /// It did not.
    DidNot,
    /// Nobody can tell.
    CannotTell,
}

/// What a key becomes by a verdict; `None`: it is not waiting for one.
///
/// A verdict is for a parked key, or for one whose lease ran out. A live lease must end first, and an outcome
/// that is recorded is never changed.
pub fn resolve(state: State, lease_left: Duration, found: Found) -> Option<State> {
    let waiting = match state {
        State::Parked => true,
        State::Running => lease_left == Duration::ZERO,
        State::Completed | State::Failed | State::Released | State::Forgotten => false,
    };
    waiting.then_some(match found {
        Found::Happened => State::Completed,
        Found::DidNot => State::Released,
        Found::CannotTell => State::Parked,
    })
}

/// Whether a key may be forgotten: any but one with a live lease, and that one only when it is meant.
pub fn may_forget(state: State, lease_left: Duration, even_running: bool) -> bool {
    let live = state == State::Running && lease_left > Duration::ZERO;
    !live || even_running
}

/// What a run finds of one effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trace {
    /// Nothing: it was never begun, failed cleanly, or was undone.
    None,
    /// It was begun, and no end is known.
    Begun,
    /// Its undo was begun, and no end is known.
    Undoing,
    /// It is done.
    Done,
}

/// What a run does about one effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffectStep {
    /// Runs it.
    Run,
    /// Gives back what it gave.
    Replay,
    /// Asks the probe first.
    Probe,
    /// Parks the key.
    Park,
}

/// What a run does about one effect, given its trace.
///
/// An effect is begun again under its key, so the outside may know it. One whose undo was begun is not: if it was
/// taken back, the outside would answer for its key and do nothing; if it was not, another key would do it twice.
pub fn effect_step(trace: Trace, on_crash: Crash) -> EffectStep {
    match (trace, on_crash) {
        (Trace::None, _) | (Trace::Begun, Crash::Retry) => EffectStep::Run,
        (Trace::Done, _) => EffectStep::Replay,
        (Trace::Begun | Trace::Undoing, Crash::Probe) => EffectStep::Probe,
        (Trace::Begun, Crash::Park) | (Trace::Undoing, Crash::Retry | Crash::Park) => EffectStep::Park,
    }
}

/// The holder's own end of a lease, counted on its monotonic clock from before the request was sent.
///
/// A twentieth early, so that a body is told before the store gives the key to somebody else. Of a short lease
/// a little more: stores count in whole milliseconds, and heartbeats are looked after in steps of half of one.
pub fn own_deadline(sent: Duration, lease: Duration) -> Duration {
    let early = (lease / 20).max(Duration::from_millis(2));
    sent.saturating_add(lease.saturating_sub(early))
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;

//! What the engine tells the world: events, counters and alert rules.
//!
//! Payloads, results and errors' contents never appear here; keys do, so put no secret into a key.
//!
//! | event (`tracing`) | level | when |
//! | --- | --- | --- |
//! | `lock_acquired` | debug | a claim was stored |
//! | `lock_taken_over` | warn | a claim was stored over a lease that ran out |
//! | `lock_skipped_duplicate` | debug | a recorded outcome was given back |
//! | `heartbeat_extended` | trace | a lease was extended |
//! | `heartbeat_failed` | warn | it was not; it is tried again until the lease ends |
//! | `lock_released` | debug | the outcome was recorded (`status`), or was refused (`recorded = false`) |
//! | `lock_abandoned` | warn | a body's future was dropped |
//! | `parked` | warn | a key waits for an answer from outside |
//! | `result_not_stored` | warn | a result was too large or not storable |
//! | `failure_not_recorded` | warn | a failure could not be recorded |
//! | `fail_open` | error | a call ran unguarded because the store is down |
//!
//! | counter (`metrics`) | labels | counts |
//! | --- | --- | --- |
//! | `onlyonce_calls_total` | `outcome` | calls by what became of them, see [`Outcome`] |
//! | `onlyonce_heartbeat_failures_total` | | heartbeats that failed |
//! | `onlyonce_claim_failures_total` | | claims the store did not answer |

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::error::Error;
use crate::store::{StoreError, StoreErrorKind};

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// It ran, and its outcome was recorded.
    First,
    /// A recorded outcome was given back.
    Replay,
    /// A recorded outcome was given back after waiting for it.
    ReplayAfterWait,
    /// Another one runs it.
    InProgress,
    /// It was a duplicate, and the policy is to say so.
    Duplicate,
    /// Same key, other input.
    Mismatch,
    /// It took over from a worker that did not come back; counted beside what became of it then.
    Takeover,
    /// The key is parked.
    Parked,
    /// The body failed.
    Failed,
    /// The lease was lost while the body ran.
    LeaseLost,
    /// It ran unguarded.
    FailOpen,
}

impl Outcome {
    /// Every outcome there is.
    pub const ALL: [Self; 11] = [
        Self::First,
        Self::Replay,
        Self::ReplayAfterWait,
        Self::InProgress,
        Self::Duplicate,
        Self::Mismatch,
        Self::Takeover,
        Self::Parked,
        Self::Failed,
        Self::LeaseLost,
        Self::FailOpen,
    ];

    /// Its label.
    pub const fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Replay => "replay",
            Self::ReplayAfterWait => "replay_after_wait",
            Self::InProgress => "in_progress",
            Self::Duplicate => "duplicate",
            Self::Mismatch => "mismatch",
            Self::Takeover => "takeover",
            Self::Parked => "parked",
            Self::Failed => "failed",
            Self::LeaseLost => "lease_lost",
            Self::FailOpen => "fail_open",
        }
    }

    /// The outcome behind an error, if the call got as far as one.
    pub(crate) fn of(error: &Error) -> Option<Self> {
        match error {
            Error::InProgress { .. } => Some(Self::InProgress),
            Error::DuplicateExecution { .. } => Some(Self::Duplicate),
            Error::InputChanged { .. } => Some(Self::Mismatch),
            Error::Parked { .. } => Some(Self::Parked),
            Error::LeaseLost { .. } => Some(Self::LeaseLost),
            _ => None,
        }
    }

    fn increment(self) {
        macro_rules! count {
            ($name:literal) => {
                metrics::counter!("onlyonce_calls_total", "outcome" => $name).increment(1)
            };
        }
        match self {
            Self::First => count!("first"),
            Self::Replay => count!("replay"),
            Self::ReplayAfterWait => count!("replay_after_wait"),
            Self::InProgress => count!("in_progress"),
            Self::Duplicate => count!("duplicate"),
            Self::Mismatch => count!("mismatch"),
            Self::Takeover => count!("takeover"),
            Self::Parked => count!("parked"),
            Self::Failed => count!("failed"),
            Self::LeaseLost => count!("lease_lost"),
            Self::FailOpen => count!("fail_open"),
        }
    }
}

/// Counts of one engine since it was made.
#[derive(Debug, Default)]
pub struct Stats {
    outcomes: [AtomicU64; Outcome::ALL.len()],
    heartbeat_failures: AtomicU64,
    acquisition_failures: AtomicU64,
}

impl Stats {
    pub(crate) fn count(&self, outcome: Outcome) {
        self.count_quietly(outcome);
        outcome.increment();
    }

    /// Counts a call that came to this error, if it got as far as an outcome.
    pub(crate) fn count_error(&self, error: &Error) {
        if let Some(outcome) = Outcome::of(error) {
            self.count(outcome);
        }
    }

    /// Counts here only: the engine underneath has told the world already.
    pub(crate) fn count_quietly(&self, outcome: Outcome) {
        self.outcomes[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn heartbeat_failed(&self) {
        self.heartbeat_failures.fetch_add(1, Ordering::Relaxed);
        metrics::counter!("onlyonce_heartbeat_failures_total").increment(1);
    }

    pub(crate) fn acquisition_failed(&self) {
        self.acquisition_failures.fetch_add(1, Ordering::Relaxed);
        metrics::counter!("onlyonce_claim_failures_total").increment(1);
    }

    /// How many calls came to this.
    pub fn of(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome as usize].load(Ordering::Relaxed)
    }

    /// How many heartbeats failed.
    pub fn heartbeat_failures(&self) -> u64 {
        self.heartbeat_failures.load(Ordering::Relaxed)
    }

    /// How many claims the store did not answer.
    pub fn acquisition_failures(&self) -> u64 {
        self.acquisition_failures.load(Ordering::Relaxed)
    }

    /// Replays among the calls that gave a value; `None` before the first.
    pub fn replay_rate(&self) -> Option<f64> {
        let replays = self.of(Outcome::Replay) + self.of(Outcome::ReplayAfterWait);
        rate(replays, replays + self.of(Outcome::First))
    }
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people to read")]
fn rate(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// What was counted over a stretch of time, for the alert rules.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Window {
    /// How long it is.
    pub length: Duration,
    /// Claims the store did not answer.
    pub acquisition_failures: u64,
    /// Heartbeats that failed.
    pub heartbeat_failures: u64,
    /// Leases older than 30 minutes right now.
    pub old_leases: u64,
    /// Calls that ran.
    pub runs: u64,
    /// Calls that were given back an outcome.
    pub replays: u64,
}

/// A threshold that was passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Alert {
    /// More than 10 claims an hour were not answered.
    ClaimFailures,
    /// More than 5 heartbeats an hour failed.
    HeartbeatFailures,
    /// More than 3 leases are older than 30 minutes.
    OldLeases,
    /// More than one call in twenty is a replay: somebody upstream retries too eagerly.
    ManyReplays,
    /// Not one replay in a long busy time: every delivery may be getting a key of its own.
    NoReplays,
}

/// The alert rules, over what was counted.
pub fn alerts(window: &Window) -> Vec<Alert> {
    let hours = window.length.as_secs_f64() / 3600.0;
    #[expect(clippy::cast_precision_loss, reason = "a rate for a threshold")]
    let per_hour = |count: u64| if hours > 0.0 { count as f64 / hours } else { 0.0 };
    let busy = window.runs >= 10_000 && window.length >= Duration::from_secs(7 * 24 * 3600);
    let replays = rate(window.replays, window.runs + window.replays);
    [
        (Alert::ClaimFailures, per_hour(window.acquisition_failures) > 10.0),
        (Alert::HeartbeatFailures, per_hour(window.heartbeat_failures) > 5.0),
        (Alert::OldLeases, window.old_leases > 3),
        (Alert::ManyReplays, replays.is_some_and(|rate| rate > 0.05)),
        (Alert::NoReplays, busy && window.replays == 0),
    ]
    .into_iter()
    .filter_map(|(alert, fires)| fires.then_some(alert))
    .collect()
}

pub(crate) fn lock_acquired(key: &str, attempt: u32) {
    tracing::debug!(key, attempt, "lock_acquired");
}

pub(crate) fn lock_taken_over(key: &str, attempt: u32) {
    tracing::warn!(key, attempt, "lock_taken_over");
}

pub(crate) fn lock_skipped_duplicate(key: &str) {
    tracing::debug!(key, "lock_skipped_duplicate");
}

pub(crate) fn heartbeat_extended(key: &str) {
    tracing::trace!(key, "heartbeat_extended");
}

pub(crate) fn heartbeat_failed(key: &str, error: &StoreError) {
    tracing::warn!(key, kind = kind(error), "heartbeat_failed");
}

pub(crate) fn lock_released(key: &str, status: &str, recorded: bool) {
    tracing::debug!(key, status, recorded, "lock_released");
}

pub(crate) fn lock_abandoned(key: &str, recorded: bool) {
    tracing::warn!(key, recorded, "lock_abandoned");
}

pub(crate) fn parked(key: &str) {
    tracing::warn!(key, "parked");
}

pub(crate) fn result_not_stored(key: &str) {
    tracing::warn!(key, "result_not_stored");
}

pub(crate) fn failure_not_recorded(key: &str, error: &Error) {
    tracing::warn!(key, code = error.code(), "failure_not_recorded");
}

pub(crate) fn fail_open(key: &str, error: &StoreError) {
    tracing::error!(key, kind = kind(error), "fail_open");
}

fn kind(error: &StoreError) -> &'static str {
    match error.kind() {
        StoreErrorKind::Unavailable => "unavailable",
        StoreErrorKind::Uncertain => "uncertain",
        StoreErrorKind::TooLarge => "too_large",
        StoreErrorKind::Corrupt => "corrupt",
        StoreErrorKind::Misconfigured => "misconfigured",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn thresholds_fire_above_and_not_at_their_number() {
        let quiet = Window {
            length: HOUR,
            acquisition_failures: 10,
            heartbeat_failures: 5,
            old_leases: 3,
            runs: 95,
            replays: 5,
        };
        assert_eq!(alerts(&quiet), []);
        let loud = Window {
            length: HOUR,
            acquisition_failures: 11,
            heartbeat_failures: 6,
            old_leases: 4,
            runs: 94,
            replays: 6,
        };
        assert_eq!(
            alerts(&loud),
            [Alert::ClaimFailures, Alert::HeartbeatFailures, Alert::OldLeases, Alert::ManyReplays]
        );
    }

    #[test]
    fn no_replay_in_a_long_busy_time_is_suspicious() {
        let busy = Window { length: 24 * 7 * HOUR, runs: 10_000, ..Window::default() };
        assert_eq!(alerts(&busy), [Alert::NoReplays]);
        assert_eq!(alerts(&Window { replays: 1, ..busy }), []);
        assert_eq!(alerts(&Window { length: HOUR, ..busy }), []);
    }

    #[test]
    fn every_outcome_has_its_own_counter() {
        let stats = Stats::default();
        for outcome in Outcome::ALL {
            stats.count(outcome);
            assert_eq!(stats.of(outcome), 1, "{}", outcome.name());
        }
    }
}

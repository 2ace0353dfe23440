//! What to do about duplicates, failures, crashes and a store that is down.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::error::{Error, human};
use crate::key::Key;

/// What a call does when its key has been called before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDuplicate {
    /// Gives back the stored outcome; while the first still runs, says `in_progress`.
    #[default]
    Return,
    /// Says `duplicate_execution`.
    Raise,
    /// Waits for the first, then gives back its outcome.
    Wait,
}

/// What becomes of a key whose body failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// The next call runs again; the failure stays visible.
    #[default]
    Unlock,
    /// The failure is the outcome.
    Lock,
}

/// What becomes of this failure, and for how long it is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailureDecision {
    /// Whether the next call runs again.
    pub then: OnFailure,
    /// How long; `None`: the policy's `keep_failures`.
    pub keep: Option<Duration>,
}

impl From<OnFailure> for FailureDecision {
    fn from(then: OnFailure) -> Self {
        Self { then, keep: None }
    }
}

impl OnFailure {
    /// The same, remembered for a time of its own.
    pub fn keep(self, keep: Duration) -> FailureDecision {
        FailureDecision { then: self, keep: Some(keep) }
    }
}

/// What a call does when it finds a lease that ran out: nobody knows whether the effect happened.
#[derive(Clone, Debug, Default)]
pub enum OnCrash {
    /// Runs again.
    #[default]
    Retry,
    /// Parks the key until a person, or `resolve`, decides.
    Park,
    /// Asks the outside, then completes, runs or parks.
    Probe(Arc<dyn Probe>),
}

impl OnCrash {
    /// Asks `probe`.
    pub fn probe(probe: impl Probe) -> Self {
        Self::Probe(Arc::new(probe))
    }
}

/// What a call does when the store cannot be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnStoreDown {
    /// Fails; nothing runs unguarded.
    #[default]
    Closed,
    /// Runs unguarded, logs an error, counts it.
    Open,
}

/// What happens to a running body when its lease is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLeaseLost {
    /// Its future is dropped.
    #[default]
    Cancel,
    /// It goes on; [`Lease::is_lost`](crate::Lease::is_lost) tells it.
    Tell,
}

/// Asks the outside world whether an effect happened.
///
/// # Promise
/// Asked by one worker at a time per key, under a lease of its own.
#[async_trait]
pub trait Probe: fmt::Debug + Send + Sync + 'static {
    /// What became of it.
    async fn ask(&self, suspect: &Suspect) -> Verdict;
}

/// What a probe is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Suspect {
    /// The key whose worker died.
    pub key: Key,
    /// Which attempt died.
    pub attempt: u32,
    /// The effect that was begun and not finished, when the body tracks effects.
    pub effect: Option<String>,
    /// The key that was handed to the outside system with that effect.
    pub effect_key: Option<String>,
}

/// What the outside world says of an effect.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// It happened, with this value if it is known.
    Happened(Option<Box<RawValue>>),
    /// It did not happen: run it.
    DidNot,
    /// Nobody can tell: park it.
    CannotTell,
}

impl Verdict {
    /// It happened, and this is what it gave.
    ///
    /// # Errors
    /// `bad_input` when the value has no JSON form.
    pub fn happened_with<T: Serialize + ?Sized>(value: &T) -> Result<Self, Error> {
        let raw = to_raw_value(value).map_err(|e| Error::BadInput { reason: e.to_string() })?;
        Ok(Self::Happened(Some(raw)))
    }

    /// One word for the audit line.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Happened(_) => "happened",
            Self::DidNot => "did not happen",
            Self::CannotTell => "cannot tell",
        }
    }
}

/// How a call is guarded.
///
/// # Example
/// ```
/// use std::time::Duration;
/// use onlyonce::{OnCrash, OnDuplicate, Policy};
/// let policy = Policy::default()
///     .lease(Duration::from_secs(30))
///     .on_duplicate(OnDuplicate::Wait)
///     .on_crash(OnCrash::Park);
/// policy.check()?;
/// # Ok::<(), onlyonce::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Policy {
    pub(crate) on_duplicate: OnDuplicate,
    pub(crate) on_failure: OnFailure,
    pub(crate) on_crash: OnCrash,
    pub(crate) on_store_down: OnStoreDown,
    pub(crate) on_lease_lost: OnLeaseLost,
    pub(crate) max_attempts: Option<u32>,
    pub(crate) lease: Duration,
    pub(crate) heartbeat: Option<Duration>,
    pub(crate) max_lease_total: Duration,
    pub(crate) keep: Duration,
    pub(crate) keep_failures: Option<Duration>,
    pub(crate) wait: Option<Duration>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            on_duplicate: OnDuplicate::default(),
            on_failure: OnFailure::default(),
            on_crash: OnCrash::default(),
            on_store_down: OnStoreDown::default(),
            on_lease_lost: OnLeaseLost::default(),
            max_attempts: None,
            lease: Duration::from_secs(600),
            heartbeat: None,
            max_lease_total: Duration::from_secs(24 * 3600),
            keep: Duration::from_secs(24 * 3600),
            keep_failures: None,
            wait: None,
        }
    }
}

macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $kind:ty => $value:expr;)*) => {
        impl Policy {$(
            $(#[$doc])*
            #[must_use]
            pub fn $name(mut self, $name: $kind) -> Self {
                self.$name = $value;
                self
            }
        )*}
    };
}

setters! {
    /// What to do when the key has been called before. Default: `Return`.
    on_duplicate: OnDuplicate => on_duplicate;
    /// What becomes of a key whose body failed. Default: `Unlock`.
    on_failure: OnFailure => on_failure;
    /// What to do about a lease that ran out. Default: `Retry`.
    on_crash: OnCrash => on_crash;
    /// What to do when the store cannot be reached. Default: `Closed`.
    on_store_down: OnStoreDown => on_store_down;
    /// What happens to a running body when its lease is lost. Default: `Cancel`.
    on_lease_lost: OnLeaseLost => on_lease_lost;
    /// Parks a key whose worker died once it was begun so many times, failures included. Default: no limit.
    max_attempts: u32 => Some(max_attempts);
    /// How long a claim holds without a heartbeat. Default: 10 minutes.
    lease: Duration => lease;
    /// How often the lease is extended while the body runs. Default: a fifth of the lease.
    heartbeat: Duration => Some(heartbeat);
    /// How long heartbeats may keep one lease alive in all. Default: 24 hours.
    max_lease_total: Duration => max_lease_total;
    /// How long an outcome is remembered. Default: 24 hours.
    keep: Duration => keep;
    /// How long a failure is remembered; with effects, at least as long as an outcome. Default: as an outcome.
    keep_failures: Duration => Some(keep_failures);
    /// How long `Wait` waits. Default: as long as the lease.
    wait: Duration => Some(wait);
}

impl Policy {
    /// Whether this policy can work.
    ///
    /// # Errors
    /// `bad_policy`, saying which part and what to write instead.
    pub fn check(&self) -> Result<(), Error> {
        let smallest = Duration::from_millis(10);
        let at_least = [
            ("lease", self.lease, smallest),
            ("heartbeat", self.beat_every(), Duration::from_millis(1)),
            ("keep", self.keep, Duration::from_millis(1)),
            ("keep_failures", self.keep_failed(), Duration::from_millis(1)),
            ("wait", self.wait_at_most(), Duration::from_millis(1)),
        ];
        if let Some((name, _, least)) = at_least.iter().find(|(_, value, least)| value < least) {
            return Err(bad(format!("{name} must be at least {}", human(*least))));
        }
        if self.beat_every() > self.lease / 2 {
            let (beat, lease) = (human(self.beat_every()), human(self.lease));
            return Err(bad(format!(
                "the heartbeat ({beat}) must be at most half the lease ({lease}), or one lost beat loses the lease"
            )));
        }
        if self.max_lease_total < self.lease {
            return Err(bad(format!(
                "max_lease_total ({}) is shorter than one lease ({})",
                human(self.max_lease_total),
                human(self.lease)
            )));
        }
        if self.max_attempts == Some(0) {
            return Err(bad("max_attempts must be at least 1".to_owned()));
        }
        Ok(())
    }

    pub(crate) fn beat_every(&self) -> Duration {
        self.heartbeat.unwrap_or(self.lease / 5)
    }

    pub(crate) fn keep_failed(&self) -> Duration {
        self.keep_failures.unwrap_or(self.keep)
    }

    /// How long a key is remembered that was given back and may have effects of an earlier run.
    pub(crate) fn keep_unused(&self) -> Duration {
        self.keep_failed().max(self.keep)
    }

    pub(crate) fn wait_at_most(&self) -> Duration {
        self.wait.unwrap_or(self.lease)
    }
}

fn bad(reason: String) -> Error {
    Error::BadPolicy { reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_cannot_work_says_which_part() {
        let second = Duration::from_secs(1);
        let bad = [
            ("lease", Policy::default().lease(Duration::ZERO)),
            ("heartbeat", Policy::default().heartbeat(Duration::ZERO)),
            ("heartbeat", Policy::default().lease(second).heartbeat(second)),
            ("heartbeat", Policy::default().lease(second).heartbeat(10 * second)),
            ("keep", Policy::default().keep(Duration::ZERO)),
            ("keep_failures", Policy::default().keep_failures(Duration::ZERO)),
            ("wait", Policy::default().wait(Duration::ZERO)),
            ("max_lease_total", Policy::default().max_lease_total(second)),
            ("max_attempts", Policy::default().max_attempts(0)),
        ];
        for (part, policy) in bad {
            let error = policy.check().unwrap_err();
            assert_eq!((error.code(), error.exit_code()), ("bad_policy", 64));
            assert!(error.to_string().contains(part), "{error} should name {part}");
        }
        Policy::default().check().unwrap();
        Policy::default().lease(Duration::MAX / 2).max_lease_total(Duration::MAX).check().unwrap();
    }
}

//! What calls are told: it must be what the store says.

use onlyonce::Fingerprint;
use onlyonce::engine::rules::State;
use onlyonce::time::Timestamp;

use super::records::run_in;
use super::{Oracle, Rule, Span};
use crate::sim::sometimes::Sometimes;

/// What a call does about a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sim) enum CrashPlan {
    Retry,
    Park,
    Probe,
}

/// What the judge has to know of a call.
#[derive(Clone, Debug)]
pub(in crate::sim) struct CallFacts {
    pub(in crate::sim) key: usize,
    pub(in crate::sim) crash: CrashPlan,
    pub(in crate::sim) max_attempts: Option<u32>,
    pub(in crate::sim) fingerprint: Option<Fingerprint>,
    pub(in crate::sim) waits: bool,
    /// For how long heartbeats may keep its lease.
    pub(in crate::sim) total_us: u64,
    /// It may run, and end, without the store.
    pub(in crate::sim) open: bool,
}

/// A call, from its begin to its answer.
#[derive(Debug)]
pub(in crate::sim) struct Call {
    pub(super) plan: CallFacts,
    pub(super) host: usize,
    pub(super) run: Option<u64>,
    began_us: u64,
    /// When it began, or the call whose flight it may share: what that one saw it may be given too.
    sees_us: u64,
    sees_at: Timestamp,
    /// Its future was dropped.
    dropped: bool,
    pub(in crate::sim) answer: Option<Answer>,
}

impl Call {
    /// Whether it has been waiting for another one.
    pub(super) fn waits_since(&self, now_us: u64) -> bool {
        self.plan.waits && now_us.saturating_sub(self.began_us) > 5_000
    }
}

/// What a call was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::sim) enum Answer {
    Value {
        run: u64,
        replayed: bool,
        waited: bool,
    },
    /// The body's own error, of this run or of a recorded one.
    Failed(Option<u64>),
    FailedBefore(String),
    Panicked,
    NotStored,
    InProgress,
    Duplicate,
    InputChanged,
    Parked,
    LeaseLost,
    NotRecorded,
    Store(String),
    Other(String),
}

impl Oracle {
    /// A call begins; gives its number.
    pub(in crate::sim) fn call_begins(
        &mut self,
        plan: CallFacts,
        host: usize,
        now_us: u64,
        at: Timestamp,
    ) -> u32 {
        let shares = |call: &&Call| {
            call.host == host && call.plan.key == plan.key && call.answer.is_none() && !call.dropped
        };
        let first = self.calls.iter().find(shares).map(|call| (call.began_us, call.sees_at));
        let (sees_us, sees_at) = first.unwrap_or((now_us, at));
        let (run, dropped, answer) = (None, false, None);
        self.calls.push(Call { plan, host, run, began_us: now_us, sees_us, sees_at, dropped, answer });
        u32::try_from(self.calls.len() - 1).unwrap_or(u32::MAX)
    }

    /// A call's future is dropped.
    pub(in crate::sim) fn call_dropped(&mut self, number: u32) {
        if let Some(call) = self.calls.get_mut(number as usize) {
            call.dropped = true;
        }
    }

    /// A call is told its answer.
    pub(in crate::sim) fn call_ends(&mut self, number: u32, now_us: u64, answer: Answer) {
        let Some(call) = self.calls.get_mut(number as usize) else { return };
        call.answer = Some(answer.clone());
        let own = call.run;
        match answer {
            Answer::Value { run, replayed: false, .. } => self.check_first(number, run, own),
            Answer::Value { run, waited, .. } => {
                self.check_replay(number, Some(run), State::Completed, waited);
            }
            Answer::Failed(run) if own.is_some() && run == own => self.sometimes(Sometimes::BodyFailed),
            Answer::Failed(run) => self.check_failure(number, run),
            Answer::FailedBefore(message) => self.check_failure(number, run_in(&message)),
            Answer::NotStored => self.check_replay(number, None, State::Completed, false),
            Answer::Parked => self.check_parked(number),
            Answer::InputChanged => self.sometimes(Sometimes::InputChanged),
            Answer::NotRecorded => self.sometimes(Sometimes::NotRecorded),
            Answer::Panicked => self.sometimes(Sometimes::BodyPanicked),
            Answer::LeaseLost => self.count_lost(number, now_us),
            Answer::InProgress | Answer::Duplicate | Answer::Store(_) => {}
            Answer::Other(what) => {
                self.broken(Rule::Ends, || format!("call {number} ended in a way no call should: {what}"));
            }
        }
    }

    /// A call that ran says that its value is the outcome.
    fn check_first(&mut self, number: u32, run: u64, own: Option<u64>) {
        let Some(call) = self.calls.get(number as usize) else { return };
        let (key, open) = (call.plan.key, call.plan.open);
        if own != Some(run) {
            self.broken(Rule::OneOutcome, || {
                format!("call {number} gave the value of run {run}, its own is {own:?}")
            });
        }
        let span = self.keys[key].spans.iter().find(|s| s.run == Some(run) && s.state == State::Completed);
        match span.map(|span| span.unanswered) {
            Some(true) => self.sometimes(Sometimes::CompletionRecognised),
            Some(false) => {}
            None if open => {}
            None => self.broken(Rule::NothingLost, || {
                format!("call {number} on sim/{key} gave the value of run {run}, which is not recorded")
            }),
        }
    }

    fn check_failure(&mut self, number: u32, run: Option<u64>) {
        self.sometimes(Sometimes::FailureReplayed);
        self.check_replay(number, run, State::Failed, false);
    }

    /// A call that did not run is given an outcome: it must have been there while the call was.
    fn check_replay(&mut self, number: u32, run: Option<u64>, state: State, waited: bool) {
        let Some(call) = self.calls.get(number as usize) else { return };
        let (key, host) = (call.plan.key, call.host);
        let there = |span: &&Span| span.run == run && span.state == state && span.to_us >= call.sees_us;
        let Some(span) = self.keys[key].spans.iter().rev().find(there) else {
            return self.broken(Rule::OneOutcome, || {
                format!("call {number} on sim/{key} was given {state:?} of run {run:?}, which was not there")
            });
        };
        let other_input = matches!((call.plan.fingerprint, span.fingerprint), (Some(a), Some(b)) if a != b);
        let outlived = span.expires.is_some_and(|at| at <= call.sees_at) && !self.clock_went_back;
        if waited {
            let shared = span.host == host;
            self.sometimes(if shared { Sometimes::SharedFlight } else { Sometimes::WaitedForValue });
        }
        if other_input {
            self.broken(Rule::OneOutcome, || {
                format!("call {number} on sim/{key} was given the outcome of another input")
            });
        }
        if outlived {
            self.broken(Rule::OneOutcome, || {
                format!("call {number} on sim/{key} was given an outcome that had expired before it began")
            });
        }
    }

    fn check_parked(&mut self, number: u32) {
        let Some(call) = self.calls.get(number as usize) else { return };
        let key = call.plan.key;
        let there = |span: &Span| span.state == State::Parked && span.to_us >= call.sees_us;
        if !self.keys[key].spans.iter().any(there) {
            self.broken(Rule::NeverSilent, || {
                format!("call {number} was told that sim/{key} is parked, and it is not")
            });
        }
    }

    /// What was promised to calls that are over must still be true.
    pub(in crate::sim) fn check_promises(&mut self) {
        for number in 0..self.calls.len() {
            let call = &self.calls[number];
            let Some(run) = call.run else { continue };
            let recorded =
                self.runs.get(usize::try_from(run).unwrap_or(usize::MAX)).is_some_and(|r| r.recorded);
            if call.answer == Some(Answer::LeaseLost) && recorded {
                self.broken(Rule::OneOutcome, || {
                    format!("call {number} was told that it recorded nothing, and run {run} is recorded")
                });
            }
        }
    }

    /// What is there must be what was acknowledged.
    pub(in crate::sim) fn check_truth(&mut self, key: usize, truth: Option<(u64, &str)>, at: Timestamp) {
        let there = self.keys[key].there.as_ref();
        let there = there.filter(|there| there.expires.is_none_or(|expires| expires > at));
        let known = there.map(|there| (there.version, there.state.status().to_string()));
        let same = match (&known, truth) {
            (None, None) => true,
            (Some((version, status)), Some(truth)) => (*version, status.as_str()) == truth,
            _ => false,
        };
        if !same {
            self.broken(Rule::NothingLost, || {
                format!("sim/{key} should be {known:?}, as acknowledged, and is {truth:?}")
            });
        }
    }
}

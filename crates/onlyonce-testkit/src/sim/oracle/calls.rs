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
    pub(in crate::sim) wait_us: u64,
    /// Whether its outcome was recorded the engine cannot always know: its body writes it, or it is gone already.
    pub(in crate::sim) unknowable: bool,
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
    /// When it was told its answer, or its future was dropped.
    ended_us: Option<u64>,
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
        let shares = |call: &&Call| call.host == host && call.plan.key == plan.key && call.ended_us.is_none();
        let first = self.calls.iter().find(shares).map(|call| (call.began_us, call.sees_at));
        let (sees_us, sees_at) = first.unwrap_or((now_us, at));
        let (run, ended_us, answer) = (None, None, None);
        self.calls.push(Call { plan, host, run, began_us: now_us, sees_us, sees_at, ended_us, answer });
        u32::try_from(self.calls.len() - 1).unwrap_or(u32::MAX)
    }

    /// A call's future is dropped.
    pub(in crate::sim) fn call_dropped(&mut self, number: u32, now_us: u64) {
        if let Some(call) = self.calls.get_mut(number as usize) {
            call.ended_us = Some(now_us);
        }
    }

    /// A call is told its answer.
    pub(in crate::sim) fn call_ends(&mut self, number: u32, now_us: u64, at: Timestamp, answer: Answer) {
        let Some(call) = self.calls.get_mut(number as usize) else { return };
        call.answer = Some(answer.clone());
        call.ended_us = Some(now_us);
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
            Answer::InputChanged => self.check_other_input(number),
            Answer::InProgress => self.check_in_progress(number, now_us),
            Answer::Duplicate => self.check_duplicate(number),
            Answer::NotRecorded => self.sometimes(Sometimes::NotRecorded),
            Answer::Panicked => self.sometimes(Sometimes::BodyPanicked),
            Answer::LeaseLost => {
                self.count_lost(number, now_us);
                self.excuse(number, at);
            }
            Answer::Store(_) => {}
            Answer::Other(what) => {
                self.broken(Rule::Ends, || format!("call {number} ended in a way no call should: {what}"));
            }
        }
    }

    /// An outcome that came and went before its call was answered: nobody could tell any more.
    fn excuse(&mut self, number: u32, at: Timestamp) {
        let Some(call) = self.calls.get_mut(number as usize) else { return };
        let over = |span: &Span| span.to_us != u64::MAX || span.expires.is_some_and(|expires| expires <= at);
        let gone = |span: &Span| span.run == call.run && over(span);
        if call.run.is_some() && self.keys[call.plan.key].spans.iter().any(gone) {
            call.plan.unknowable = true;
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
            // A probe found it, the record did not get through, and the policy is to go on.
            if call.plan.open && state == State::Completed {
                return;
            }
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

    /// Whether something like this was there while the call was.
    fn saw(&self, call: &Call, like: impl Fn(&Span) -> bool) -> bool {
        self.keys[call.plan.key].spans.iter().any(|span| span.to_us >= call.sees_us && like(span))
    }

    fn check_parked(&mut self, number: u32) {
        let Some(call) = self.calls.get(number as usize) else { return };
        let key = call.plan.key;
        if !self.saw(call, |span| span.state == State::Parked) {
            self.broken(Rule::NeverSilent, || {
                format!("call {number} was told that sim/{key} is parked, and it is not")
            });
        }
    }

    fn check_other_input(&mut self, number: u32) {
        self.sometimes(Sometimes::InputChanged);
        let Some(call) = self.calls.get(number as usize) else { return };
        let key = call.plan.key;
        let own = call.plan.fingerprint;
        if own.is_none() || !self.saw(call, |span| span.fingerprint.is_some() && span.fingerprint != own) {
            self.broken(Rule::OneOutcome, || {
                format!("call {number} was told that sim/{key} has another input, and it has not")
            });
        }
    }

    fn check_duplicate(&mut self, number: u32) {
        let Some(call) = self.calls.get(number as usize) else { return };
        let key = call.plan.key;
        let taken = |span: &Span| matches!(span.state, State::Running | State::Completed | State::Failed);
        if !self.saw(call, taken) {
            self.broken(Rule::OneOutcome, || {
                format!("call {number} was told that it is a duplicate, and sim/{key} was free")
            });
        }
    }

    /// Somebody must have been at it: in the store, or in the same host.
    fn check_in_progress(&mut self, number: u32, now_us: u64) {
        let Some(call) = self.calls.get(number as usize) else { return };
        let (key, began_us) = (call.plan.key, call.began_us);
        let beside = |other: &Call| {
            other.host == call.host
                && other.plan.key == key
                && !std::ptr::eq(other, call)
                && other.ended_us.is_none_or(|ended| ended >= began_us)
        };
        let busy = self.saw(call, |span| span.state == State::Running) || self.calls.iter().any(beside);
        let early = call.plan.waits && now_us.saturating_sub(began_us) < call.plan.wait_us;
        if !busy {
            self.broken(Rule::OneOutcome, || {
                format!("call {number} was told that sim/{key} is in progress, and it is not")
            });
        }
        if early {
            self.broken(Rule::Ends, || {
                format!("call {number} on sim/{key} did not wait for as long as it may")
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
            if call.answer == Some(Answer::LeaseLost) && recorded && !call.plan.unknowable {
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

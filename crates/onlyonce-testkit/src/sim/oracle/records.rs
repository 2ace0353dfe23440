//! What the store takes: who may have a lease, who may write over what.

use bytes::Bytes;
use onlyonce::Fingerprint;
use onlyonce::engine::EffectState;
use onlyonce::engine::rules::State;
use onlyonce::store::{Entry, Expect, HeaderDraft, Holder, Write};
use serde::Deserialize;

use super::calls::CrashPlan;
use super::{Arrived, Known, Oracle, Rule, Span, Trace};
use crate::sim::hosts::Hosts;
use crate::sim::link::Fate;
use crate::sim::scenario::{effect_index, key_index};
use crate::sim::sometimes::Sometimes;
use crate::sim::world::actor;

/// What the judge reads in a body.
#[derive(Deserialize, Default)]
pub(super) struct Body {
    #[serde(default)]
    value: Option<u64>,
    #[serde(default)]
    failure: Option<Failure>,
    #[serde(default)]
    effects: Vec<Effect>,
}

#[derive(Deserialize)]
struct Failure {
    message: String,
}

#[derive(Deserialize)]
struct Effect {
    name: String,
    state: EffectState,
    #[serde(default)]
    value: Option<u64>,
    #[serde(default)]
    undone: u32,
}

impl Body {
    /// The run that gave the outcome.
    fn run(&self, state: State) -> Option<u64> {
        match state {
            State::Completed => self.value,
            State::Failed => self.failure.as_ref().and_then(|failure| run_in(&failure.message)),
            State::Running | State::Released | State::Parked | State::Forgotten => None,
        }
    }

    pub(super) fn effects(&self) -> Vec<Trace> {
        let trace = |effect: &Effect| Trace {
            name: effect_index(&effect.name),
            state: effect.state,
            value: effect.value,
            undone: effect.undone,
        };
        self.effects.iter().map(trace).collect()
    }
}

/// The number of the run in a failure's message.
pub(super) fn run_in(message: &str) -> Option<u64> {
    let digits = message.trim_start_matches(|c: char| !c.is_ascii_digit());
    digits.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// A write that was taken, taken apart.
pub(super) struct Taken<'a> {
    pub(super) by: &'a Arrived,
    pub(super) key: usize,
    pub(super) version: u64,
    pub(super) header: &'a HeaderDraft,
    /// `None`: the body stays.
    pub(super) body: Option<Body>,
    expects_nothing: bool,
    /// The input the key stands for from now on, as its callers told it.
    pub(super) fingerprint: Option<Fingerprint>,
    /// What it was written over, expired or not.
    old: Option<Known>,
}

impl Taken<'_> {
    /// What was there.
    pub(super) fn before(&self) -> Option<&Known> {
        self.old.as_ref().filter(|known| !known.is_expired(self.by))
    }

    pub(super) fn is_held_by(&self, holder: &Holder) -> bool {
        self.before().is_some_and(|b| b.state == State::Running && b.holder.as_ref() == Some(holder))
    }

    fn known(&self, state: State) -> Known {
        let effects = match (&self.body, self.before()) {
            (Some(body), _) => body.effects(),
            (None, Some(before)) => before.effects.clone(),
            (None, None) => Vec::new(),
        };
        Known {
            version: self.version,
            state,
            holder: self.header.holder.clone(),
            attempts: self.header.attempts,
            due: self.header.due_in.map(|due| self.by.at.plus(due)),
            expires: self.header.keep_for.map(|keep| self.by.at.plus(keep)),
            fingerprint: self.fingerprint,
            effects,
        }
    }
}

impl Known {
    /// Nothing is recorded of it but that it was tried, so it may stand for another input.
    fn is_free(&self) -> bool {
        match self.state {
            State::Released => self.effects.is_empty(),
            State::Forgotten => true,
            State::Running | State::Completed | State::Failed | State::Parked => false,
        }
    }

    fn is_expired(&self, by: &Arrived) -> bool {
        self.expires.is_some_and(|at| at <= by.at)
    }
}

impl Oracle {
    /// The store took this write, and gave it this version.
    pub(in crate::sim) fn stored(&mut self, by: &Arrived, write: &Write, version: u64, hosts: &Hosts) {
        let key = key_index(write.key());
        if by.fate == Fate::Late {
            self.sometimes(Sometimes::LateWriteTaken);
        }
        let (header, body) = match write {
            Write::Put { draft, .. } => (&draft.header, Some(&draft.body)),
            Write::Touch { header, .. } => (header, None),
            Write::Delete { .. } => return self.deleted(by, key),
            Write::Check { .. } => return,
        };
        let body = body.map(|bytes: &Bytes| serde_json::from_slice::<Body>(bytes).unwrap_or_default());
        let old = self.keys[key].there.take();
        let expects_nothing = write.expect() == Expect::Absent;
        let mut taken = Taken { by, key, version, header, body, expects_nothing, fingerprint: None, old };
        taken.fingerprint = self.input_of(&taken);
        let goes_on = self.goes_on(&taken);
        self.close_spans(&taken, goes_on);
        self.take(&taken, hosts);
        self.open_span(&taken, goes_on);
        let state = State::from_status(header.status).unwrap_or(State::Forgotten);
        self.keys[key].there = Some(taken.known(state));
    }

    /// A claim brings its caller's input, or keeps that of unfinished work; other writes leave it as it is.
    fn input_of(&self, taken: &Taken<'_>) -> Option<Fingerprint> {
        let told = self.calls.get(taken.by.actor as usize).and_then(|call| call.plan.fingerprint);
        match State::from_status(taken.header.status) {
            Some(State::Running) if self.is_claim(taken) => {
                let unfinished = taken.before().filter(|before| !before.is_free());
                told.or_else(|| unfinished.and_then(|before| before.fingerprint))
            }
            Some(State::Forgotten) | None => None,
            Some(_) => taken.before().and_then(|before| before.fingerprint),
        }
    }

    /// Whether a write is a new lease, and not one that goes on.
    fn is_claim(&self, taken: &Taken<'_>) -> bool {
        let seen = |holder: &Holder| self.keys[taken.key].grants.iter().any(|grant| grant.holder == *holder);
        taken.body.is_some() && (taken.expects_nothing || !taken.header.holder.as_ref().is_some_and(seen))
    }

    /// Whether a write leaves its lease as it is, only longer.
    fn goes_on(&self, taken: &Taken<'_>) -> bool {
        taken.header.status == State::Running.status() && !self.is_claim(taken)
    }

    /// From now on, this is what is there.
    fn open_span(&mut self, taken: &Taken<'_>, goes_on: bool) {
        let state = State::from_status(taken.header.status).unwrap_or(State::Forgotten);
        if goes_on {
            return;
        }
        self.keys[taken.key].spans.push(Span {
            run: taken.body.as_ref().and_then(|body| body.run(state)),
            state,
            to_us: u64::MAX,
            expires: taken.header.keep_for.map(|keep| taken.by.at.plus(keep)),
            fingerprint: taken.fingerprint,
            unanswered: taken.by.fate.is_unanswered(),
            host: taken.by.host,
        });
    }

    fn close_spans(&mut self, taken: &Taken<'_>, goes_on: bool) {
        let log = &mut self.keys[taken.key];
        if let Some(span) = log.spans.last_mut().filter(|_| !goes_on) {
            span.to_us = span.to_us.min(taken.by.now_us);
        }
        if taken.old.is_some() && taken.before().is_none() {
            log.generation += 1;
            let was = taken.old.as_ref().map(|old| old.state);
            if was == Some(State::Completed) {
                self.sometimes(Sometimes::RanAfterExpiry);
            }
            self.sink.anew(taken.key);
        }
    }

    fn take(&mut self, taken: &Taken<'_>, hosts: &Hosts) {
        let state = State::from_status(taken.header.status);
        match (state, &taken.header.holder) {
            (Some(State::Running), Some(holder)) => {
                if self.is_claim(taken) {
                    self.granted(taken, holder, hosts);
                } else {
                    self.extended(taken, holder);
                }
            }
            (Some(State::Forgotten), None) => self.forgotten(taken),
            (Some(State::Completed | State::Failed | State::Released | State::Parked), Some(holder)) => {
                self.settled(taken, holder, state.unwrap_or(State::Parked));
            }
            (Some(State::Completed | State::Released | State::Parked), None) => {
                self.decided(taken, state.unwrap_or(State::Parked), hosts);
            }
            _ => self.broken(Rule::Fencing, || format!("a write that no rule knows: {:?}", taken.header)),
        }
    }

    fn deleted(&mut self, by: &Arrived, key: usize) {
        self.sometimes(Sometimes::Swept);
        let log = &mut self.keys[key];
        let there = log.there.take();
        log.deleted = true;
        log.generation += 1;
        if let Some(span) = log.spans.last_mut() {
            span.to_us = span.to_us.min(by.now_us);
        }
        self.sink.anew(key);
        // A clock that was set back between the sweep's look and its delete brings nothing back to life.
        let had_expired =
            there.as_ref().is_some_and(|there| there.expires.is_some_and(|at| at <= self.latest));
        if let Some(there) = there.filter(|_| !had_expired) {
            self.broken(Rule::NeverSilent, || {
                format!("sim/{key} was deleted while it was {:?}", there.state)
            });
        }
    }

    /// A holder is done.
    fn settled(&mut self, taken: &Taken<'_>, holder: &Holder, state: State) {
        let key = taken.key;
        let repeats = |before: &Known| before.state == state && before.holder.as_ref() == Some(holder);
        if taken.before().is_some_and(repeats) {
            // No engine of ours does it; a broken store that lets it pass has done no harm yet.
            return;
        }
        if !taken.is_held_by(holder) {
            let before = taken.before().map(|before| (before.state, before.holder.clone()));
            return self.broken(Rule::Fencing, || {
                format!("sim/{key}: {holder} wrote {state:?} over {before:?}, which it does not hold")
            });
        }
        let begun = self.grant_of(key, holder).is_some_and(|grant| grant.begun);
        let Some(body) = &taken.body else {
            self.sometimes(Sometimes::GivenBack);
            if begun {
                self.broken(Rule::NeverSilent, || {
                    format!("sim/{key}: the body of {holder} had begun, and its key was freed without an end")
                });
            }
            return;
        };
        match state {
            State::Completed | State::Failed => self.check_outcome(taken, holder, state, body),
            State::Parked => self.sometimes(Sometimes::ParkedByHolder),
            State::Running | State::Released | State::Forgotten => {}
        }
        self.check_effects(key, state, holder, &body.effects());
    }

    fn check_outcome(&mut self, taken: &Taken<'_>, holder: &Holder, state: State, body: &Body) {
        let key = taken.key;
        let Some((fence, probed)) = self.grant_of(key, holder).map(|grant| (grant.fence, grant.probed))
        else {
            return;
        };
        let by_probe = probed == Some(super::Found::Happened);
        let Some(number) = body.run(state) else {
            if !by_probe {
                self.broken(Rule::OneOutcome, || {
                    format!("sim/{key}: {holder} recorded {state:?} without a value")
                });
            }
            return;
        };
        match self.runs.get_mut(usize::try_from(number).unwrap_or(usize::MAX)) {
            Some(run) if run.key == key && run.fence == fence => run.recorded = true,
            Some(run) if run.key == key && by_probe => {}
            _ => self.broken(Rule::OneOutcome, || {
                format!("sim/{key}: {holder} recorded the value of run {number}, which is not its own")
            }),
        }
    }

    /// Somebody who has no lease decides: an arriving call parks, a person resolves.
    fn decided(&mut self, taken: &Taken<'_>, state: State, hosts: &Hosts) {
        let (key, by) = (taken.key, taken.by);
        let Some(before) = taken.before() else {
            return self.broken(Rule::NeverSilent, || format!("sim/{key}: {state:?} out of nothing"));
        };
        match before.state {
            State::Running => self.check_overdue(taken, before, hosts),
            State::Parked if by.actor == actor::ADMIN => {}
            other => {
                self.broken(Rule::OneOutcome, || format!("sim/{key}: {state:?} was written over {other:?}"));
            }
        }
        if by.actor == actor::ADMIN {
            self.sometimes(Sometimes::Resolved);
            self.take_their_word(key, state, &before.effects);
        } else {
            self.sometimes(Sometimes::Parked);
            let plan = self.calls.get(by.actor as usize).map(|call| call.plan.clone());
            let spent = plan.as_ref().and_then(|p| p.max_attempts).is_some_and(|m| before.attempts >= m);
            if plan.is_some_and(|plan| plan.crash == CrashPlan::Retry && spent) {
                self.sometimes(Sometimes::OutOfAttempts);
            }
        }
    }

    /// A person who says that it did not happen answers for it.
    fn take_their_word(&mut self, key: usize, state: State, effects: &[Trace]) {
        let unsure = |trace: &&Trace| matches!(trace.state, EffectState::Started | EffectState::Undoing);
        for trace in effects.iter().filter(|_| state == State::Released).filter(unsure) {
            self.sink.disown(key, trace.name);
        }
    }

    fn forgotten(&mut self, taken: &Taken<'_>) {
        let key = taken.key;
        if taken.before().is_some_and(|b| b.state == State::Running && b.due.is_some_and(|d| d > taken.by.at))
        {
            self.sometimes(Sometimes::ForgottenWhileRunning);
        }
        if taken.by.actor != actor::ADMIN {
            self.broken(Rule::NeverSilent, || {
                format!("sim/{key} was forgotten, and nobody had asked for it")
            });
        }
        self.keys[key].generation += 1;
        self.sink.anew(key);
    }

    /// The store did not take this write.
    pub(in crate::sim) fn refused(&mut self, by: &Arrived, write: &Write, there: Option<&Entry>) {
        let (header, is_put) = match write {
            Write::Put { draft, .. } => (&draft.header, true),
            Write::Touch { header, .. } => (header, false),
            Write::Check { .. } | Write::Delete { .. } => return,
        };
        let other = there.is_some_and(|entry| entry.header.holder != header.holder);
        let running = header.status == State::Running.status();
        if other && is_put && !running && header.holder.is_some() {
            self.sometimes(Sometimes::LateSettlementRefused);
        }
        if other && !is_put && running {
            self.sometimes(Sometimes::LateHeartbeatRefused);
        }
        if other && by.fate == Fate::Late {
            self.sometimes(Sometimes::LateWriteRefused);
        }
    }
}

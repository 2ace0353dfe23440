//! What bodies do: under which lease they begin, which effects they perform and take back.

use std::sync::Arc;

use onlyonce::engine::rules::State;
use onlyonce::engine::{EffectState, Lease};
use onlyonce::store::Holder;
use onlyonce::time::Timestamp;

use super::{Found, NOTICE_US, Oracle, Refused, Rule, Trace};
use crate::sim::hosts::Hosts;
use crate::sim::sometimes::Sometimes;
use crate::sim::world::{World, lock};

/// One run of a body.
#[derive(Debug)]
pub(in crate::sim) struct Run {
    pub(super) number: u64,
    pub(super) host: usize,
    pub(super) key: usize,
    pub(super) fence: u64,
    pub(super) lease: Option<Lease>,
    began_us: u64,
    /// The body's future is there, and not at its end.
    pub(super) body_runs: bool,
    pub(super) in_effect: bool,
    /// Of the key, when its lease was given.
    generation: u32,
    /// Its outcome was taken by the store.
    pub(super) recorded: bool,
    /// Effects it has begun.
    begun: Vec<u8>,
    /// Effects it would have to take back, in order.
    to_undo: Vec<u64>,
}

/// While it lives, the body runs.
pub(in crate::sim) struct Running {
    pub(in crate::sim) world: Arc<World>,
    pub(in crate::sim) number: u64,
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut oracle = lock(&self.world.oracle);
        if let Some(run) = oracle.run(self.number) {
            run.body_runs = false;
            run.in_effect = false;
        }
    }
}

/// A body that begins.
pub(in crate::sim) struct Begins {
    pub(in crate::sim) actor: u32,
    pub(in crate::sim) host: usize,
    pub(in crate::sim) key: usize,
    pub(in crate::sim) now_us: u64,
    pub(in crate::sim) at: Timestamp,
}

impl Oracle {
    pub(super) fn run(&mut self, number: u64) -> Option<&mut Run> {
        self.runs.get_mut(usize::try_from(number).unwrap_or(usize::MAX))
    }

    /// A body begins under this lease; gives the number of the run.
    pub(in crate::sim) fn body_begins(&mut self, begins: &Begins, lease: &Lease, hosts: &Hosts) -> u64 {
        let number = self.runs.len() as u64;
        let (key, fence) = (begins.key, lease.fence());
        let grant = self.keys[key].grants.iter().rev().find(|grant| grant.fence == fence);
        let generation = grant.map_or(self.keys[key].generation, |grant| grant.generation);
        self.runs.push(Run {
            number,
            host: begins.host,
            key,
            fence,
            lease: Some(lease.clone()),
            began_us: begins.now_us,
            body_runs: true,
            in_effect: false,
            generation,
            recorded: false,
            begun: Vec::new(),
            to_undo: Vec::new(),
        });
        if let Some(call) = self.calls.get_mut(begins.actor as usize) {
            call.run = Some(number);
        }
        if lease.is_guarded() {
            self.check_begin(begins, fence, hosts);
        } else {
            self.sometimes(Sometimes::FailedOpen);
        }
        number
    }

    fn check_begin(&mut self, begins: &Begins, fence: u64, hosts: &Hosts) {
        let key = begins.key;
        let log = &mut self.keys[key];
        let generation = log.generation;
        let Some(grant) = log.grants.iter_mut().rev().find(|grant| grant.fence == fence) else {
            return self.broken(Rule::OneWinner, || {
                format!("sim/{key}: a body began with fence {fence}, which was never given")
            });
        };
        let was_begun = std::mem::replace(&mut grant.begun, true);
        let grant = grant.clone();
        if was_begun || grant.actor != begins.actor {
            self.broken(Rule::OneWinner, || {
                format!("sim/{key}: two bodies began under the lease of {}", grant.holder)
            });
        }
        if grant.must_probe && grant.probed != Some(Found::DidNot) {
            self.broken(Rule::OnCrash, || {
                format!(
                    "sim/{key}: {} ran after a crash, and its probe said {:?}",
                    grant.holder, grant.probed
                )
            });
        }
        if grant.unanswered {
            self.sometimes(Sometimes::ClaimRecognised);
        }
        let awake = !self.clock_was_set && hosts.awake_for(begins.host, begins.now_us, NOTICE_US);
        let over = match &self.keys[key].there {
            Some(there) if there.holder.as_ref() == Some(&grant.holder) => {
                there.due.is_some_and(|due| due <= begins.at)
            }
            _ => grant.generation == generation,
        };
        if awake && over {
            self.broken(Rule::ToldInTime, || {
                format!("sim/{key}: {} began when its lease was over", grant.holder)
            });
        }
    }

    /// Whether this run has the key, as far as the store says.
    fn holds(&self, number: u64) -> Option<(&Holder, &[Trace])> {
        let run = self.runs.get(usize::try_from(number).ok()?)?;
        let log = &self.keys[run.key];
        let grant = log.grants.iter().rev().find(|grant| grant.fence == run.fence)?;
        let there = log.there.as_ref().filter(|there| there.state == State::Running)?;
        (there.holder.as_ref() == Some(&grant.holder)).then_some((&grant.holder, &there.effects[..]))
    }

    /// An effect begins: under a lease, and its record must say so.
    pub(in crate::sim) fn effect_begins(
        &mut self,
        begins: &Begins,
        number: u64,
        effect: (u8, &str),
        hosts: &Hosts,
    ) {
        let (name, effect_key) = effect;
        let Some(run) = self.run(number) else { return };
        run.in_effect = true;
        run.begun.push(name);
        let (key, fence, generation) = (run.key, run.fence, run.generation);
        if fence == 0 {
            return;
        }
        let trace = self.holds(number).map(|(_, effects)| effects.iter().copied().find(|e| e.name == name));
        let over = match trace {
            Some(_) => {
                self.keys[key].there.as_ref().is_some_and(|t| t.due.is_some_and(|due| due <= begins.at))
            }
            None => generation == self.keys[key].generation,
        };
        match trace {
            Some(Some(trace)) if trace.state == EffectState::Started => {
                self.check_effect_key(key, name, trace.undone, effect_key);
            }
            Some(trace) => self.broken(Rule::EffectsOnce, || {
                format!("sim/{key}: effect e{name} of run {number} began, and its record says {trace:?}")
            }),
            None => {}
        }
        if over && !self.clock_was_set && hosts.awake_for(begins.host, begins.now_us, NOTICE_US) {
            self.broken(Rule::ToldInTime, || {
                format!("sim/{key}: effect e{name} of run {number} began when its lease was over")
            });
        }
    }

    /// Stable across retries and takeovers, and another one once it was taken back.
    fn check_effect_key(&mut self, key: usize, name: u8, undone: u32, effect_key: &str) {
        let place = (key, name, undone);
        match self.effect_keys.iter().find(|(at, text)| *at == place || text == effect_key) {
            None => self.effect_keys.push((place, effect_key.to_owned())),
            Some((at, text)) if *at == place && text == effect_key => {}
            Some((at, text)) => {
                let text = format!("effect key {effect_key} of {place:?} is not {text} of {at:?}");
                self.broken(Rule::EffectsOnce, || text);
            }
        }
    }

    pub(in crate::sim) fn perform(
        &mut self,
        number: u64,
        name: u8,
        effect_key: &str,
    ) -> Result<u64, Refused> {
        let Some(run) = self.run(number) else { return Err(Refused) };
        let (key, fence, generation) = (run.key, run.fence, run.generation);
        let old = generation != self.keys[key].generation;
        match self.sink.perform(key, name, effect_key, fence, old) {
            Ok((done, known)) => {
                if known {
                    self.sometimes(Sometimes::EffectKeyKnown);
                }
                Ok(done)
            }
            Err(Refused) => self.refused_outside(number),
        }
    }

    /// The outside refused a fence: that of the holder must never be too low.
    fn refused_outside<T>(&mut self, number: u64) -> Result<T, Refused> {
        self.sometimes(Sometimes::FenceRefused);
        let fence = self.run(number).map_or(0, |run| run.fence);
        if fence > 0
            && let Some(holder) = self.holds(number).map(|(holder, _)| holder.clone())
        {
            self.broken(Rule::FenceRises, || {
                format!("{holder} has the key, and its fence {fence} is refused outside")
            });
        }
        Err(Refused)
    }

    pub(in crate::sim) fn mark(&mut self, number: u64) -> Result<(), Refused> {
        let Some(run) = self.run(number) else { return Err(Refused) };
        let (key, fence) = (run.key, run.fence);
        match self.sink.mark(key, number, fence) {
            Ok(()) => Ok(()),
            Err(Refused) => self.refused_outside(number),
        }
    }

    /// An effect gave this; from here on, a run that fails has to take it back.
    pub(in crate::sim) fn effect_gave(&mut self, number: u64, done: u64, undoable: bool) {
        if let Some(run) = self.run(number) {
            run.in_effect = false;
            run.to_undo.extend(Some(done).filter(|_| undoable));
        }
    }

    /// An effect is taken back: last first, and only those of this run.
    pub(in crate::sim) fn undo(&mut self, number: u64, done: u64) -> Result<(), Refused> {
        let Some(run) = self.run(number) else { return Err(Refused) };
        let (key, fence) = (run.key, run.fence);
        let place = run.to_undo.iter().rposition(|other| *other == done);
        run.to_undo.truncate(place.unwrap_or(0));
        if place.is_none() {
            self.broken(Rule::EffectsOnce, || {
                format!("sim/{key}: run {number} took effect {done} back out of turn")
            });
        }
        match self.sink.undo(key, done, fence) {
            Ok(()) => {
                self.sometimes(Sometimes::UndoRan);
                Ok(())
            }
            Err(Refused) => self.refused_outside(number),
        }
    }

    /// An undo that fails leaves its effect where it is.
    pub(in crate::sim) fn undo_failed(&mut self, number: u64) {
        self.sometimes(Sometimes::UndoFailed);
        if let Some(run) = self.run(number) {
            run.to_undo.clear();
        }
    }

    /// What a settled record says of its effects must be true outside.
    pub(super) fn check_effects(&mut self, key: usize, state: State, holder: &Holder, effects: &[Trace]) {
        match state {
            State::Completed => self.check_in_force(key, effects),
            State::Failed | State::Released => {
                let fence = self.keys[key].grants.iter().rev().find(|g| g.holder == *holder).map(|g| g.fence);
                let left = self.runs.iter().filter(|run| run.key == key && Some(run.fence) == fence);
                let left: Vec<u64> = left
                    .flat_map(|run| &run.to_undo)
                    .copied()
                    .filter(|done| !self.sink.is_undone(*done))
                    .collect();
                self.check_begun(key, holder, effects);
                if !left.is_empty() {
                    self.broken(Rule::EffectsOnce, || {
                        format!("sim/{key}: {holder} failed, and its effects {left:?} were not taken back")
                    });
                }
            }
            State::Running | State::Parked | State::Forgotten => {}
        }
    }

    /// A record that is unsure about an effect that nobody began would be parked for nothing.
    fn check_begun(&mut self, key: usize, holder: &Holder, effects: &[Trace]) {
        let found = self.grant_of(key, holder).map(|grant| grant.unsure.clone()).unwrap_or_default();
        for trace in effects.iter().filter(|trace| trace.state == EffectState::Started) {
            let name = trace.name;
            if !found.contains(&name)
                && !self.runs.iter().any(|run| run.key == key && run.begun.contains(&name))
            {
                self.broken(Rule::NeverSilent, || {
                    format!("sim/{key}: {holder} says that effect e{name} was begun, and it was not")
                });
            }
        }
    }

    fn check_in_force(&mut self, key: usize, effects: &[Trace]) {
        if !self.sink.takes_keys {
            return;
        }
        for trace in effects.iter().filter(|trace| trace.state == EffectState::Done) {
            let in_force = self.sink.in_force(key, trace.name);
            if in_force != 1 || trace.value.is_some_and(|number| self.sink.is_undone(number)) {
                let name = trace.name;
                return self.broken(Rule::EffectsOnce, || {
                    format!("sim/{key} is done, and effect e{name} is in force {in_force} times")
                });
            }
        }
    }

    /// The same, once nothing is under way any more: a late worker may have come since.
    pub(in crate::sim) fn check_effects_at_the_end(&mut self) {
        for key in 0..self.keys.len() {
            let there = self.keys[key].there.as_ref().filter(|there| there.state == State::Completed);
            if let Some(effects) = there.map(|there| there.effects.clone()) {
                self.check_in_force(key, &effects);
            }
        }
    }

    /// What the outside says of a call's work; `knows`: it can tell.
    pub(in crate::sim) fn probe_call(&mut self, actor: u32, key: usize, knows: bool) -> (Found, Option<u64>) {
        let marked = self.sink.marked(key);
        let found = match marked {
            _ if !knows => Found::CannotTell,
            Some(_) => Found::Happened,
            None => Found::DidNot,
        };
        self.count_probe(found);
        let grant = self.keys[key].grants.iter_mut().rev().find(|grant| grant.actor == actor);
        if let Some(grant) = grant {
            grant.probed = Some(found);
        }
        (found, marked)
    }

    /// What the outside says of one effect.
    pub(in crate::sim) fn probe_effect(&mut self, effect_key: &str, knows: bool) -> (Found, Option<u64>) {
        let in_force = self.sink.in_force_by_key(effect_key);
        let found = match in_force {
            _ if !knows => Found::CannotTell,
            Some(_) => Found::Happened,
            None => Found::DidNot,
        };
        self.count_probe(found);
        (found, in_force)
    }

    fn count_probe(&mut self, found: Found) {
        self.sometimes(match found {
            Found::Happened => Sometimes::ProbeHappened,
            Found::DidNot => Sometimes::ProbeDidNot,
            Found::CannotTell => Sometimes::ProbeCannotTell,
        });
    }

    /// A call lost its lease: was there a body to be stopped?
    pub(super) fn count_lost(&mut self, number: u32, now_us: u64) {
        let Some(call) = self.calls.get(number as usize) else { return };
        let Some(run) = call.run.and_then(|run| self.runs.get(usize::try_from(run).ok()?)) else { return };
        let spent = now_us.saturating_sub(run.began_us) >= call.plan.total_us;
        self.sometimes(Sometimes::BodyCancelled);
        if spent {
            self.sometimes(Sometimes::LeaseSpent);
        }
    }

    /// A host dies: what of it was under way.
    pub(in crate::sim) fn count_crash(&mut self, host: usize) {
        let (body, effect) = self
            .runs
            .iter()
            .filter(|run| run.host == host)
            .fold((false, false), |(body, effect), run| (body | run.body_runs, effect | run.in_effect));
        if body {
            self.sometimes(Sometimes::CrashInBody);
        }
        if effect {
            self.sometimes(Sometimes::CrashInEffect);
        }
    }

    /// Whether a body of this host runs.
    pub(in crate::sim) fn runs_a_body(&self, host: usize) -> bool {
        self.runs.iter().any(|run| run.host == host && run.body_runs)
    }
}

//! The end of a schedule: nothing goes wrong any more, and everything must come right.

use std::time::Duration;

use onlyonce::{OnDuplicate, OnFailure, Policy};

use super::oracle::{Answer, CrashPlan, Rule};
use super::run::{Run, Seat};
use super::scenario::{Admin, CallPlan, Style};
use super::world::{actor, lock};

impl Run<'_> {
    pub(super) fn play(&mut self) {
        // Each part begins only when the one before it has gone well.
        let _ = self.until_idle()
            && self.nobody_hangs()
            && self.every_key_has_an_end()
            && self.nothing_is_left_open()
            && self.everything_is_true()
            && self.everything_stops();
    }

    fn is_fine(&self) -> bool {
        lock(&self.world.oracle).violation.is_none()
    }

    /// With nothing left to happen, no call may still be waiting for something.
    fn nobody_hangs(&mut self) -> bool {
        let hanging = self.tasks.live().find(|task| task.actor != actor::BACKGROUND).map(|task| task.actor);
        if let Some(actor) = hanging {
            self.world.broken(Rule::Ends, || format!("call {actor} waits for something that never comes"));
        }
        self.is_fine()
    }

    /// A fresh call for each key ends with an outcome; a parked one, once somebody has decided.
    fn every_key_has_an_end(&mut self) -> bool {
        self.world.calm_down();
        (self.server.paused_until_us, self.server.down_until_us) = (0, 0);
        lock(&self.world.hosts).reconnect();
        self.world.say(|| "from here on nothing goes wrong".to_owned());
        let slot = self.seats.len();
        self.seats.push(None);
        self.start_host(slot);
        for key in 0..self.scenario.scripts.len() {
            let crash =
                self.scenario.calls.iter().find(|call| call.key == key).map_or(CrashPlan::Retry, |c| c.crash);
            self.one_key_has_an_end(slot, key, crash);
            if !self.is_fine() {
                return false;
            }
        }
        true
    }

    fn one_key_has_an_end(&mut self, slot: usize, key: usize, crash: CrashPlan) {
        let mut resolved = false;
        for _ in 0..3 {
            let plan = self.patient_call(key, crash, OnDuplicate::Wait);
            match self.ask(slot, plan) {
                Some(Answer::Parked) if !resolved => {
                    resolved = true;
                    self.admin(slot, Admin::Resolve { key, verdict: 1 });
                    if !self.until_idle() {
                        return;
                    }
                }
                // An effect that happened, and whose value nobody knows: the next run finds it done.
                Some(Answer::Failed(_)) => {}
                Some(Answer::Value { .. } | Answer::FailedBefore(_) | Answer::NotStored) => return,
                other => {
                    let what = move || format!("a fresh call on sim/{key} came to no outcome: {other:?}");
                    return self.world.broken(Rule::Ends, what);
                }
            }
        }
    }

    /// Makes a call, and waits for its answer.
    fn ask(&mut self, slot: usize, plan: CallPlan) -> Option<Answer> {
        let number = self.make_call(slot, plan)?;
        if !self.until_idle() {
            return None;
        }
        lock(&self.world.oracle).calls.get(number as usize)?.answer.clone()
    }

    fn patient_call(&self, key: usize, crash: CrashPlan, duplicate: OnDuplicate) -> CallPlan {
        let lease = Duration::from_micros(self.scenario.lease_us * 4);
        let long = Duration::from_secs(3600);
        let policy = Policy::default().lease(lease).keep(long).wait(long).on_duplicate(duplicate);
        CallPlan {
            at_us: 0,
            slot: 0,
            key,
            crash,
            max_attempts: None,
            fingerprint: None,
            duplicate,
            failure: OnFailure::Unlock,
            total_us: u64::MAX,
            wait_us: 0,
            open: false,
            style: Style::Run,
            cancel_us: None,
            policy,
        }
    }

    /// No host thinks that something is still under way.
    fn nothing_is_left_open(&mut self) -> bool {
        for slot in 0..self.seats.len() {
            let Some(Seat { host, engine: Some(engine) }) = self.seats.get(slot).and_then(Option::as_ref)
            else {
                continue;
            };
            let (host, leases) = (*host, engine.live_leases());
            if leases > 0 {
                self.world.broken(Rule::Ends, || format!("w{host} still holds {leases} leases"));
                return false;
            }
            let key = slot % self.scenario.scripts.len();
            let plan = self.patient_call(key, CrashPlan::Retry, OnDuplicate::Return);
            match self.ask(slot, plan) {
                Some(
                    Answer::Value { .. }
                    | Answer::Failed(_)
                    | Answer::FailedBefore(_)
                    | Answer::NotStored
                    | Answer::Parked,
                ) => {}
                other => {
                    let what = || format!("w{host} cannot call sim/{key} any more: {other:?}");
                    self.world.broken(Rule::Ends, what);
                    return false;
                }
            }
        }
        self.is_fine()
    }

    fn everything_is_true(&mut self) -> bool {
        let at = self.server.now();
        let mut oracle = lock(&self.world.oracle);
        for key in 0..self.scenario.scripts.len() {
            let truth = self.server.shown(self.world.mutant, key);
            let truth = truth.as_ref().map(|entry| (entry.version.get(), entry.header.status.as_str()));
            oracle.check_truth(key, truth, at);
        }
        oracle.check_promises();
        oracle.check_effects_at_the_end();
        drop(oracle);
        self.is_fine()
    }

    /// Without engines, nothing runs on.
    fn everything_stops(&mut self) -> bool {
        lock(&self.world.oracle).let_go();
        self.seats.clear();
        let _ = self.until_idle();
        let left = self.tasks.live().count();
        if left > 0 {
            self.world.broken(Rule::Ends, || format!("{left} tasks outlive their engines"));
        }
        self.is_fine()
    }
}

//! Leases: who may have one, over what, and until when.

use std::time::Duration;

use onlyonce::Lease;
use onlyonce::engine::EffectState;
use onlyonce::engine::rules::State;
use onlyonce::store::Holder;

use super::calls::CrashPlan;
use super::records::{Body, Taken};
use super::{Grant, Known, NOTICE_US, Oracle, Rule};
use crate::sim::hosts::Hosts;
use crate::sim::link::Fate;
use crate::sim::sometimes::Sometimes;

impl Oracle {
    /// Somebody has a new lease.
    pub(super) fn granted(&mut self, taken: &Taken<'_>, holder: &Holder, hosts: &Hosts) {
        let (key, by) = (taken.key, taken.by);
        let over = taken.before().map(|before| before.state);
        self.check_claim(taken, holder, hosts);
        let log = &mut self.keys[key];
        let (highest, deleted) = (log.highest_fence, log.deleted);
        let crash = self.calls.get(by.actor as usize).map(|call| call.plan.crash);
        let over_crash = matches!(over, Some(State::Running | State::Parked));
        let unsure = taken.before().map(|before| {
            let begun = before.effects.iter().filter(|trace| trace.state == EffectState::Started);
            begun.map(|trace| trace.name).collect()
        });
        let unsure = unsure.unwrap_or_default();
        let log = &mut self.keys[key];
        log.grants.push(Grant {
            fence: taken.version,
            holder: holder.clone(),
            actor: by.actor,
            unanswered: by.fate.is_unanswered(),
            must_probe: over_crash && crash == Some(CrashPlan::Probe),
            probed: None,
            begun: false,
            beat_failed: false,
            generation: log.generation,
            unsure,
        });
        log.highest_fence = highest.max(taken.version);
        log.deleted = false;
        if taken.version <= highest {
            self.broken(Rule::FenceRises, || {
                format!("sim/{key}: {holder} has fence {}, and {highest} was given before", taken.version)
            });
        }
        if deleted && highest > 0 {
            self.sometimes(Sometimes::FenceRoseOverDelete);
        }
        if by.fate == Fate::Late {
            self.sometimes(Sometimes::GhostClaim);
        }
        match over {
            Some(State::Running) => {
                self.sometimes(Sometimes::Takeover);
                let waited =
                    self.calls.get(by.actor as usize).is_some_and(|call| call.waits_since(by.now_us));
                if waited {
                    self.sometimes(Sometimes::WaitedThenTookOver);
                }
            }
            Some(State::Released) => self.sometimes(Sometimes::RanAfterFailure),
            _ => {}
        }
    }

    /// Whether this key could be claimed, by this call.
    fn check_claim(&mut self, taken: &Taken<'_>, holder: &Holder, hosts: &Hosts) {
        let (key, by) = (taken.key, taken.by);
        let attempts = taken.before().map_or(1, |before| before.attempts + 1);
        if taken.header.attempts != attempts {
            let got = taken.header.attempts;
            self.broken(Rule::OnCrash, || {
                format!("sim/{key}: attempt {got} follows attempt {}", attempts - 1)
            });
        }
        let Some(before) = taken.before() else { return };
        let plan = self.calls.get(by.actor as usize).map(|call| call.plan.clone());
        let crash = plan.as_ref().map(|plan| plan.crash);
        match before.state {
            State::Completed | State::Failed => self.broken(Rule::OneOutcome, || {
                format!("sim/{key} is {:?}, and {holder} claimed it", before.state)
            }),
            State::Running => {
                self.check_overdue(taken, before, hosts);
                let spent = plan.and_then(|p| p.max_attempts).is_some_and(|most| before.attempts >= most);
                if crash == Some(CrashPlan::Park) || (crash == Some(CrashPlan::Retry) && spent) {
                    self.broken(Rule::OnCrash, || {
                        format!("sim/{key}: {holder} took over a crash that its policy parks")
                    });
                }
            }
            State::Parked if crash != Some(CrashPlan::Probe) => self.broken(Rule::OnCrash, || {
                format!("sim/{key} is parked, and {holder} claimed it without a probe")
            }),
            State::Parked | State::Released | State::Forgotten => {}
        }
        if before.effects.iter().any(|trace| trace.state == EffectState::Started)
            && crash == Some(CrashPlan::Retry)
        {
            self.sometimes(Sometimes::EffectBegunAgain);
        }
        let kept = matches!(before.state, State::Running | State::Parked | State::Released);
        let effects = taken.body.as_ref().map(Body::effects).unwrap_or_default();
        if kept && effects != before.effects {
            self.broken(Rule::EffectsOnce, || format!("sim/{key}: {holder} lost the trace of its effects"));
        }
        let other_input = matches!((before.fingerprint, taken.fingerprint), (Some(a), Some(b)) if a != b);
        if other_input && matches!(before.state, State::Running | State::Parked) {
            self.broken(Rule::OneOutcome, || format!("sim/{key}: {holder} took it over with another input"));
        }
    }

    /// A lease that is replaced must be over, and its holder must know.
    pub(super) fn check_overdue(&mut self, taken: &Taken<'_>, before: &Known, hosts: &Hosts) {
        let (key, now_us) = (taken.key, taken.by.now_us);
        let holder = before.holder.clone();
        let who = move || holder.as_ref().map_or_else(|| "nobody".to_owned(), Holder::to_string);
        if before.due.is_some_and(|due| due > self.latest) {
            let left = before.due.map(|due| due.since(self.latest));
            self.broken(Rule::OneWinner, || {
                format!("sim/{key}: the lease of {} was replaced {left:?} before its end", who())
            });
        }
        if self.clock_was_set {
            return;
        }
        // A body whose key was forgotten under it learns of that by its next heartbeat, not by the clock.
        let is_replaced = |lease: &Lease| lease.is_guarded() && lease.holder() == who();
        let untold = self.runs.iter().find(|run| {
            run.key == key
                && run.body_runs
                && hosts.awake_for(run.host, now_us, NOTICE_US)
                && run.lease.as_ref().is_some_and(|lease| is_replaced(lease) && !lease.is_lost())
        });
        if let Some(run) = untold.map(|run| run.number) {
            self.broken(Rule::ToldInTime, || {
                format!("sim/{key}: the lease of {} ran out, and the body of run {run} was not told", who())
            });
        }
    }

    /// A holder goes on.
    pub(super) fn extended(&mut self, taken: &Taken<'_>, holder: &Holder) {
        let key = taken.key;
        if !taken.is_held_by(holder) {
            self.broken(Rule::Fencing, || format!("sim/{key}: {holder} extended what it does not hold"));
        }
        if taken.header.due_in == Some(Duration::ZERO) {
            self.sometimes(Sometimes::DroppedBody);
        }
        if taken.body.is_none()
            && let Some(grant) = self.grant_of(key, holder)
            && std::mem::take(&mut grant.beat_failed)
        {
            self.sometimes(Sometimes::HeartbeatRecovered);
        }
    }

    /// The last lease of this holder.
    pub(super) fn grant_of(&mut self, key: usize, holder: &Holder) -> Option<&mut Grant> {
        self.keys[key].grants.iter_mut().rev().find(|grant| grant.holder == *holder)
    }

    /// A heartbeat of this holder did not get through.
    pub(in crate::sim) fn beat_failed(&mut self, key: usize, holder: &Holder) {
        if let Some(grant) = self.grant_of(key, holder) {
            grant.beat_failed = true;
        }
    }
}

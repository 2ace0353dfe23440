//! What all parts of one schedule share: virtual time, what happens next, the dice.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use onlyonce::time::BoxFuture;

use super::clock::{ServerClock, Wall};
use super::hosts::Hosts;
use super::link::Net;
use super::mutants::Mutant;
use super::oracle::Oracle;
use super::scenario::{NetPlan, Scenario};
use super::trace::Trace;
use crate::chance::SeededChance;

/// One lock, never contended: a schedule has one thread.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Who is being polled: the number of a call, or one of these.
pub(super) mod actor {
    /// Heartbeats, and what dropped calls leave behind.
    pub(crate) const BACKGROUND: u32 = u32::MAX;
    /// Somebody at the keyboard.
    pub(crate) const ADMIN: u32 = u32::MAX - 1;
    /// The run itself.
    pub(crate) const NOBODY: u32 = u32::MAX - 2;
}

/// What happens at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Next {
    /// A timer rings; its slot and its number.
    Ring(u32, u32),
    /// A request reaches the server.
    Apply(u32),
    /// The second half of a request that a broken store does in two steps.
    Finish(u32),
    /// An answer reaches its host.
    Reply(u32),
    /// A call begins.
    Call(u32),
    /// A call's future is dropped.
    Cancel(u32),
    /// A fault begins or ends.
    Fault(u32),
    /// A host stops for so long.
    Pause(u32, u64),
    /// A paused host goes on.
    Resume(u32),
    /// A host dies.
    Die(u32),
}

#[derive(Default)]
pub(super) struct Agenda {
    heap: BinaryHeap<Reverse<(u64, u32, Next)>>,
    number: u32,
    timers: Vec<(u32, Option<Waker>)>,
    free: Vec<u32>,
}

impl Agenda {
    pub(super) fn at(&mut self, at_us: u64, next: Next) {
        self.number += 1;
        self.heap.push(Reverse((at_us, self.number, next)));
    }

    fn timer(&mut self, at_us: u64, waker: Waker) -> (u32, u32) {
        self.number += 1;
        let number = self.number;
        let slot = match self.free.pop() {
            Some(slot) => {
                self.timers[slot as usize] = (number, Some(waker));
                slot
            }
            None => {
                self.timers.push((number, Some(waker)));
                u32::try_from(self.timers.len() - 1).unwrap_or(u32::MAX)
            }
        };
        self.heap.push(Reverse((at_us, number, Next::Ring(slot, number))));
        (slot, number)
    }

    fn is_live(&self, next: Next) -> bool {
        match next {
            Next::Ring(slot, number) => {
                self.timers.get(slot as usize).is_some_and(|(now, waker)| *now == number && waker.is_some())
            }
            _ => true,
        }
    }

    /// When the next thing happens; timers nobody waits for do not count.
    pub(super) fn peek(&mut self) -> Option<u64> {
        while let Some(Reverse((at, _, next))) = self.heap.peek().copied() {
            if self.is_live(next) {
                return Some(at);
            }
            self.heap.pop();
        }
        None
    }

    pub(super) fn pop(&mut self) -> Option<(u64, Next)> {
        self.peek()?;
        self.heap.pop().map(|Reverse((at, _, next))| (at, next))
    }

    pub(super) fn ring(&mut self, slot: u32) -> Option<Waker> {
        let waker = self.timers.get_mut(slot as usize)?.1.take();
        self.free.push(slot);
        waker
    }

    fn cancel(&mut self, (slot, number): (u32, u32)) {
        if let Some(timer) = self.timers.get_mut(slot as usize)
            && timer.0 == number
            && timer.1.take().is_some()
        {
            self.free.push(slot);
        }
    }

    fn renew(&mut self, (slot, number): (u32, u32), waker: &Waker) {
        if let Some((now, Some(old))) = self.timers.get_mut(slot as usize)
            && *now == number
            && !old.will_wake(waker)
        {
            old.clone_from(waker);
        }
    }
}

/// What all parts of one schedule share.
pub(super) struct World {
    pub(super) dice: SeededChance,
    pub(super) mutant: Option<Mutant>,
    pub(super) net_plan: NetPlan,
    now_us: Arc<AtomicU64>,
    actor: AtomicU32,
    agenda: Mutex<Agenda>,
    spawned: Mutex<Vec<(usize, BoxFuture<'static, ()>)>>,
    pub(super) hosts: Mutex<Hosts>,
    pub(super) net: Mutex<Net>,
    pub(super) oracle: Mutex<Oracle>,
    pub(super) trace: Trace,
    pub(super) server_clock: ServerClock,
    /// Nothing goes wrong any more.
    calm: AtomicBool,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").field("seed", &self.dice.seed()).finish_non_exhaustive()
    }
}

impl World {
    pub(super) fn new(dice: SeededChance, scenario: &Scenario, mutant: Option<Mutant>, trace: Trace) -> Self {
        let now_us: Arc<AtomicU64> = Arc::default();
        let oracle =
            Oracle::new(scenario.scripts.len(), scenario.sink_takes_keys, scenario.sink_takes_fences);
        Self {
            dice,
            mutant,
            net_plan: scenario.net.clone(),
            server_clock: ServerClock::new(now_us.clone(), Wall::new(0, scenario.server_fast_ppm)),
            calm: AtomicBool::new(false),
            now_us,
            actor: AtomicU32::new(actor::NOBODY),
            agenda: Mutex::default(),
            spawned: Mutex::default(),
            hosts: Mutex::default(),
            net: Mutex::default(),
            oracle: Mutex::new(oracle),
            trace,
        }
    }

    pub(super) fn now_us(&self) -> u64 {
        self.now_us.load(Ordering::Relaxed)
    }

    pub(super) fn is_calm(&self) -> bool {
        self.calm.load(Ordering::Relaxed)
    }

    pub(super) fn calm_down(&self) {
        self.calm.store(true, Ordering::Relaxed);
    }

    pub(super) fn move_to(&self, at_us: u64) {
        if at_us > self.now_us() {
            self.now_us.store(at_us, Ordering::Relaxed);
        }
    }

    pub(super) fn actor(&self) -> u32 {
        self.actor.load(Ordering::Relaxed)
    }

    pub(super) fn set_actor(&self, actor: u32) {
        self.actor.store(actor, Ordering::Relaxed);
    }

    pub(super) fn agenda(&self) -> MutexGuard<'_, Agenda> {
        lock(&self.agenda)
    }

    pub(super) fn after(&self, us: u64, next: Next) {
        self.agenda().at(self.now_us() + us, next);
    }

    pub(super) fn is(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    pub(super) fn spawn(&self, host: usize, task: BoxFuture<'static, ()>) {
        lock(&self.spawned).push((host, task));
    }

    pub(super) fn spawned(&self) -> Option<(usize, BoxFuture<'static, ()>)> {
        lock(&self.spawned).pop()
    }

    pub(super) fn timer(&self, at_us: u64, waker: Waker) -> (u32, u32) {
        self.agenda().timer(at_us, waker)
    }

    pub(super) fn renew_timer(&self, timer: (u32, u32), waker: &Waker) {
        self.agenda().renew(timer, waker);
    }

    pub(super) fn cancel_timer(&self, timer: (u32, u32)) {
        self.agenda().cancel(timer);
    }

    /// One line of the trace, when there is one.
    pub(super) fn say(&self, line: impl FnOnce() -> String) {
        self.trace.say(self.now_us(), line);
    }

    /// Lets go of what would keep this world alive for ever.
    pub(super) fn tear_down(&self) {
        while self.spawned().is_some() {}
        let held = lock(&self.oracle).let_go();
        drop(held);
        let ops = std::mem::take(&mut lock(&self.net).ops);
        drop(ops);
        let timers = std::mem::take(&mut self.agenda().timers);
        drop(timers);
    }
}

//! One schedule, from its seed to its verdict.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll};

use onlyonce::Engine;
use onlyonce::time::Clock;

use super::body::{self, Caller, text_of};
use super::clock::{HostClock, Wall};
use super::hosts::HostTasks;
use super::link::Link;
use super::mutants::Mutant;
use super::oracle::{CallFacts, Rule};
use super::scenario::{Admin, CallPlan, Fault, Scenario, Script, Style};
use super::server::Server;
use super::sometimes::Sometimes;
use super::tasks::{Task, Tasks, Wakers};
use super::world::{Next, World, actor, lock};
use super::{Options, Report};
use crate::chance::SeededChance;
use crate::sim::trace::Trace;

/// More steps than any schedule needs; one that takes more does not end.
const MOST_STEPS: u64 = 30_000;
/// How long a task that is ready may be kept from running while its host is awake.
const MOST_STALL_US: u64 = 150;

/// A host that is running, and its engine, once it is used.
pub(super) struct Seat {
    pub(super) host: usize,
    pub(super) engine: Option<Engine>,
}

/// One schedule under way.
pub(super) struct Run<'w> {
    pub(super) world: Arc<World>,
    pub(super) server: Server,
    pub(super) scenario: Arc<Scenario>,
    scripts: Vec<Arc<Script>>,
    wakers: &'w Wakers,
    pub(super) tasks: Tasks,
    pub(super) seats: Vec<Option<Seat>>,
    faults: Vec<Fault>,
    pub(super) steps: u64,
    busy_since_us: u64,
}

impl<'w> Run<'w> {
    pub(super) fn new(wakers: &'w Wakers, seed: u64, options: &Options) -> Self {
        let scenario = Arc::new(Scenario::draw(&SeededChance::new(seed).fork(1)));
        let dice = SeededChance::new(seed);
        let world = World::new(dice, &scenario, options.mutant, Trace::new(options.trace));
        let server = Server::new(world.server_clock.clone());
        wakers.ready.clear();
        let mut run = Self {
            world: Arc::new(world),
            server,
            scripts: scenario.scripts.iter().cloned().map(Arc::new).collect(),
            wakers,
            tasks: Tasks::default(),
            seats: Vec::new(),
            faults: scenario.faults.iter().map(|(_, fault)| *fault).collect(),
            scenario,
            steps: 0,
            busy_since_us: 0,
        };
        run.set_the_stage();
        run
    }

    fn set_the_stage(&mut self) {
        self.world.say(|| format!("{:#?}", self.scenario));
        for slot in 0..self.scenario.slots {
            self.seats.push(None);
            self.start_host(slot);
        }
        let scenario = self.scenario.clone();
        let mut agenda = self.world.agenda();
        for (number, call) in (0..).zip(&scenario.calls) {
            agenda.at(call.at_us, Next::Call(number));
        }
        for (number, (at_us, _)) in (0..).zip(&scenario.faults) {
            agenda.at(*at_us, Next::Fault(number));
        }
    }

    pub(super) fn start_host(&mut self, slot: usize) {
        let world = &self.world;
        let off_ms = i64::try_from(world.dice.below(20_000)).unwrap_or(0) - 10_000;
        let host = lock(&world.hosts).start(world.now_us(), Wall::new(off_ms, 0));
        world.say(|| format!("w{host} starts in slot {slot}"));
        if let Some(seat) = self.seats.get_mut(slot) {
            *seat = Some(Seat { host, engine: None });
        }
    }

    /// The host in this slot, and its engine.
    pub(super) fn engine_in(&mut self, slot: usize) -> Option<(usize, Engine)> {
        let world = &self.world;
        let seat = self.seats.get_mut(slot)?.as_mut()?;
        let host = seat.host;
        let (wall, behind_us) =
            lock(&world.hosts).get(host).map(|host| (host.wall.clone(), host.behind_us.clone()))?;
        let engine = seat.engine.get_or_insert_with(|| {
            let name = format!("w{host}");
            Engine::builder(Link { world: world.clone(), host })
                .clock(Arc::new(HostClock { world: world.clone(), wall, behind_us }))
                .chance(Arc::new(world.dice.fork(100 + host as u64)))
                .tasks(Arc::new(HostTasks { world: world.clone(), host }))
                .worker(name)
                .build()
        });
        Some((host, engine.clone()))
    }

    /// Runs until nothing is left to do; says whether it got there.
    pub(super) fn until_idle(&mut self) -> bool {
        while self.step() {
            if lock(&self.world.oracle).violation.is_some() {
                return false;
            }
            if self.steps > MOST_STEPS {
                let left = self.tasks.live().count();
                self.world
                    .broken(Rule::Ends, || format!("after {MOST_STEPS} steps, {left} tasks still go on"));
                return false;
            }
        }
        true
    }

    /// One task, or one event; `false`: there is neither.
    fn step(&mut self) -> bool {
        self.seat_spawned();
        let runnable = self.tasks.runnable(&self.wakers.ready);
        let next = self.world.agenda().peek();
        let now = self.world.now_us();
        if runnable == 0 {
            self.busy_since_us = next.unwrap_or(now);
        }
        let may_wait = next.is_some_and(|at| at.saturating_sub(self.busy_since_us) <= MOST_STALL_US);
        if runnable > 0 && !(may_wait && self.world.dice.happens(150)) {
            self.steps += 1;
            let rank = if runnable == 1 { 0 } else { self.world.dice.below(runnable) };
            if let Some(task) = self.tasks.nth_runnable(&self.wakers.ready, rank) {
                self.poll(task);
            }
            self.busy_since_us = now;
            return true;
        }
        let Some((at, next)) = self.world.agenda().pop() else { return false };
        self.world.move_to(at);
        self.steps += 1;
        self.happen(next);
        true
    }

    fn seat_spawned(&mut self) {
        let mut spawned = false;
        while let Some((host, future)) = self.world.spawned() {
            spawned = true;
            self.add(Task { future, host, actor: actor::BACKGROUND });
        }
        if spawned {
            self.block();
        }
    }

    pub(super) fn add(&mut self, task: Task) {
        if !self.tasks.add(task, &self.wakers.ready) {
            self.world.broken(Rule::Ends, || "more tasks than a schedule should have".to_owned());
        }
    }

    fn block(&mut self) {
        let hosts = lock(&self.world.hosts);
        self.tasks.block(|host| hosts.is_paused(host));
    }

    fn poll(&mut self, at: usize) {
        self.wakers.ready.unset(at);
        let Some(mut task) = self.tasks.list.get_mut(at).and_then(Option::take) else { return };
        self.world.set_actor(task.actor);
        self.world.trace.mark(self.world.now_us() << 10 | at as u64);
        let mut cx = Context::from_waker(self.wakers.of(at));
        let polled = catch_unwind(AssertUnwindSafe(|| task.future.as_mut().poll(&mut cx)));
        self.world.set_actor(actor::NOBODY);
        match polled {
            Ok(Poll::Pending) => self.tasks.list[at] = Some(task),
            Ok(Poll::Ready(())) => drop(task),
            Err(panic) => {
                let text = text_of(&*panic).unwrap_or("(no message)").to_owned();
                self.world.broken(Rule::NoPanic, || format!("the engine panicked: {text}"));
            }
        }
    }

    fn happen(&mut self, next: Next) {
        match next {
            Next::Ring(slot, _) => {
                let waker = self.world.agenda().ring(slot);
                if let Some(waker) = waker {
                    waker.wake();
                }
            }
            Next::Apply(id) => self.server.apply(&self.world, id),
            Next::Finish(id) => self.server.finish(&self.world, id),
            Next::Reply(id) => self.world.reply(id),
            Next::Call(number) => self.begin_call(number),
            Next::Cancel(number) => self.cancel(number),
            Next::Fault(number) => {
                if let Some(fault) = self.faults.get(number as usize).copied() {
                    self.world.say(|| format!("fault: {fault:?}"));
                    self.fault(fault);
                }
            }
            Next::Resume(host) => self.resume(host as usize),
            Next::Pause(host, us) => self.pause(host as usize, us),
            Next::Die(host) => self.die(host as usize),
        }
    }

    fn begin_call(&mut self, number: u32) {
        let scenario = self.scenario.clone();
        let Some(plan) = scenario.calls.get(number as usize) else { return };
        self.make_call(plan.slot, plan.clone());
    }

    /// Makes a call in this slot; `None`: nobody sits there.
    pub(super) fn make_call(&mut self, slot: usize, plan: CallPlan) -> Option<u32> {
        let (host, engine) = self.engine_in(slot)?;
        let world = self.world.clone();
        let facts = CallFacts {
            key: plan.key,
            crash: plan.crash,
            max_attempts: plan.max_attempts,
            fingerprint: plan.fingerprint,
            waits: plan.duplicate == onlyonce::OnDuplicate::Wait,
            wait_us: plan.wait_us,
            unknowable: plan.style == Style::OwnTransaction,
            total_us: plan.total_us,
            open: plan.open,
        };
        let began = (world.now_us(), world.server_clock.now());
        let number = lock(&world.oracle).call_begins(facts, host, began.0, began.1);
        world.say(|| {
            format!("w{host}: call {number} on sim/{}: {:?} {:?}", plan.key, plan.style, plan.policy)
        });
        if let Some(at_us) = plan.cancel_us {
            world.agenda().at(at_us.max(began.0), Next::Cancel(number));
        }
        let script = self.scripts.get(plan.key)?.clone();
        let caller = Caller { world, host, number, script };
        self.add(Task { future: Box::pin(body::call(caller, engine, plan)), host, actor: number });
        self.block();
        Some(number)
    }

    /// Drops a call's future, as a timeout around it does.
    fn cancel(&mut self, number: u32) {
        if let Some(task) = self.tasks.of_actor(number) {
            if lock(&self.world.hosts).is_paused(task.host) {
                // Nothing happens in a host that is paused.
                self.add(task);
                return;
            }
            self.world.say(|| format!("call {number} is dropped"));
            lock(&self.world.oracle).call_dropped(number, self.world.now_us());
            drop(task);
        }
    }

    fn host_in(&self, slot: usize) -> Option<usize> {
        self.seats.get(slot)?.as_ref().map(|seat| seat.host)
    }

    fn fault(&mut self, fault: Fault) {
        let now = self.world.now_us();
        match fault {
            Fault::Crash { slot, back_us } => self.crash(slot, back_us),
            Fault::Restart { slot } => self.start_host(slot),
            Fault::Pause { slot, us } => {
                if let Some(host) = self.host_in(slot) {
                    self.pause(host, us);
                }
            }
            Fault::Cut { slot, us } => self.on_host(slot, |host| host.cut_until_us = now + us),
            Fault::Deaf { slot, us } => self.on_host(slot, |host| host.deaf_until_us = now + us),
            Fault::HostClock { slot, ms } => self.on_host(slot, |host| host.wall.jump(ms)),
            Fault::ServerPause { us } => self.server.paused_until_us = now + us,
            Fault::ServerDown { us } => self.server.down_until_us = now + us,
            Fault::ServerClock { ms } => {
                self.server.jump(ms);
                let mut oracle = lock(&self.world.oracle);
                oracle.clock_was_set = true;
                oracle.clock_went_back |= ms < 0;
            }
            Fault::Admin { slot, what } => self.admin(slot, what),
        }
    }

    fn on_host(&self, slot: usize, change: impl FnOnce(&mut super::hosts::Host)) {
        if let Some(host) = self.host_in(slot)
            && let Some(host) = lock(&self.world.hosts).get_mut(host)
        {
            change(host);
        }
    }

    pub(super) fn admin(&mut self, slot: usize, what: Admin) {
        let Some((host, engine)) = self.engine_in(slot) else { return };
        let future = Box::pin(body::admin(self.world.clone(), engine, what));
        self.add(Task { future, host, actor: actor::ADMIN });
        self.block();
    }

    /// `kill -9`: what is under way in the network goes on, everything else is gone.
    fn crash(&mut self, slot: usize, back_us: Option<u64>) {
        let Some(seat) = self.seats.get_mut(slot).and_then(Option::take) else { return };
        if let Some(host) = lock(&self.world.hosts).get_mut(seat.host) {
            host.alive = false;
            host.paused_us = None;
        }
        lock(&self.world.oracle).count_crash(seat.host);
        let dead = self.tasks.of_host(seat.host);
        drop(dead);
        drop(seat);
        if let Some(us) = back_us {
            self.faults.push(Fault::Restart { slot });
            let number = u32::try_from(self.faults.len() - 1).unwrap_or(u32::MAX);
            self.world.after(us, Next::Fault(number));
        }
    }

    /// A host dies at a moment of the script's choosing, and comes back.
    fn die(&mut self, host: usize) {
        let slot = self.seats.iter().position(|seat| seat.as_ref().is_some_and(|seat| seat.host == host));
        if let Some(slot) = slot {
            self.world.say(|| format!("w{host} dies"));
            self.crash(slot, Some(self.world.dice.below(self.scenario.lease_us)));
        }
    }

    fn pause(&mut self, at: usize, us: u64) {
        let now = self.world.now_us();
        self.world.say(|| format!("w{at} stops for {us} us"));
        if let Some(host) = lock(&self.world.hosts).get_mut(at)
            && host.paused_us.is_none()
        {
            host.paused_us = Some(now);
            self.world.after(us, Next::Resume(u32::try_from(at).unwrap_or(u32::MAX)));
        }
        if us > self.scenario.lease_us && lock(&self.world.oracle).runs_a_body(at) {
            self.world.sometimes(Sometimes::PausedPastLease);
        }
        self.block();
    }

    fn resume(&mut self, host: usize) {
        let stops = self.world.is(Mutant::ClockStops);
        self.world.say(|| format!("w{host} goes on"));
        let now = self.world.now_us();
        if let Some(host) = lock(&self.world.hosts).get_mut(host) {
            host.resume(now, stops);
        }
        self.block();
    }

    /// The verdict.
    pub(super) fn report(mut self, seed: u64) -> Report {
        self.play();
        let tasks = std::mem::take(&mut self.tasks);
        drop(tasks);
        self.seats.clear();
        self.world.tear_down();
        let mut oracle = lock(&self.world.oracle);
        if let Some(violation) = &oracle.violation {
            self.world.say(|| format!("BROKEN: {}: {}", violation.rule.name(), violation.what));
        }
        Report {
            seed,
            violation: oracle.violation.take(),
            steps: self.steps,
            hash: self.world.trace.hash(),
            counts: oracle.counts.clone(),
            trace: self.world.trace.take_text(),
        }
    }
}

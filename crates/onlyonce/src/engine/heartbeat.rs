//! One heartbeat task per engine, for all its leases.
//!
//! Leases register in a slab; the task looks through it when something is due and extends what is due
//! together, as concurrent commits that the store may group. One lost lease never fails its neighbours, and a
//! slow store never keeps the task from noticing that a lease has run out.

use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::Notify;

use super::Inner;
use super::lease::{Held, micros};
use super::record::whose;
use super::rules::{self, Standing};
use crate::chance::jitter;
use crate::store::{Commit, Write};
use crate::telemetry;

/// Beats under way at once; more wait their turn.
const AT_ONCE: usize = 512;

/// How long after a look with nothing to do the next one is, in a time when leases come and go.
const IDLE_US: u64 = 1_000_000;

/// All leases of one engine.
#[derive(Debug)]
pub(crate) struct Heart {
    leases: Mutex<Leases>,
    wake: Notify,
    /// When the task will look next; `u64::MAX`: when it is woken.
    planned_us: AtomicU64,
    started: AtomicBool,
}

#[derive(Default)]
struct Leases {
    slots: Vec<Option<Arc<Held>>>,
    free: Vec<u32>,
    /// Some came since the last look.
    came: bool,
}

impl std::fmt::Debug for Leases {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Leases").field("live", &(self.slots.len() - self.free.len())).finish()
    }
}

/// What a look through the leases found.
struct Look {
    due: Vec<Arc<Held>>,
    next_us: u64,
}

impl Heart {
    pub(crate) fn new() -> Self {
        Self {
            leases: Mutex::default(),
            wake: Notify::new(),
            planned_us: AtomicU64::new(u64::MAX),
            started: AtomicBool::new(false),
        }
    }

    fn leases(&self) -> MutexGuard<'_, Leases> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn live(&self) -> usize {
        let leases = self.leases();
        leases.slots.len() - leases.free.len()
    }

    /// Keeps this lease alive from now on.
    pub(crate) fn add(&self, held: &Arc<Held>) {
        let slot = self.leases().add(held.clone());
        held.slot.store(slot, Ordering::Relaxed);
        if !self.started.swap(true, Ordering::AcqRel) {
            let task = beat_all(held.engine.heart.clone(), Arc::downgrade(&held.engine));
            held.engine.tasks.spawn(Box::pin(task));
        }
        if held.next_beat_us() < self.planned_us.load(Ordering::Acquire) {
            self.wake.notify_one();
        }
    }

    /// Lets go of this lease.
    pub(crate) fn remove(&self, held: &Held) {
        held.over.store(true, Ordering::Release);
        let slot = held.slot.swap(u32::MAX, Ordering::Relaxed);
        if slot != u32::MAX {
            self.leases().remove(slot);
        }
    }

    /// Ends the task; the engine is gone.
    pub(crate) fn stop(&self) {
        self.wake.notify_one();
    }

    /// Finds what is due, declares lost what has run out, and says when to look again.
    fn look(&self, now_us: u64) -> Look {
        let mut leases = self.leases();
        let mut look = Look { due: Vec::new(), next_us: u64::MAX };
        let mut finest_us = IDLE_US;
        for held in leases.slots.iter().flatten() {
            let (beat, deadline) = (held.next_beat_us(), held.deadline_us());
            finest_us = finest_us.min(micros(held.policy.beat_every()) / 20);
            if now_us >= deadline {
                held.lose();
                held.beat_at(u64::MAX);
            } else if now_us >= beat {
                held.beat_at(u64::MAX);
                look.due.push(held.clone());
                // Should this beat hang, its neighbours' next ones are still looked after.
                look.next_us = look.next_us.min(deadline).min(now_us + micros(held.policy.beat_every()) / 2);
            } else {
                look.next_us = look.next_us.min(beat).min(deadline);
            }
        }
        // Where leases come and go faster than they beat, a look now and then is enough: without a plan, each that
        // comes would wake this task.
        if std::mem::take(&mut leases.came) && look.next_us == u64::MAX {
            look.next_us = now_us + IDLE_US;
        }
        // Beats that fall due close together go out together.
        look.next_us = look.next_us.max(now_us + finest_us.max(500));
        self.planned_us.store(look.next_us, Ordering::Release);
        look
    }
}

impl Leases {
    fn add(&mut self, held: Arc<Held>) -> u32 {
        self.came = true;
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(held);
                slot
            }
            None => {
                self.slots.push(Some(held));
                u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
            }
        }
    }

    fn remove(&mut self, slot: u32) {
        if let Some(place) = self.slots.get_mut(slot as usize)
            && place.take().is_some()
        {
            self.free.push(slot);
        }
    }
}

/// The one task: looks, beats what is due, waits for the next thing to happen.
async fn beat_all(heart: Arc<Heart>, engine: Weak<Inner>) {
    let mut under_way = FuturesUnordered::new();
    let mut queue = Vec::new();
    loop {
        let woken = heart.wake.notified();
        let mut timer = {
            let Some(engine) = engine.upgrade() else { return };
            let look = heart.look(micros(engine.clock.monotonic()));
            queue.extend(look.due);
            (look.next_us < u64::MAX).then(|| engine.clock.sleep_until(Duration::from_micros(look.next_us)))
        };
        let mut woken = pin!(woken);
        // Until it is time to look again.
        loop {
            while under_way.len() < AT_ONCE
                && let Some(held) = queue.pop()
            {
                // A store that panics fails its own lease, and not the heartbeat of all others.
                under_way.push(AssertUnwindSafe(beat(held)).catch_unwind().map(drop));
            }
            let look_again = poll_fn(|cx| {
                if woken.as_mut().poll(cx).is_ready()
                    || timer.as_mut().is_some_and(|t| t.as_mut().poll(cx).is_ready())
                {
                    return Poll::Ready(true);
                }
                match under_way.poll_next_unpin(cx) {
                    Poll::Ready(Some(())) => Poll::Ready(queue.is_empty() && under_way.is_empty()),
                    Poll::Ready(None) | Poll::Pending => Poll::Pending,
                }
            });
            if look_again.await {
                break;
            }
        }
    }
}

/// Extends one lease.
async fn beat(held: Arc<Held>) {
    let engine = &held.engine;
    let every = held.policy.beat_every();
    let now = engine.clock.monotonic();
    // Somebody else writes right now: that write extends the lease too, or ends it.
    let Ok(mut work) = held.work.try_lock() else { return held.beat_at(micros(now + every / 4)) };
    if held.over.load(Ordering::Acquire) || held.is_lost() || held.is_spent(micros(now)) {
        return;
    }
    let write = Write::Touch { key: held.key.clone(), expect: work.version, header: held.running() };
    match engine.store.commit(vec![write]).await {
        Ok(Commit::Stored(versions)) => {
            work.version = versions.first().copied().unwrap_or(work.version);
            held.extended(now);
            held.beat_at(micros(now + every));
            telemetry::heartbeat_extended(held.key.as_str());
        }
        Ok(Commit::Conflict(there)) => {
            let there = there.into_iter().next().flatten();
            match rules::standing(&held.holder, whose(there.as_ref())) {
                Standing::Mine => {
                    work.version = there.map_or(work.version, |entry| entry.version);
                    held.beat_at(micros(engine.clock.monotonic()));
                }
                Standing::Settled => held.mark_settled(),
                Standing::Lost => held.lose(),
            }
        }
        Err(error) => {
            engine.stats.heartbeat_failed();
            telemetry::heartbeat_failed(held.key.as_str(), &error);
            held.beat_at(micros(engine.clock.monotonic() + jitter(&*engine.chance, every / 4)));
        }
    }
}

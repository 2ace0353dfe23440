//! A small executor: one thread, and the dice decide who runs next.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Wake, Waker};

const WORDS: usize = 4;
/// Tasks a schedule may have in all.
pub(super) const MOST_TASKS: usize = WORDS * 64;

/// Who is ready to run: a set, so that the order of wake-ups says nothing.
///
/// Some of what the engine is built on wakes in an order of its own chance. Nothing may depend on it.
#[derive(Debug, Default)]
pub(super) struct Ready([AtomicU64; WORDS]);

impl Ready {
    pub(super) fn set(&self, task: usize) {
        self.0[task / 64].fetch_or(1 << (task % 64), Ordering::Relaxed);
    }

    pub(super) fn unset(&self, task: usize) {
        self.0[task / 64].fetch_and(!(1 << (task % 64)), Ordering::Relaxed);
    }

    pub(super) fn clear(&self) {
        self.0.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }

    /// Those that may run.
    fn words(&self, blocked: &[u64; WORDS]) -> [u64; WORDS] {
        std::array::from_fn(|at| self.0[at].load(Ordering::Relaxed) & !blocked[at])
    }
}

struct TaskWaker {
    ready: Arc<Ready>,
    task: usize,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.ready.set(self.task);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ready.set(self.task);
    }
}

/// One waker per task, made once and used by every schedule.
#[derive(Debug)]
pub(super) struct Wakers {
    pub(super) ready: Arc<Ready>,
    list: Vec<Waker>,
}

impl Wakers {
    pub(super) fn new() -> Self {
        let ready = Arc::new(Ready::default());
        let waker = |task| Waker::from(Arc::new(TaskWaker { ready: ready.clone(), task }));
        Self { list: (0..MOST_TASKS).map(waker).collect(), ready }
    }

    pub(super) fn of(&self, task: usize) -> &Waker {
        &self.list[task]
    }
}

/// A future of one host.
pub(super) struct Task {
    pub(super) future: Pin<Box<dyn Future<Output = ()>>>,
    pub(super) host: usize,
    pub(super) actor: u32,
}

/// The tasks of one schedule.
#[derive(Default)]
pub(super) struct Tasks {
    pub(super) list: Vec<Option<Task>>,
    blocked: [u64; WORDS],
}

impl Tasks {
    /// `false`: there is no room.
    pub(super) fn add(&mut self, task: Task, ready: &Ready) -> bool {
        let at = self.list.iter().position(Option::is_none).unwrap_or(self.list.len());
        if at >= MOST_TASKS {
            return false;
        }
        if at == self.list.len() {
            self.list.push(None);
        }
        self.list[at] = Some(task);
        ready.set(at);
        true
    }

    /// Keeps the tasks of paused hosts from running.
    pub(super) fn block(&mut self, is_paused: impl Fn(usize) -> bool) {
        self.blocked = [0; WORDS];
        for (at, task) in self.list.iter().enumerate() {
            if task.as_ref().is_some_and(|task| is_paused(task.host)) {
                self.blocked[at / 64] |= 1 << (at % 64);
            }
        }
    }

    /// How many may run now.
    pub(super) fn runnable(&self, ready: &Ready) -> u64 {
        ready.words(&self.blocked).iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// The one with this rank among those that may run.
    pub(super) fn nth_runnable(&self, ready: &Ready, mut rank: u64) -> Option<usize> {
        for (at, mut word) in ready.words(&self.blocked).into_iter().enumerate() {
            let ones = u64::from(word.count_ones());
            if rank >= ones {
                rank -= ones;
                continue;
            }
            for _ in 0..rank {
                word &= word - 1;
            }
            return Some(at * 64 + word.trailing_zeros() as usize);
        }
        None
    }

    /// Takes out every task of this host.
    pub(super) fn of_host(&mut self, host: usize) -> Vec<Task> {
        let theirs = |place: &mut Option<Task>| {
            if place.as_ref().is_some_and(|task| task.host == host) { place.take() } else { None }
        };
        self.list.iter_mut().filter_map(theirs).collect()
    }

    /// Takes out the task of this actor.
    pub(super) fn of_actor(&mut self, actor: u32) -> Option<Task> {
        let place = self.list.iter_mut().find(|p| p.as_ref().is_some_and(|task| task.actor == actor))?;
        place.take()
    }

    pub(super) fn live(&self) -> impl Iterator<Item = &Task> {
        self.list.iter().flatten()
    }
}

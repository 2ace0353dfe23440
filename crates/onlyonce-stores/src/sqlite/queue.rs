//! A queue between callers and a thread, and the threads themselves.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::trouble::Trouble;

/// Jobs that wait for a thread.
///
/// Not bounded: each job is a caller that waits for its answer, so callers bound it.
#[derive(Debug)]
pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    filled: Condvar,
}

#[derive(Debug)]
struct State<T> {
    jobs: VecDeque<T>,
    /// Threads that wait for a job; a push wakes one only if there is one to wake.
    idle: usize,
    /// How many jobs they wait for.
    wanted: usize,
    closed: bool,
}

impl<T> Queue<T> {
    pub(super) fn new() -> Self {
        let state = State { jobs: VecDeque::new(), idle: 0, wanted: 1, closed: false };
        Self { state: Mutex::new(state), filled: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a job, and says whether a thread was idle; gives the job back when the queue is closed.
    pub(super) fn push(&self, job: T) -> Result<bool, T> {
        let mut state = self.lock();
        if state.closed {
            return Err(job);
        }
        state.jobs.push_back(job);
        let (idle, enough) = (state.idle > 0, state.jobs.len() >= state.wanted);
        drop(state);
        if idle && enough {
            self.filled.notify_one();
        }
        Ok(idle)
    }

    /// Waits until there are so many jobs, but no longer than `limit`; for a queue of one thread.
    pub(super) fn gather(&self, wanted: usize, limit: Duration) {
        let mut state = self.lock();
        state.idle += 1;
        state.wanted = wanted;
        let few = |state: &mut State<T>| state.jobs.len() < wanted && !state.closed;
        let (mut state, _) =
            self.filled.wait_timeout_while(state, limit, few).unwrap_or_else(PoisonError::into_inner);
        state.idle -= 1;
        state.wanted = 1;
    }

    /// Waits for jobs and moves the first ones, for as long as they fit; `false`: closed, and all are done.
    pub(super) fn take(&self, into: &mut Vec<T>, mut fits: impl FnMut(&T) -> bool) -> bool {
        let mut state = self.lock();
        while state.jobs.is_empty() {
            if state.closed {
                return false;
            }
            state.idle += 1;
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
        while state.jobs.front().is_some_and(&mut fits) {
            into.extend(state.jobs.pop_front());
        }
        true
    }

    /// No more jobs come; those that wait are still done.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_all();
    }

    /// No more jobs come, and those that wait are dropped.
    pub(super) fn abandon(&self) {
        let mut state = self.lock();
        state.closed = true;
        let dropped = std::mem::take(&mut state.jobs);
        drop(state);
        drop(dropped);
        self.filled.notify_all();
    }
}

/// The threads of one store.
#[derive(Debug)]
pub(super) struct Threads {
    /// Each thread has a copy, and drops it last.
    alive: Option<Sender<Infallible>>,
    gone: Mutex<Receiver<Infallible>>,
}

impl Threads {
    pub(super) fn new() -> Self {
        let (alive, gone) = channel();
        Self { alive: Some(alive), gone: Mutex::new(gone) }
    }

    pub(super) fn spawn(&self, name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), Trouble> {
        let alive = self.alive.clone();
        let thread = std::thread::Builder::new().name(name.to_owned());
        let started = thread.spawn(move || {
            run();
            drop(alive);
        });
        started
            .map(drop)
            .map_err(|e| Trouble::unavailable(format!("the system gives no more threads: {e}; try again")))
    }

    /// Waits until all threads have ended, up to `limit`; then they end by themselves.
    pub(super) fn wait(&mut self, limit: Duration) {
        self.alive = None;
        let gone = self.gone.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = gone.recv_timeout(limit);
    }
}

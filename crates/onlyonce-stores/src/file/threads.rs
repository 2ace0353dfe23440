//! A few threads of the store's own, for work that waits for the disk.
//!
//! They start when there is work and none is free, and end with the store. No runtime is needed around.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use onlyonce::store::StoreErrorKind::Unavailable;

use super::trouble::Trouble;

type Work = Box<dyn FnOnce() + Send>;

#[derive(Debug)]
pub(super) struct Threads {
    shared: Arc<Shared>,
    most: usize,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Work>,
    threads: usize,
    idle: usize,
    closed: bool,
}

impl Threads {
    /// At most so many threads; none yet.
    pub(super) fn new(most: usize) -> Self {
        Self { shared: Arc::default(), most }
    }

    /// Runs `work` on one of the threads, in the order it came.
    pub(super) fn run(&self, work: impl FnOnce() + Send + 'static) -> Result<(), Trouble> {
        let mut state = self.shared.lock();
        state.waiting.push_back(Box::new(work));
        if state.idle >= state.waiting.len() {
            self.shared.wake.notify_one();
        } else if state.threads < self.most {
            self.start_one(&mut state)?;
        }
        Ok(())
    }

    fn start_one(&self, state: &mut State) -> Result<(), Trouble> {
        let shared = Arc::clone(&self.shared);
        let started =
            std::thread::Builder::new().name("onlyonce-file".to_owned()).spawn(move || shared.serve());
        match started {
            Ok(_) => state.threads += 1,
            // The threads there are will get to it.
            Err(_) if state.threads > 0 => {}
            Err(error) => {
                state.waiting.pop_back();
                return Err(Trouble::new(
                    Unavailable,
                    format!("the system gave the store no thread: {error}"),
                ));
            }
        }
        Ok(())
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.wake.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self) {
        while let Some(work) = self.next() {
            // Whoever waits for an answer sees that none came; the thread goes on for the others.
            let _ = catch_unwind(AssertUnwindSafe(work));
        }
    }

    /// The next piece of work; `None` when the store is gone and all is done.
    fn next(&self) -> Option<Work> {
        let mut state = self.lock();
        loop {
            if let Some(work) = state.waiting.pop_front() {
                return Some(work);
            }
            if state.closed {
                return None;
            }
            state.idle += 1;
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("waiting", &self.waiting.len()).field("threads", &self.threads).finish()
    }
}

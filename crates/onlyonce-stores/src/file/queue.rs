//! Writes stand in line per shard; those that stand there together share one wait for the directory.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onlyonce::time::{Clock, Timestamp};
use tokio::sync::oneshot;

use super::locked::{Done, Locked};
use super::root::{Root, Shard};
use super::trouble::Trouble;

/// The line before one shard.
#[derive(Default)]
pub(super) struct Queue {
    line: Mutex<Line>,
}

#[derive(Default)]
struct Line {
    waiting: Vec<Box<dyn Asked>>,
    /// A thread is on its way to serve the line.
    served: bool,
}

impl Queue {
    /// Puts `work` in line; `true` when the caller has to send a thread.
    pub(super) fn push<T, F>(&self, work: F) -> (Answer<T>, bool)
    where
        T: Send + 'static,
        F: FnOnce(&mut Locked<'_>, Timestamp) -> Result<Done<T>, Trouble> + Send + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        let begun = Arc::new(AtomicBool::new(false));
        let ask = Ask { work: Some(work), done: None, begun: Arc::clone(&begun), sender };
        let mut line = self.lock();
        line.waiting.push(Box::new(ask));
        let send = !std::mem::replace(&mut line.served, true);
        (Answer { receiver, begun }, send)
    }

    /// Serves the line until it is empty; whether anything was written goes to `changed`.
    pub(super) fn serve(&self, root: &Root, shard: Shard, clock: &dyn Clock, changed: impl Fn()) {
        let mut serving = Serving { queue: self, done: false };
        while let Some(batch) = serving.next() {
            if run(batch, root, shard, clock) {
                changed();
            }
        }
    }

    /// Tells everybody in line that no thread will come.
    pub(super) fn refuse(&self, trouble: &Trouble) {
        let mut line = self.lock();
        line.served = false;
        let waiting = std::mem::take(&mut line.waiting);
        drop(line);
        waiting.into_iter().for_each(|ask| ask.refuse(trouble));
    }

    fn lock(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").field("waiting", &self.lock().waiting.len()).finish()
    }
}

/// A thread at the head of the line; a panic must not leave the line unserved for ever.
struct Serving<'a> {
    queue: &'a Queue,
    done: bool,
}

impl Serving<'_> {
    fn next(&mut self) -> Option<Vec<Box<dyn Asked>>> {
        let mut line = self.queue.lock();
        if line.waiting.is_empty() {
            line.served = false;
            self.done = true;
            return None;
        }
        Some(std::mem::take(&mut line.waiting))
    }
}

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.queue.lock().served = false;
        }
    }
}

/// Does what the batch asks, then waits for the disk once, then answers; `true` when anything was written.
fn run(mut batch: Vec<Box<dyn Asked>>, root: &Root, shard: Shard, clock: &dyn Clock) -> bool {
    let mut locked = match Locked::new(root, shard) {
        Ok(locked) => locked,
        Err(trouble) => {
            batch.into_iter().for_each(|ask| ask.refuse(&trouble));
            return false;
        }
    };
    for ask in &mut batch {
        ask.run(&mut locked, clock.now());
    }
    let settled = locked.settle();
    drop(locked);
    // Each must have its answer, so no short cut.
    batch.into_iter().fold(false, |wrote, ask| ask.answer(&settled) | wrote)
}

/// Something asked of a locked shard.
trait Asked: Send {
    fn run(&mut self, shard: &mut Locked<'_>, now: Timestamp);
    fn answer(self: Box<Self>, settled: &Result<(), Trouble>) -> bool;
    fn refuse(self: Box<Self>, trouble: &Trouble);
}

struct Ask<T, F> {
    work: Option<F>,
    done: Option<Result<Done<T>, Trouble>>,
    begun: Arc<AtomicBool>,
    sender: oneshot::Sender<Result<T, Trouble>>,
}

impl<T, F> Asked for Ask<T, F>
where
    T: Send,
    F: FnOnce(&mut Locked<'_>, Timestamp) -> Result<Done<T>, Trouble> + Send,
{
    fn run(&mut self, shard: &mut Locked<'_>, now: Timestamp) {
        if let Some(work) = self.work.take()
            && !self.begun.swap(true, Ordering::AcqRel)
        {
            self.done = Some(work(shard, now));
        }
    }

    fn answer(self: Box<Self>, settled: &Result<(), Trouble>) -> bool {
        let (answer, wrote) = match (self.done, settled) {
            (None, _) => return false,
            (Some(Err(trouble)), _) => (Err(trouble), false),
            (Some(Ok(done)), Ok(())) => (Ok(done.answer), done.wrote),
            (Some(Ok(done)), Err(trouble)) if done.wrote => (Err(trouble.clone().or_not()), true),
            (Some(Ok(_)), Err(trouble)) => (Err(trouble.clone()), false),
        };
        // Nobody to tell: the caller was dropped, and what was done stays done.
        let _ = self.sender.send(answer);
        wrote
    }

    fn refuse(self: Box<Self>, trouble: &Trouble) {
        let _ = self.sender.send(Err(trouble.clone()));
    }
}

/// What the asker waits for.
#[derive(Debug)]
pub(super) struct Answer<T> {
    pub(super) receiver: oneshot::Receiver<Result<T, Trouble>>,
    begun: Arc<AtomicBool>,
}

impl<T> Answer<T> {
    /// Takes the question back; `false` when it is too late for that.
    pub(super) fn take_back(&self) -> bool {
        !self.begun.swap(true, Ordering::AcqRel)
    }
}

//! The line between one worker and the store: watched, and cut where a scenario says so.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use onlyonce::Key;
use onlyonce::store::{
    Commit, Entry, Expect, Glimpse, Page, Scan, Store, StoreError, StoreFacts, TakeDue, Version, Write,
};
use tokio::sync::watch;

/// What goes wrong on the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Does not happen, and the worker is told so.
    Unavailable,
    /// Does not happen, and the worker cannot know.
    LostRequest,
    /// Happens, and the worker cannot know.
    LostReply,
    /// Happens once the wire lets go.
    HeldRequest,
    /// Happens at once; the answer comes once the wire lets go.
    HeldReply,
    /// Is larger than the store takes, it says.
    TooLarge,
}

/// What a worker asks the store for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// A first claim: a put over nothing.
    Create,
    /// A put over what is there: a takeover, an effect, a settlement.
    Replace,
    /// A heartbeat, or the end of a lease whose body was dropped.
    Touch,
    /// A delete.
    Delete,
    /// A read.
    Read,
    /// A scan.
    Scan,
}

impl Ask {
    fn of(writes: &[Write]) -> Self {
        match writes.first() {
            Some(Write::Put { expect: Expect::Absent, .. }) => Self::Create,
            Some(Write::Touch { .. }) => Self::Touch,
            Some(Write::Delete { .. }) => Self::Delete,
            Some(Write::Put { .. } | Write::Check { .. }) | None => Self::Replace,
        }
    }
}

impl Ask {
    fn only_looks(self) -> bool {
        matches!(self, Self::Read | Self::Scan)
    }
}

/// How many operations of all workers the store has not answered yet.
#[derive(Clone, Debug)]
pub(super) struct Traffic {
    under_way: watch::Sender<usize>,
}

impl Traffic {
    pub(super) fn new() -> Self {
        Self { under_way: watch::Sender::new(0) }
    }

    pub(super) fn is_still(&self) -> bool {
        *self.under_way.borrow() == 0
    }

    pub(super) async fn until_still(&self) {
        // The sender lives in `self`, so this cannot fail.
        let _ = self.under_way.subscribe().wait_for(|many| *many == 0).await;
    }

    fn enter(&self) -> Passing {
        self.under_way.send_modify(|many| *many += 1);
        Passing { traffic: self.clone() }
    }
}

/// One operation under way; it may be dropped before its answer.
struct Passing {
    traffic: Traffic,
}

impl Drop for Passing {
    fn drop(&mut self) {
        self.traffic.under_way.send_modify(|many| *many -= 1);
    }
}

#[derive(Debug)]
struct Rule {
    ask: Option<Ask>,
    fault: Fault,
    left: u32,
}

/// What a scenario does to one worker's line, and sees on it.
#[derive(Debug)]
pub struct Wire {
    traffic: Traffic,
    rules: Mutex<Vec<Rule>>,
    asked: Mutex<Vec<Ask>>,
    is_cut: AtomicBool,
    held: watch::Sender<usize>,
    released: watch::Sender<u64>,
}

impl Wire {
    pub(super) fn new(traffic: Traffic) -> Arc<Self> {
        Arc::new(Self {
            traffic,
            rules: Mutex::default(),
            asked: Mutex::default(),
            is_cut: AtomicBool::new(false),
            held: watch::Sender::new(0),
            released: watch::Sender::new(0),
        })
    }

    fn rules(&self) -> MutexGuard<'_, Vec<Rule>> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn asked(&self) -> MutexGuard<'_, Vec<Ask>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next so many of these go wrong like this.
    pub fn fail(&self, ask: Ask, fault: Fault, times: u32) {
        self.rules().push(Rule { ask: Some(ask), fault, left: times });
    }

    /// Whatever comes next goes wrong like this, so many times.
    pub fn fail_any(&self, fault: Fault, times: u32) {
        self.rules().push(Rule { ask: None, fault, left: times });
    }

    /// Nothing goes wrong any more.
    pub fn mend(&self) {
        self.rules().clear();
        self.is_cut.store(false, Ordering::Release);
    }

    /// From now on nothing reaches the store and no answer comes back: the worker is as good as dead.
    pub fn cut(&self) {
        self.is_cut.store(true, Ordering::Release);
    }

    /// Lets go of what is held.
    pub fn let_go(&self) {
        self.released.send_modify(|times| *times += 1);
    }

    /// Resolves once so many operations are held.
    pub async fn until_held(&self, many: usize) {
        let _ = self.held.subscribe().wait_for(|held| *held >= many).await;
    }

    /// What was asked since the last time, in order.
    pub fn take_asked(&self) -> Vec<Ask> {
        std::mem::take(&mut *self.asked())
    }

    /// How many of these were asked since [`take_asked`](Wire::take_asked).
    pub fn count(&self, ask: Ask) -> usize {
        self.asked().iter().filter(|asked| **asked == ask).count()
    }

    /// Whether nothing is about to go wrong; a glance is not to see round a broken line.
    fn is_whole(&self) -> bool {
        !self.is_cut.load(Ordering::Acquire) && self.rules().iter().all(|rule| rule.left == 0)
    }

    fn fault_for(&self, ask: Ask) -> Option<Fault> {
        let mut rules = self.rules();
        let rule = rules.iter_mut().find(|rule| rule.left > 0 && rule.ask.is_none_or(|only| only == ask))?;
        rule.left -= 1;
        match rule.fault {
            // What only looks can be asked again: nothing of it is ever uncertain.
            Fault::LostRequest | Fault::LostReply if ask.only_looks() => Some(Fault::Unavailable),
            fault => Some(fault),
        }
    }

    async fn hold(&self) {
        let mut released = self.released.subscribe();
        self.held.send_modify(|many| *many += 1);
        let _ = released.changed().await;
        self.held.send_modify(|many| *many -= 1);
    }

    async fn pass<T>(
        &self,
        ask: Ask,
        run: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        if self.is_cut.load(Ordering::Acquire) {
            return std::future::pending().await;
        }
        self.asked().push(ask);
        self.faulty(self.fault_for(ask), run).await
    }

    async fn faulty<T>(
        &self,
        fault: Option<Fault>,
        run: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        match fault {
            None => self.counted(run).await,
            Some(Fault::Unavailable) => Err(StoreError::unavailable("the wire is down; try again")),
            Some(Fault::TooLarge) => Err(StoreError::too_large("the wire takes no such load")),
            Some(Fault::LostRequest) => Err(StoreError::uncertain("no reply; read back")),
            Some(Fault::LostReply) => {
                self.counted(run).await?;
                Err(StoreError::uncertain("no reply; read back"))
            }
            Some(Fault::HeldRequest) => {
                self.hold().await;
                self.counted(run).await
            }
            Some(Fault::HeldReply) => {
                let answer = self.counted(run).await;
                self.hold().await;
                answer
            }
        }
    }

    async fn counted<T>(&self, run: impl Future<Output = T>) -> T {
        let _passing = self.traffic.enter();
        run.await
    }
}

/// A store at the other end of a [`Wire`].
#[derive(Debug)]
pub(super) struct Wired {
    pub(super) store: Arc<dyn Store>,
    pub(super) wire: Arc<Wire>,
}

#[async_trait]
impl Store for Wired {
    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<Entry>>, StoreError> {
        self.wire.pass(Ask::Read, self.store.read(keys)).await
    }

    async fn commit(&self, writes: Vec<Write>) -> Result<Commit, StoreError> {
        self.wire.pass(Ask::of(&writes), self.store.commit(writes)).await
    }

    async fn take_due(&self, take: TakeDue) -> Result<Vec<Entry>, StoreError> {
        self.wire.pass(Ask::Replace, self.store.take_due(take)).await
    }

    async fn scan(&self, scan: Scan) -> Result<Page, StoreError> {
        self.wire.pass(Ask::Scan, self.store.scan(scan)).await
    }

    async fn changed(&self, key: &Key, seen: Version) {
        self.store.changed(key, seen).await;
    }

    fn glance(&self, key: &Key) -> Option<Glimpse> {
        if self.wire.is_whole() { self.store.glance(key) } else { None }
    }

    fn facts(&self) -> StoreFacts {
        self.store.facts()
    }
}

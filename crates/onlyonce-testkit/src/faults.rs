//! A store that fails on purpose: as told, or by seeded chance.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use onlyonce::Key;
use onlyonce::store::{Commit, Entry, Page, Scan, Store, StoreError, StoreFacts, TakeDue, Version, Write};
use onlyonce::time::Clock;
use tokio::sync::watch;

use crate::chance::SeededChance;

/// What goes wrong with one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: this one goes through.
    Pass,
    /// The call waits so long before it reaches the store.
    Delay(Duration),
    /// `Unavailable`; it did not happen.
    Refuse,
    /// `Uncertain`; it did not happen.
    LoseRequest,
    /// `Uncertain`; it happened.
    LoseReply,
    /// It happens twice, and the answer is the second one's: it finds what the first one did.
    Repeat,
    /// It does not reach the store before [`FaultyStore::release`].
    Hang,
    /// It happens, and the answer comes no sooner than [`FaultyStore::release`].
    HangReply,
    /// `Uncertain` at once; it happens at [`FaultyStore::land`], long after the caller has given up.
    Late,
}

/// Which operation of a store is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// [`Store::read`].
    Read,
    /// [`Store::commit`].
    Commit,
    /// [`Store::take_due`].
    TakeDue,
    /// [`Store::scan`].
    Scan,
    /// Whichever comes.
    Any,
}

/// A call as it was asked, for those who choose by what is in it.
#[derive(Clone, Debug)]
pub enum Asked {
    /// [`Store::read`].
    Read(Vec<Key>),
    /// [`Store::commit`].
    Commit(Vec<Write>),
    /// [`Store::take_due`].
    TakeDue(TakeDue),
    /// [`Store::scan`].
    Scan(Scan),
}

impl Asked {
    fn call(&self) -> Call {
        match self {
            Self::Read(_) => Call::Read,
            Self::Commit(_) => Call::Commit,
            Self::TakeDue(_) => Call::TakeDue,
            Self::Scan(_) => Call::Scan,
        }
    }

    fn writes(&self) -> bool {
        matches!(self, Self::Commit(_) | Self::TakeDue(_))
    }
}

/// How often, in a thousand calls, each fault happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// [`Fault::Delay`], by a random part of `longest_delay`.
    pub delay: u32,
    /// The longest delay.
    pub longest_delay: Duration,
    /// [`Fault::Refuse`].
    pub refuse: u32,
    /// [`Fault::LoseRequest`].
    pub lose_request: u32,
    /// [`Fault::LoseReply`].
    pub lose_reply: u32,
    /// [`Fault::Repeat`].
    pub repeat: u32,
    /// [`Fault::Late`].
    pub late: u32,
}

impl Rates {
    fn draw(&self, chance: &SeededChance) -> Fault {
        let mut rest = chance.below(1000);
        let faults = [
            (self.delay, Fault::Delay(self.longest_delay.mul_f64(chance.below(1001) as f64 / 1000.0))),
            (self.refuse, Fault::Refuse),
            (self.lose_request, Fault::LoseRequest),
            (self.lose_reply, Fault::LoseReply),
            (self.repeat, Fault::Repeat),
            (self.late, Fault::Late),
        ];
        for (rate, fault) in faults {
            match rest.checked_sub(u64::from(rate)) {
                Some(left) => rest = left,
                None => return fault,
            }
        }
        Fault::Pass
    }
}

/// How many calls there were, and how many of each fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// All calls.
    pub calls: u64,
    /// Delayed.
    pub delayed: u64,
    /// Refused.
    pub refused: u64,
    /// Lost on the way to the store.
    pub requests_lost: u64,
    /// Lost on the way back.
    pub replies_lost: u64,
    /// Done twice.
    pub repeated: u64,
    /// Held until released, before or after.
    pub hung: u64,
    /// Done, or to be done, after the caller gave up.
    pub late: u64,
}

impl Tally {
    /// All faults together.
    pub fn faults(&self) -> u64 {
        self.delayed
            + self.refused
            + self.requests_lost
            + self.replies_lost
            + self.repeated
            + self.hung
            + self.late
    }

    fn count(&mut self, fault: Fault) {
        self.calls += 1;
        match fault {
            Fault::Pass => {}
            Fault::Delay(_) => self.delayed += 1,
            Fault::Refuse => self.refused += 1,
            Fault::LoseRequest => self.requests_lost += 1,
            Fault::LoseReply => self.replies_lost += 1,
            Fault::Repeat => self.repeated += 1,
            Fault::Hang | Fault::HangReply => self.hung += 1,
            Fault::Late => self.late += 1,
        }
    }
}

type Predicate = Box<dyn Fn(&Asked) -> bool + Send + Sync>;

struct Step {
    chosen: Predicate,
    fault: Fault,
}

#[derive(Default)]
struct Plan {
    steps: VecDeque<Step>,
    seeded: Option<(SeededChance, Rates)>,
    tally: Tally,
    late: Vec<Asked>,
}

impl Plan {
    fn fault_for(&mut self, asked: &Asked) -> Fault {
        let scripted = self.steps.iter().position(|step| (step.chosen)(asked));
        let fault = match scripted.and_then(|at| self.steps.remove(at)) {
            Some(step) => step.fault,
            None => self.seeded.as_ref().map_or(Fault::Pass, |(chance, rates)| rates.draw(chance)),
        };
        // What only looks can be asked again: nothing of it is ever uncertain.
        let fault = match fault {
            Fault::LoseRequest | Fault::LoseReply | Fault::Late if !asked.writes() => Fault::Refuse,
            other => other,
        };
        self.tally.count(fault);
        fault
    }
}

/// Passes every call on to a store, but for the faults it was told to make.
///
/// Without a script and without chance it changes nothing.
///
/// # Example
/// ```
/// use onlyonce::store::{MemoryStore, Store, StoreErrorKind};
/// use onlyonce::time::SystemClock;
/// use onlyonce_testkit::faults::{Call, Fault, FaultyStore};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let store = FaultyStore::new(MemoryStore::new(), std::sync::Arc::new(SystemClock::new()));
/// store.script([(Call::Commit, Fault::Refuse)]);
/// assert_eq!(store.commit(vec![]).await.unwrap_err().kind(), StoreErrorKind::Unavailable);
/// assert!(store.commit(vec![]).await.is_ok());
/// assert_eq!(store.tally().refused, 1);
/// # });
/// ```
pub struct FaultyStore<S> {
    inner: S,
    clock: Arc<dyn Clock>,
    plan: Mutex<Plan>,
    /// How often it was released, and how many hang.
    released: watch::Sender<u64>,
    hanging: watch::Sender<usize>,
}

impl<S: Store> FaultyStore<S> {
    /// A store around `inner` whose delays are on `clock`.
    pub fn new(inner: S, clock: Arc<dyn Clock>) -> Self {
        Self {
            inner,
            clock,
            plan: Mutex::default(),
            released: watch::Sender::new(0),
            hanging: watch::Sender::new(0),
        }
    }

    /// The store underneath, where nothing goes wrong.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Faults for the next calls: each call takes the first step that is about it.
    pub fn script(&self, steps: impl IntoIterator<Item = (Call, Fault)>) {
        for (call, fault) in steps {
            self.when(move |asked| call == Call::Any || call == asked.call(), fault);
        }
    }

    /// A fault for the next call that is so.
    pub fn when(&self, chosen: impl Fn(&Asked) -> bool + Send + Sync + 'static, fault: Fault) {
        self.plan().steps.push_back(Step { chosen: Box::new(chosen), fault });
    }

    /// From now on, faults by chance for every call no step of the script is about.
    pub fn seeded(&self, chance: SeededChance, rates: Rates) {
        self.plan().seeded = Some((chance, rates));
    }

    /// No more faults; what hangs goes on hanging.
    pub fn heal(&self) {
        let mut plan = self.plan();
        plan.steps.clear();
        plan.seeded = None;
    }

    /// How many steps of the script nobody has met yet.
    pub fn steps_left(&self) -> usize {
        self.plan().steps.len()
    }

    /// What has happened so far.
    pub fn tally(&self) -> Tally {
        self.plan().tally
    }

    /// Lets everything go on that hangs.
    pub fn release(&self) {
        self.released.send_modify(|times| *times += 1);
    }

    /// Resolves once at least so many calls hang.
    pub async fn until_hanging(&self, calls: usize) {
        let mut hanging = self.hanging.subscribe();
        // The sender lives in `self`, so this cannot fail.
        let _ = hanging.wait_for(|now| *now >= calls).await;
    }

    /// Does what is late now, in the order it was asked; says how many did anything.
    ///
    /// # Errors
    /// Those of the store underneath.
    pub async fn land(&self) -> Result<usize, StoreError> {
        let late = std::mem::take(&mut self.plan().late);
        let mut landed = 0;
        for asked in late {
            landed += usize::from(match asked {
                Asked::Commit(writes) => matches!(self.inner.commit(writes).await?, Commit::Stored(_)),
                Asked::TakeDue(take) => !self.inner.take_due(take).await?.is_empty(),
                Asked::Read(_) | Asked::Scan(_) => false,
            });
        }
        Ok(landed)
    }

    async fn hang(&self) {
        let mut released = self.released.subscribe();
        let before = *released.borrow_and_update();
        let _hanging = Hanging::new(&self.hanging);
        let _ = released.wait_for(|times| *times > before).await;
    }

    /// Calls, with whatever goes wrong this time.
    async fn through<T, F>(&self, asked: Asked, call: impl Fn() -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let fault = self.plan().fault_for(&asked);
        match fault {
            Fault::Pass => call().await,
            Fault::Delay(span) => {
                self.clock.sleep_until(self.clock.monotonic().saturating_add(span)).await;
                call().await
            }
            Fault::Refuse => {
                Err(StoreError::unavailable("a fault was injected: the store is away; try again"))
            }
            Fault::LoseRequest => Err(lost()),
            Fault::LoseReply => call().await.and(Err(lost())),
            Fault::Repeat => {
                call().await?;
                call().await
            }
            Fault::Hang => {
                self.hang().await;
                call().await
            }
            Fault::HangReply => {
                let answer = call().await;
                self.hang().await;
                answer
            }
            Fault::Late => {
                self.plan().late.push(asked);
                Err(lost())
            }
        }
    }
}

fn lost() -> StoreError {
    StoreError::uncertain("a fault was injected: the reply was lost; read back what happened")
}

/// Counts a hanging call for as long as it hangs, also when it is dropped.
struct Hanging<'a>(&'a watch::Sender<usize>);

impl<'a> Hanging<'a> {
    fn new(count: &'a watch::Sender<usize>) -> Self {
        count.send_modify(|n| *n += 1);
        Self(count)
    }
}

impl Drop for Hanging<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|n| *n -= 1);
    }
}

impl<S: fmt::Debug> fmt::Debug for FaultyStore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultyStore").field("inner", &self.inner).finish_non_exhaustive()
    }
}

#[async_trait]
impl<S: Store> Store for FaultyStore<S> {
    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<Entry>>, StoreError> {
        self.through(Asked::Read(keys.to_vec()), || self.inner.read(keys)).await
    }

    async fn commit(&self, writes: Vec<Write>) -> Result<Commit, StoreError> {
        self.through(Asked::Commit(writes.clone()), || self.inner.commit(writes.clone())).await
    }

    async fn take_due(&self, take: TakeDue) -> Result<Vec<Entry>, StoreError> {
        self.through(Asked::TakeDue(take.clone()), || self.inner.take_due(take.clone())).await
    }

    async fn scan(&self, scan: Scan) -> Result<Page, StoreError> {
        self.through(Asked::Scan(scan.clone()), || self.inner.scan(scan.clone())).await
    }

    async fn changed(&self, key: &Key, seen: Version) {
        self.inner.changed(key, seen).await;
    }

    fn facts(&self) -> StoreFacts {
        self.inner.facts()
    }
}

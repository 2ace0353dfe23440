//! The network between a host and the server: delays, losses, and requests that arrive long after their time.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use async_trait::async_trait;
use onlyonce::Key;
use onlyonce::store::{
    Commit, Entry, Page, Scan, Store, StoreError, StoreErrorKind, StoreFacts, TakeDue, Version, Write,
};

use super::bend;
use super::scenario::key_index;
use super::sometimes::Sometimes;
use super::world::{Next, World, lock};

/// What is asked of the server.
#[derive(Clone, Debug)]
pub(super) enum Request {
    Read(Vec<Key>),
    Commit(Vec<Write>),
    TakeDue(TakeDue),
    Scan(Scan),
}

/// What the server says.
#[derive(Clone, Debug)]
pub(super) enum Reply {
    Read(Vec<Option<Entry>>),
    Commit(Commit),
    TakeDue(Vec<Entry>),
    Scan(Page),
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It arrives, and so does its answer.
    Answered,
    /// The host is told that it did not happen, and it did not.
    Refused,
    /// It is lost on its way there.
    LostBefore,
    /// It arrives; its answer is lost.
    LostAfter,
    /// It is given up by the host, and arrives later.
    Late,
    /// It arrives twice, as when a driver tries again by itself; the second answer counts.
    Twice,
}

/// One request under way.
pub(super) struct Op {
    pub(super) host: usize,
    pub(super) actor: u32,
    pub(super) request: Option<Request>,
    pub(super) fate: Fate,
    pub(super) answer: Option<Result<Reply, StoreError>>,
    delivered: bool,
    waker: Option<Waker>,
}

/// All requests of a schedule, and who waits for a change of a key.
#[derive(Default)]
pub(super) struct Net {
    pub(super) ops: Vec<Op>,
    waiting: Vec<(usize, Waker)>,
    /// The last version each key was seen at.
    pub(super) versions: [u64; 3],
}

impl Net {
    pub(super) fn op(&mut self, id: u32) -> Option<&mut Op> {
        self.ops.get_mut(id as usize)
    }

    /// Wakes who waits for a change of this key.
    pub(super) fn changed(&mut self, key: usize, version: u64) {
        if let Some(last) = self.versions.get_mut(key) {
            *last = version;
        }
        self.waiting.extract_if(.., |(waits_for, _)| *waits_for == key).for_each(|(_, waker)| waker.wake());
    }
}

impl World {
    /// Sends a request on its way, and decides what becomes of it.
    fn send(&self, host: usize, request: Request) -> u32 {
        let fate = self.fate(host, &request);
        let plan = &self.net_plan;
        let there_us = self.delay_us();
        let gives_up_us = there_us + plan.timeout_us;
        let mut net = lock(&self.net);
        let id = u32::try_from(net.ops.len()).unwrap_or(u32::MAX);
        let answer = match fate {
            Fate::Answered | Fate::Twice => None,
            Fate::Refused => Some(Err(StoreError::unavailable("refused"))),
            Fate::LostBefore | Fate::LostAfter | Fate::Late => Some(Err(StoreError::uncertain("no answer"))),
        };
        self.say(|| format!("w{host} asks {}{}", describe(&request), fate.note()));
        self.note_beat(fate, &request);
        let (actor, request) = (self.actor(), Some(request));
        net.ops.push(Op { host, actor, request, fate, answer, delivered: false, waker: None });
        drop(net);
        let mut agenda = self.agenda();
        let now = self.now_us();
        match fate {
            Fate::Answered | Fate::Twice => agenda.at(now + there_us, Next::Apply(id)),
            Fate::Refused => agenda.at(now + there_us, Next::Reply(id)),
            Fate::LostBefore => agenda.at(now + gives_up_us, Next::Reply(id)),
            Fate::LostAfter => {
                agenda.at(now + there_us, Next::Apply(id));
                agenda.at(now + gives_up_us, Next::Reply(id));
            }
            Fate::Late => {
                agenda.at(now + gives_up_us, Next::Reply(id));
                agenda.at(now + gives_up_us + 1 + self.dice.below(plan.late_us), Next::Apply(id));
            }
        }
        id
    }

    /// Remembers heartbeats that do not get through.
    fn note_beat(&self, fate: Fate, request: &Request) {
        if matches!(fate, Fate::Refused | Fate::LostBefore)
            && let Request::Commit(writes) = request
            && let [Write::Touch { key, header, .. }] = &writes[..]
            && let Some(holder) = &header.holder
        {
            lock(&self.oracle).beat_failed(key_index(key), holder);
        }
    }

    /// How long a message is under way.
    pub(super) fn delay_us(&self) -> u64 {
        let plan = &self.net_plan;
        if !self.is_calm() && self.dice.happens(plan.slow) {
            return self.dice.below(plan.slow_us);
        }
        20 + self.dice.below(plan.delay_us)
    }

    fn fate(&self, host: usize, request: &Request) -> Fate {
        let plan = &self.net_plan;
        if self.is_calm() {
            return Fate::Answered;
        }
        let is_write = matches!(request, Request::Commit(_) | Request::TakeDue(_));
        let is_beat =
            matches!(request, Request::Commit(writes) if matches!(writes[..], [Write::Touch { .. }]));
        let now = self.now_us();
        let (cut, deaf) = lock(&self.hosts)
            .get(host)
            .map_or((false, false), |host| (host.cut_until_us > now, is_beat && host.deaf_until_us > now));
        if deaf {
            self.sometimes(Sometimes::HeartbeatLost);
        }
        let draw = self.dice.below(1000);
        if cut || deaf {
            return match draw {
                0..400 => Fate::Refused,
                400..800 if is_write => Fate::LostBefore,
                800.. if is_write => Fate::Late,
                _ => Fate::Refused,
            };
        }
        let [refused, before, after, late, twice] = plan.faults.map(u64::from);
        match draw {
            d if d < refused => Fate::Refused,
            d if d < refused + before => {
                if is_write {
                    Fate::LostBefore
                } else {
                    Fate::Refused
                }
            }
            d if is_write && d < refused + before + after => Fate::LostAfter,
            d if is_write && d < refused + before + after + late => Fate::Late,
            d if is_write && d < refused + before + after + late + twice => Fate::Twice,
            _ => Fate::Answered,
        }
    }

    /// An answer reaches its host.
    pub(super) fn reply(&self, id: u32) {
        let mut net = lock(&self.net);
        let Some(op) = net.op(id) else { return };
        op.delivered = true;
        if let Some(waker) = op.waker.take() {
            waker.wake();
        }
    }
}

impl Fate {
    fn note(self) -> &'static str {
        match self {
            Self::Answered => "",
            Self::Refused => "  [will be refused]",
            Self::LostBefore => "  [will be lost]",
            Self::LostAfter => "  [its answer will be lost]",
            Self::Late => "  [will arrive late]",
            Self::Twice => "  [will arrive twice]",
        }
    }

    /// Whether the host never learns what became of it.
    pub(super) fn is_unanswered(self) -> bool {
        matches!(self, Self::LostAfter | Self::Late)
    }
}

/// Waits for the answer to one request.
struct Answer {
    world: Arc<World>,
    id: u32,
}

impl Future for Answer {
    type Output = Result<Reply, StoreError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut net = lock(&self.world.net);
        let Some(op) = net.op(self.id) else { return Poll::Pending };
        if op.delivered {
            let answer = op.answer.take();
            return Poll::Ready(answer.unwrap_or_else(|| Err(StoreError::uncertain("no answer"))));
        }
        op.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// A host's way to the store.
pub(super) struct Link {
    pub(super) world: Arc<World>,
    pub(super) host: usize,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("host", &self.host).finish_non_exhaustive()
    }
}

impl Link {
    pub(super) fn ask(&self, request: Request) -> impl Future<Output = Result<Reply, StoreError>> + Send {
        let world = self.world.clone();
        let id = world.send(self.host, request);
        Answer { world, id }
    }
}

fn unasked() -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, "the answer to another question")
}

#[async_trait]
impl Store for Link {
    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<Entry>>, StoreError> {
        match self.ask(Request::Read(keys.to_vec())).await? {
            Reply::Read(entries) => Ok(entries),
            _ => Err(unasked()),
        }
    }

    async fn commit(&self, writes: Vec<Write>) -> Result<Commit, StoreError> {
        if self.world.mutant.is_some() {
            return bend::commit(self, writes).await;
        }
        match self.ask(Request::Commit(writes)).await? {
            Reply::Commit(commit) => Ok(commit),
            _ => Err(unasked()),
        }
    }

    async fn take_due(&self, take: TakeDue) -> Result<Vec<Entry>, StoreError> {
        match self.ask(Request::TakeDue(take)).await? {
            Reply::TakeDue(entries) => Ok(entries),
            _ => Err(unasked()),
        }
    }

    async fn scan(&self, scan: Scan) -> Result<Page, StoreError> {
        match self.ask(Request::Scan(scan)).await? {
            Reply::Scan(page) => Ok(page),
            _ => Err(unasked()),
        }
    }

    async fn changed(&self, key: &Key, seen: Version) {
        if self.world.net_plan.notifies {
            Changed { world: &self.world, key: key_index(key), seen: seen.get() }.await;
        } else {
            std::future::pending::<()>().await;
        }
    }

    fn facts(&self) -> StoreFacts {
        let mut facts = StoreFacts::new("simulated");
        facts.shared = true;
        facts.notifies = self.world.net_plan.notifies;
        facts
    }
}

/// Resolves when a key is no longer at the version that was seen.
///
/// Not the memory store's own signal: that one is shared by keys whose hashes meet, and hashes differ from
/// process to process, so one seed would not always go the same way.
struct Changed<'a> {
    world: &'a World,
    key: usize,
    seen: u64,
}

impl Future for Changed<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut net = lock(&self.world.net);
        if net.versions.get(self.key).is_some_and(|now| *now != self.seen) {
            return Poll::Ready(());
        }
        if !net.waiting.iter().any(|(key, waker)| *key == self.key && waker.will_wake(cx.waker())) {
            net.waiting.push((self.key, cx.waker().clone()));
        }
        Poll::Pending
    }
}

fn describe(request: &Request) -> String {
    match request {
        Request::Read(keys) => format!("read {keys:?}"),
        Request::Commit(writes) => writes.iter().map(describe_write).collect::<Vec<_>>().join(", "),
        Request::TakeDue(take) => format!("take due for {}", take.holder),
        Request::Scan(scan) => format!("scan, expired = {}", scan.expired),
    }
}

fn describe_write(write: &Write) -> String {
    let expect = match write.expect() {
        onlyonce::store::Expect::Absent => "nothing".to_owned(),
        onlyonce::store::Expect::Version(version) => format!("v{version}"),
    };
    let key = write.key();
    match write {
        Write::Put { draft, .. } => {
            let body = String::from_utf8_lossy(&draft.body);
            format!("put {key} {} over {expect} {body}", describe_header(&draft.header))
        }
        Write::Touch { header, .. } => format!("touch {key} {} over {expect}", describe_header(header)),
        Write::Check { .. } => format!("check {key} {expect}"),
        Write::Delete { .. } => format!("delete {key} {expect}"),
    }
}

fn describe_header(header: &onlyonce::store::HeaderDraft) -> String {
    let holder = header.holder.as_ref().map_or_else(|| "nobody".to_owned(), ToString::to_string);
    let due = header.due_in.map_or_else(String::new, |due| format!(", due in {due:?}"));
    let keep = header.keep_for.map_or_else(String::new, |keep| format!(", kept {keep:?}"));
    format!("{} (attempt {} by {holder}{due}{keep})", header.status, header.attempts)
}

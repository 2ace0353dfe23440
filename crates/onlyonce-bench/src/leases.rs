//! A hundred thousand live leases in one process: memory, processor time, and beats in time.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use onlyonce::engine::rules::State;
use onlyonce::store::{
    Commit, Draft, Expect, HeaderDraft, Holder, MemoryStore, Observed, Observer, Operation, Scan, Store,
    Write,
};
use onlyonce::time::{Clock, SystemClock};
use onlyonce::{Claimed, Engine, Guard, Key, Policy};

use crate::Failed;
use crate::args::Scale;
use crate::page::Row;
use crate::process::{processor, resident};
use crate::runtime::runtime;

pub(crate) const HOW: &str = "\
Each in a process of its own: keys are made, then as many leases claimed with `engine.once(key).claim()`, and held while \
their heartbeats run in real time; then all are completed, which a lost lease could not be. Processor time is that of \
the whole process from the last claim to the first completion. *In time*: the oldest beat that any entry shows at any \
look (one a second) is younger than the lease, and every lease was beaten as often as it had to be. Memory is what the \
system counts for the process: that of the leases, less that of a process that puts the same entries into its store and \
holds no lease.";

/// What a child process is started with.
pub(crate) const CHILD: &str = "leases-child";

const LEASES: usize = 100_000;
const NAMESPACE: &str = "bench.leases";

/// What one process found.
struct Found {
    bytes: f64,
    processor: f64,
    beats: u64,
    oldest: Duration,
    lost: u64,
}

pub(crate) fn many(scale: Scale) -> Result<Vec<Row>, Failed> {
    let leases = scale.of(LEASES);
    let seconds = Duration::from_secs;
    let entries = measure(leases, Duration::ZERO, Duration::ZERO)?;
    let short = scale.time(seconds(30), seconds(5));
    let mut rows = rows(leases, short, scale.time(seconds(20), seconds(4)), &entries)?;
    if scale == Scale::Full {
        rows.extend(self::rows(leases, seconds(600), seconds(260), &entries)?);
    }
    Ok(rows)
}

fn rows(leases: usize, lease: Duration, hold: Duration, entries: &Found) -> Result<Vec<Row>, Failed> {
    let found = measure(leases, lease, hold)?;
    let title = |what| Row::new(format!("{leases} leases of {lease:?}, {what}"));
    let owed = u64::try_from(leases)? * (hold.as_millis() / (lease / 5).as_millis()) as u64;
    let in_time = found.lost == 0 && found.oldest < lease && found.beats >= owed;
    let each = found.bytes - entries.bytes;
    Ok(vec![
        title("heartbeats")
            .sides(format!("{} beats in {hold:?}", found.beats), format!("{owed} owed"))
            .within(format!("oldest {:.1?}, {} lost", found.oldest, found.lost), "all in time", in_time),
        title("processor").within(
            format!("{:.1} % of a core", found.processor * 100.0),
            "under 10 %",
            found.processor < 0.1,
        ),
        title("memory beyond the entry")
            .sides(format!("{:.0} B each", found.bytes), format!("{:.0} B each", entries.bytes))
            .within(format!("{each:.0} B"), "under 600 B", each < 600.0),
    ])
}

/// Runs a child process that holds leases, or only entries when the lease is zero.
fn measure(leases: usize, lease: Duration, hold: Duration) -> Result<Found, Failed> {
    let mut child = Command::new(std::env::current_exe()?);
    child.args([CHILD, &leases.to_string(), &lease.as_millis().to_string(), &hold.as_millis().to_string()]);
    let output = child.stderr(Stdio::inherit()).output()?;
    let text = String::from_utf8(output.stdout)?;
    let [bytes, processor, beats, oldest, lost] = text.split_whitespace().collect::<Vec<_>>()[..] else {
        return Err("the process that holds leases ended early".into());
    };
    Ok(Found {
        bytes: bytes.parse()?,
        processor: processor.parse()?,
        beats: beats.parse()?,
        oldest: Duration::from_millis(oldest.parse()?),
        lost: lost.parse()?,
    })
}

/// What the child process does: prints the five figures.
pub(crate) fn child(args: &[String]) -> Result<(), Failed> {
    let [leases, lease, hold] = args else { return Err("leases, lease_ms and hold_ms are wanted".into()) };
    let (leases, lease, hold) = (leases.parse()?, lease.parse()?, hold.parse()?);
    let (lease, hold) = (Duration::from_millis(lease), Duration::from_millis(hold));
    let runtime = runtime(1)?;
    let found = if lease.is_zero() {
        runtime.block_on(put_entries(leases))?
    } else {
        runtime.block_on(hold_leases(leases, lease, hold))?
    };
    let Found { bytes, processor, beats, oldest, lost } = found;
    println!("{bytes} {processor} {beats} {} {lost}", oldest.as_millis());
    Ok(())
}

fn keys(many: usize) -> Result<Vec<Key>, Failed> {
    Ok((0..many).map(|n| Key::new(NAMESPACE, format!("order {n}"))).collect::<Result<_, _>>()?)
}

#[expect(clippy::cast_precision_loss, reason = "bytes of one process are far below 2^53")]
fn per_lease(before: u64, after: u64, leases: usize) -> f64 {
    after.saturating_sub(before) as f64 / leases as f64
}

/// The entries of as many claims, and no lease.
async fn put_entries(many: usize) -> Result<Found, Failed> {
    let store = MemoryStore::new();
    let keys = keys(many)?;
    let worker: Arc<str> = "bench:1:00000000".into();
    let before = resident()?;
    for (claim, key) in (0..).zip(&keys) {
        let header = HeaderDraft {
            holder: Some(Holder::new(worker.clone(), claim)),
            attempts: 1,
            due_in: Some(Duration::from_secs(600)),
            ..HeaderDraft::new(State::Running.status())
        };
        let draft = Draft { header, body: r#"{"v":1}"#.into() };
        let write = Write::Put { key: key.clone(), expect: Expect::Absent, draft };
        let Commit::Stored(_) = store.commit(vec![write]).await? else { return Err("a key twice".into()) };
    }
    let bytes = per_lease(before, resident()?, many);
    Ok(Found { bytes, processor: 0.0, beats: 0, oldest: Duration::ZERO, lost: 0 })
}

#[derive(Debug, Default)]
struct Commits(AtomicU64);

impl Observer for Commits {
    fn observe(&self, operation: &Operation) {
        if operation.name == "commit" && !operation.conflict && operation.error.is_none() {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

async fn hold_leases(many: usize, lease: Duration, hold: Duration) -> Result<Found, Failed> {
    let clock = Arc::new(SystemClock::new());
    let commits = Arc::new(Commits::default());
    let store = Arc::new(Observed::new(MemoryStore::new(), clock.clone(), commits.clone()));
    let engine = Engine::builder(store.clone()).policy(Policy::default().lease(lease)).build();
    let keys = keys(many)?;
    let before = resident()?;
    let guards = claim_all(&engine, &keys).await?;
    let bytes = per_lease(before, resident()?, many);

    let (claimed, start, used) = (commits.0.load(Ordering::Relaxed), clock.monotonic(), processor()?);
    let mut looking = Duration::ZERO;
    let mut oldest = Duration::ZERO;
    while clock.monotonic() < start + hold {
        clock.sleep_until(clock.monotonic() + Duration::from_secs(1)).await;
        let before = processor()?;
        oldest = oldest.max(oldest_beat(&*store).await?);
        looking += processor()?.saturating_sub(before);
    }
    let took = clock.monotonic().saturating_sub(start);
    let used = processor()?.saturating_sub(used).saturating_sub(looking);
    let beats = commits.0.load(Ordering::Relaxed) - claimed;
    let lost = complete_all(guards).await;
    Ok(Found { bytes, processor: used.as_secs_f64() / took.as_secs_f64(), beats, oldest, lost })
}

async fn claim_all(engine: &Engine, keys: &[Key]) -> Result<Vec<Guard>, Failed> {
    let mut guards = Vec::with_capacity(keys.len());
    for key in keys {
        match engine.once::<onlyonce::Error>(key.clone()).claim::<u64>().await? {
            Claimed::Run(guard) => guards.push(guard),
            Claimed::Replay(_) => return Err("a fresh key replayed".into()),
        }
    }
    Ok(guards)
}

/// How many leases could not be completed.
async fn complete_all(guards: Vec<Guard>) -> u64 {
    let mut lost = 0;
    for guard in guards {
        lost += u64::from(guard.complete(&4711).await.is_err());
    }
    lost
}

/// How long ago the entry was written that was not written for longest.
async fn oldest_beat(store: &dyn Store) -> Result<Duration, Failed> {
    let page = store.scan(Scan { limit: usize::MAX, ..Scan::default() }).await?;
    Ok(page.entries.iter().map(|e| e.read_at.since(e.header.updated_at)).max().unwrap_or_default())
}

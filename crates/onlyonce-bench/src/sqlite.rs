//! First calls and claims on SQLite, against SQLite by hand.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use onlyonce::engine::rules::State;
use onlyonce::store::{Draft, Expect, HeaderDraft, Store, Write};
use onlyonce::{Claimed, Engine, Error, Key};
use rusqlite::Connection;
use tokio::runtime::Runtime;

use crate::Failed;
use crate::args::Scale;
use crate::page::{Row, rate};
use crate::process::scratch;
use crate::rounds::{Rounds, per_unit, time};
use crate::runtime::{AsyncTask, cores, runtime, spread};

pub(crate) const HOW_FIRST: &str = "\
64 tasks, every call with a key of its own: claim, body, completion. The references are `rusqlite` alone on one \
connection, WAL, `synchronous=FULL`, a table of three columns: each call as two one-row transactions (insert, then \
update), and 64 inserted rows per transaction.";

pub(crate) const HOW_SIZE: &str = "\
64 tasks claim fresh keys in a database that was filled with 1,000,000 settled entries, and in one with 10,000; the \
leases are completed while the clock stands still.";

const TASKS: usize = 64;
const ROUNDS: usize = 7;

pub(crate) fn first(scale: Scale) -> Result<Vec<Row>, Failed> {
    let titles = ["two one-row transactions", "64 rows per transaction"];
    let title = |at: usize| Row::new(format!("first calls on SQLite, 64 tasks, against {}", titles[at]));
    let directory = scratch()?;
    let ours = match Ours::open(&directory.path().join("ours.db")) {
        Ok(ours) => ours,
        Err(reason) => return Ok(vec![title(0).not_run(&reason), title(1).not_run(&reason)]),
    };
    let mut by_hand = ByHand::open(&directory.path().join("raw.db"))?;
    let mut grouped = ByHand::open(&directory.path().join("grouped.db"))?;
    let calls = scale.of(6_400).max(TASKS);
    let mut series = 0..;
    let mut first = || ours.call_all(calls, series.next().unwrap_or(0));
    let mut two = || by_hand.two_transactions(calls / 8);
    let mut rows = || grouped.rows_in_groups(2 * calls);
    let rounds = Rounds::run(scale.rounds(ROUNDS), &mut [&mut first, &mut two, &mut rows])?;
    let ours = rate(rounds.median(0), "calls");
    Ok(vec![
        title(0).sides(ours.clone(), rate(rounds.median(1), "calls")).at_least(rounds.faster(0, 1), 5.0),
        title(1).sides(ours, rate(rounds.median(2), "rows")).at_least(rounds.faster(0, 2), 0.5),
    ])
}

pub(crate) fn size(scale: Scale) -> Result<Vec<Row>, Failed> {
    let title = || Row::new("claim on SQLite at 1,000,000 entries against 10,000".to_owned());
    let directory = scratch()?;
    let open = |name: &str| Ours::open(&directory.path().join(name));
    let (large, small) = match open("large.db").and_then(|large| Ok((large, open("small.db")?))) {
        Ok(both) => both,
        Err(reason) => return Ok(vec![title().not_run(&reason)]),
    };
    large.fill(scale.of(1_000_000))?;
    small.fill(scale.of(10_000))?;
    let calls = scale.of(6_400).max(TASKS);
    let (mut of_large, mut of_small) = (0.., 0..);
    let mut in_large = || large.claim_all(calls, of_large.next().unwrap_or(0));
    let mut in_small = || small.claim_all(calls, of_small.next().unwrap_or(0));
    let rounds = Rounds::run(scale.rounds(ROUNDS), &mut [&mut in_large, &mut in_small])?;
    let shown = |side| rate(rounds.median(side), "claims");
    Ok(vec![title().sides(shown(0), shown(1)).at_most(1.0 / rounds.faster(0, 1), 1.5)])
}

/// An engine on a database of its own.
struct Ours {
    runtime: Runtime,
    store: Arc<dyn Store>,
    engine: Engine,
}

impl Ours {
    /// Opens it, or says why that cannot be.
    fn open(path: &Path) -> Result<Self, String> {
        // Without the message: it names a directory of this machine.
        let store = onlyonce_stores::open(&format!("sqlite:{}", path.display()))
            .map_err(|error| format!("the store could not be opened (`{}`)", error.code()))?;
        let runtime = runtime(cores()).map_err(|error| error.to_string())?;
        Ok(Self { runtime, engine: Engine::new(store.clone()), store })
    }

    /// Nanoseconds per first call.
    fn call_all(&self, calls: usize, series: usize) -> Result<f64, Failed> {
        let work = Calls { engine: self.engine.clone(), keys: fresh_keys(calls, series)? };
        let took = spread(&self.runtime, TASKS, work)?;
        Ok(per_unit(took, calls / TASKS * TASKS))
    }

    /// Nanoseconds per claim.
    fn claim_all(&self, calls: usize, series: usize) -> Result<f64, Failed> {
        let (done, given) = std::sync::mpsc::channel();
        let work = Claims { engine: self.engine.clone(), keys: fresh_keys(calls, series)?, done };
        let took = spread(&self.runtime, TASKS, work)?;
        self.runtime.block_on(async {
            for guard in given.into_iter().flatten() {
                guard.complete(&4711).await?;
            }
            Ok::<_, Failed>(per_unit(took, calls / TASKS * TASKS))
        })
    }

    /// Puts so many settled entries.
    fn fill(&self, entries: usize) -> Result<(), Failed> {
        let at_once = self.store.facts().writes_per_commit.min(1_000);
        let mut writes = Vec::with_capacity(at_once);
        for number in 0..entries {
            let header = HeaderDraft {
                attempts: 1,
                keep_for: Some(Duration::from_secs(24 * 3600)),
                ..HeaderDraft::new(State::Completed.status())
            };
            let draft = Draft { header, body: r#"{"v":1,"value":4711,"fence":1}"#.into() };
            writes.push(Write::Put { key: key("filled", number)?, expect: Expect::Absent, draft });
            if writes.len() == at_once || number + 1 == entries {
                self.runtime.block_on(self.store.commit(std::mem::take(&mut writes)))?;
            }
        }
        Ok(())
    }
}

/// Ids that come in no order, as those of events do.
fn key(series: &str, number: usize) -> Result<Key, Failed> {
    let mixed = onlyonce::chance::mix(u64::try_from(number)?);
    Ok(Key::new("bench.sqlite", format!("{mixed:016x} {series}"))?)
}

fn fresh_keys(calls: usize, series: usize) -> Result<Vec<Vec<Key>>, Failed> {
    let name = format!("fresh {series}");
    let list = |task: usize| (0..calls / TASKS).map(|call| key(&name, task * calls + call)).collect();
    (0..TASKS).map(list).collect()
}

struct Calls {
    engine: Engine,
    keys: Vec<Vec<Key>>,
}

impl AsyncTask for Calls {
    async fn run(self: Arc<Self>, task: usize) -> Result<(), Failed> {
        for key in &self.keys[task] {
            self.engine.once::<Error>(key.clone()).run(async |_| Ok(4711)).await?;
        }
        Ok(())
    }
}

struct Claims {
    engine: Engine,
    keys: Vec<Vec<Key>>,
    done: std::sync::mpsc::Sender<Vec<onlyonce::Guard>>,
}

impl AsyncTask for Claims {
    async fn run(self: Arc<Self>, task: usize) -> Result<(), Failed> {
        let mut guards = Vec::with_capacity(self.keys[task].len());
        for key in &self.keys[task] {
            match self.engine.once::<Error>(key.clone()).claim::<u64>().await? {
                Claimed::Run(guard) => guards.push(guard),
                Claimed::Replay(_) => return Err("a fresh key replayed".into()),
            }
        }
        Ok(self.done.send(guards)?)
    }
}

/// What one would write without us.
struct ByHand {
    connection: Connection,
    next: usize,
}

impl ByHand {
    fn open(path: &Path) -> Result<Self, Failed> {
        let connection = Connection::open(path)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.execute_batch("CREATE TABLE calls (key TEXT PRIMARY KEY, status TEXT, body TEXT)")?;
        Ok(Self { connection, next: 0 })
    }

    fn key(&mut self) -> Result<Key, Failed> {
        self.next += 1;
        key("raw", self.next)
    }

    /// Nanoseconds per call.
    fn two_transactions(&mut self, calls: usize) -> Result<f64, Failed> {
        let keys = (0..calls).map(|_| self.key()).collect::<Result<Vec<_>, _>>()?;
        let (done, took) = time(|| {
            let mut insert = self.connection.prepare("INSERT INTO calls VALUES (?, 'running', '{}')")?;
            let mut update = self
                .connection
                .prepare("UPDATE calls SET status = 'completed', body = '4711' WHERE key = ?")?;
            for key in &keys {
                insert.execute([key.as_str()])?;
                update.execute([key.as_str()])?;
            }
            Ok::<_, Failed>(())
        });
        done.map(|()| per_unit(took, calls))
    }

    /// Nanoseconds per row.
    fn rows_in_groups(&mut self, rows: usize) -> Result<f64, Failed> {
        let keys = (0..rows).map(|_| self.key()).collect::<Result<Vec<_>, _>>()?;
        let (done, took) = time(|| {
            let mut insert = self.connection.prepare("INSERT INTO calls VALUES (?, 'completed', '4711')")?;
            for group in keys.chunks(64) {
                self.connection.execute_batch("BEGIN IMMEDIATE")?;
                group.iter().try_for_each(|key| insert.execute([key.as_str()]).map(drop))?;
                self.connection.execute_batch("COMMIT")?;
            }
            Ok::<_, Failed>(())
        });
        done.map(|()| per_unit(took, rows))
    }
}

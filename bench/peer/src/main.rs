//! Does what it is told with the crate `idempotent`, so that `onlyonce-bench` can time it.
//!
//! It reads one order per line, `first|replay TASKS CALLS THREADS`, prepares, says `ready`, waits for a line, does
//! the calls and says `done`. Whoever gave the order holds the clock: both sides are timed by the same one.
//!
//! The peer is used as its README says (`claim(..).fingerprint(..).execute_or_replay(..)`), with what is
//! cheapest for it at every choice: a response that is cached as it stands, an operation and a request of no
//! bytes, keys that are made before the clock starts, and a command buffer with room for every task.

use std::error::Error;
use std::io::{self, BufRead, Lines, StdinLock, Write};
use std::time::Duration;

use idempotent::memory::MemoryStore;
use idempotent::{CachedResponse, ExecutionOutcome, IdempotencyKey, IdempotencyStore, Metadata};
use tokio::runtime::{Builder, Runtime};

type Failed = Box<dyn Error + Send + Sync>;

const LEASE: Duration = Duration::from_secs(600);
const KEEP: Duration = Duration::from_secs(24 * 3600);

fn main() -> Result<(), Failed> {
    let mut lines = io::stdin().lock().lines();
    while let Some(line) = lines.next() {
        let order = Order::read(&line?)?;
        let runtime = order.runtime()?;
        runtime.block_on(order.carry_out(&mut lines))?;
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Order {
    replay: bool,
    tasks: usize,
    calls: usize,
    threads: usize,
}

impl Order {
    fn read(line: &str) -> Result<Self, Failed> {
        let [what, tasks, calls, threads] = line.split(' ').collect::<Vec<_>>()[..] else {
            return Err(format!("not an order: {line:?}").into());
        };
        let (tasks, calls, threads) = (tasks.parse()?, calls.parse()?, threads.parse()?);
        Ok(Self { replay: what == "replay", tasks, calls, threads })
    }

    fn runtime(self) -> io::Result<Runtime> {
        let mut builder = match self.threads {
            1 => Builder::new_current_thread(),
            _ => Builder::new_multi_thread(),
        };
        builder.worker_threads(self.threads).enable_time().build()
    }

    async fn carry_out(self, orders: &mut Lines<StdinLock<'static>>) -> Result<(), Failed> {
        let store = MemoryStore::builder().buffer(self.tasks.max(64)).try_build()?;
        let lists = self.keys()?;
        if self.replay {
            first(&store, &lists[0][0]).await?;
        }
        say("ready")?;
        orders.next().transpose()?;
        let work = lists.into_iter().map(|keys| tokio::spawn(self.work(store.clone(), keys)));
        for done in work.collect::<Vec<_>>() {
            done.await??;
        }
        say("done")
    }

    /// The keys of each task: one for all when they are to replay it, else one per call.
    fn keys(self) -> Result<Vec<Vec<IdempotencyKey>>, Failed> {
        let each = if self.replay { 1 } else { self.calls / self.tasks };
        let name = |task, call| if self.replay { "settled".to_owned() } else { format!("order {task} {call}") };
        let list = |task| (0..each).map(|call| Ok(IdempotencyKey::new(name(task, call))?)).collect();
        (0..self.tasks).map(list).collect()
    }

    async fn work(self, store: MemoryStore, keys: Vec<IdempotencyKey>) -> Result<(), Failed> {
        if self.replay {
            for _ in 0..self.calls / self.tasks {
                replay(&store, &keys[0]).await?;
            }
        } else {
            for key in &keys {
                first(&store, key).await?;
            }
        }
        Ok(())
    }
}

async fn call(store: &MemoryStore, key: &IdempotencyKey) -> Result<ExecutionOutcome, Failed> {
    let claim = store.claim(key, LEASE).fingerprint(String::new(), b"");
    let body = |_| async { Ok(CachedResponse::new(200, Metadata::new(), b"4711".as_slice().into())) };
    Ok(claim.execute_or_replay(KEEP, body).await?)
}

async fn first(store: &MemoryStore, key: &IdempotencyKey) -> Result<(), Failed> {
    match call(store, key).await? {
        ExecutionOutcome::Executed(_) => Ok(()),
        other => Err(format!("a first call gave {other:?}").into()),
    }
}

async fn replay(store: &MemoryStore, key: &IdempotencyKey) -> Result<(), Failed> {
    match call(store, key).await? {
        ExecutionOutcome::Replayed(_) => Ok(()),
        other => Err(format!("a replay gave {other:?}").into()),
    }
}

fn say(word: &str) -> Result<(), Failed> {
    let mut out = io::stdout().lock();
    writeln!(out, "{word}")?;
    Ok(out.flush()?)
}

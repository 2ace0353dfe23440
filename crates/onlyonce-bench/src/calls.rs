//! First calls and replays on the memory store, against a map and against the nearest peer.

use std::hint::black_box;
use std::sync::Arc;

use dashmap::DashMap;
use onlyonce::store::MemoryStore;
use onlyonce::{Engine, Error, Key, Ran};

use crate::Failed;
use crate::args::Scale;
use crate::page::{Row, rate};
use crate::peer::{Order, Peer};
use crate::rounds::{Rounds, Side, per_unit, time};
use crate::runtime::{AsyncTask, cores, runtime, spread};

pub(crate) const HOW_REPLAY: &str = "\
One settled key, whose value is a number. Ours: `engine.once(key).run(body)`; the map: `DashMap<Key, u64>` with its own \
hasher, `get(&key)` and a copy of the value; the peer: `claim(..).fingerprint(..).execute_or_replay(..)` as its README \
says, with what is cheapest for it at every choice. Keys are made before the clock starts. Calls run in one task or in \
64, all on the same key; ours and the peer run on a runtime of one thread and on one of all cores, and each is judged \
by its better one.";

pub(crate) const HOW_FIRST: &str = "\
As for replays, but every call has a key of its own, every round a new store, and the body gives a number at once: \
claim, body, completion.";

const ROUNDS: usize = 9;
const MANY_TASKS: usize = 64;

pub(crate) fn replay(scale: Scale) -> Result<Vec<Row>, Failed> {
    let mut rows = vec![against_map(scale, 1)?, against_map(scale, MANY_TASKS)?];
    let order = |tasks| Order { what: "replay", tasks, calls: scale.of(200_000) / tasks * tasks };
    rows.extend(against_peer(scale, &[order(1), order(MANY_TASKS)], 1.5)?);
    Ok(rows)
}

pub(crate) fn first(scale: Scale) -> Result<Vec<Row>, Failed> {
    let order = |tasks| Order { what: "first", tasks, calls: scale.of(100_000) / tasks * tasks };
    against_peer(scale, &[order(1), order(MANY_TASKS)], 2.0)
}

fn against_map(scale: Scale, tasks: usize) -> Result<Row, Failed> {
    let calls = scale.of(500_000) / tasks * tasks;
    let threads = if tasks == 1 { 1 } else { cores() };
    let order = Order { what: "replay", tasks, calls };
    let mut ours = || ours(&order, threads);
    let mut map = || hit_map(&order, threads);
    let rounds = Rounds::run(scale.rounds(ROUNDS), &mut [&mut ours, &mut map])?;
    let times = 1.0 / rounds.faster(0, 1);
    Ok(Row::new(format!("replay, {}, against a `DashMap` hit", in_tasks(tasks)))
        .sides(format!("{:.0} ns", rounds.median(0)), format!("{:.0} ns", rounds.median(1)))
        .at_most(times, 4.0))
}

fn in_tasks(tasks: usize) -> String {
    if tasks == 1 { "1 task".to_owned() } else { format!("{tasks} tasks") }
}

fn against_peer(scale: Scale, orders: &[Order], target: f64) -> Result<Vec<Row>, Failed> {
    let title =
        |order: &Order| format!("{}, {}, against `idempotent` 2.0", order.title(), in_tasks(order.tasks));
    let peer = match Peer::build() {
        Ok(peer) => peer,
        Err(reason) => {
            return Ok(orders.iter().map(|order| Row::new(title(order)).not_run(&reason)).collect());
        }
    };
    let row = |order| Ok(peer_row(scale, order, &peer)?.at_least_titled(title(order), target));
    orders.iter().map(row).collect()
}

/// What ours and the peer took, each on its better runtime.
struct Duel {
    ours: f64,
    peer: f64,
    faster: f64,
}

impl Duel {
    fn at_least_titled(&self, title: String, target: f64) -> Row {
        Row::new(title)
            .sides(rate(self.ours, "calls"), rate(self.peer, "calls"))
            .at_least(self.faster, target)
    }
}

fn peer_row(scale: Scale, order: &Order, peer: &Peer) -> Result<Duel, Failed> {
    let all = cores();
    let mut ours_one = || ours(order, 1);
    let mut peer_one = || peer.time(order, 1);
    let mut ours_all = || ours(order, all);
    let mut peer_all = || peer.time(order, all);
    let sides: &mut [Side<'_>] = &mut [&mut ours_one, &mut peer_one, &mut ours_all, &mut peer_all];
    let rounds = Rounds::run(scale.rounds(ROUNDS), sides)?;
    let (ours, peer) = (rounds.best(&[0, 2]), rounds.best(&[1, 3]));
    Ok(Duel { ours: rounds.median(ours), peer: rounds.median(peer), faster: rounds.faster(ours, peer) })
}

/// Nanoseconds per call of ours.
fn ours(order: &Order, threads: usize) -> Result<f64, Failed> {
    let runtime = runtime(threads)?;
    let work = Work::new(order)?;
    if order.is_replay() {
        runtime.block_on(call(&work.engine, &work.keys[0][0]))?;
    }
    let took = spread(&runtime, order.tasks, work)?;
    Ok(per_unit(took, order.calls))
}

struct Work {
    engine: Engine,
    /// Per task: one for all when they are to replay it, else one per call.
    keys: Vec<Vec<Key>>,
    replays: usize,
}

impl Work {
    fn new(order: &Order) -> Result<Self, Failed> {
        let each = order.calls / order.tasks;
        let key = |task, call| match order.is_replay() {
            true => Key::new("bench", "settled"),
            false => Key::new("bench", format!("order {task} {call}")),
        };
        let made = if order.is_replay() { 1 } else { each };
        let list = |task| (0..made).map(|call| key(task, call)).collect::<Result<_, _>>();
        let keys = (0..order.tasks).map(list).collect::<Result<_, Error>>()?;
        let replays = if order.is_replay() { each } else { 0 };
        Ok(Self { engine: Engine::new(MemoryStore::new()), keys, replays })
    }
}

impl AsyncTask for Work {
    async fn run(self: Arc<Self>, task: usize) -> Result<(), Failed> {
        let keys = &self.keys[task];
        for _ in 0..self.replays {
            let ran = call(&self.engine, &keys[0]).await?;
            if !ran.replayed {
                return Err("a settled key ran".into());
            }
        }
        let firsts = if self.replays == 0 { &keys[..] } else { &[] };
        for key in firsts {
            let ran = call(&self.engine, key).await?;
            if ran.replayed {
                return Err("a first call replayed".into());
            }
        }
        Ok(())
    }
}

async fn call(engine: &Engine, key: &Key) -> Result<Ran<u64>, Failed> {
    let ran = engine.once::<Error>(key.clone()).run(async |_| Ok(4711)).await?;
    Ok(black_box(ran))
}

/// Nanoseconds per hit of a map.
fn hit_map(order: &Order, threads: usize) -> Result<f64, Failed> {
    let key = Key::new("bench", "settled")?;
    let map = DashMap::from_iter([(key.clone(), 4711_u64)]);
    let hits = Hits { map, key, each: order.calls / order.tasks };
    let took =
        if order.tasks == 1 { time(|| hits.hit()).1 } else { spread(&runtime(threads)?, order.tasks, hits)? };
    Ok(per_unit(took, order.calls))
}

struct Hits {
    map: DashMap<Key, u64>,
    key: Key,
    each: usize,
}

impl Hits {
    fn hit(&self) {
        for _ in 0..self.each {
            black_box(self.map.get(black_box(&self.key)).map(|value| *value));
        }
    }
}

impl AsyncTask for Hits {
    async fn run(self: Arc<Self>, _task: usize) -> Result<(), Failed> {
        self.hit();
        Ok(())
    }
}

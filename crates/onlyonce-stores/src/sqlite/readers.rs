//! Threads that read, each on a connection of its own: a read waits for no write, and no write for a read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use onlyonce::Key;
use onlyonce::store::{Entry, Page, Scan};
use onlyonce::time::Clock;
use rusqlite::Connection;

use super::connect::{Database, Role};
use super::entries::Entries;
use super::queue::{Queue, Threads};
use super::scan::Scans;
use super::trouble::Trouble;
use super::writer::Reply;

/// Threads are started as they are needed, up to so many.
const MOST: usize = 4;

/// What a caller waits for.
#[derive(Debug)]
pub(super) enum Ask {
    Read(Vec<Key>, Reply<Vec<Option<Entry>>>),
    Scan(Scan, Reply<Page>),
}

impl Ask {
    fn fail(self, trouble: &Trouble) {
        match self {
            Self::Read(_, reply) => drop(reply.send(Err(trouble.to_error()))),
            Self::Scan(_, reply) => drop(reply.send(Err(trouble.to_error()))),
        }
    }
}

#[derive(Debug)]
pub(super) struct Readers {
    queue: Arc<Queue<Ask>>,
    started: AtomicUsize,
    database: Arc<Database>,
    clock: Arc<dyn Clock>,
}

impl Readers {
    pub(super) fn new(database: Arc<Database>, clock: Arc<dyn Clock>) -> Self {
        Self { queue: Arc::new(Queue::new()), started: AtomicUsize::new(0), database, clock }
    }

    pub(super) fn ask(&self, ask: Ask, threads: &Threads) {
        match self.queue.push(ask) {
            Ok(true) => {}
            Ok(false) => self.start_one(threads),
            Err(ask) => ask.fail(&Trouble::unavailable("the store is closed")),
        }
    }

    fn start_one(&self, threads: &Threads) {
        let room = |started| (started < MOST).then_some(started + 1);
        if self.started.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).is_err() {
            return;
        }
        let (queue, database, clock) =
            (Arc::clone(&self.queue), Arc::clone(&self.database), Arc::clone(&self.clock));
        let run = move || run(&queue, &database, &*clock);
        if let Err(trouble) = threads.spawn("onlyonce-read", run)
            && self.started.fetch_sub(1, Ordering::Relaxed) == 1
        {
            // Nobody is there to answer those who wait, not even this one.
            let mut waiting = Vec::new();
            self.queue.take(&mut waiting, |_| true);
            waiting.into_iter().for_each(|ask| ask.fail(&trouble));
        }
    }

    pub(super) fn close(&self) {
        self.queue.close();
    }
}

fn run(queue: &Queue<Ask>, database: &Database, clock: &dyn Clock) {
    let mut next = Vec::new();
    while one(queue, &mut next) {
        match database.connect(Role::Reader) {
            Ok(conn) => serve(&conn, queue, &mut next, clock),
            Err(trouble) => next.drain(..).for_each(|ask| ask.fail(&trouble)),
        }
    }
}

fn one(queue: &Queue<Ask>, next: &mut Vec<Ask>) -> bool {
    let mut first = true;
    queue.take(next, |_| std::mem::take(&mut first))
}

/// Answers on one connection until it fails or the queue is closed.
fn serve(conn: &Connection, queue: &Queue<Ask>, next: &mut Vec<Ask>, clock: &dyn Clock) {
    let (mut entries, mut scans) = (Entries::new(conn), Scans::new(conn));
    loop {
        for ask in next.drain(..) {
            let sound = match ask {
                Ask::Read(keys, reply) => answer(reply, read(conn, &mut entries, &keys, clock)),
                Ask::Scan(scan, reply) => answer(reply, scans.scan(&scan, clock.now())),
            };
            if !sound {
                return;
            }
        }
        if !one(queue, next) {
            return;
        }
    }
}

/// Sends the answer; an error ends the use of this connection.
fn answer<T>(reply: Reply<T>, found: Result<T, Trouble>) -> bool {
    let sound = found.is_ok();
    drop(reply.send(found.map_err(Into::into)));
    sound
}

fn read(
    conn: &Connection,
    entries: &mut Entries<'_>,
    keys: &[Key],
    clock: &dyn Clock,
) -> Result<Vec<Option<Entry>>, Trouble> {
    // Several keys are seen at one moment.
    let together = (keys.len() > 1).then(|| conn.unchecked_transaction()).transpose()?;
    let now = clock.now();
    let found = keys.iter().map(|key| entries.read(key, now)).collect::<rusqlite::Result<_>>()?;
    drop(together);
    Ok(found)
}

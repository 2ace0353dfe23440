//! The SQLite store: the default. One machine, any number of processes.
//!
//! - **How is a swap atomic?** One statement checks the version and writes, inside a `BEGIN IMMEDIATE`
//!   transaction. Each store has one thread that writes; commits that wait at the same time share a transaction
//!   and its fsync (group commit), and are still each all or nothing.
//! - **Whose clock?** This machine's, read once per transaction, after the write lock is held. A wall clock
//!   that is set forward ends leases early: another worker may take over, and the first one's completion is
//!   then refused, because the version decides and not the time. One that is set back makes leases and keep
//!   times longer by as much, and an entry that had expired may be there again. Neither lets two workers
//!   complete one claim.
//! - **What survives a crash?** With `synchronous = FULL`, the default, everything that was answered, power
//!   cuts included, as far as the disk keeps what it says it has written. With `NORMAL`, `kill -9` of all
//!   workers, but a power cut may take the last commits (never half of one).
//! - **Limits?** 16 MiB per body unless told otherwise, a thousand writes per commit, one writer at a time over
//!   all processes. Not for network file systems. A full disk refuses new writes, and what is there stays
//!   readable.
//! - **Fail-over?** There is none: the file is the store. A copy made with `VACUUM INTO` or `sqlite3 .backup`
//!   is a whole one; going back to an older copy forgets what came after it, and may give a version twice.
//!
//! Entries can be looked at with SQLite's own tools: `SELECT * FROM onlyonce_entries`. The tables carry our
//! name because they may live beside those of an application ([`SqliteOptions::beside_others`]), so that an
//! effect and its record are one transaction ([`SqliteStore::within`]).

mod connect;
mod due;
mod entries;
mod log;
mod options;
mod queue;
mod readers;
mod row;
mod scan;
mod schema;
mod trouble;
mod watch;
mod within;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use onlyonce::Key;
use onlyonce::store::{
    self, Commit, Entry, Page, Scan, Store, StoreError, StoreFacts, TakeDue, Version, WhoseClock, Write,
};
use onlyonce::time::Clock;
use tokio::sync::oneshot;

pub use options::{SqliteOptions, Synchronous};
pub use rusqlite;
pub use within::Within;

use connect::Database;
use queue::{Queue, Threads};
use readers::{Ask, Readers};
use trouble::Trouble;
use watch::Watch;
use writer::{Desk, Job, Writer};

const WRITES_PER_COMMIT: usize = 1000;
/// How long a dropped store waits for its threads; they hold no job by then that anybody waits for.
const GOODBYE: Duration = Duration::from_secs(1);

/// Entries in one SQLite file.
///
/// # If dropped
/// The file is closed by the time the drop returns, unless a write or a long scan nobody waits for is still
/// going on after a second; that ends by itself.
#[derive(Debug)]
pub struct SqliteStore {
    database: Arc<Database>,
    clock: Arc<dyn Clock>,
    desk: Arc<Desk>,
    readers: Readers,
    threads: Threads,
}

impl SqliteStore {
    /// The store at `path`, on this machine's clock and safe from power cuts; made when it is not there.
    ///
    /// Its directory must be there. Blocks for as long as opening takes: usually a few milliseconds.
    ///
    /// # Errors
    /// - `Misconfigured`: the path is a directory, its directory is missing, it may not be written, the database
    ///   is somebody else's, or a newer onlyonce wrote it.
    /// - `Corrupt`: the file is no database, or a damaged one.
    /// - `Unavailable`: another process kept it locked for longer than [`SqliteOptions::busy_timeout`].
    ///
    /// In every one of these the file is left as it is.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        SqliteOptions::new().open(path)
    }

    fn open_with(path: &Path, options: SqliteOptions) -> Result<Self, StoreError> {
        let clock = options.clock_or_system();
        let database = Arc::new(Database::new(path, options)?);
        let conn = database.create()?;
        let desk =
            Arc::new(Desk { queue: Queue::new(), watch: Watch::new(), transactions: AtomicU64::new(0) });
        let (log, copier) = log::log(Arc::clone(&database));
        let (threads, readers) = (Threads::new(), Readers::new(Arc::clone(&database), Arc::clone(&clock)));
        let writer = Writer {
            database: Arc::clone(&database),
            desk: Arc::clone(&desk),
            clock: Arc::clone(&clock),
            log,
        };
        threads.spawn("onlyonce-copy", move || copier.run())?;
        threads.spawn("onlyonce-write", move || writer.run(conn))?;
        Ok(Self { database, clock, desk, readers, threads })
    }

    /// How many transactions this store has written; commits that waited together share one.
    pub fn transactions(&self) -> u64 {
        self.desk.transactions.load(Ordering::Relaxed)
    }

    fn max_body(&self) -> usize {
        self.database.options().max_body
    }

    async fn write<T>(&self, job: impl FnOnce(writer::Reply<T>) -> Job) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        if self.desk.queue.push(job(reply)).is_err() {
            return Err(StoreError::unavailable("the store's writer has ended; open the store again"));
        }
        answer.await.unwrap_or_else(|_| {
            Err(StoreError::uncertain("the store's writer ended before it answered; read back"))
        })
    }

    async fn ask<T>(&self, ask: impl FnOnce(writer::Reply<T>) -> Ask) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.readers.ask(ask(reply), &self.threads);
        answer.await.unwrap_or_else(|_| {
            Err(Trouble::unavailable("the store's reader ended before it answered; try again").into())
        })
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<Entry>>, StoreError> {
        self.ask(|reply| Ask::Read(keys.to_vec(), reply)).await
    }

    async fn commit(&self, writes: Vec<Write>) -> Result<Commit, StoreError> {
        store::check_keys_differ(&writes)?;
        store::check_write_count(&writes, &self.facts())?;
        store::check_body_sizes(&writes, self.max_body())?;
        if writes.is_empty() {
            return Ok(Commit::Stored(Vec::new()));
        }
        self.write(|reply| Job::Commit(writes, reply)).await
    }

    async fn take_due(&self, take: TakeDue) -> Result<Vec<Entry>, StoreError> {
        self.write(|reply| Job::TakeDue(take, reply)).await
    }

    async fn scan(&self, scan: Scan) -> Result<Page, StoreError> {
        self.ask(|reply| Ask::Scan(scan, reply)).await
    }

    /// Resolves for changes made through this very store object; for others', never.
    async fn changed(&self, key: &Key, seen: Version) {
        let watcher = self.desk.watch.watcher();
        loop {
            let signal = watcher.signal(key).notified();
            tokio::pin!(signal);
            signal.as_mut().enable();
            match self.read(std::slice::from_ref(key)).await.as_deref() {
                Ok([Some(entry)]) if entry.version == seen => signal.await,
                Ok(_) => return,
                Err(_) => std::future::pending().await,
            }
        }
    }

    fn facts(&self) -> StoreFacts {
        let options = self.database.options();
        let mut facts = StoreFacts::new("sqlite");
        facts.clock = WhoseClock::Local;
        facts.durability = options.synchronous.durability();
        facts.shared = true;
        facts.writes_per_commit = WRITES_PER_COMMIT;
        facts.max_body = options.max_body;
        facts
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.database.close();
        self.desk.queue.close();
        self.readers.close();
        self.threads.wait(GOODBYE);
    }
}

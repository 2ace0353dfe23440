//! Connections to the database file, and how long they wait for each other.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use onlyonce::chance::{SystemChance, jitter};
use onlyonce::store::StoreErrorKind;
use rusqlite::{Connection, MAIN_DB, OpenFlags};

use super::options::SqliteOptions;
use super::schema::{self, Found, MIGRATIONS};
use super::trouble::{Trouble, is_busy};

/// Where the database is, and how each connection to it is set up.
#[derive(Debug)]
pub(super) struct Database {
    path: PathBuf,
    options: SqliteOptions,
    /// Set when the store is dropped: nobody waits for a lock any more.
    closing: Arc<AtomicBool>,
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Writer,
    Reader,
    Checkpointer,
}

impl Role {
    /// In KiB, as SQLite counts a negative `cache_size`.
    ///
    /// Small on purpose: a commit that split a page walks the whole cache, so at a million entries 64 MiB cost
    /// half as much CPU again per call as 4 MiB. The operating system caches the file anyway.
    fn cache_kib(self) -> i64 {
        match self {
            Self::Writer => 4 * 1024,
            Self::Reader => 2 * 1024,
            Self::Checkpointer => 256,
        }
    }
}

impl Database {
    pub(super) fn new(path: &Path, options: SqliteOptions) -> Result<Self, Trouble> {
        // An absolute path is never taken for `:memory:`, a `file:` URI or a temporary database.
        let path = std::path::absolute(path).map_err(|e| {
            Trouble::misconfigured(format!("{} is no path: {e}; name a file", path.display()))
        })?;
        Ok(Self { path, options, closing: Arc::default() })
    }

    pub(super) fn options(&self) -> &SqliteOptions {
        &self.options
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
    }

    /// The first connection, after whatever it takes to make the file a store.
    pub(super) fn create(&self) -> Result<Connection, Trouble> {
        self.check_place()?;
        let mut patience = self.patience();
        for tries in 0.. {
            match self.try_create() {
                // Switching to WAL does not wait for the lock by itself.
                Err(Failed::Busy(error)) if !patience.nap(tries) => return Err(error.into()),
                Err(Failed::Busy(_)) => {}
                Err(Failed::Told(trouble)) => return Err(trouble),
                Ok(conn) => return Ok(conn),
            }
        }
        Err(Trouble::unavailable("the database stayed locked; try again"))
    }

    fn check_place(&self) -> Result<(), Trouble> {
        let shown = self.path.display();
        if self.path.is_dir() {
            return Err(Trouble::misconfigured(format!("{shown} is a directory; name a file in it")));
        }
        match self.path.parent() {
            // Not made here: a misspelt path should fail, not become a directory.
            Some(dir) if !dir.is_dir() => {
                let dir = dir.display();
                Err(Trouble::misconfigured(format!("there is no directory {dir}; make it first")))
            }
            _ => Ok(()),
        }
    }

    fn try_create(&self) -> Result<Connection, Failed> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let mut conn = self.open(flags)?;
        let found = schema::recognise(&conn)?;
        let schema = schema::check(&found, MIGRATIONS.len(), self.options.beside_others)?;
        if conn.is_readonly(MAIN_DB)? {
            let shown = self.path.display();
            return Err(Failed::Told(Trouble::misconfigured(format!(
                "{shown} may not be written; give the file and its directory write permission"
            ))));
        }
        self.use_wal(&conn)?;
        self.set_up(&conn, Role::Writer)?;
        if schema < MIGRATIONS.len() || found == Found::Empty {
            schema::migrate(&mut conn, MIGRATIONS, self.options.beside_others)?;
        }
        Ok(conn)
    }

    /// One more connection to a file that is a store already.
    ///
    /// Never makes the file: should it be gone, an empty one in its place would forget every outcome.
    pub(super) fn connect(&self, role: Role) -> Result<Connection, Trouble> {
        if !self.path.try_exists().unwrap_or(true) {
            let shown = self.path.display();
            return Err(Trouble::misconfigured(format!(
                "{shown} is gone since the store was opened; put it back, and open the store again"
            )));
        }
        let conn = self.open(OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        self.set_up(&conn, role)?;
        Ok(conn)
    }

    fn open(&self, flags: OpenFlags) -> Result<Connection, Trouble> {
        let shown = self.path.display();
        let kind = match flags.contains(OpenFlags::SQLITE_OPEN_CREATE) {
            true => StoreErrorKind::Misconfigured,
            // It has been open before: too many open files, perhaps, and that passes.
            false => StoreErrorKind::Unavailable,
        };
        let mut conn = Connection::open_with_flags(&self.path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)
            .map_err(|error| {
                let hint = "check that its directory is there and may be written";
                Trouble::new(kind, format!("cannot open {shown}: {error}; {hint}"))
            })?;
        let mut patience = self.patience();
        conn.busy_handler(Some(move |times| patience.nap(times)))?;
        Ok(conn)
    }

    fn use_wal(&self, conn: &Connection) -> Result<(), Failed> {
        let mode: String = conn.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
        if mode == "wal" {
            return Ok(());
        }
        let shown = self.path.display();
        Err(Failed::Told(Trouble::misconfigured(format!(
            "{shown} is on a file system without shared memory (its journal stays {mode:?}), perhaps a network \
             one; use a local disk"
        ))))
    }

    fn set_up(&self, conn: &Connection, role: Role) -> rusqlite::Result<()> {
        conn.pragma_update(None, "synchronous", self.options.synchronous.pragma())?;
        conn.pragma_update(None, "cache_size", -role.cache_kib())?;
        // The checkpointer does this, where it stalls nobody.
        conn.pragma_update(None, "wal_autocheckpoint", 0)?;
        if let Some(bytes) = self.options.max_size {
            let page: i64 = conn.query_row("PRAGMA page_size", [], |row| row.get(0))?;
            let pages = (i64::try_from(bytes).unwrap_or(i64::MAX) / page).clamp(1, i64::from(u32::MAX) - 1);
            conn.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
        }
        Ok(())
    }

    fn patience(&self) -> Patience {
        Patience {
            chance: SystemChance::new(),
            napped: Duration::ZERO,
            limit: self.options.busy_timeout,
            closing: Arc::clone(&self.closing),
        }
    }
}

enum Failed {
    /// Somebody else had the lock: the whole of it is worth another try.
    Busy(rusqlite::Error),
    Told(Trouble),
}

impl From<rusqlite::Error> for Failed {
    fn from(error: rusqlite::Error) -> Self {
        if is_busy(&error) { Self::Busy(error) } else { Self::Told(error.into()) }
    }
}

impl From<Trouble> for Failed {
    fn from(trouble: Trouble) -> Self {
        Self::Told(trouble)
    }
}

/// Waits for another process's write: short naps, up to a limit.
///
/// SQLite's own handler naps for up to 100 ms. Against processes that commit without a pause, most looks find the
/// lock held, so what counts is to look often: naps of the size of a commit, which grow slowly, jittered, so that
/// two waiting processes do not march in step. With four processes at it, the slowest of a hundred calls took
/// 8 ms, against 35 ms with naps that grow fast, and all four got the same share.
struct Patience {
    chance: SystemChance,
    napped: Duration,
    limit: Duration,
    closing: Arc<AtomicBool>,
}

impl Patience {
    const SHORTEST: Duration = Duration::from_micros(100);

    fn nap(&mut self, times: i32) -> bool {
        if times == 0 {
            self.napped = Duration::ZERO;
        }
        if self.napped >= self.limit || self.closing.load(Ordering::Relaxed) {
            return false;
        }
        let doublings = u32::try_from(times / 32).unwrap_or(0).min(3);
        let nap = jitter(&self.chance, Self::SHORTEST * 2_u32.pow(doublings));
        std::thread::park_timeout(nap);
        self.napped += nap;
        true
    }
}

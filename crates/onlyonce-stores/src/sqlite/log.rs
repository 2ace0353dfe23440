//! Keeping SQLite's write-ahead log short without making commits wait.
//!
//! SQLite would copy the log into the database inside a commit, every thousand pages. With a million random
//! keys that is a stall of tens of milliseconds. Here a thread copies while the writer goes on, and the writer
//! only does what is left: it holds the write lock for a moment, so that no process can add to the log, and
//! copies the last few pages. From then on the log is written from its start again, whoever writes next.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::wal::CheckpointMode;
use rusqlite::{Connection, MAIN_DB};

use super::connect::{Database, Role};

/// How many pages the log may have before it is copied: 16 MiB.
const LONG: i32 = 4096;
/// Passes over the log while the writer adds to it; each leaves less for the next.
const PASSES: usize = 12;

/// The writer's side: notices that the log is long, and finishes what the copier began.
#[derive(Debug)]
pub(super) struct Log {
    shared: Arc<Shared>,
    ask: SyncSender<()>,
    asked: bool,
    /// Copy when the log has so many pages.
    copy_at: i32,
}

/// The thread's side.
#[derive(Debug)]
pub(super) struct Copier {
    shared: Arc<Shared>,
    asked: Receiver<()>,
}

#[derive(Debug)]
struct Shared {
    database: Arc<Database>,
    conn: Mutex<Option<Connection>>,
    /// Pages in the log after the writer's last commit.
    pages: AtomicI32,
    copied: AtomicBool,
}

pub(super) fn log(database: Arc<Database>) -> (Log, Copier) {
    let (ask, asked) = sync_channel(1);
    let shared = Arc::new(Shared {
        database,
        conn: Mutex::new(None),
        pages: AtomicI32::new(0),
        copied: AtomicBool::new(false),
    });
    (Log { shared: Arc::clone(&shared), ask, asked: false, copy_at: LONG }, Copier { shared, asked })
}

impl Log {
    /// Makes a writer's connection tell how long the log is.
    pub(super) fn watch(&self, conn: &mut Connection) -> rusqlite::Result<()> {
        let shared = Arc::clone(&self.shared);
        conn.wal_hook(Some(move |_: &mut _, pages| {
            shared.pages.store(pages, Ordering::Relaxed);
            Ok(())
        }))
    }

    pub(super) fn after_commit(&mut self, conn: &Connection) {
        if !self.asked {
            let long = self.shared.pages.load(Ordering::Relaxed) >= self.copy_at;
            self.asked = long && self.ask.try_send(()).is_ok();
        } else if self.shared.copied.swap(false, Ordering::AcqRel) {
            self.asked = false;
            self.finish(conn);
        }
    }

    fn finish(&mut self, conn: &Connection) {
        // Busy or broken: the next commit will say so to those who wait for it.
        if conn.execute_batch("BEGIN IMMEDIATE").is_err() {
            return;
        }
        let whole = self.shared.copy().is_some_and(|(pages, copied)| pages == copied);
        if let Err(error) = conn.execute_batch("ROLLBACK") {
            tracing::warn!(%error, "could not end an empty transaction");
        }
        // A long read elsewhere keeps the log from being copied whole; ask again only after as much again.
        self.copy_at =
            if whole { LONG } else { self.shared.pages.load(Ordering::Relaxed).saturating_add(LONG) };
    }
}

impl Copier {
    pub(super) fn run(self) {
        while self.asked.recv().is_ok() {
            let mut before = 0;
            for _ in 0..PASSES {
                match self.shared.copy() {
                    Some((pages, _)) if pages > before => before = pages,
                    _ => break,
                }
            }
            self.shared.copied.store(true, Ordering::Release);
        }
    }
}

impl Shared {
    /// Copies what it can without waiting for anybody; gives the pages of the log, and how many are copied.
    fn copy(&self) -> Option<(i32, i32)> {
        let mut conn = self.conn.lock().unwrap_or_else(PoisonError::into_inner);
        let copied = match &*conn {
            Some(conn) => conn.wal_checkpoint_v2(Some(MAIN_DB), CheckpointMode::PASSIVE),
            None => {
                let fresh = self.database.connect(Role::Checkpointer).ok()?;
                let copied = fresh.wal_checkpoint_v2(Some(MAIN_DB), CheckpointMode::PASSIVE);
                *conn = Some(fresh);
                copied
            }
        };
        match copied {
            Ok(pages) => Some(pages),
            Err(error) => {
                // Nothing is lost: the pages stay in the log. Another process may be copying right now.
                tracing::debug!(%error, "the log was not copied");
                *conn = None;
                None
            }
        }
    }
}

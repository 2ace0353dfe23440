//! Entries inside the caller's own transaction.

use std::sync::Arc;

use onlyonce::Key;
use onlyonce::store::{self, Commit, Entry, StoreError, Write};
use onlyonce::time::Clock;
use rusqlite::{Connection, Transaction};

use super::SqliteStore;
use super::entries::Entries;
use super::trouble::Trouble;

/// The store's entries, inside a transaction of the caller's.
///
/// What is committed here becomes true together with the rest of the transaction, or not at all: an effect in
/// this database and its record can never disagree. Everything happens on the caller's connection and thread,
/// so it is not a [`Store`](onlyonce::store::Store), whose futures may go anywhere; but the same statements
/// run, with the same answers.
///
/// # Promise
/// - A commit that is [`Commit::Stored`] is as durable, and as visible, as the transaction: not before it is
///   committed, and never if it is rolled back.
/// - [`Commit::Conflict`] has changed no entry and leaves the transaction as it was: the caller may roll back,
///   or go on without.
/// - After an error the transaction should be rolled back: several writes may have been applied in part.
///
/// # Example
/// ```
/// use onlyonce::Key;
/// use onlyonce::store::{Commit, Draft, Expect, HeaderDraft, Status, Write};
/// use onlyonce_stores::sqlite::{SqliteStore, rusqlite};
///
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("shop.db");
/// let store = SqliteStore::open(&path)?;
/// let mut shop = rusqlite::Connection::open(&path)?;
/// shop.execute_batch("CREATE TABLE orders (id TEXT PRIMARY KEY)")?;
///
/// let tx = shop.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
/// tx.execute("INSERT INTO orders VALUES ('4711')", [])?;
/// let header = HeaderDraft::new(Status::new("completed"));
/// let done = Write::Put {
///     key: Key::new("orders", "4711")?,
///     expect: Expect::Absent,
///     draft: Draft { header, body: "null".into() },
/// };
/// let answer = store.within(&tx)?.commit(&[done])?;
/// match answer {
///     Commit::Stored(_) => tx.commit()?,
///     Commit::Conflict(_) => tx.rollback()?, // somebody was first: no second order
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Within<'tx> {
    entries: Entries<'tx>,
    clock: Arc<dyn Clock>,
    max_body: usize,
}

impl SqliteStore {
    /// This store's entries inside `tx`, a transaction on the same database file.
    ///
    /// Begin it with `TransactionBehavior::Immediate`: one that has read before it writes must start over when
    /// somebody else wrote in between, and says so with an `Unavailable` error.
    ///
    /// # Errors
    /// `Misconfigured` when the transaction's database is not this store's.
    pub fn within<'tx>(&self, tx: &'tx Transaction<'_>) -> Result<Within<'tx>, StoreError> {
        let conn: &'tx Connection = tx;
        let path = self.database.path();
        let same = conn.path().is_some_and(|theirs| same_file(theirs.as_ref(), path));
        if !same {
            return Err(Trouble::misconfigured(format!(
                "the transaction is on {}, and the store is on {}; open both on the same file",
                conn.path().filter(|p| !p.is_empty()).unwrap_or("no file"),
                path.display(),
            ))
            .into());
        }
        let (clock, max_body) = (Arc::clone(&self.clock), self.max_body());
        Ok(Within { entries: Entries::new(conn), clock, max_body })
    }
}

fn same_file(theirs: &std::path::Path, ours: &std::path::Path) -> bool {
    match (theirs.canonicalize(), ours.canonicalize()) {
        (Ok(theirs), Ok(ours)) => theirs == ours,
        _ => false,
    }
}

impl Within<'_> {
    /// What is there for this transaction, one item per key, in order.
    ///
    /// # Errors
    /// As for [`Store::read`](onlyonce::store::Store::read).
    pub fn read(&mut self, keys: &[Key]) -> Result<Vec<Option<Entry>>, StoreError> {
        let now = self.clock.now();
        let found = keys.iter().map(|key| self.entries.read(key, now)).collect::<rusqlite::Result<_>>();
        found.map_err(|error| Trouble::from(error).into())
    }

    /// Applies all `writes` to this transaction, or none.
    ///
    /// # Errors
    /// As for [`Store::commit`](onlyonce::store::Store::commit), and never `Uncertain`: nothing is certain before
    /// the transaction itself is committed.
    pub fn commit(&mut self, writes: &[Write]) -> Result<Commit, StoreError> {
        store::check_keys_differ(writes)?;
        store::check_body_sizes(writes, self.max_body)?;
        self.apply(writes).map_err(|error| Trouble::from(error).into())
    }

    fn apply(&mut self, writes: &[Write]) -> rusqlite::Result<Commit> {
        // A deferred transaction has no write lock yet, and versions may only be given under it.
        self.entries.lock()?;
        let mut unit = self.entries.begin(self.clock.now())?;
        let commit = self.entries.commit(writes, &mut unit)?;
        self.entries.end(&unit)?;
        Ok(commit)
    }
}

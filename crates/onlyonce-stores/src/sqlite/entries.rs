//! The table of entries, as one connection sees it.
//!
//! Every statement there is, each prepared when first used. The writer thread, the readers and
//! [`Within`](super::Within) all come through here, so a commit means the same in all of them. No statement
//! is put together from data: keys, statuses and cursors are bound.

use onlyonce::Key;
use onlyonce::store::{Commit, Draft, Entry, Expect, HeaderDraft, Version, Write};
use onlyonce::time::Timestamp;
use rusqlite::{Connection, Error, OptionalExtension, Result, Statement, params};

use super::row::{self, Body, HeaderRow, version_number};

/// A statement, prepared when first asked for.
#[derive(Debug)]
pub(super) struct Lazy<'c> {
    conn: &'c Connection,
    sql: &'static str,
    prepared: Option<Statement<'c>>,
}

impl<'c> Lazy<'c> {
    pub(super) fn new(conn: &'c Connection, sql: &'static str) -> Self {
        Self { conn, sql, prepared: None }
    }

    pub(super) fn get(&mut self) -> Result<&mut Statement<'c>> {
        match &mut self.prepared {
            Some(prepared) => Ok(prepared),
            empty => Ok(empty.insert(self.conn.prepare(self.sql)?)),
        }
    }
}

/// The statements of one connection.
#[derive(Debug)]
pub(super) struct Entries<'c> {
    read: Lazy<'c>,
    read_version: Lazy<'c>,
    put_absent: Lazy<'c>,
    put_over: Lazy<'c>,
    touch: Lazy<'c>,
    delete: Lazy<'c>,
    lock: Lazy<'c>,
    last_version: Lazy<'c>,
    keep_version: Lazy<'c>,
    pub(super) due: Lazy<'c>,
    pub(super) take: Lazy<'c>,
    pub(super) holder: String,
}

/// One transaction's moment and the versions it gives.
///
/// The last version is read once per transaction and written back once, however many writes it has: the write
/// lock is held in between, so nobody else gives the same.
#[derive(Debug)]
pub(super) struct Unit {
    pub(super) now: Timestamp,
    last: i64,
    given: bool,
}

impl Unit {
    pub(super) fn next_version(&mut self) -> Version {
        self.last += 1;
        self.given = true;
        Version::new(self.last.unsigned_abs())
    }
}

impl<'c> Entries<'c> {
    pub(super) fn new(conn: &'c Connection) -> Self {
        let lazy = |sql| Lazy::new(conn, sql);
        Self {
            read: lazy(READ),
            read_version: lazy(READ_VERSION),
            put_absent: lazy(PUT_ABSENT),
            put_over: lazy(PUT_OVER),
            touch: lazy(TOUCH),
            delete: lazy("DELETE FROM onlyonce_entries WHERE namespace = ?1 AND id = ?2 AND version = ?3"),
            lock: lazy("UPDATE onlyonce_meta SET value = value WHERE name = 'version'"),
            last_version: lazy("SELECT value FROM onlyonce_meta WHERE name = 'version'"),
            keep_version: lazy("UPDATE onlyonce_meta SET value = ?1 WHERE name = 'version'"),
            due: lazy(super::due::DUE),
            take: lazy(super::due::TAKE),
            holder: String::new(),
        }
    }

    /// Takes the write lock, in a transaction that may not have it yet; changes nothing.
    pub(super) fn lock(&mut self) -> Result<()> {
        exactly_one(self.lock.get()?.execute([])?)
    }

    /// Begins a unit; the write lock must be held, or the versions are not ours to give.
    pub(super) fn begin(&mut self, now: Timestamp) -> Result<Unit> {
        let last = self.last_version.get()?.query_row([], |row| row.get(0))?;
        Ok(Unit { now, last, given: false })
    }

    /// Keeps the last version that was given; without this, the next unit would give it again.
    pub(super) fn end(&mut self, unit: &Unit) -> Result<()> {
        if unit.given {
            exactly_one(self.keep_version.get()?.execute([unit.last])?)?;
        }
        Ok(())
    }

    /// What is there under `key`, unless it is expired at `now`.
    pub(super) fn read(&mut self, key: &Key, now: Timestamp) -> Result<Option<Entry>> {
        self.read
            .get()?
            .query_row(params![key.namespace(), key.id(), now.as_millis()], |row| {
                row::entry(row, 0, key.clone(), now)
            })
            .optional()
    }

    /// Applies all writes or none; on an error some may have been applied, and the caller rolls back.
    pub(super) fn commit(&mut self, writes: &[Write], unit: &mut Unit) -> Result<Commit> {
        // One statement checks and writes; only several writes need to be checked before the first is applied.
        if let [write] = writes {
            return match self.write(write, unit)? {
                Some(version) => Ok(Commit::Stored(vec![version])),
                None => self.conflict(writes, unit.now),
            };
        }
        for write in writes {
            if !self.holds(write, unit.now)? {
                return self.conflict(writes, unit.now);
            }
        }
        let mut versions = Vec::with_capacity(writes.len());
        for write in writes {
            versions.push(self.write(write, unit)?.ok_or(Error::StatementChangedRows(0))?);
        }
        Ok(Commit::Stored(versions))
    }

    fn conflict(&mut self, writes: &[Write], now: Timestamp) -> Result<Commit> {
        let there = writes.iter().map(|write| self.read(write.key(), now)).collect::<Result<_>>()?;
        Ok(Commit::Conflict(there))
    }

    fn holds(&mut self, write: &Write, now: Timestamp) -> Result<bool> {
        let there = self.version_of(write.key(), now)?;
        Ok(match (write, there) {
            (Write::Delete { expect, .. }, there) => there.is_some_and(|(version, _)| version == *expect),
            (_, Some((version, true))) => write.expect() == Expect::Version(version),
            (_, Some((_, false)) | None) => write.expect() == Expect::Absent,
        })
    }

    /// The version kept under `key`, and whether it is live.
    fn version_of(&mut self, key: &Key, now: Timestamp) -> Result<Option<(Version, bool)>> {
        self.read_version
            .get()?
            .query_row(params![key.namespace(), key.id(), now.as_millis()], |row| {
                Ok((row::version(row, 0)?, row.get(1)?))
            })
            .optional()
    }

    /// Applies one write if its expectation holds, and gives its version.
    fn write(&mut self, write: &Write, unit: &mut Unit) -> Result<Option<Version>> {
        match write {
            Write::Put { key, expect: Expect::Absent, draft } => self.put_absent(key, draft, unit),
            Write::Put { key, expect: Expect::Version(over), draft } => {
                self.put_over(key, *over, draft, unit)
            }
            Write::Touch { key, expect, header } => self.touch(key, *expect, header, unit),
            Write::Check { key, .. } => {
                let holds = self.holds(write, unit.now)?;
                let live = self.version_of(key, unit.now)?.filter(|(_, live)| *live);
                Ok(holds.then(|| live.map_or_else(Version::default, |(version, _)| version)))
            }
            Write::Delete { key, expect } => {
                let at = params![key.namespace(), key.id(), version_number(*expect)];
                Ok((self.delete.get()?.execute(at)? == 1).then_some(*expect))
            }
        }
    }

    fn put_absent(&mut self, key: &Key, draft: &Draft, unit: &mut Unit) -> Result<Option<Version>> {
        let header = HeaderRow::of(&draft.header, unit.now, &mut self.holder);
        let changed = self.put_absent.get()?.execute(params![
            key.namespace(),
            key.id(),
            unit.last + 1,
            header.status,
            header.holder,
            header.attempts,
            header.due_at_ms,
            header.expires_at_ms,
            unit.now.as_millis(),
            Body(&draft.body),
        ])?;
        Ok((changed == 1).then(|| unit.next_version()))
    }

    fn put_over(
        &mut self,
        key: &Key,
        over: Version,
        draft: &Draft,
        unit: &mut Unit,
    ) -> Result<Option<Version>> {
        let header = HeaderRow::of(&draft.header, unit.now, &mut self.holder);
        let changed = self.put_over.get()?.execute(params![
            key.namespace(),
            key.id(),
            unit.last + 1,
            header.status,
            header.holder,
            header.attempts,
            header.due_at_ms,
            header.expires_at_ms,
            unit.now.as_millis(),
            version_number(over),
            Body(&draft.body),
        ])?;
        Ok((changed == 1).then(|| unit.next_version()))
    }

    fn touch(
        &mut self,
        key: &Key,
        over: Version,
        header: &HeaderDraft,
        unit: &mut Unit,
    ) -> Result<Option<Version>> {
        let header = HeaderRow::of(header, unit.now, &mut self.holder);
        let changed = self.touch.get()?.execute(params![
            key.namespace(),
            key.id(),
            unit.last + 1,
            header.status,
            header.holder,
            header.attempts,
            header.due_at_ms,
            header.expires_at_ms,
            unit.now.as_millis(),
            version_number(over),
        ])?;
        Ok((changed == 1).then(|| unit.next_version()))
    }
}

/// Refuses to go on when a row that must be there is not.
pub(super) fn exactly_one(changed: usize) -> Result<()> {
    if changed == 1 { Ok(()) } else { Err(Error::StatementChangedRows(changed)) }
}

pub(super) const READ: &str = "
    SELECT version, status, holder, attempts, due_at_ms, expires_at_ms, created_at_ms, updated_at_ms, body
    FROM onlyonce_entries
    WHERE namespace = ?1 AND id = ?2 AND (expires_at_ms IS NULL OR expires_at_ms > ?3)";

const READ_VERSION: &str = "
    SELECT version, expires_at_ms IS NULL OR expires_at_ms > ?3
    FROM onlyonce_entries
    WHERE namespace = ?1 AND id = ?2";

/// Over an expired entry it is an update, so a key keeps its row.
const PUT_ABSENT: &str = "
    INSERT INTO onlyonce_entries (namespace, id, version, status, holder, attempts, due_at_ms, expires_at_ms,
        created_at_ms, updated_at_ms, body)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9, ?10)
    ON CONFLICT (namespace, id) DO UPDATE SET version = ?3, status = ?4, holder = ?5, attempts = ?6,
        due_at_ms = ?7, expires_at_ms = ?8, created_at_ms = ?9, updated_at_ms = ?9, body = ?10
    WHERE expires_at_ms <= ?9";

pub(super) const PUT_OVER: &str = "
    UPDATE onlyonce_entries SET version = ?3, status = ?4, holder = ?5, attempts = ?6, due_at_ms = ?7,
        expires_at_ms = ?8, updated_at_ms = ?9, body = ?11
    WHERE namespace = ?1 AND id = ?2 AND version = ?10 AND (expires_at_ms IS NULL OR expires_at_ms > ?9)";

const TOUCH: &str = "
    UPDATE onlyonce_entries SET version = ?3, status = ?4, holder = ?5, attempts = ?6, due_at_ms = ?7,
        expires_at_ms = ?8, updated_at_ms = ?9
    WHERE namespace = ?1 AND id = ?2 AND version = ?10 AND (expires_at_ms IS NULL OR expires_at_ms > ?9)";

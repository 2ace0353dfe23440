//! Handing due entries to one holder.

use onlyonce::store::{Entry, Status, TakeDue};
use onlyonce::time::Timestamp;
use rusqlite::{Result, params};

use super::entries::{Entries, Unit, exactly_one};
use super::row;

/// An entry that is due, and the row it lies in.
struct Due {
    due_at: Timestamp,
    rowid: i64,
    entry: Entry,
}

impl Entries<'_> {
    /// Takes the earliest due entries in the unit's transaction.
    pub(super) fn take_due(&mut self, take: &TakeDue, unit: &mut Unit) -> Result<Vec<Entry>> {
        let mut found = Vec::new();
        // Status by status: each is one short walk of the index, where all at once would sort all that is due.
        let mut statuses = take.statuses.clone();
        statuses.sort_unstable();
        statuses.dedup();
        for status in statuses {
            self.find_due(take, status, unit.now, &mut found)?;
        }
        found.sort_unstable_by_key(|due| (due.due_at, due.rowid));
        found.truncate(take.limit);
        found.into_iter().map(|due| self.take(due, take, unit)).collect()
    }

    fn find_due(
        &mut self,
        take: &TakeDue,
        status: Status,
        now: Timestamp,
        found: &mut Vec<Due>,
    ) -> Result<()> {
        let limit = i64::try_from(take.limit).unwrap_or(i64::MAX);
        let statement = self.due.get()?;
        let mut rows = statement.query(params![take.namespace, status.as_str(), now.as_millis(), limit])?;
        while let Some(row) = rows.next()? {
            let (rowid, entry) = row::numbered(row, now)?;
            found.push(Due { due_at: entry.header.due_at.unwrap_or(now), rowid, entry });
        }
        Ok(())
    }

    fn take(&mut self, due: Due, take: &TakeDue, unit: &mut Unit) -> Result<Entry> {
        let mut entry = due.entry;
        entry.version = unit.next_version();
        entry.header.holder = Some(take.holder.clone());
        entry.header.attempts = entry.header.attempts.saturating_add(1);
        let due_at = unit.now.plus(take.lease);
        entry.header.due_at = Some(due_at);
        entry.header.updated_at = unit.now;
        exactly_one(self.take.get()?.execute(params![
            due.rowid,
            row::version_number(entry.version),
            row::holder_text(&take.holder, &mut self.holder),
            entry.header.attempts,
            due_at.as_millis(),
            unit.now.as_millis(),
        ])?)?;
        Ok(entry)
    }
}

pub(super) const DUE: &str = "
    SELECT rowid, namespace, id, version, status, holder, attempts, due_at_ms, expires_at_ms, created_at_ms,
        updated_at_ms, body
    FROM onlyonce_entries
    WHERE namespace = ?1 AND status = ?2 AND due_at_ms <= ?3 AND (expires_at_ms IS NULL OR expires_at_ms > ?3)
    ORDER BY due_at_ms, rowid
    LIMIT ?4";

pub(super) const TAKE: &str = "
    UPDATE onlyonce_entries SET version = ?2, holder = ?3, attempts = ?4, due_at_ms = ?5, updated_at_ms = ?6
    WHERE rowid = ?1";

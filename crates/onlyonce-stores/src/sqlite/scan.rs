//! Listing entries, page by page.
//!
//! Entries that are there come in the order of their keys; expired ones in the order they expired, so that a
//! sweep of a large table looks at nothing else. Both orders stay: a key keeps its place in the first, and
//! what has expired can only leave the second.

use onlyonce::store::{Cursor, Entry, Page, Scan, Status};
use onlyonce::time::Timestamp;
use rusqlite::{Connection, Params, Statement, params};

use super::entries::Lazy;
use super::row;
use super::trouble::Trouble;

/// The statements that list.
#[derive(Debug)]
pub(super) struct Scans<'c> {
    all: Lazy<'c>,
    one_namespace: Lazy<'c>,
    expired: Lazy<'c>,
}

impl<'c> Scans<'c> {
    pub(super) fn new(conn: &'c Connection) -> Self {
        Self {
            all: Lazy::new(conn, ALL),
            one_namespace: Lazy::new(conn, ONE_NAMESPACE),
            expired: Lazy::new(conn, EXPIRED),
        }
    }

    pub(super) fn scan(&mut self, scan: &Scan, now: Timestamp) -> Result<Page, Trouble> {
        let limit = scan.limit.clamp(1, MOST);
        // One more than asked for tells whether there is a next page.
        let rows = i64::try_from(limit).unwrap_or(i64::MAX) + 1;
        let mut found =
            if scan.expired { self.expired(scan, now, rows)? } else { self.live(scan, now, rows)? };
        let more = found.len() > limit;
        found.truncate(limit);
        let last = found.last().filter(|_| more);
        let next = last.map(|found| if scan.expired { expired_cursor(found) } else { key_cursor(found) });
        Ok(Page { entries: found.into_iter().map(|found| found.entry).collect(), next })
    }

    fn live(&mut self, scan: &Scan, now: Timestamp, rows: i64) -> Result<Vec<Found>, Trouble> {
        let (namespace, id) = match &scan.after {
            Some(Cursor(after)) => after.split_once('/').ok_or_else(|| strange_cursor(after))?,
            None => ("", ""),
        };
        let statuses = listed(&scan.statuses);
        let now_ms = now.as_millis();
        match &scan.namespace {
            Some(only) => {
                // A cursor of another namespace means: all of this one, or none of it.
                let id = match only.as_str().cmp(namespace) {
                    std::cmp::Ordering::Less => return Ok(Vec::new()),
                    std::cmp::Ordering::Equal => id,
                    std::cmp::Ordering::Greater => "",
                };
                collect(self.one_namespace.get()?, params![only, id, statuses, now_ms, rows], now)
            }
            None => collect(self.all.get()?, params![namespace, id, statuses, now_ms, rows], now),
        }
    }

    fn expired(&mut self, scan: &Scan, now: Timestamp, rows: i64) -> Result<Vec<Found>, Trouble> {
        let (expires_at_ms, rowid) = match &scan.after {
            Some(Cursor(after)) => parse_expired(after).ok_or_else(|| strange_cursor(after))?,
            None => (i64::MIN, i64::MIN),
        };
        let statuses = listed(&scan.statuses);
        let now_ms = now.as_millis();
        let asked = params![scan.namespace, expires_at_ms, rowid, statuses, now_ms, rows];
        collect(self.expired.get()?, asked, now)
    }
}

/// What a page may hold at most, however many were asked for.
const MOST: usize = 10_000;

struct Found {
    rowid: i64,
    entry: Entry,
}

fn collect(
    statement: &mut Statement<'_>,
    params: impl Params,
    now: Timestamp,
) -> Result<Vec<Found>, Trouble> {
    let mut rows = statement.query(params)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let (rowid, entry) = row::numbered(row, now)?;
        found.push(Found { rowid, entry });
    }
    Ok(found)
}

/// `,a,b,` for `instr`; `None`: all. A status has no comma in it.
fn listed(statuses: &[Status]) -> Option<String> {
    (!statuses.is_empty())
        .then(|| statuses.iter().fold(String::from(","), |list, status| list + status.as_str() + ","))
}

fn key_cursor(found: &Found) -> Cursor {
    Cursor(found.entry.key.as_str().to_owned())
}

fn expired_cursor(found: &Found) -> Cursor {
    let expires_at = found.entry.header.expires_at.unwrap_or_default();
    Cursor(format!("{}:{}", expires_at.as_millis(), found.rowid))
}

fn parse_expired(after: &str) -> Option<(i64, i64)> {
    let (expires_at_ms, rowid) = after.split_once(':')?;
    Some((expires_at_ms.parse().ok()?, rowid.parse().ok()?))
}

fn strange_cursor(after: &str) -> Trouble {
    Trouble::misconfigured(format!(
        "{after:?} is no place where a page of such a scan ended; begin the scan without it"
    ))
}

pub(super) const ALL: &str = "
    SELECT rowid, namespace, id, version, status, holder, attempts, due_at_ms, expires_at_ms, created_at_ms,
        updated_at_ms, body
    FROM onlyonce_entries
    WHERE (namespace, id) > (?1, ?2) AND (?3 IS NULL OR instr(?3, ',' || status || ',') > 0)
        AND (expires_at_ms IS NULL OR expires_at_ms > ?4)
    ORDER BY namespace, id
    LIMIT ?5";

pub(super) const ONE_NAMESPACE: &str = "
    SELECT rowid, namespace, id, version, status, holder, attempts, due_at_ms, expires_at_ms, created_at_ms,
        updated_at_ms, body
    FROM onlyonce_entries
    WHERE namespace = ?1 AND id > ?2 AND (?3 IS NULL OR instr(?3, ',' || status || ',') > 0)
        AND (expires_at_ms IS NULL OR expires_at_ms > ?4)
    ORDER BY id
    LIMIT ?5";

pub(super) const EXPIRED: &str = "
    SELECT rowid, namespace, id, version, status, holder, attempts, due_at_ms, expires_at_ms, created_at_ms,
        updated_at_ms, body
    FROM onlyonce_entries
    WHERE (?1 IS NULL OR namespace = ?1) AND (expires_at_ms, rowid) > (?2, ?3) AND expires_at_ms <= ?5
        AND (?4 IS NULL OR instr(?4, ',' || status || ',') > 0)
    ORDER BY expires_at_ms, rowid
    LIMIT ?6";

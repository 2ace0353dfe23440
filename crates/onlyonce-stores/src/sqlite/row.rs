//! How an entry lies in its row.

use std::fmt::Write as _;

use bytes::Bytes;
use onlyonce::Key;
use onlyonce::store::{Entry, Header, HeaderDraft, Holder, Status, Version};
use onlyonce::time::Timestamp;
use rusqlite::types::{ToSqlOutput, Type, ValueRef};
use rusqlite::{Error, Result, Row, ToSql};

/// A JSON body, bound as text without looking at it.
pub(super) struct Body<'a>(pub(super) &'a [u8]);

impl ToSql for Body<'_> {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(self.0)))
    }
}

/// A header as it goes into a row: moments in milliseconds, the holder as text.
pub(super) struct HeaderRow<'a> {
    pub(super) status: &'a str,
    pub(super) holder: Option<&'a str>,
    pub(super) attempts: u32,
    pub(super) due_at_ms: Option<i64>,
    pub(super) expires_at_ms: Option<i64>,
}

impl<'a> HeaderRow<'a> {
    /// `text` keeps its memory from one write to the next.
    pub(super) fn of(draft: &'a HeaderDraft, now: Timestamp, text: &'a mut String) -> Self {
        Self {
            status: draft.status.as_str(),
            holder: draft.holder.as_ref().map(|holder| holder_text(holder, text)),
            attempts: draft.attempts,
            due_at_ms: draft.due_in.map(|d| now.plus(d).as_millis()),
            expires_at_ms: draft.keep_for.map(|d| now.plus(d).as_millis()),
        }
    }
}

pub(super) fn holder_text<'a>(holder: &Holder, text: &'a mut String) -> &'a str {
    text.clear();
    // Writing to a string does not fail.
    let _ = write!(text, "{holder}");
    text
}

/// The version as SQLite keeps it; one that no row can have becomes one that no row has.
pub(super) fn version_number(version: Version) -> i64 {
    i64::try_from(version.get()).unwrap_or(-1)
}

pub(super) fn version(row: &Row<'_>, at: usize) -> Result<Version> {
    let number: i64 = row.get(at)?;
    u64::try_from(number).map(Version::new).map_err(|_| Error::IntegralValueOutOfRange(at, number))
}

/// The entry of `key`, in a row of version, status, holder, attempts, due, expires, created, updated, body.
pub(super) fn entry(row: &Row<'_>, first: usize, key: Key, read_at: Timestamp) -> Result<Entry> {
    Ok(Entry {
        key,
        version: version(row, first)?,
        header: Header {
            status: status(row, first + 1)?,
            holder: text(row, first + 2)?.map(Holder::parse),
            attempts: row.get(first + 3)?,
            due_at: moment(row, first + 4)?,
            expires_at: moment(row, first + 5)?,
            created_at: Timestamp::from_millis(row.get(first + 6)?),
            updated_at: Timestamp::from_millis(row.get(first + 7)?),
        },
        body: body(row, first + 8)?,
        read_at,
    })
}

/// The rowid and entry in a row of rowid, namespace, id, and what [`entry`] wants.
///
/// An error names the row: with that, a person can find it.
pub(super) fn numbered(row: &Row<'_>, read_at: Timestamp) -> Result<(i64, Entry)> {
    let rowid = row.get(0)?;
    match key(row, 1).and_then(|key| entry(row, 3, key, read_at)) {
        Ok(entry) => Ok((rowid, entry)),
        Err(error) => {
            let named = format!("row {rowid} of onlyonce_entries: {error}");
            Err(Error::FromSqlConversionFailure(0, Type::Text, named.into()))
        }
    }
}

/// The key in a row of namespace and id.
fn key(row: &Row<'_>, first: usize) -> Result<Key> {
    let (namespace, id) = (text(row, first)?.unwrap_or_default(), text(row, first + 1)?.unwrap_or_default());
    Key::new(namespace, id).map_err(|e| Error::FromSqlConversionFailure(first, Type::Text, Box::new(e)))
}

fn text<'r>(row: &'r Row<'_>, at: usize) -> Result<Option<&'r str>> {
    row.get_ref(at)?
        .as_str_or_null()
        .map_err(|e| Error::FromSqlConversionFailure(at, Type::Text, Box::new(e)))
}

fn status(row: &Row<'_>, at: usize) -> Result<Status> {
    let text = text(row, at)?.unwrap_or_default();
    Status::parse(text).ok_or_else(|| {
        Error::FromSqlConversionFailure(at, Type::Text, format!("{text:?} is no status").into())
    })
}

fn moment(row: &Row<'_>, at: usize) -> Result<Option<Timestamp>> {
    Ok(row.get::<_, Option<i64>>(at)?.map(Timestamp::from_millis))
}

fn body(row: &Row<'_>, at: usize) -> Result<Bytes> {
    let bytes = row
        .get_ref(at)?
        .as_bytes()
        .map_err(|e| Error::FromSqlConversionFailure(at, Type::Text, Box::new(e)))?;
    Ok(Bytes::copy_from_slice(bytes))
}

//! Looks through the whole store; its cost grows with the number of entries, wanted or not.

use onlyonce::Key;
use onlyonce::store::StoreErrorKind::{Corrupt, Misconfigured};
use onlyonce::store::{Cursor, Entry, Header, Page, Scan, TakeDue};
use onlyonce::time::Timestamp;

use super::format::{Kept, Record};
use super::root::{Name, Root, Shard};
use super::shard::ShardDir;
use super::trouble::Trouble;

/// A page ends after so many entries were looked at, found or not, so that no page takes for ever.
const LOOKED_AT_PER_PAGE: usize = 10_000;

/// An entry that was due when the walk passed it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Due {
    at: Timestamp,
    key: Key,
    pub(super) name: Name,
}

/// Every entry of these shards the taker could have, in any order.
pub(super) fn due(
    root: &Root,
    shards: impl Iterator<Item = Shard>,
    take: &TakeDue,
    now: Timestamp,
) -> Result<Vec<Due>, Trouble> {
    let mut found = Vec::new();
    for shard in shards {
        let Some(dir) = ShardDir::open(root, shard)? else { continue };
        for name in dir.entry_names()? {
            let record = undamaged(dir.read_head(&name))?.flatten();
            if let Some(Record { key, header: Header { due_at: Some(at), .. }, .. }) =
                record.filter(|record| record.is_due_for(take, now))
            {
                found.push(Due { at, key, name });
            }
        }
    }
    Ok(found)
}

/// One page, in the order of file names.
pub(super) fn page(root: &Root, scan: &Scan, now: Timestamp) -> Result<Page, Trouble> {
    let after = scan.after.as_ref().map(start).transpose()?;
    let mut page = Page::default();
    let mut looked_at = 0;
    for shard in after.as_ref().map_or(Shard::FIRST, Name::shard).onward() {
        let Some(dir) = ShardDir::open(root, shard)? else { continue };
        for name in dir.entry_names()?.into_iter().filter(|name| after.as_ref().is_none_or(|a| name > a)) {
            if page.entries.len() >= scan.limit.max(1) || looked_at >= LOOKED_AT_PER_PAGE {
                dir.make_sure()?;
                return Ok(page);
            }
            looked_at += 1;
            page.entries.extend(wanted(&dir, &name, scan, now)?);
            page.next = Some(Cursor(name.as_str().to_owned()));
        }
        dir.make_sure()?;
    }
    page.next = None;
    Ok(page)
}

fn start(cursor: &Cursor) -> Result<Name, Trouble> {
    Name::parse(&cursor.0).ok_or_else(|| {
        let message =
            format!("{:?} is not where a page of the file store ended; begin again without it", cursor.0);
        Trouble::new(Misconfigured, message)
    })
}

/// The entry of this name, if the scan asks for it.
fn wanted(dir: &ShardDir<'_>, name: &Name, scan: &Scan, now: Timestamp) -> Result<Option<Entry>, Trouble> {
    let asked_for = |record: &Record| {
        scan.namespace.as_ref().is_none_or(|n| n == record.key.namespace())
            && (scan.statuses.is_empty() || scan.statuses.contains(&record.header.status))
            && record.header.is_expired(now) == scan.expired
    };
    let Some(Some(head)) = undamaged(dir.read_head(name))? else { return Ok(None) };
    if !asked_for(&head) {
        return Ok(None);
    }
    let whole = undamaged(dir.read_named(name))?.flatten().and_then(Kept::into_record);
    Ok(whole.filter(asked_for).map(|record| record.into_entry(now)))
}

/// Passes over a damaged file, and says so: it must not hide the entries around it.
fn undamaged<T>(read: Result<T, Trouble>) -> Result<Option<T>, Trouble> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(trouble) if trouble.kind() == Corrupt => {
            tracing::error!(%trouble, "entry_damaged");
            Ok(None)
        }
        Err(trouble) => Err(trouble),
    }
}

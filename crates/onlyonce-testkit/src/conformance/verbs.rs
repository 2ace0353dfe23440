//! The few words the cases are written in.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use onlyonce::Key;
use onlyonce::store::{
    Commit, Cursor, Draft, Entry, Expect, HeaderDraft, Holder, Scan, Status, StoreErrorKind, TakeDue,
    Version, WhoseClock, Write,
};
use onlyonce::time::BoxFuture;
use tokio::sync::Barrier;

use super::failure::{ensure, ensure_eq};
use super::{Failure, Room, Verdict};

pub(super) const PLAIN: Status = Status::new("plain");
pub(super) const OTHER: Status = Status::new("other");
pub(super) const HOUR: Duration = Duration::from_secs(3600);

pub(super) fn plain() -> HeaderDraft {
    HeaderDraft::new(PLAIN)
}

/// Due at once.
pub(super) fn due() -> HeaderDraft {
    HeaderDraft { due_in: Some(Duration::ZERO), ..plain() }
}

/// Gone at once.
pub(super) fn gone() -> HeaderDraft {
    HeaderDraft { keep_for: Some(Duration::ZERO), ..plain() }
}

pub(super) fn holder(text: &str) -> Holder {
    Holder::parse(text)
}

pub(super) fn draft(header: HeaderDraft, body: impl Into<Bytes>) -> Draft {
    Draft { header, body: body.into() }
}

pub(super) fn put(key: &Key, expect: Expect, header: HeaderDraft, body: impl Into<Bytes>) -> Write {
    Write::Put { key: key.clone(), expect, draft: draft(header, body) }
}

pub(super) fn create(key: &Key, header: HeaderDraft, body: impl Into<Bytes>) -> Write {
    put(key, Expect::Absent, header, body)
}

pub(super) fn replace(key: &Key, seen: Version, header: HeaderDraft, body: impl Into<Bytes>) -> Write {
    put(key, Expect::Version(seen), header, body)
}

pub(super) fn touch(key: &Key, expect: Version, header: HeaderDraft) -> Write {
    Write::Touch { key: key.clone(), expect, header }
}

pub(super) fn check(key: &Key, expect: Expect) -> Write {
    Write::Check { key: key.clone(), expect }
}

pub(super) fn delete(key: &Key, expect: Version) -> Write {
    Write::Delete { key: key.clone(), expect }
}

/// What a verb gives: in a box, because a case is made of dozens of them, and the compiler would write each
/// of them out again where it stands.
type Boxed<'a, T> = BoxFuture<'a, Verdict<T>>;

impl Room {
    /// Commits; anything but `Stored` fails the case.
    pub(super) fn stored(&self, writes: Vec<Write>) -> Boxed<'_, Vec<Version>> {
        Box::pin(async move {
            let many = writes.len();
            let asked = writes.clone();
            match self.store().commit(writes).await? {
                Commit::Stored(versions) => {
                    ensure_eq!(versions.len(), many, "a stored commit gives one version per write");
                    Ok(versions)
                }
                Commit::Conflict(there) => Err(Failure::new(format!(
                    "a commit whose every expectation holds was refused; there is {there:?}, asked was {asked:?}"
                ))),
            }
        })
    }

    /// Commits one write; anything but `Stored` fails the case.
    pub(super) fn store_one(&self, write: Write) -> Boxed<'_, Version> {
        Box::pin(async move { Ok(self.stored(vec![write]).await?.remove(0)) })
    }

    /// Commits; anything but `Conflict` fails the case.
    pub(super) fn conflicted(&self, writes: Vec<Write>) -> Boxed<'_, Vec<Option<Entry>>> {
        Box::pin(async move {
            let many = writes.len();
            let asked = writes.clone();
            match self.store().commit(writes).await? {
                Commit::Conflict(there) => {
                    ensure_eq!(there.len(), many, "a conflict carries one item per write");
                    Ok(there)
                }
                Commit::Stored(versions) => Err(Failure::new(format!(
                    "a commit whose expectation fails was stored as {versions:?}; asked was {asked:?}"
                ))),
            }
        })
    }

    /// Commits one write; anything but `Conflict` fails the case.
    pub(super) fn conflict_one(&self, write: Write) -> Boxed<'_, Option<Entry>> {
        Box::pin(async move { Ok(self.conflicted(vec![write]).await?.remove(0)) })
    }

    /// Commits; anything but an error of this kind fails the case.
    pub(super) fn refused(&self, writes: Vec<Write>, kind: StoreErrorKind) -> Boxed<'_, ()> {
        Box::pin(async move {
            let asked = format!("{} writes", writes.len());
            match self.store().commit(writes).await {
                Ok(answer) => {
                    Err(Failure::new(format!("{asked} should be refused as {kind:?}, was {answer:?}")))
                }
                Err(error) => {
                    ensure_eq!(error.kind(), kind, "the kind of {error:?} for {asked}");
                    Ok(())
                }
            }
        })
    }

    /// What is there.
    pub(super) fn look<'a>(&'a self, key: &'a Key) -> Boxed<'a, Option<Entry>> {
        Box::pin(async move {
            let mut found = self.store().read(std::slice::from_ref(key)).await?;
            ensure_eq!(found.len(), 1, "a read of one key gives one item");
            Ok(found.remove(0))
        })
    }

    /// What is there; nothing fails the case.
    pub(super) fn there<'a>(&'a self, key: &'a Key) -> Boxed<'a, Entry> {
        Box::pin(async move {
            let entry =
                self.look(key).await?.ok_or_else(|| Failure::new(format!("{key} should be there")))?;
            ensure_eq!(entry.key, *key, "the key of what was read under {key}");
            Ok(entry)
        })
    }

    /// Something there fails the case.
    pub(super) fn absent<'a>(&'a self, key: &'a Key) -> Boxed<'a, ()> {
        Box::pin(async move {
            match self.look(key).await? {
                None => Ok(()),
                Some(entry) => {
                    Err(Failure::new(format!("nothing should be under {key}, there is {entry:?}")))
                }
            }
        })
    }

    /// Fails the case unless `key` is as it was.
    pub(super) fn unchanged<'a>(&'a self, was: &'a Entry) -> Boxed<'a, ()> {
        Box::pin(async move {
            let now = self.there(&was.key).await?;
            same(&now, was)
        })
    }

    /// Takes due `plain` entries from home for an hour.
    pub(super) fn take(&self, limit: usize) -> Boxed<'_, Vec<Entry>> {
        Box::pin(async move { Ok(self.store().take_due(self.taking(limit)).await?) })
    }

    pub(super) fn taking(&self, limit: usize) -> TakeDue {
        let statuses = vec![PLAIN];
        TakeDue { namespace: self.home(), statuses, holder: holder("taker#1"), lease: HOUR, limit }
    }

    /// Every entry a scan gives, page by page.
    pub(super) fn walk(&self, scan: Scan) -> Boxed<'_, Vec<Entry>> {
        Box::pin(async move {
            let mut all = Vec::new();
            let mut after: Option<Cursor> = scan.after.clone();
            for _ in 0..100_000 {
                let page = self.store().scan(Scan { after, ..scan.clone() }).await?;
                ensure!(
                    page.entries.len() <= scan.limit.max(1),
                    "a page of at most {} has {} entries",
                    scan.limit,
                    page.entries.len()
                );
                all.extend(page.entries);
                match page.next {
                    Some(next) => after = Some(next),
                    None => return Ok(all),
                }
            }
            Err(Failure::new("a walk of 100,000 pages has not come to its end; the cursor goes in circles"))
        })
    }

    /// A scan of home.
    pub(super) fn scan_home(&self, limit: usize) -> Scan {
        Scan { namespace: Some(self.home()), limit, ..Scan::default() }
    }

    /// Whether expired entries stay until somebody sweeps them; a server may sweep by itself.
    pub(super) fn keeps_expired(&self) -> bool {
        self.facts().clock != WhoseClock::Server
    }

    /// Whether one commit may hold so many writes.
    pub(super) fn takes(&self, writes: usize) -> bool {
        self.facts().writes_per_commit >= writes
    }
}

/// Fails unless both are the same entry, whenever they were read.
pub(super) fn same(found: &Entry, wanted: &Entry) -> Verdict {
    let wanted = Entry { read_at: found.read_at, ..wanted.clone() };
    ensure_eq!(*found, wanted, "what is under {}", found.key);
    Ok(())
}

/// How many run at once.
#[derive(Clone, Copy, Debug)]
pub(super) enum Crowd {
    /// In turn in one task: finds whatever is not atomic between two awaits, on any machine.
    InTurn,
    /// A task each, begun at the same moment: as parallel as the machine is.
    AtOnce,
}

pub(super) const CROWDS: [Crowd; 2] = [Crowd::InTurn, Crowd::AtOnce];

/// Runs all of them together, and gives back what they answered.
pub(super) async fn together<T: Send + 'static>(
    crowd: Crowd,
    futures: Vec<impl Future<Output = Verdict<T>> + Send + 'static>,
) -> Verdict<Vec<T>> {
    let barrier = Arc::new(Barrier::new(futures.len()));
    let begin = |future| {
        let barrier = barrier.clone();
        async move {
            barrier.wait().await;
            future.await
        }
    };
    let begun = futures.into_iter().map(begin);
    match crowd {
        Crowd::InTurn => join_all(begun).await.into_iter().collect(),
        Crowd::AtOnce => {
            let tasks: Vec<_> = begun.map(tokio::spawn).collect();
            let mut answers = Vec::new();
            for task in tasks {
                answers.push(task.await??);
            }
            Ok(answers)
        }
    }
}

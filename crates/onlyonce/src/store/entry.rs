//! What a store keeps, and what it is asked.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::key::Key;
use crate::time::Timestamp;

/// A number the store gives to every write; it rises per key and never repeats.
///
/// The version of a claim is its **fence**: a later lease has a higher one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Version(u64);

impl Version {
    /// The version with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A short word in the header: `running`, `completed`, …
///
/// Up to 23 characters of `a-z`, `0-9` and `_`, kept in place. What a word means is for the rules to say; a
/// store only compares it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Status {
    bytes: [u8; 23],
    len: u8,
}

impl Status {
    /// The status of this name.
    ///
    /// # Panics
    /// When the name is empty, longer than 23 bytes, or has other characters. Meant for constants; names from
    /// outside go through [`Status::parse`].
    pub const fn new(name: &str) -> Self {
        match Self::parse(name) {
            Some(status) => status,
            None => panic!("a status is 1 to 23 characters of a-z, 0-9 and _"),
        }
    }

    /// The status of this name, or `None` if it cannot be one.
    pub const fn parse(name: &str) -> Option<Self> {
        let from = name.as_bytes();
        if from.is_empty() || from.len() > 23 {
            return None;
        }
        let mut bytes = [0; 23];
        let mut i = 0;
        while i < from.len() {
            if !matches!(from[i], b'a'..=b'z' | b'0'..=b'9' | b'_') {
                return None;
            }
            bytes[i] = from[i];
            i += 1;
        }
        #[expect(clippy::cast_possible_truncation, reason = "at most 23")]
        Some(Self { bytes, len: from.len() as u8 })
    }

    /// The word.
    pub fn as_str(&self) -> &str {
        // Only ASCII was let in, so this never falls back.
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Who has a lease: a worker, and which of its claims.
///
/// Shown as `worker#claim`. The claim number makes every claim of one worker its own holder, so that a worker
/// that reads back after a lost reply never takes a later claim of its own for the one it asks about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holder {
    worker: Arc<str>,
    claim: u64,
}

impl Holder {
    /// The holder for one claim of a worker.
    pub fn new(worker: Arc<str>, claim: u64) -> Self {
        Self { worker, claim }
    }

    /// Reads `worker#claim`; a text without a number is a worker whose claim is 0.
    pub fn parse(text: &str) -> Self {
        match text.rsplit_once('#').and_then(|(worker, claim)| Some((worker, claim.parse().ok()?))) {
            Some((worker, claim)) => Self { worker: worker.into(), claim },
            None => Self { worker: text.into(), claim: 0 },
        }
    }

    /// The worker's name.
    pub fn worker(&self) -> &str {
        &self.worker
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.worker, self.claim)
    }
}

/// What is remembered under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its key.
    pub key: Key,
    /// The number of the write that made it what it is.
    pub version: Version,
    /// What a store may index.
    pub header: Header,
    /// JSON, byte for byte as it was put.
    pub body: Bytes,
    /// When the store read it, by the clock that set `due_at` and `expires_at`.
    pub read_at: Timestamp,
}

/// As much of an entry as a glance shows: enough to give back what is recorded in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glimpse {
    /// Its status.
    pub status: Status,
    /// How often somebody began.
    pub attempts: u32,
    /// JSON, byte for byte as it was put.
    pub body: Bytes,
}

/// The part of an entry a store may index: moments, as the store's clock set them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// One word of the rules' own.
    pub status: Status,
    /// Who has it.
    pub holder: Option<Holder>,
    /// How often somebody began.
    pub attempts: u32,
    /// When somebody should look: the end of a lease, or the start of planned work.
    pub due_at: Option<Timestamp>,
    /// From when on it is not there any more.
    pub expires_at: Option<Timestamp>,
    /// When the key was first put.
    pub created_at: Timestamp,
    /// When it was last written.
    pub updated_at: Timestamp,
}

/// What a writer says of the header: durations, for the store's clock to turn into moments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderDraft {
    /// One word of the rules' own.
    pub status: Status,
    /// Who has it.
    pub holder: Option<Holder>,
    /// How often somebody began.
    pub attempts: u32,
    /// Due so long after the write; `None`: never due.
    pub due_in: Option<Duration>,
    /// Gone so long after the write; `None`: stays.
    pub keep_for: Option<Duration>,
}

impl HeaderDraft {
    /// A header with this status and nothing else.
    pub fn new(status: Status) -> Self {
        Self { status, holder: None, attempts: 0, due_in: None, keep_for: None }
    }

    /// The header this becomes when written at `now` over an entry first put at `created_at`.
    pub fn at(self, now: Timestamp, created_at: Timestamp) -> Header {
        Header {
            status: self.status,
            holder: self.holder,
            attempts: self.attempts,
            due_at: self.due_in.map(|d| now.plus(d)),
            expires_at: self.keep_for.map(|d| now.plus(d)),
            created_at,
            updated_at: now,
        }
    }
}

impl Header {
    /// Whether the entry is no longer there at `now`.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }

    /// Whether somebody should look at `now`.
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.due_at.is_some_and(|at| at <= now)
    }
}

/// A new header and body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// The header.
    pub header: HeaderDraft,
    /// JSON.
    pub body: Bytes,
}

/// What a write expects to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Nothing, or an expired entry.
    Absent,
    /// This very version, not expired.
    Version(Version),
}

/// One conditional write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Replaces header and body.
    Put {
        /// Where.
        key: Key,
        /// Only over this.
        expect: Expect,
        /// The new header and body.
        draft: Draft,
    },
    /// Replaces the header; the body stays, so a heartbeat costs the same for any body.
    Touch {
        /// Where.
        key: Key,
        /// Only over this.
        expect: Version,
        /// The new header.
        header: HeaderDraft,
    },
    /// Writes nothing, but must hold for the rest to be written.
    Check {
        /// Where.
        key: Key,
        /// What must be there.
        expect: Expect,
    },
    /// Removes the entry, expired or not.
    Delete {
        /// Where.
        key: Key,
        /// Only this.
        expect: Version,
    },
}

impl Write {
    /// The key it is about.
    pub fn key(&self) -> &Key {
        match self {
            Self::Put { key, .. }
            | Self::Touch { key, .. }
            | Self::Check { key, .. }
            | Self::Delete { key, .. } => key,
        }
    }

    /// What it expects to find.
    pub fn expect(&self) -> Expect {
        match self {
            Self::Put { expect, .. } | Self::Check { expect, .. } => *expect,
            Self::Touch { expect, .. } | Self::Delete { expect, .. } => Expect::Version(*expect),
        }
    }

    /// Whether it may be applied to what is there; `there` is the entry as kept, expired or not.
    ///
    /// Every store asks this, in its own language or here.
    pub fn holds(&self, there: Option<(Version, &Header)>, now: Timestamp) -> bool {
        let live = there.filter(|(_, header)| !header.is_expired(now));
        match self {
            Self::Delete { expect, .. } => there.is_some_and(|(version, _)| version == *expect),
            Self::Touch { expect, .. } => live.is_some_and(|(version, _)| version == *expect),
            Self::Put { expect, .. } | Self::Check { expect, .. } => match expect {
                Expect::Absent => live.is_none(),
                Expect::Version(wanted) => live.is_some_and(|(version, _)| version == *wanted),
            },
        }
    }
}

/// A store's answer to a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Commit {
    /// All written: the new version per write. A check gives the version it saw (0 when it saw nothing), a
    /// delete the version it removed.
    Stored(Vec<Version>),
    /// Nothing written: what is there, per write, in order.
    Conflict(Vec<Option<Entry>>),
}

/// Which due entries to take, and for whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakeDue {
    /// Only entries of this namespace.
    pub namespace: String,
    /// Only entries with one of these.
    pub statuses: Vec<Status>,
    /// Who takes them.
    pub holder: Holder,
    /// For how long.
    pub lease: Duration,
    /// At most so many.
    pub limit: usize,
}

/// Which entries to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// Only this namespace; `None`: all.
    pub namespace: Option<String>,
    /// Only these; empty: all.
    pub statuses: Vec<Status>,
    /// Expired entries that are still kept, instead of those that are there.
    pub expired: bool,
    /// Where the last page ended.
    pub after: Option<Cursor>,
    /// At most so many; at least one is looked at.
    pub limit: usize,
}

/// Where a page ended; means something only to the store that gave it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cursor(pub String);

/// One page of a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The entries; a page may be short, even empty, and not be the last.
    pub entries: Vec<Entry>,
    /// Where to go on; `None`: that was all.
    pub next: Option<Cursor>,
}

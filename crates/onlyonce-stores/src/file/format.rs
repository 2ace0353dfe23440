//! What a file of the store holds, byte for byte.
//!
//! ```text
//! {"onlyonce":"entry","key":"orders/4711","version":3,"status":"running", … ,"body_bytes":7,"body_sha256":"…"}
//! {"sha256":"…"}                    of the line above
//! {"a":1}                           the body, as it was put
//! ```
//!
//! Every byte is covered: the first line by the second, the second by having one spelling only, the body by its
//! length and hash in the first. A removed entry leaves two such lines, with its version in the first; see
//! `shard.rs` for why.

use bytes::Bytes;
use onlyonce::Key;
use onlyonce::store::{Entry, Header, Holder, Status, TakeDue, Version};
use onlyonce::time::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What a file holds.
#[derive(Debug)]
pub(super) enum Kept {
    Entry(Record),
    /// Nothing is there, and the key has had versions up to this one.
    Removed(Version),
}

/// An entry as kept: an [`Entry`] that nobody has read yet.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) key: Key,
    pub(super) version: Version,
    pub(super) header: Header,
    pub(super) body: Bytes,
}

/// The first two lines: all there is to know but the body.
#[derive(Debug)]
pub(super) struct Head {
    line: Line,
    /// Where the body begins.
    len: usize,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "onlyonce", rename_all = "snake_case", deny_unknown_fields)]
enum Line {
    Entry(EntryLine),
    Removed { version: Version },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryLine {
    key: String,
    version: Version,
    status: String,
    holder: Option<String>,
    attempts: u32,
    due_at_ms: Option<Timestamp>,
    expires_at_ms: Option<Timestamp>,
    created_at_ms: Timestamp,
    updated_at_ms: Timestamp,
    body_bytes: u64,
    body_sha256: String,
}

impl Kept {
    pub(super) fn version(&self) -> Version {
        match self {
            Self::Entry(record) => record.version,
            Self::Removed(version) => *version,
        }
    }

    pub(super) fn record(&self) -> Option<&Record> {
        match self {
            Self::Entry(record) => Some(record),
            Self::Removed(_) => None,
        }
    }

    pub(super) fn into_record(self) -> Option<Record> {
        match self {
            Self::Entry(record) => Some(record),
            Self::Removed(_) => None,
        }
    }

    /// Reads a whole file; the error says what is wrong with it.
    pub(super) fn decode(file: &[u8]) -> Result<Self, String> {
        let head = Head::decode(file)?.ok_or("it ends within its first two lines")?;
        let rest = &file[head.len..];
        match head.line {
            Line::Removed { version } if rest.is_empty() => Ok(Self::Removed(version)),
            Line::Removed { .. } => Err("it goes on where it should end".to_owned()),
            Line::Entry(line) => {
                let body = rest.strip_suffix(b"\n").ok_or("its end is missing")?;
                if body.len() as u64 != line.body_bytes {
                    return Err(format!("its body has {} bytes instead of {}", body.len(), line.body_bytes));
                }
                if sha256(body) != line.body_sha256 {
                    return Err("its body is not the one that was written".to_owned());
                }
                line.record(Bytes::copy_from_slice(body)).map(Self::Entry)
            }
        }
    }
}

impl Head {
    /// The head of a file that begins with `start`; `None` when it does not end there.
    pub(super) fn decode(start: &[u8]) -> Result<Option<Self>, String> {
        let Some(end) = start.iter().position(|byte| *byte == b'\n') else { return Ok(None) };
        let (line, rest) = start.split_at(end + 1);
        let seal = seal(line);
        if rest.len() < seal.len() {
            return Ok(None);
        }
        if !rest.starts_with(seal.as_bytes()) {
            return Err("its first line is not the one that was written".to_owned());
        }
        let len = line.len() + seal.len();
        let line = serde_json::from_slice(line).map_err(|e| format!("its first line is not ours: {e}"))?;
        Ok(Some(Self { line, len }))
    }

    /// Where it ends, and the body begins.
    pub(super) fn len(&self) -> u64 {
        self.len as u64
    }

    /// Whether it is all that is left of a removed entry.
    pub(super) fn is_removed(&self) -> bool {
        matches!(self.line, Line::Removed { .. })
    }

    /// How long the whole file must be.
    pub(super) fn file_len(&self) -> u64 {
        match &self.line {
            Line::Entry(line) => self.len().saturating_add(line.body_bytes).saturating_add(1),
            Line::Removed { .. } => self.len(),
        }
    }

    pub(super) fn version(&self) -> Version {
        match &self.line {
            Line::Entry(line) => line.version,
            Line::Removed { version } => *version,
        }
    }

    /// The entry without its body; `None` when it was removed.
    pub(super) fn record(self) -> Result<Option<Record>, String> {
        match self.line {
            Line::Entry(line) => line.record(Bytes::new()).map(Some),
            Line::Removed { .. } => Ok(None),
        }
    }
}

impl EntryLine {
    fn record(self, body: Bytes) -> Result<Record, String> {
        let status = Status::parse(&self.status).ok_or("its status is no word")?;
        let key = Key::parse(&self.key).map_err(|e| e.to_string())?;
        let header = Header {
            status,
            holder: self.holder.as_deref().map(Holder::parse),
            attempts: self.attempts,
            due_at: self.due_at_ms,
            expires_at: self.expires_at_ms,
            created_at: self.created_at_ms,
            updated_at: self.updated_at_ms,
        };
        Ok(Record { key, version: self.version, header, body })
    }
}

impl Record {
    /// The file that holds this entry.
    pub(super) fn encode(&self) -> Vec<u8> {
        let Header { status, holder, attempts, due_at, expires_at, created_at, updated_at } = &self.header;
        let mut file = encode_head(&Line::Entry(EntryLine {
            key: self.key.as_str().to_owned(),
            version: self.version,
            status: status.as_str().to_owned(),
            holder: holder.as_ref().map(Holder::to_string),
            attempts: *attempts,
            due_at_ms: *due_at,
            expires_at_ms: *expires_at,
            created_at_ms: *created_at,
            updated_at_ms: *updated_at,
            body_bytes: self.body.len() as u64,
            body_sha256: sha256(&self.body),
        }));
        file.extend_from_slice(&self.body);
        file.push(b'\n');
        file
    }

    /// Whether a taker asked for this entry.
    pub(super) fn is_due_for(&self, take: &TakeDue, now: Timestamp) -> bool {
        let header = &self.header;
        self.key.namespace() == take.namespace
            && take.statuses.contains(&header.status)
            && header.is_due(now)
            && !header.is_expired(now)
    }

    pub(super) fn into_entry(self, read_at: Timestamp) -> Entry {
        Entry { key: self.key, version: self.version, header: self.header, body: self.body, read_at }
    }
}

/// The file that says a key had versions up to this one.
pub(super) fn encode_removed(version: Version) -> Vec<u8> {
    encode_head(&Line::Removed { version })
}

fn encode_head(line: &Line) -> Vec<u8> {
    // Strings and numbers always have a JSON form; a file without a head would be refused when read.
    let mut file = serde_json::to_vec(line).unwrap_or_default();
    file.push(b'\n');
    let seal = seal(&file);
    file.extend_from_slice(seal.as_bytes());
    file
}

fn seal(line: &[u8]) -> String {
    format!("{{\"sha256\":\"{}\"}}\n", sha256(line))
}

/// SHA-256 in lower-case hex.
pub(super) fn sha256(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| char::from(DIGITS[usize::from(value)]);
    Sha256::digest(bytes).iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(body: &'static [u8]) -> Record {
        Record {
            key: Key::new("n", "\"quoted\" \\ \u{1F600}").unwrap(),
            version: Version::new(u64::MAX),
            header: Header {
                status: Status::new("running"),
                holder: Some(Holder::parse("w#x#7")),
                attempts: u32::MAX,
                due_at: Some(Timestamp::from_millis(i64::MIN)),
                expires_at: None,
                created_at: Timestamp::from_millis(0),
                updated_at: Timestamp::from_millis(i64::MAX),
            },
            body: Bytes::from_static(body),
        }
    }

    #[test]
    fn an_entry_reads_back_as_it_was_written() {
        for body in [&b"{}"[..], b"", b"[]", b"0", b"\"\"", b"false", b"null", b"{\n \"a\": 1\n}\n", b"\n\n"]
        {
            let written = record(body);
            let Ok(Kept::Entry(read)) = Kept::decode(&written.encode()) else { panic!("{body:?}") };
            let now = Timestamp::from_millis(1);
            assert_eq!(read.into_entry(now), written.into_entry(now));
        }
        let removed = Kept::decode(&encode_removed(Version::new(7))).unwrap();
        assert!(removed.record().is_none());
        assert_eq!(removed.version(), Version::new(7));
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        for whole in [record(b"{\"a\": [1, 2]}").encode(), encode_removed(Version::new(7))] {
            for at in 0..whole.len() {
                assert!(Kept::decode(&whole[..at]).is_err(), "cut at {at}");
                for bit in 0..8 {
                    let mut bent = whole.clone();
                    bent[at] ^= 1 << bit;
                    assert!(Kept::decode(&bent).is_err(), "bit {bit} of byte {at}");
                }
            }
            let mut longer = whole.clone();
            longer.push(b'\n');
            assert!(Kept::decode(&longer).is_err());
        }
    }

    #[test]
    fn the_head_alone_tells_how_long_the_file_is() {
        let whole = record(b"{\"a\": 1}").encode();
        let head = Head::decode(&whole[..whole.len() - 9]).unwrap().unwrap();
        assert_eq!(head.file_len(), whole.len() as u64);
        assert_eq!(head.record().unwrap().unwrap().header, record(b"").header);
        assert!(Head::decode(&whole[..20]).unwrap().is_none());
    }
}

//! Keys of contents: one content, one key, whatever the file is called.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::str::FromStr;

use sha2::{Digest, Sha256};

use super::Key;
use super::fingerprint::Fingerprint;
use crate::error::Error;

/// Large enough that asking costs nothing, small enough to stay in the cache between reading and hashing.
const BUFFER: usize = 128 * 1024;

/// What a content is known by, whatever it is called: `sha256:<64 hex>`.
///
/// # Example
/// ```
/// use onlyonce::key::ContentId;
///
/// let id = ContentId::of_bytes(b"abc");
/// assert_eq!(id.to_string(), "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
/// assert_eq!(id, ContentId::of_reader(&b"abc"[..])?);
/// assert_eq!(id.key("documents")?.id(), id.to_string());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentId(Fingerprint);

impl ContentId {
    /// Of bytes in memory.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(Fingerprint::of_bytes(bytes))
    }

    /// Of everything a reader gives, in constant memory.
    ///
    /// # Errors
    /// What the reader says; interrupted reads are repeated.
    pub fn of_reader(mut reader: impl Read) -> io::Result<Self> {
        let mut hasher = ContentHasher::new();
        let mut buffer = vec![0; BUFFER];
        loop {
            match reader.read(&mut buffer) {
                Ok(0) => return Ok(hasher.finish()),
                Ok(length) => hasher.update(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Of a file, in constant memory.
    ///
    /// # Errors
    /// `file`: it cannot be read.
    pub fn of_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        File::open(path)
            .and_then(Self::of_reader)
            .map_err(|source| Error::File { path: path.display().to_string(), source })
    }

    /// The key of this content for one consumer.
    ///
    /// # Errors
    /// `bad_key`: the namespace cannot be one.
    pub fn key(self, namespace: &str) -> Result<Key, Error> {
        Key::new(namespace, self.to_string())
    }

    /// The hash itself.
    pub const fn fingerprint(self) -> Fingerprint {
        self.0
    }
}

impl fmt::Display for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.0)
    }
}

impl fmt::Debug for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ContentId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        text.strip_prefix("sha256:").and_then(|hex| hex.parse().ok()).map(Self).ok_or_else(|| {
            Error::BadInput {
                reason: "a content's id is written `sha256:` and 64 hexadecimal digits in lower case"
                    .to_owned(),
            }
        })
    }
}

/// Makes a [`ContentId`] of a content that comes piece by piece, as from a download.
#[derive(Clone, Debug, Default)]
pub struct ContentHasher(Sha256);

impl ContentHasher {
    /// Nothing so far.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next piece.
    pub fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// The id of all pieces.
    pub fn finish(self) -> ContentId {
        ContentId(Fingerprint::from_bytes(self.0.finalize().into()))
    }
}

impl Write for ContentHasher {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.update(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

//! Keys of contents: one content, one key, whatever the file is called.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::str::FromStr;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use sha2::{Digest, Sha256};

use super::Key;
use super::fingerprint::Fingerprint;
use crate::error::Error;

/// Large enough that asking costs nothing, small enough to stay in the cache between reading and hashing.
const BUFFER: usize = 128 * 1024;
/// How many of them are under way between the thread that reads and the one that hashes.
const BUFFERS: usize = 4;
/// Starting a thread pays from here on.
const READ_AHEAD_FROM: u64 = 4 * 1024 * 1024;

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
            match read(&mut reader, &mut buffer)? {
                0 => return Ok(hasher.finish()),
                length => hasher.update(&buffer[..length]),
            }
        }
    }

    /// Of a file, in constant memory.
    ///
    /// # Errors
    /// `file`: it cannot be read.
    pub fn of_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let hashed = File::open(path).and_then(|file| {
            if file.metadata()?.len() < READ_AHEAD_FROM { Self::of_reader(file) } else { hash_behind(&file) }
        });
        hashed.map_err(|source| Error::File { path: path.display().to_string(), source })
    }

    /// The key of this content for one consumer.
    ///
    /// # Errors
    /// `bad_key`: the namespace cannot be one.
    pub fn key(self, namespace: &str) -> Result<Key, Error> {
        self.0.key(namespace, "sha256:")
    }

    /// The hash itself.
    pub const fn fingerprint(self) -> Fingerprint {
        self.0
    }
}

fn read(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match reader.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            answer => return answer,
        }
    }
}

/// Hashes behind a second thread that reads, so that of the two only the slower one takes time.
fn hash_behind(file: &File) -> io::Result<ContentId> {
    let (full, filled) = sync_channel(BUFFERS);
    let (emptied, empty) = sync_channel(BUFFERS);
    // Moved in, so that each side's end is gone when it is done, and the other one does not wait for it.
    thread::scope(move |scope| {
        let reading = thread::Builder::new().spawn_scoped(scope, move || read_ahead(file, &empty, &full));
        if reading.is_err() {
            return ContentId::of_reader(file);
        }
        for _ in 0..BUFFERS {
            let _ = emptied.send(vec![0; BUFFER]);
        }
        let mut hasher = ContentHasher::new();
        for (buffer, length) in filled {
            hasher.update(&buffer[..length?]);
            let _ = emptied.send(buffer);
        }
        Ok(hasher.finish())
    })
}

type Piece = (Vec<u8>, io::Result<usize>);

fn read_ahead(mut file: &File, empty: &Receiver<Vec<u8>>, full: &SyncSender<Piece>) {
    for mut buffer in empty {
        let length = read(&mut file, &mut buffer);
        if matches!(length, Ok(0)) || full.send((buffer, length)).is_err() {
            return;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_ahead_gives_the_same_id() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(READ_AHEAD_FROM + 12_345).unwrap();
        let zeros = io::repeat(0).take(READ_AHEAD_FROM + 12_345);
        assert_eq!(hash_behind(&file).unwrap(), ContentId::of_reader(zeros).unwrap());
    }

    #[test]
    fn an_error_while_reading_ahead_ends_both_sides() {
        let directory = tempfile::tempdir().unwrap();
        let write_only = File::create(directory.path().join("w")).unwrap();
        write_only.set_len(READ_AHEAD_FROM).unwrap();
        assert!(hash_behind(&write_only).is_err());
    }
}

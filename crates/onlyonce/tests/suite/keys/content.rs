//! One content, one id.

use std::io::{self, Read, Write};

use onlyonce::key::{ContentHasher, ContentId};
use proptest::prelude::*;

/// Gives its bytes in pieces of chosen sizes, with interruptions between.
struct Pieces<'a> {
    rest: &'a [u8],
    sizes: Vec<usize>,
    turn: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.turn += 1;
        if self.turn.is_multiple_of(3) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let size = self.sizes[self.turn % self.sizes.len()].min(self.rest.len()).min(buffer.len());
        let (piece, rest) = self.rest.split_at(size);
        buffer[..size].copy_from_slice(piece);
        self.rest = rest;
        Ok(size)
    }
}

fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 31 % 251) as u8).collect()
}

proptest! {
    #[test]
    fn a_stream_has_the_id_of_its_bytes(length in 0..300_000_usize, sizes in prop::collection::vec(1..70_000_usize, 1..5)) {
        let bytes = bytes(length);
        let whole = ContentId::of_bytes(&bytes);
        let mut hasher = ContentHasher::new();
        for piece in bytes.chunks(sizes[0]) {
            hasher.write_all(piece).unwrap();
        }
        prop_assert_eq!(hasher.finish(), whole);
        prop_assert_eq!(ContentId::of_reader(Pieces { rest: &bytes, sizes, turn: 0 }).unwrap(), whole);
    }
}

#[test]
fn a_file_has_the_id_of_its_bytes_whatever_its_name() {
    let directory = tempfile::tempdir().unwrap();
    for length in [0, 1, 4096, 128 * 1024, 5 * 1024 * 1024 + 3] {
        let path = directory.path().join(format!("{length}.bin"));
        std::fs::write(&path, bytes(length)).unwrap();
        assert_eq!(ContentId::of_file(&path).unwrap(), ContentId::of_bytes(&bytes(length)), "{length}");
        let renamed = directory.path().join("renamed");
        std::fs::rename(&path, &renamed).unwrap();
        assert_eq!(ContentId::of_file(&renamed).unwrap(), ContentId::of_bytes(&bytes(length)));
    }
}

#[test]
fn a_file_that_cannot_be_read_says_which() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing.pdf");
    for path in [missing.as_path(), directory.path()] {
        let error = ContentId::of_file(path).unwrap_err();
        assert_eq!(error.code(), "file");
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    }
}

#[test]
fn an_id_reads_back_as_it_was_shown() {
    let id = ContentId::of_bytes(b"abc");
    assert_eq!(id.to_string().parse::<ContentId>().unwrap(), id);
    for bad in ["", "sha256:", "sha1:00", &id.to_string().to_uppercase(), &id.to_string()[7..]] {
        assert_eq!(bad.parse::<ContentId>().unwrap_err().code(), "bad_input", "{bad}");
    }
}

//! The hash of a file, against hashing the same bytes in memory.

use std::hint::black_box;
use std::io::Write;

use onlyonce::key::ContentId;
use sha2::{Digest, Sha256};

use crate::Failed;
use crate::args::Scale;
use crate::page::Row;
use crate::process::scratch;
use crate::rounds::{Rounds, per_unit, time};

pub(crate) const HOW: &str = "\
A file of 256 MiB that the system has in memory. Ours: `ContentId::of_file(path)`. The reference: `sha2` over the \
same bytes, read before the clock starts, in blocks of 1 MiB.";

const ROUNDS: usize = 5;
const BLOCK: usize = 1024 * 1024;

pub(crate) fn file(scale: Scale) -> Result<Vec<Row>, Failed> {
    let bytes = content(scale.of(256) * BLOCK);
    let directory = scratch()?;
    let path = directory.path().join("content");
    std::fs::File::create(&path)?.write_all(&bytes)?;
    let mut ours = || {
        let (id, took) = time(|| ContentId::of_file(&path));
        black_box(id?);
        Ok(per_unit(took, bytes.len()))
    };
    let mut memory = || {
        let (id, took) = time(|| in_blocks(&bytes));
        black_box(id);
        Ok(per_unit(took, bytes.len()))
    };
    let rounds = Rounds::run(scale.rounds(ROUNDS), &mut [&mut ours, &mut memory])?;
    let shown = |side| format!("{:.2} GB/s", 1.0 / rounds.median(side));
    Ok(vec![
        Row::new("hash of a file".to_owned()).sides(shown(0), shown(1)).at_least(rounds.faster(0, 1), 0.9),
    ])
}

fn in_blocks(bytes: &[u8]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    bytes.chunks(BLOCK).for_each(|block| hasher.update(block));
    hasher.finalize().into()
}

/// Bytes that no file system would make a hole of.
fn content(length: usize) -> Vec<u8> {
    (0..length).map(|at| u8::try_from(at.wrapping_mul(2_654_435_761) >> 11 & 0xff).unwrap_or(0)).collect()
}

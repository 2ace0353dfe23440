//! Finds the end of a run of bytes that need no attention, eight at a time.
//!
//! Each test below gives a word with the high bit set in every byte that passes. A borrow may also set it in a
//! byte *after* one that truly passes, so only the lowest set bit is to be trusted, and only it is used.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// How many bytes at the start of `bytes` stand for themselves in a JSON string.
///
/// That is everything but the quote, the backslash and control characters; in an ASCII form, also everything
/// but printable ASCII.
pub(super) fn plain_run(bytes: &[u8], ascii: bool) -> usize {
    let (words, tail) = bytes.as_chunks::<8>();
    for (i, word) in words.iter().enumerate() {
        let found = special(u64::from_le_bytes(*word), ascii);
        if found != 0 {
            return i * 8 + (found.trailing_zeros() / 8) as usize;
        }
    }
    let before = words.len() * 8;
    before + tail.iter().position(|byte| is_special(*byte, ascii)).unwrap_or(tail.len())
}

fn special(word: u64, ascii: bool) -> u64 {
    let found = equal(word, b'"') | equal(word, b'\\') | below(word, b' ');
    if ascii { found | equal(word, 0x7f) | word & HIGH } else { found }
}

fn is_special(byte: u8, ascii: bool) -> bool {
    matches!(byte, b'"' | b'\\' | ..b' ') || ascii && byte >= 0x7f
}

fn equal(word: u64, byte: u8) -> u64 {
    let zero_where_equal = word ^ (ONES * u64::from(byte));
    below(zero_where_equal, 1)
}

fn below(word: u64, limit: u8) -> u64 {
    word.wrapping_sub(ONES * u64::from(limit)) & !word & HIGH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_found_at_every_place() {
        for byte in 0..=u8::MAX {
            for ascii in [false, true] {
                for at in 0..24 {
                    let mut bytes = [b'a'; 24];
                    bytes[at] = byte;
                    let expected = if is_special(byte, ascii) { at } else { 24 };
                    assert_eq!(plain_run(&bytes, ascii), expected, "{byte:#x} at {at}");
                }
            }
        }
    }

    #[test]
    fn the_first_of_two_is_found() {
        for first in 0..=u8::MAX {
            for second in 0..=u8::MAX {
                let bytes = [b'x', first, second, b'x', b'x', b'x', b'x', b'x'];
                let slow = bytes.iter().position(|byte| is_special(*byte, true)).unwrap_or(8);
                assert_eq!(plain_run(&bytes, true), slow);
                let slow = bytes.iter().position(|byte| is_special(*byte, false)).unwrap_or(8);
                assert_eq!(plain_run(&bytes, false), slow);
            }
        }
    }
}

//! What the lock file of a shard says, for as long as this kernel lives.
//!
//! ```text
//!          first writer            changes a name           has waited for the directory
//! (empty) ──────────────▶ settled ───────────────▶ writing ──────────────────────────────▶ settled
//!                                                     │ killed
//!                                                     ▼
//!                         the next one with the lock waits, and looks up the number again
//! ```
//!
//! Nobody waits for the word itself to be on disk: after a power cut, all that is seen has come from there.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

const LEN: usize = 29;

/// What the lock file says, and with it the highest version given in the shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// Nothing: the shard's own directories may not be on disk yet.
    New,
    /// Names have changed, or are about to; the number may be too low.
    Writing(u64),
    /// All that can be seen is on disk.
    Settled(u64),
}

impl Word {
    pub(super) fn read(lock: &File) -> io::Result<Self> {
        let mut text = [0; LEN];
        let len = lock.read_at(&mut text, 0)?;
        Ok(Self::parse(&text[..len]))
    }

    pub(super) fn write(self, lock: &File) -> io::Result<()> {
        lock.write_all_at(self.text().as_bytes(), 0)
    }

    /// What cannot be read is taken for the word that asks for the most care.
    fn parse(text: &[u8]) -> Self {
        if text.is_empty() {
            return Self::New;
        }
        let text = std::str::from_utf8(text).unwrap_or_default().strip_suffix('\n').unwrap_or_default();
        match text.split_once(' ').map(|(word, number)| (word, number.parse())) {
            Some(("settled", Ok(number))) => Self::Settled(number),
            Some((_, Ok(number))) => Self::Writing(number),
            _ => Self::Writing(0),
        }
    }

    /// Always as long, so that one never leaves the end of another behind it.
    fn text(self) -> String {
        match self {
            Self::Settled(number) => format!("settled {number:020}\n"),
            Self::Writing(number) => format!("writing {number:020}\n"),
            Self::New => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_reads_back_as_it_was_written() {
        for word in [Word::New, Word::Writing(0), Word::Writing(u64::MAX), Word::Settled(7)] {
            assert_eq!(Word::parse(word.text().as_bytes()), word);
            assert!([0, LEN].contains(&word.text().len()));
        }
    }

    #[test]
    fn half_a_word_is_never_settled() {
        let whole = Word::Settled(7).text();
        for len in 1..LEN {
            assert!(matches!(Word::parse(&whole.as_bytes()[..len]), Word::Writing(_)), "{len}");
        }
        for other in
            ["settled", "settled \n", "settled 99999999999999999999\n", "\n", "\u{fe0f}", "settled -1\n"]
        {
            assert!(matches!(Word::parse(other.as_bytes()), Word::Writing(_)), "{other:?}");
        }
    }
}

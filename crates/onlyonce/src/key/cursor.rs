//! A place in a JSON text, and what can be wrong there.

use crate::error::Error;

/// What is wrong with a document, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flaw {
    pub(super) reason: &'static str,
    pub(super) at: usize,
}

impl From<Flaw> for Error {
    fn from(flaw: Flaw) -> Self {
        Self::BadJson { reason: flaw.reason.to_owned(), offset: flaw.at }
    }
}

/// A place in a JSON text.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    pub(super) at: usize,
}

impl<'a> Cursor<'a> {
    /// At the start of `document`, once it is known to be text.
    pub(super) fn new(document: &'a [u8]) -> Result<Self, Flaw> {
        if document.starts_with(b"\xef\xbb\xbf") {
            return Err(Flaw { reason: "a byte order mark, which JSON does not have", at: 0 });
        }
        match std::str::from_utf8(document) {
            Ok(text) => Ok(Self { text, at: 0 }),
            Err(error) => Err(Flaw { reason: "not UTF-8", at: error.valid_up_to() }),
        }
    }

    /// What is wrong here.
    #[cold]
    pub(super) fn flaw<T>(&self, reason: &'static str) -> Result<T, Flaw> {
        Err(Flaw { reason, at: self.at })
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.at..]
    }

    /// The text from an earlier place up to here.
    pub(super) fn since(&self, start: usize) -> &'a str {
        &self.text[start..self.at]
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Steps over `byte`, if it is the next one.
    pub(super) fn take(&mut self, byte: u8) -> bool {
        let here = self.peek() == Some(byte);
        self.at += usize::from(here);
        here
    }

    /// Steps over one character, of any length.
    pub(super) fn take_char(&mut self) -> Option<char> {
        let c = self.text[self.at..].chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    pub(super) fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }
}

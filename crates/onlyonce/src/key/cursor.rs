//! A place in a JSON text, and what can be wrong there.

use crate::error::Error;

/// What is wrong with a document, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flaw {
    pub(super) wrong: Wrong,
    pub(super) at: usize,
}

/// What can be wrong with a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrong {
    ByteOrderMark,
    NotUtf8,
    NoValue,
    NoValueButEnd,
    NotFinite,
    AfterEnd,
    NoName,
    NoColon,
    NoCommaInObject,
    NoCommaInArray,
    TooDeep,
    SameName,
    NoDigit,
    NeedlessZero,
    TooLarge,
    NoDouble,
    NoClosingQuote,
    ControlCharacter,
    NoEscape,
    NoHexDigits,
    LoneSurrogate,
}

impl Wrong {
    pub(super) const fn reason(self) -> &'static str {
        match self {
            Self::ByteOrderMark => "a byte order mark, which JSON does not have",
            Self::NotUtf8 => "not UTF-8",
            Self::NoValue => "no value begins like this",
            Self::NoValueButEnd => "the document ends where a value should be",
            Self::NotFinite => "NaN and infinities are not JSON",
            Self::AfterEnd => "something after the end of the document",
            Self::NoName => "a member begins with its name, a string",
            Self::NoColon => "a colon must follow a member's name",
            Self::NoCommaInObject => "a comma or `}` must follow a member",
            Self::NoCommaInArray => "a comma or `]` must follow an element",
            Self::TooDeep => "arrays and objects nested deeper than 128",
            Self::SameName => "two members of one object have the same name",
            Self::NoDigit => "a digit is missing",
            Self::NeedlessZero => "a number does not begin with a needless zero",
            Self::TooLarge => "a number larger than any double",
            Self::NoDouble => "an integer no double can hold (the form `exact` keeps its digits)",
            Self::NoClosingQuote => "a string without an end",
            Self::ControlCharacter => "a control character in a string must be escaped",
            Self::NoEscape => "a backslash that begins no escape",
            Self::NoHexDigits => "four hexadecimal digits must follow `\\u`",
            Self::LoneSurrogate => "half of a surrogate pair, which is no character",
        }
    }
}

impl From<Flaw> for Error {
    fn from(flaw: Flaw) -> Self {
        Self::BadJson { reason: flaw.wrong.reason().to_owned(), offset: flaw.at }
    }
}

/// A place in a JSON text.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    /// What is still to be read.
    pub(super) rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// At the start of `document`, once it is known to be text.
    pub(super) fn new(document: &'a [u8]) -> Result<Self, Flaw> {
        if document.starts_with(b"\xef\xbb\xbf") {
            return Err(Flaw { wrong: Wrong::ByteOrderMark, at: 0 });
        }
        match std::str::from_utf8(document) {
            Ok(text) => Ok(Self { text, rest: document }),
            Err(error) => Err(Flaw { wrong: Wrong::NotUtf8, at: error.valid_up_to() }),
        }
    }

    /// How far from the start.
    pub(super) fn at(&self) -> usize {
        self.text.len() - self.rest.len()
    }

    /// What is wrong here.
    #[cold]
    pub(super) fn flaw<T>(&self, wrong: Wrong) -> Result<T, Flaw> {
        Err(Flaw { wrong, at: self.at() })
    }

    /// The text from an earlier place up to here.
    pub(super) fn since(&self, start: usize) -> &'a str {
        &self.text[start..self.at()]
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// Steps over `byte`, if it is the next one.
    pub(super) fn take(&mut self, byte: u8) -> bool {
        match self.rest {
            [first, rest @ ..] if *first == byte => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    /// Steps over so many bytes, and gives them.
    pub(super) fn take_bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(count);
        self.rest = rest;
        taken
    }

    /// Steps over one character, of any length.
    pub(super) fn take_char(&mut self) -> Option<char> {
        let c = self.text[self.at()..].chars().next()?;
        self.take_bytes(c.len_utf8());
        Some(c)
    }

    pub(super) fn skip_space(&mut self) {
        while let [b' ' | b'\n' | b'\r' | b'\t', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }
}

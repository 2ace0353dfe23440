//! A failed case is a value that says what was found and what was wanted.

use std::fmt;

use onlyonce::store::StoreError;

const LONGEST: usize = 4000;

/// What a store did that its contract does not allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(String);

impl Failure {
    /// A failure, in words; very long ones are cut.
    pub fn new(message: impl Into<String>) -> Self {
        let mut message: String = message.into();
        if message.len() > LONGEST {
            let end = (0..=LONGEST).rev().find(|&at| message.is_char_boundary(at)).unwrap_or(0);
            message.truncate(end);
            message.push_str(" … (cut)");
        }
        Self(message)
    }

    /// A failure, in words that are put together only now.
    #[cold]
    #[inline(never)]
    pub(super) fn say(message: fmt::Arguments<'_>) -> Self {
        Self::new(message.to_string())
    }

    /// Something was found, and something else was wanted.
    #[cold]
    #[inline(never)]
    pub(super) fn differs(what: fmt::Arguments<'_>, found: &dyn fmt::Debug, wanted: &dyn fmt::Debug) -> Self {
        Self::new(format!("{what}: found {found:?}, wanted {wanted:?}"))
    }

    /// The same failure, and where it was seen.
    #[must_use]
    pub fn at(self, place: impl fmt::Display) -> Self {
        Self(format!("{place}: {}", self.0))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::new(format!("the store answered with an error, {:?}: {error}", error.kind()))
    }
}

impl From<onlyonce::Error> for Failure {
    fn from(error: onlyonce::Error) -> Self {
        Self::new(error.to_string())
    }
}

impl From<tokio::task::JoinError> for Failure {
    fn from(error: tokio::task::JoinError) -> Self {
        Self::new(format!("a task of this case did not end well: {error}"))
    }
}

/// What a case answers.
pub type Verdict<T = ()> = Result<T, Failure>;

/// Ends the case with a message unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::conformance::Failure::say(format_args!($($message)+)));
        }
    };
}

/// Ends the case with a message that shows both unless they are equal.
macro_rules! ensure_eq {
    ($found:expr, $wanted:expr, $($message:tt)+) => {
        match (&$found, &$wanted) {
            (found, wanted) => {
                if *found != *wanted {
                    let what = format_args!($($message)+);
                    return Err($crate::conformance::Failure::differs(what, found, wanted));
                }
            }
        }
    };
}

pub(crate) use {ensure, ensure_eq};

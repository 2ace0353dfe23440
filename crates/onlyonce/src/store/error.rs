//! What can go wrong in a store, and what you may do about it.

use std::fmt;

/// A store's failure; its kind says what you may do.
#[derive(Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// What you may do after a store's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StoreErrorKind {
    /// It did not happen. Try again.
    Unavailable,
    /// The reply was lost: it may have happened. Read back before you decide.
    Uncertain,
    /// An entry is larger than this store takes. What was there stays.
    TooLarge,
    /// What the store holds cannot be read. It was left as it is.
    Corrupt,
    /// The store cannot work as it is set up, or was asked for what it does not do.
    Misconfigured,
}

impl StoreError {
    /// A failure of this kind; the message says what was wrong and what to do.
    pub fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// It did not happen; try again.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StoreErrorKind::Unavailable, message)
    }

    /// It may have happened; read back.
    pub fn uncertain(message: impl Into<String>) -> Self {
        Self::new(StoreErrorKind::Uncertain, message)
    }

    /// An entry is larger than this store takes.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(StoreErrorKind::TooLarge, message)
    }

    /// What the store holds cannot be read.
    pub fn corrupt(message: impl Into<String>) -> Self {
        Self::new(StoreErrorKind::Corrupt, message)
    }

    /// The store cannot work as it is set up.
    pub fn misconfigured(message: impl Into<String>) -> Self {
        Self::new(StoreErrorKind::Misconfigured, message)
    }

    /// Keeps the error underneath, for those who want to look.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What you may do.
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

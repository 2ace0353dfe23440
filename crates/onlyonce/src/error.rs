//! What a guarded call can answer instead of a value.
//!
//! Every variant has a [`code`](Error::code) with a page of its own in `docs/errors/`: what happened, is it
//! safe to retry, what to do.

use std::time::Duration;

use crate::key::Key;
use crate::store::{StoreError, StoreErrorKind};

/// Why a guarded call gave no value.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The same key is being run by somebody else right now.
    #[error("{key} is running since another call claimed it (holder {holder}); try again in {}", human(*retry_after))]
    InProgress {
        /// The key.
        key: Key,
        /// Who runs it.
        holder: String,
        /// When to ask again: the rest of the lease.
        retry_after: Duration,
    },
    /// The policy is `raise`, and the key has been claimed before.
    #[error("{key} was called before, and the policy is to raise on a duplicate")]
    DuplicateExecution {
        /// The key.
        key: Key,
    },
    /// Same key, other input: a mistake, not a replay.
    #[error(
        "{key} was called before with another input; one key stands for one input, so use another key or the same input"
    )]
    InputChanged {
        /// The key.
        key: Key,
    },
    /// A worker died in the middle, and the policy wants an answer from outside.
    #[error("{key} is parked: {reason}; find out whether its effect happened, then resolve it")]
    Parked {
        /// The key.
        key: Key,
        /// Since when and why.
        reason: String,
    },
    /// The lease ran out, or somebody else has the key now; nothing was recorded by this call.
    #[error(
        "the lease on {key} was lost ({reason}); this call recorded nothing, and another one may run it again"
    )]
    LeaseLost {
        /// The key.
        key: Key,
        /// How it was lost.
        reason: String,
    },
    /// The recorded outcome is a failure, and the policy was to keep it.
    #[error("{key} failed before, and its failure is its outcome: {message}")]
    FailedBefore {
        /// The key.
        key: Key,
        /// What the failure said.
        message: String,
    },
    /// The key is done, but its value was too large or not storable.
    #[error("{key} is done, but its result was not stored ({reason}), so there is nothing to replay")]
    ResultNotStored {
        /// The key.
        key: Key,
        /// Why not.
        reason: String,
    },
    /// The stored value is not of the type this call asks for.
    #[error("the stored result of {key} does not fit the type asked for: {reason}")]
    ResultMismatch {
        /// The key.
        key: Key,
        /// What the decoder said.
        reason: String,
    },
    /// The body ran, but its outcome could not be recorded.
    #[error("{key} ran, but whether its outcome was recorded is unknown: {source}")]
    NotRecorded {
        /// The key.
        key: Key,
        /// What the store said last.
        source: StoreError,
    },
    /// There is nothing under this key.
    #[error("there is no record of {key}")]
    NotFound {
        /// The key.
        key: Key,
    },
    /// The record does not allow what was asked.
    #[error("{key} cannot be {asked}: it is {status}{hint}")]
    NotAllowed {
        /// The key.
        key: Key,
        /// What was asked.
        asked: &'static str,
        /// What the record is.
        status: String,
        /// What would be allowed, as the end of the sentence.
        hint: &'static str,
    },
    /// Not a key.
    #[error("not a key: {reason}")]
    BadKey {
        /// What is wrong.
        reason: String,
    },
    /// Not JSON that a key can be made of.
    #[error("not JSON a key can be made of: {reason} at byte {offset}")]
    BadJson {
        /// What is wrong.
        reason: String,
        /// Where.
        offset: usize,
    },
    /// A value that has no JSON form.
    #[error("no key or fingerprint can be made of this value: {reason}")]
    BadInput {
        /// What is wrong.
        reason: String,
    },
    /// Not a JSON pointer.
    #[error("not a JSON pointer: {pointer:?}: {reason}")]
    BadPointer {
        /// As given.
        pointer: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// Not a duration.
    #[error("not a duration: {text:?}; write 250ms, 90s, 10m, 24h, 7d or 1h30m")]
    BadDuration {
        /// As given.
        text: String,
    },
    /// A policy that cannot work.
    #[error("the policy cannot work: {reason}")]
    BadPolicy {
        /// Which part, and what to write instead.
        reason: String,
    },
    /// A store URL that means nothing.
    #[error("not a store: {url:?}: {reason}")]
    BadStoreUrl {
        /// As given, without its password.
        url: String,
        /// What is wrong, and what to write.
        reason: String,
    },
    /// A file could not be read.
    #[error("cannot read {path}: {source}")]
    File {
        /// Which.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The blocking door was used on a thread that runs async code.
    #[error(
        "a blocking call inside async code would stop its runtime; await the engine's own calls, or use spawn_blocking"
    )]
    BlockingInAsync,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Error {
    /// Every code there is.
    pub const CODES: [&'static str; 25] = [
        "in_progress",
        "duplicate_execution",
        "input_changed",
        "parked",
        "lease_lost",
        "failed_before",
        "result_not_stored",
        "result_mismatch",
        "not_recorded",
        "not_found",
        "not_allowed",
        "bad_key",
        "bad_json",
        "bad_input",
        "bad_pointer",
        "bad_duration",
        "bad_policy",
        "bad_store_url",
        "file",
        "blocking_in_async",
        "store_unavailable",
        "store_uncertain",
        "store_too_large",
        "store_corrupt",
        "store_misconfigured",
    ];

    /// One word for this error; its page is `docs/errors/<code>.md`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::InProgress { .. } => "in_progress",
            Self::DuplicateExecution { .. } => "duplicate_execution",
            Self::InputChanged { .. } => "input_changed",
            Self::Parked { .. } => "parked",
            Self::LeaseLost { .. } => "lease_lost",
            Self::FailedBefore { .. } => "failed_before",
            Self::ResultNotStored { .. } => "result_not_stored",
            Self::ResultMismatch { .. } => "result_mismatch",
            Self::NotRecorded { .. } => "not_recorded",
            Self::NotFound { .. } => "not_found",
            Self::NotAllowed { .. } => "not_allowed",
            Self::BadKey { .. } => "bad_key",
            Self::BadJson { .. } => "bad_json",
            Self::BadInput { .. } => "bad_input",
            Self::BadPointer { .. } => "bad_pointer",
            Self::BadDuration { .. } => "bad_duration",
            Self::BadPolicy { .. } => "bad_policy",
            Self::BadStoreUrl { .. } => "bad_store_url",
            Self::File { .. } => "file",
            Self::BlockingInAsync => "blocking_in_async",
            Self::Store(error) => match error.kind() {
                StoreErrorKind::Unavailable => "store_unavailable",
                StoreErrorKind::Uncertain => "store_uncertain",
                StoreErrorKind::TooLarge => "store_too_large",
                StoreErrorKind::Corrupt => "store_corrupt",
                StoreErrorKind::Misconfigured => "store_misconfigured",
            },
        }
    }

    /// Whether the same call may succeed later without anybody changing anything.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::InProgress { .. } | Self::LeaseLost { .. } | Self::NotRecorded { .. } => true,
            Self::Store(error) => {
                matches!(error.kind(), StoreErrorKind::Unavailable | StoreErrorKind::Uncertain)
            }
            Self::DuplicateExecution { .. }
            | Self::InputChanged { .. }
            | Self::Parked { .. }
            | Self::FailedBefore { .. }
            | Self::ResultNotStored { .. }
            | Self::ResultMismatch { .. }
            | Self::NotFound { .. }
            | Self::NotAllowed { .. }
            | Self::BadKey { .. }
            | Self::BadJson { .. }
            | Self::BadInput { .. }
            | Self::BadPointer { .. }
            | Self::BadDuration { .. }
            | Self::BadPolicy { .. }
            | Self::BadStoreUrl { .. }
            | Self::File { .. }
            | Self::BlockingInAsync => false,
        }
    }

    /// The exit status of a command that ends with this error.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::FailedBefore { .. } => 1,
            Self::BadPointer { .. }
            | Self::BadDuration { .. }
            | Self::BadPolicy { .. }
            | Self::BlockingInAsync => 64,
            Self::InputChanged { .. }
            | Self::ResultNotStored { .. }
            | Self::ResultMismatch { .. }
            | Self::NotFound { .. }
            | Self::NotAllowed { .. }
            | Self::BadKey { .. }
            | Self::BadJson { .. }
            | Self::BadInput { .. }
            | Self::File { .. } => 65,
            Self::NotRecorded { .. } => 69,
            Self::LeaseLost { .. } => 74,
            Self::InProgress { .. } => 75,
            Self::DuplicateExecution { .. } => 76,
            Self::Parked { .. } => 77,
            Self::BadStoreUrl { .. } => 78,
            Self::Store(error) => match error.kind() {
                StoreErrorKind::Unavailable | StoreErrorKind::Uncertain => 69,
                StoreErrorKind::TooLarge | StoreErrorKind::Corrupt => 65,
                StoreErrorKind::Misconfigured => 78,
            },
        }
    }
}

/// Why a guarded call gave no value: its body failed, or the guard did not let it pass.
#[derive(Debug)]
pub enum RunError<E> {
    /// The body's own error, as it is. Replayed failures come back here too, where they were kept.
    Body(E),
    /// The guard's answer.
    Guard(Error),
}

impl<E> RunError<E> {
    /// The body's own error, if it is that.
    pub fn body(self) -> Option<E> {
        match self {
            Self::Body(error) => Some(error),
            Self::Guard(_) => None,
        }
    }

    /// The guard's answer, if it is that.
    pub fn guard(&self) -> Option<&Error> {
        match self {
            Self::Body(_) => None,
            Self::Guard(error) => Some(error),
        }
    }

    /// One error type for both, where the body's own can hold ours.
    pub fn merge(self) -> E
    where
        E: From<Error>,
    {
        match self {
            Self::Body(error) => error,
            Self::Guard(error) => error.into(),
        }
    }
}

impl<E> From<Error> for RunError<E> {
    fn from(error: Error) -> Self {
        Self::Guard(error)
    }
}

impl<E> From<StoreError> for RunError<E> {
    fn from(error: StoreError) -> Self {
        Self::Guard(Error::Store(error))
    }
}

impl<E: std::fmt::Display> std::fmt::Display for RunError<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Body(error) => error.fmt(f),
            Self::Guard(error) => error.fmt(f),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for RunError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Body(error) => error.source(),
            Self::Guard(error) => error.source(),
        }
    }
}

/// A duration in the one unit a person would pick.
pub(crate) fn human(duration: Duration) -> String {
    match duration.as_secs() {
        0 => format!("{} ms", duration.as_millis()),
        1..=119 => format!("{} s", duration.as_secs()),
        120..=7199 => format!("{} min", duration.as_secs() / 60),
        _ => format!("{} h", duration.as_secs() / 3600),
    }
}

//! What SQLite says went wrong, and what the caller may do about it.

use onlyonce::store::{StoreError, StoreErrorKind};
use rusqlite::{Error, ErrorCode};

/// A failure that can be told to every caller of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trouble {
    kind: StoreErrorKind,
    message: String,
}

impl Trouble {
    pub(super) fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub(super) fn corrupt(message: impl Into<String>) -> Self {
        Self::new(StoreErrorKind::Corrupt, message)
    }

    pub(super) fn misconfigured(message: impl Into<String>) -> Self {
        Self::new(StoreErrorKind::Misconfigured, message)
    }

    pub(super) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StoreErrorKind::Unavailable, message)
    }

    /// The same trouble, met where it leaves open whether the commit happened.
    pub(super) fn uncertain(&self) -> Self {
        Self::new(StoreErrorKind::Uncertain, format!("it may have been committed: {}", self.message))
    }

    pub(super) fn to_error(&self) -> StoreError {
        StoreError::new(self.kind, self.message.clone())
    }
}

impl From<Trouble> for StoreError {
    fn from(trouble: Trouble) -> Self {
        trouble.to_error()
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        let (kind, hint) = match error.sqlite_error_code() {
            Some(code) => judge(code),
            None => judge_value(&error),
        };
        Self::new(kind, format!("{hint}: {error}"))
    }
}

fn judge(code: ErrorCode) -> (StoreErrorKind, &'static str) {
    use StoreErrorKind::{Corrupt, Misconfigured, TooLarge, Unavailable};
    match code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
            (Unavailable, "another connection kept the database locked for too long; try again")
        }
        ErrorCode::DiskFull => {
            (Unavailable, "no room to write, and what was there stays; make room and try again")
        }
        ErrorCode::DatabaseCorrupt => {
            (Corrupt, "the database is damaged and was left as it is; restore it from a copy")
        }
        ErrorCode::NotADatabase => {
            (Corrupt, "the file is not a SQLite database and was left as it is; name another file")
        }
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::AuthorizationForStatementDenied => {
            (Misconfigured, "the database may not be written; give its file and directory write permission")
        }
        ErrorCode::TooBig => (TooLarge, "SQLite does not take a value of this size"),
        ErrorCode::NoLargeFileSupport => (TooLarge, "the file system does not take a file of this size"),
        ErrorCode::ConstraintViolation => {
            (Misconfigured, "a trigger or constraint that is not onlyonce's refused the write; remove it")
        }
        ErrorCode::Unknown | ErrorCode::ApiMisuse | ErrorCode::NotFound | ErrorCode::SchemaChanged => {
            (Misconfigured, "the tables are not as onlyonce made them; restore the file from a copy")
        }
        _ => (Unavailable, "the database could not be used; try again"),
    }
}

/// Errors that SQLite did not raise: a value that is not what its column should hold.
fn judge_value(error: &Error) -> (StoreErrorKind, &'static str) {
    match error {
        Error::FromSqlConversionFailure(..)
        | Error::InvalidColumnType(..)
        | Error::IntegralValueOutOfRange(..)
        | Error::Utf8Error(..)
        | Error::QueryReturnedNoRows
        | Error::StatementChangedRows(_) => {
            (StoreErrorKind::Corrupt, "a row is not as onlyonce writes it, and was left as it is")
        }
        _ => (StoreErrorKind::Misconfigured, "the database cannot be used as it is"),
    }
}

/// Whether another connection had the lock.
pub(super) fn is_busy(error: &Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Whether the connection is as good as before the error.
pub(super) fn leaves_connection_sound(error: &Error) -> bool {
    use ErrorCode::{ConstraintViolation, DiskFull, TooBig};
    is_busy(error)
        || matches!(error.sqlite_error_code(), None | Some(ConstraintViolation | DiskFull | TooBig))
}

/// Whether a failed `COMMIT` certainly did not happen.
///
/// Busy comes before anything is written. A full disk is met while the pages go to the log, and the mark that
/// makes them a commit is on the last one. Any other failure may come after that mark: from then on, a crash
/// could bring the transaction back.
pub(super) fn commit_did_not_happen(error: &Error) -> bool {
    is_busy(error) || matches!(error.sqlite_error_code(), Some(ErrorCode::DiskFull))
}

//! What the file system said, turned into what the caller may do.

use std::io::{self, ErrorKind};
use std::path::Path;

use onlyonce::store::{StoreError, StoreErrorKind};
use rustix::io::Errno;

/// A [`StoreError`] that can be told to everyone who waited for the same thing.
#[derive(Clone, Debug)]
pub(super) struct Trouble {
    kind: StoreErrorKind,
    message: String,
}

impl Trouble {
    pub(super) fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// `what` could not be done with `path`, and nothing has changed.
    pub(super) fn io(what: &str, path: &Path, error: &io::Error) -> Self {
        let (kind, advice) = advice(error);
        Self::new(kind, format!("cannot {what} {}: {error}{advice}", path.display()))
    }

    /// The same, after the point where it may have happened.
    pub(super) fn or_not(self) -> Self {
        Self::new(StoreErrorKind::Uncertain, format!("{}; the write may or may not be there", self.message))
    }

    /// A file of the store that is not as it was written.
    pub(super) fn damaged(path: &Path, reason: &str) -> Self {
        let shown = path.display();
        Self::new(
            StoreErrorKind::Corrupt,
            format!(
                "{shown} is damaged: {reason}; it was left as it is: put it back from a backup, or give it up \
                 by renaming it to {shown}.corrupt"
            ),
        )
    }

    pub(super) fn kind(&self) -> StoreErrorKind {
        self.kind
    }
}

impl From<Trouble> for StoreError {
    fn from(trouble: Trouble) -> Self {
        Self::new(trouble.kind, trouble.message)
    }
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

fn advice(error: &io::Error) -> (StoreErrorKind, &'static str) {
    use StoreErrorKind::{Misconfigured, Unavailable};
    match error.kind() {
        _ if is_full(error) => (Unavailable, "; make room there, what is stored is still readable"),
        ErrorKind::PermissionDenied => (Misconfigured, "; a store's directory must belong to its user"),
        ErrorKind::ReadOnlyFilesystem => (Misconfigured, "; a store must be on a disk that can be written"),
        _ if is_not_followed(error) => {
            (Misconfigured, "; a store follows no symlink inside its directory, remove what is there")
        }
        _ => (Unavailable, ""),
    }
}

/// Whether there is no room left.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// Whether the name was a symlink, or no directory where one had to be.
pub(super) fn is_not_followed(error: &io::Error) -> bool {
    let not_followed = [Errno::LOOP, Errno::NOTDIR].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|code| not_followed.contains(&code))
}

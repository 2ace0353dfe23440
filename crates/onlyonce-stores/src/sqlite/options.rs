//! How a SQLite store is set up.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use onlyonce::store::{Durability, StoreError};
use onlyonce::time::{Clock, SystemClock};

use super::SqliteStore;

/// When a commit counts as stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Synchronous {
    /// When it is on disk: it survives a power cut. The default.
    #[default]
    Full,
    /// When the operating system has it: it survives `kill -9`; a power cut may lose the last commits.
    Normal,
}

impl Synchronous {
    /// Reads `full` or `normal`.
    pub fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "full" => Some(Self::Full),
            "normal" => Some(Self::Normal),
            _ => None,
        }
    }

    pub(super) fn durability(self) -> Durability {
        match self {
            Self::Full => Durability::PowerCut,
            Self::Normal => Durability::Crash,
        }
    }

    pub(super) fn pragma(self) -> &'static str {
        match self {
            Self::Full => "FULL",
            Self::Normal => "NORMAL",
        }
    }
}

/// Options of a [`SqliteStore`].
///
/// # Example
/// ```
/// use onlyonce_stores::sqlite::{SqliteOptions, Synchronous};
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("onlyonce.db");
/// let store = SqliteOptions::new().synchronous(Synchronous::Normal).open(path)?;
/// # Ok::<(), onlyonce::store::StoreError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    pub(super) synchronous: Synchronous,
    pub(super) busy_timeout: Duration,
    pub(super) clock: Option<Arc<dyn Clock>>,
    pub(super) max_body: usize,
    pub(super) max_size: Option<u64>,
    pub(super) beside_others: bool,
}

impl SqliteOptions {
    /// The defaults: safe from power cuts, this machine's clock, a file of its own.
    pub fn new() -> Self {
        Self {
            synchronous: Synchronous::Full,
            busy_timeout: Duration::from_secs(5),
            clock: None,
            max_body: 16 * 1024 * 1024,
            max_size: None,
            beside_others: false,
        }
    }

    /// When a commit counts as stored.
    #[must_use]
    pub fn synchronous(mut self, synchronous: Synchronous) -> Self {
        self.synchronous = synchronous;
        self
    }

    /// How long to wait for another process's write before giving up; 5 s unless told.
    #[must_use]
    pub fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.busy_timeout = timeout;
        self
    }

    /// A clock of the caller's instead of this machine's.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// The largest body, in bytes; 16 MiB unless told, a thousand million at most.
    #[must_use]
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.max_body = bytes.min(1_000_000_000);
        self
    }

    /// How large the database may grow, in bytes; writes that need more are refused as on a full disk.
    #[must_use]
    pub fn max_size(mut self, bytes: u64) -> Self {
        self.max_size = Some(bytes);
        self
    }

    /// Puts our tables into a database that has others; off unless told.
    ///
    /// This is how the effect and its record come to share a transaction ([`SqliteStore::within`]). Our tables
    /// are `onlyonce_entries` and `onlyonce_meta`; the file becomes a WAL database, and nothing else in it
    /// changes. Off, a file with tables of somebody else's is refused: it was probably named by mistake.
    #[must_use]
    pub fn beside_others(mut self, allow: bool) -> Self {
        self.beside_others = allow;
        self
    }

    /// Opens the store at `path`, and makes it when it is not there.
    ///
    /// Blocks for as long as that takes: usually a few milliseconds.
    ///
    /// # Errors
    /// As for [`SqliteStore::open`].
    pub fn open(self, path: impl AsRef<Path>) -> Result<SqliteStore, StoreError> {
        SqliteStore::open_with(path.as_ref(), self)
    }

    pub(super) fn clock_or_system(&self) -> Arc<dyn Clock> {
        self.clock.clone().unwrap_or_else(|| Arc::new(SystemClock::new()))
    }
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self::new()
    }
}

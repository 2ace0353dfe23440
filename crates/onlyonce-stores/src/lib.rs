//! Stores for onlyonce, and how to open one by its URL.

#[cfg(all(feature = "file", unix))]
pub mod file;
pub mod open;
#[cfg(feature = "sqlite")]
pub mod sqlite;

#[cfg(all(feature = "file", unix))]
pub use file::FileStore;
pub use open::{default_url, open, open_with};
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteOptions, SqliteStore};

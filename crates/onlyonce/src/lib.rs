//! Make things happen once in a world that delivers them at least once.

pub mod background;
pub mod chance;
pub mod error;
#[cfg(doctest)]
mod error_pages;
pub mod key;
pub mod store;
pub mod time;

pub use error::{Error, RunError};
pub use key::{Fingerprint, Key, fingerprint_of};

//! Stores for onlyonce, and how to open one by its URL.

pub mod open;

pub use open::{default_url, open, open_with};

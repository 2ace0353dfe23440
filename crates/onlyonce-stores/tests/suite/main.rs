//! What the stores of this crate promise beyond the conformance suite, and the suite itself, on each of them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod file;
mod open;
mod sqlite;

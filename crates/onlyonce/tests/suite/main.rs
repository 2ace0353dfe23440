//! The integration tests of the middle crate.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod keys;

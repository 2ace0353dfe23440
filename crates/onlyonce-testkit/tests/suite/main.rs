//! The proof, run on every store this build has.

#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod attack;
#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod blocking;
mod conformance;
#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod error_pages;
mod faults;
mod history;
mod mutants;
mod namespaces;
mod peers;
#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod processes;
mod scenarios;
mod sim;
mod stages;
#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod strace;
mod subjects;

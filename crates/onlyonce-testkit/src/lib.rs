//! The proof: what shows that the promises are kept.
//!
//! Nothing here is linked into a program that runs for users, but for `onlyonce store check`, which runs the
//! [`conformance`](mod@conformance) cases on a server of the user's own.

pub mod chance;
pub mod clock;
pub mod conformance;
pub mod faults;
pub mod history;
pub mod scenarios;
pub mod sim;
pub mod worker;

//! What the stores of this crate promise beyond the conformance suite, and the suite itself, on each of them.

mod open;

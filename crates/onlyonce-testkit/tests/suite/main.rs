//! The proof, run on every store this build has.

mod conformance;
mod subjects;

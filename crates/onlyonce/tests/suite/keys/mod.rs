//! Keys: what is the same, what is another, and what is none.

mod canonical;
mod content;
mod documents;
mod fingerprint;
mod languages;
mod oracles;
mod pointers;
mod properties;

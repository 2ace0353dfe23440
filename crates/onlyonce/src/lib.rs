//! Make things happen once in a world that delivers them at least once.

pub mod background;
pub mod chance;
pub mod engine;
pub mod error;
#[cfg(doctest)]
mod error_pages;
pub mod key;
pub mod policy;
pub mod processor;
pub mod store;
pub mod telemetry;
pub mod time;

pub use engine::{Claimed, Engine, Forget, Guard, Lease, Once, Ran, Sweep};
pub use error::{Error, RunError};
pub use key::{Fingerprint, Key, fingerprint_of};
pub use policy::{
    OnCrash, OnDuplicate, OnFailure, OnLeaseLost, OnStoreDown, Policy, Probe, Suspect, Verdict,
};
pub use processor::{Processed, Processor};

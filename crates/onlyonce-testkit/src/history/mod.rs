//! The second witness: what many tasks did to a store, and whether one after the other explains it.
//!
//! A history is **linearizable** when every operation can be given one moment between its call and its answer
//! so that, done one by one in that order, each would have answered as it did. [`Recorded`] writes the history
//! down, [`crowd`](workload::crowd) makes one, and [`judge`] looks for such an order. An operation whose
//! answer was lost, or that was dropped, may have its moment at any later time, or never.
//!
//! The search is that of Wing and Gong with the memory of Lowe, over all keys together, so that commits of
//! several keys are judged as what they are. Entries in a history do not expire.

mod judge;
mod model;
mod recorded;
pub mod workload;

pub use judge::{Judgement, judge};
pub use recorded::{Log, Recorded};

use onlyonce::Key;
use onlyonce::store::{Entry, TakeDue, Version, Write};

/// What was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A look at one key; a read of several is a look at each.
    Read(Key),
    /// A commit.
    Commit(Vec<Write>),
    /// A take.
    Take(TakeDue),
}

/// What was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// What was there.
    Read(Option<Entry>),
    /// All written.
    Stored(Vec<Version>),
    /// Nothing written, and what is there.
    Conflict(Vec<Option<Entry>>),
    /// What was taken.
    Taken(Vec<Entry>),
    /// Nothing happened: the store said so.
    NotDone,
    /// Nobody knows: the reply was lost, or nobody waited for it.
    Unknown,
}

/// One operation, from call to answer, on a clock that all tasks share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What was asked.
    pub action: Action,
    /// What was answered.
    pub answer: Answer,
    /// When it was called.
    pub called: u64,
    /// When it was answered; `u64::MAX` if it never was.
    pub answered: u64,
}

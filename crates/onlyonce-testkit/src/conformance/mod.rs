//! One list of named cases that every store has to pass.
//!
//! Each case proves a sentence of the [`Store`](onlyonce::store::Store) contract, in namespaces of its own,
//! and leaves nothing behind. [`conformance!`](crate::conformance!) makes a `#[test]` of each for a store;
//! [`cases`] is the same list for a program, and a failure is a value there.
//!
//! # Example
//! ```
//! use onlyonce::store::MemoryStore;
//! use onlyonce_testkit::clock::ManualClock;
//! use onlyonce_testkit::conformance::{Subject, cases};
//!
//! # tokio::runtime::Builder::new_multi_thread().build().unwrap().block_on(async {
//! let clock = ManualClock::new();
//! let store = MemoryStore::with_clock(std::sync::Arc::new(clock.clone()));
//! let subject = Subject::new(store, clock, "check");
//! for case in cases().iter().filter(|case| case.runs_on(&subject)).take(3) {
//!     case.check(&subject).await.unwrap_or_else(|failure| panic!("{}: {failure}", case.name));
//! }
//! # });
//! ```

mod failure;
mod list;
mod passage;
mod stamp;
mod subject;
mod verbs;

mod atomic;
mod bodies;
mod contention;
mod dropping;
mod expectations;
mod expiry;
mod facts;
mod headers;
mod keys;
mod moments;
mod reading;
mod restarting;
mod scanning;
mod sharing;
mod taking;
mod versions;
mod waiting;

use std::time::Duration;

use futures_util::future::{Either, select};
use onlyonce::time::{BoxFuture, Clock, SystemClock};

pub use failure::{Failure, Verdict};
pub use list::cases;
pub use passage::{Passage, RealTime};
#[doc(hidden)]
pub use stamp::run_test;
pub use subject::{Open, Room, Subject};

/// Longer than any case takes on a slow disk; a store that hangs is reported instead of waited for.
const LIMIT: Duration = Duration::from_secs(120);

/// One thing a store has to do.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// What it does, as the name of a test.
    pub name: &'static str,
    /// The sentence of the contract it proves.
    pub promise: &'static str,
    /// Whether it opens the store again, and so needs a subject that can.
    pub durable: bool,
    /// Looks, and says what is wrong.
    pub run: for<'a> fn(&'a Room) -> BoxFuture<'a, Verdict>,
}

impl Case {
    /// Whether it can be run on this subject.
    pub fn runs_on(&self, subject: &Subject) -> bool {
        !self.durable || subject.can_reopen()
    }

    /// Runs it in a room of its own, and tidies up.
    ///
    /// Needs a Tokio runtime: some cases race many tasks against each other.
    ///
    /// # Errors
    /// What the store did that it may not do.
    pub async fn check(&self, subject: &Subject) -> Verdict {
        let room = subject.room();
        let verdict = match within(LIMIT, (self.run)(&room)).await {
            Some(verdict) => verdict,
            None => return Err(Failure::new(format!("no answer within {LIMIT:?}"))),
        };
        let tidied = within(LIMIT, room.tidy()).await.unwrap_or(Ok(()));
        verdict.and(tidied.map_err(|failure| failure.at("while tidying up")))
    }
}

/// What the future gives, if it does so in this much real time.
async fn within<T>(limit: Duration, future: impl Future<Output = T>) -> Option<T> {
    let clock = SystemClock::new();
    match select(Box::pin(future), clock.sleep_until(limit)).await {
        Either::Left((value, _)) => Some(value),
        Either::Right(_) => None,
    }
}

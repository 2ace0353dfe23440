//! Forgetting entries past their keep time, a bounded number at a time.

use futures_util::stream::{self, StreamExt};

use super::Engine;
use crate::error::Error;
use crate::store::{Commit, Cursor, Scan, Write};

/// Deletes under way at once.
const AT_ONCE: usize = 64;
/// Entries per page.
const PAGE: usize = 500;

/// How much to forget at most.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Sweep {
    /// Only this namespace; `None`: all.
    pub namespace: Option<String>,
    /// At most so many entries in one call.
    pub at_most: usize,
}

impl Default for Sweep {
    fn default() -> Self {
        Self { namespace: None, at_most: 10_000 }
    }
}

impl Sweep {
    /// Forgets at most so many.
    #[must_use]
    pub fn at_most(mut self, at_most: usize) -> Self {
        self.at_most = at_most;
        self
    }

    /// Only this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }
}

/// What a sweep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Swept {
    /// Entries that are gone now.
    pub forgotten: usize,
    /// Entries that somebody else used again before they could go.
    pub kept: usize,
    /// Whether there is more to do.
    pub more: bool,
}

impl Engine {
    /// Forgets entries past their keep time.
    ///
    /// Small conditional deletes, never one large one: other calls go on in between, and an entry that is used
    /// again in the meantime stays. A running or parked key has no keep time and is never swept.
    ///
    /// # Errors
    /// The store's; what was forgotten until then stays forgotten.
    pub async fn sweep(&self, sweep: Sweep) -> Result<Swept, Error> {
        let mut swept = Swept::default();
        let mut after: Option<Cursor> = None;
        loop {
            let left = sweep.at_most - swept.forgotten.min(sweep.at_most);
            if left == 0 {
                return Ok(Swept { more: true, ..swept });
            }
            let scan = Scan {
                namespace: sweep.namespace.clone(),
                expired: true,
                after: after.take(),
                limit: left.min(PAGE),
                ..Scan::default()
            };
            let page = self.inner.store.scan(scan).await?;
            let deletes = page.entries.into_iter().map(|entry| {
                self.inner.store.commit(vec![Write::Delete { expect: entry.version, key: entry.key }])
            });
            let mut answers = stream::iter(deletes).buffer_unordered(AT_ONCE);
            while let Some(answer) = answers.next().await {
                match answer? {
                    Commit::Stored(_) => swept.forgotten += 1,
                    Commit::Conflict(_) => swept.kept += 1,
                }
            }
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(swept),
            }
        }
    }
}

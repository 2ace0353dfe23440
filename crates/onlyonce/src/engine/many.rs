//! Many calls at once, by the same rules as one.

use std::collections::HashSet;
use std::fmt;

use futures_util::stream::{FuturesUnordered, StreamExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Engine, Lease, Once, Ran};
use crate::error::RunError;
use crate::key::Key;

/// Calls under way at once.
const AT_ONCE: usize = 256;

impl Engine {
    /// Runs many calls at once; each has its own outcome, in the order given.
    ///
    /// # Promise
    /// The outcomes are those of single calls made one after the other: every call is an ordinary
    /// [`Once`], and a key that comes twice runs once and is then replayed. Stores that group commits do so
    /// here.
    ///
    /// # Example
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// use onlyonce::{Engine, Error, Key, store::MemoryStore};
    /// let engine = Engine::new(MemoryStore::new());
    /// let calls = ["a", "b", "a"].map(|id| engine.once::<Error>(Key::new("mail", id).unwrap()));
    /// let sent = engine.once_many(calls, async |index, _lease| Ok(index)).await;
    /// assert_eq!(sent[2].as_ref().unwrap().value, 0);
    /// assert!(sent[2].as_ref().unwrap().replayed);
    /// # });
    /// ```
    pub async fn once_many<'e, T, E, F>(
        &'e self,
        calls: impl IntoIterator<Item = Once<'e, E>>,
        body: F,
    ) -> Vec<Result<Ran<T>, RunError<E>>>
    where
        T: Serialize + DeserializeOwned,
        E: fmt::Display,
        F: AsyncFn(usize, Lease) -> Result<T, E>,
    {
        let mut seen: HashSet<Key> = HashSet::new();
        let (firsts, repeats): (Vec<_>, Vec<_>) =
            calls.into_iter().enumerate().partition(|(_, call)| seen.insert(call.key().clone()));
        let mut outcomes: Vec<Option<Result<Ran<T>, RunError<E>>>> = Vec::new();
        outcomes.resize_with(firsts.len() + repeats.len(), || None);

        let one = async |index: usize, call: Once<'e, E>| {
            (index, call.run(async |lease| body(index, lease).await).await)
        };
        let mut under_way = FuturesUnordered::new();
        let mut waiting = firsts.into_iter();
        loop {
            while under_way.len() < AT_ONCE
                && let Some((index, call)) = waiting.next()
            {
                under_way.push(one(index, call));
            }
            let Some((index, outcome)) = under_way.next().await else { break };
            outcomes[index] = Some(outcome);
        }
        drop(under_way);
        for (index, call) in repeats {
            outcomes[index] = Some(one(index, call).await.1);
        }
        outcomes.into_iter().flatten().collect()
    }
}

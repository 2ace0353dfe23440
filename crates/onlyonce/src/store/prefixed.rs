//! Many tenants on one store: every namespace gets a prefix.

use async_trait::async_trait;

use super::{Commit, Entry, Glimpse, Page, Scan, Store, StoreError, StoreFacts, TakeDue, Version, Write};
use crate::error::Error;
use crate::key::Key;

/// Puts a prefix before every namespace on the way in, and takes it off on the way out.
///
/// # Promise
/// Two prefixes never see each other's entries, and one never sees entries without it.
#[derive(Debug)]
pub struct Prefixed<S> {
    inner: S,
    prefix: String,
}

impl<S: Store> Prefixed<S> {
    /// A view of `inner` in which every namespace `n` is kept as `<prefix>~n`.
    ///
    /// # Errors
    /// `bad_key` when the prefix is no namespace, or has a `~` in it (`a~` + `b` and `a` + `~b` would meet).
    pub fn new(inner: S, prefix: &str) -> Result<Self, Error> {
        Key::new(prefix, "x")?;
        if prefix.contains('~') {
            return Err(Error::BadKey {
                reason: format!("a prefix may not contain `~`, and {prefix:?} does"),
            });
        }
        Ok(Self { inner, prefix: format!("{prefix}~") })
    }

    fn namespace_in(&self, namespace: &str) -> String {
        format!("{}{namespace}", self.prefix)
    }

    fn key_in(&self, key: &Key) -> Result<Key, StoreError> {
        Key::new(&self.namespace_in(key.namespace()), key.id()).map_err(|e| {
            StoreError::misconfigured(format!("with the prefix {:?} before it, {e}", self.prefix))
        })
    }

    fn entry_out(&self, mut entry: Entry) -> Option<Entry> {
        let namespace = entry.key.namespace().strip_prefix(&self.prefix)?;
        entry.key = Key::new(namespace, entry.key.id()).ok()?;
        Some(entry)
    }

    fn write_in(&self, mut write: Write) -> Result<Write, StoreError> {
        match &mut write {
            Write::Put { key, .. }
            | Write::Touch { key, .. }
            | Write::Check { key, .. }
            | Write::Delete { key, .. } => {
                *key = self.key_in(key)?;
            }
        }
        Ok(write)
    }

    fn option_out(&self, entry: Option<Entry>) -> Option<Entry> {
        entry.and_then(|e| self.entry_out(e))
    }
}

#[async_trait]
impl<S: Store> Store for Prefixed<S> {
    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<Entry>>, StoreError> {
        let keys = keys.iter().map(|k| self.key_in(k)).collect::<Result<Vec<_>, _>>()?;
        let found = self.inner.read(&keys).await?;
        Ok(found.into_iter().map(|e| self.option_out(e)).collect())
    }

    async fn commit(&self, writes: Vec<Write>) -> Result<Commit, StoreError> {
        let writes = writes.into_iter().map(|w| self.write_in(w)).collect::<Result<Vec<_>, _>>()?;
        Ok(match self.inner.commit(writes).await? {
            Commit::Stored(versions) => Commit::Stored(versions),
            Commit::Conflict(there) => {
                Commit::Conflict(there.into_iter().map(|e| self.option_out(e)).collect())
            }
        })
    }

    async fn take_due(&self, mut take: TakeDue) -> Result<Vec<Entry>, StoreError> {
        take.namespace = self.namespace_in(&take.namespace);
        let taken = self.inner.take_due(take).await?;
        Ok(taken.into_iter().filter_map(|e| self.entry_out(e)).collect())
    }

    async fn scan(&self, mut scan: Scan) -> Result<Page, StoreError> {
        scan.namespace = scan.namespace.map(|n| self.namespace_in(&n));
        let page = self.inner.scan(scan).await?;
        Ok(Page {
            entries: page.entries.into_iter().filter_map(|e| self.entry_out(e)).collect(),
            next: page.next,
        })
    }

    async fn changed(&self, key: &Key, seen: Version) {
        match self.key_in(key) {
            Ok(key) => self.inner.changed(&key, seen).await,
            Err(_) => std::future::pending().await,
        }
    }

    fn glance(&self, key: &Key) -> Option<Glimpse> {
        self.inner.glance(&self.key_in(key).ok()?)
    }

    fn facts(&self) -> StoreFacts {
        self.inner.facts()
    }
}

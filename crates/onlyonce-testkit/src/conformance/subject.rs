//! The store under test, and a room of its own for every case.

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use onlyonce::Key;
use onlyonce::store::{Cursor, Entry, MemoryStore, Scan, Store, StoreError, StoreFacts, Write};
use onlyonce::time::BoxFuture;

use super::{Passage, Verdict};

/// Opens the same entries again, as a process does that starts after the first one ended.
pub type Open = Arc<dyn Fn() -> BoxFuture<'static, Result<Arc<dyn Store>, StoreError>> + Send + Sync>;

/// The store under test, and what a case may do with it.
#[derive(Clone)]
pub struct Subject {
    store: Arc<Mutex<Arc<dyn Store>>>,
    passage: Arc<dyn Passage>,
    open: Option<Open>,
    prefix: String,
    alone: bool,
    rooms: Arc<AtomicU64>,
    kept: Vec<Arc<dyn Any + Send + Sync>>,
}

impl Subject {
    /// A store, how time passes for it, and a prefix no namespace in it begins with.
    pub fn new(store: impl Store, passage: impl Passage, prefix: impl Into<String>) -> Self {
        Self {
            store: Arc::new(Mutex::new(Arc::new(store))),
            passage: Arc::new(passage),
            open: None,
            prefix: prefix.into(),
            alone: false,
            rooms: Arc::default(),
            kept: Vec::new(),
        }
    }

    /// With a way to open the same entries again: the durable cases can run.
    #[must_use]
    pub fn reopened_by(mut self, open: Open) -> Self {
        self.open = Some(open);
        self
    }

    /// Nothing else is in the store: a scan over all namespaces can be judged.
    #[must_use]
    pub fn alone(mut self) -> Self {
        self.alone = true;
        self
    }

    /// Keeps something, a temporary directory say, for as long as the subject lives.
    #[must_use]
    pub fn keeping(mut self, kept: impl Any + Send + Sync) -> Self {
        self.kept.push(Arc::new(kept));
        self
    }

    /// Whether the durable cases can run.
    pub fn can_reopen(&self) -> bool {
        self.open.is_some()
    }

    /// The store.
    pub fn store(&self) -> Arc<dyn Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn replace(&self, store: Arc<dyn Store>) {
        *self.store.lock().unwrap_or_else(PoisonError::into_inner) = store;
    }

    pub(super) fn room(&self) -> Room {
        let number = self.rooms.fetch_add(1, Ordering::Relaxed);
        Room { prefix: format!("{}{number}", self.prefix), subject: self.clone(), used: Mutex::default() }
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject").field("store", &self.store()).field("prefix", &self.prefix).finish()
    }
}

/// Namespaces of one case's own, in the store under test.
#[derive(Debug)]
pub struct Room {
    subject: Subject,
    prefix: String,
    used: Mutex<BTreeSet<String>>,
}

impl Room {
    /// The store.
    pub fn store(&self) -> Arc<dyn Store> {
        self.subject.store()
    }

    /// The store's facts.
    pub fn facts(&self) -> StoreFacts {
        self.store().facts()
    }

    /// Whether nothing else is in the store.
    pub fn is_alone(&self) -> bool {
        self.subject.alone
    }

    /// A namespace of this case's own that ends in `name`.
    pub fn namespace(&self, name: &str) -> String {
        let namespace = format!("{}.{name}", self.prefix);
        self.used.lock().unwrap_or_else(PoisonError::into_inner).insert(namespace.clone());
        namespace
    }

    /// The namespace most cases need.
    pub fn home(&self) -> String {
        self.namespace("home")
    }

    /// A key in the namespace most cases need.
    pub fn key(&self, id: impl AsRef<str>) -> Verdict<Key> {
        Ok(Key::new(&self.home(), id)?)
    }

    /// A key in the namespace that ends in `name`.
    pub fn key_in(&self, name: &str, id: impl AsRef<str>) -> Verdict<Key> {
        Ok(Key::new(&self.namespace(name), id)?)
    }

    /// So many keys, in no order that a store could keep by chance.
    pub fn keys(&self, many: u32) -> Verdict<Vec<Key>> {
        (0..many).map(|n| self.key(format!("{:08x}-{n}", n.wrapping_mul(0x9E37_79B9)))).collect()
    }

    /// Lets time pass.
    pub async fn pass(&self, span: Duration) {
        self.subject.passage.pass(span).await;
    }

    /// Sets the store's clock back, if that can be done; says whether it was.
    pub fn turn_back(&self, span: Duration) -> bool {
        self.subject.passage.turn_back(span)
    }

    /// A span that is short to wait for.
    pub fn moment(&self) -> Duration {
        self.subject.passage.moment()
    }

    /// Whether time passes exactly as asked.
    pub fn is_exact(&self) -> bool {
        self.subject.passage.is_exact()
    }

    /// Opens the same entries a second time, beside the first.
    pub async fn open_again(&self) -> Verdict<Arc<dyn Store>> {
        match &self.subject.open {
            Some(open) => Ok(open().await?),
            None => {
                Err(super::Failure::new("this store cannot be opened again; leave the durable cases out"))
            }
        }
    }

    /// Closes the store and opens the same entries again.
    pub async fn restart(&self) -> Verdict {
        // An empty store takes its place meanwhile, so that the last hand on the old one is really gone.
        self.subject.replace(Arc::new(MemoryStore::new()));
        let store = self.open_again().await?;
        self.subject.replace(store);
        Ok(())
    }

    /// Deletes what the case has left behind.
    pub(super) async fn tidy(&self) -> Verdict {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for namespace in used {
            for expired in [false, true] {
                self.tidy_namespace(&namespace, expired).await?;
            }
        }
        Ok(())
    }

    async fn tidy_namespace(&self, namespace: &str, expired: bool) -> Verdict {
        let store = self.store();
        let mut after: Option<Cursor> = None;
        // A broken store may page in circles; nothing a case makes is larger than this.
        for _ in 0..1000 {
            let namespace = Some(namespace.to_owned());
            let page = store.scan(Scan { namespace, expired, after, limit: 500, ..Scan::default() }).await?;
            for Entry { key, version, .. } in page.entries {
                store.commit(vec![Write::Delete { key, expect: version }]).await?;
            }
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        Ok(())
    }
}

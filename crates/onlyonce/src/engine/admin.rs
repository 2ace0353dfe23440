//! Looking at one key, deciding about it, freeing it; every change leaves an audit line.

use std::time::Duration;

use super::Engine;
use super::record::{Record, lease_left, state_of};
use super::rules::{self, Found, State};
use crate::error::{Error, human};
use crate::key::Key;
use crate::policy::Verdict;
use crate::store::{Commit, Cursor, Draft, Entry, Expect, HeaderDraft, Scan, StoreErrorKind, Write};

/// How long a forgotten key keeps its audit lines.
const KEEP_FORGOTTEN: Duration = Duration::from_secs(7 * 24 * 3600);

/// A record as people look at it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct View {
    /// What it is.
    pub state: State,
    /// How much of the lease was left; zero when it ran out or there is none.
    pub lease_left: Duration,
    /// The entry, with holder, attempts and moments in its header.
    pub entry: Entry,
    /// What is recorded.
    pub record: Record,
}

impl View {
    fn of(entry: Entry) -> Result<Self, Error> {
        // First whose it is: what another door keeps here is not ours to call broken.
        let state = state_of(&entry)?;
        let record = Record::decode(&entry)?;
        Ok(Self { state, lease_left: lease_left(&entry), record, entry })
    }

    /// Whether a lease ran out and nobody has come since.
    pub fn is_overdue(&self) -> bool {
        self.state == State::Running && self.lease_left == Duration::ZERO
    }
}

/// One page of records.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Listing {
    /// The records.
    pub views: Vec<View>,
    /// Keys whose entries are no records of guarded calls, and why.
    pub unreadable: Vec<(Key, Error)>,
    /// Where to go on.
    pub next: Option<Cursor>,
}

/// How to forget a key.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Forget {
    /// Who wants it, for the audit line.
    pub by: String,
    /// Also while it runs: its worker's completion will be refused.
    pub even_running: bool,
}

impl Forget {
    /// Forgets a key that is not running.
    pub fn by(by: impl Into<String>) -> Self {
        Self { by: by.into(), even_running: false }
    }

    /// Also while it runs: its worker's completion will be refused.
    #[must_use]
    pub fn even_running(mut self) -> Self {
        self.even_running = true;
        self
    }
}

impl Engine {
    /// What is recorded under this key.
    ///
    /// # Errors
    /// The store's; `store_corrupt` when what is there is no record, `store_misconfigured` when it is another
    /// door's or a newer onlyonce wrote it.
    pub async fn look(&self, key: &Key) -> Result<Option<View>, Error> {
        let found = self.inner.store.read(std::slice::from_ref(key)).await?;
        found.into_iter().next().flatten().map(View::of).transpose()
    }

    /// A page of records.
    ///
    /// # Errors
    /// The store's. An entry that cannot be read is listed, and does not hide the others.
    pub async fn list(&self, scan: Scan) -> Result<Listing, Error> {
        let page = self.inner.store.scan(scan).await?;
        let mut listing = Listing { next: page.next, ..Listing::default() };
        for entry in page.entries {
            let key = entry.key.clone();
            match View::of(entry) {
                Ok(view) => listing.views.push(view),
                Err(error) => listing.unreadable.push((key, error)),
            }
        }
        Ok(listing)
    }

    /// Decides about a key whose worker died.
    ///
    /// # Errors
    /// `not_found`; `not_allowed` when it has a live lease or an outcome.
    pub async fn resolve(&self, key: &Key, verdict: Verdict, by: &str) -> Result<State, Error> {
        let found = match &verdict {
            Verdict::Happened(_) => Found::Happened,
            Verdict::DidNot => Found::DidNot,
            Verdict::CannotTell => Found::CannotTell,
        };
        self.change(key, by, |view, record| {
            let next = rules::resolve(view.state, view.lease_left, found);
            let next = next.ok_or_else(|| {
                not_allowed(
                    view,
                    "resolved",
                    "; only a parked key or one whose lease ran out waits for a verdict",
                )
            })?;
            record.parked = None;
            let keep = match next {
                State::Completed => {
                    match verdict.clone() {
                        Verdict::Happened(Some(value)) => record.value = Some(value),
                        Verdict::Happened(None) | Verdict::DidNot | Verdict::CannotTell => {
                            record.not_stored =
                                Some(format!("{by} resolved it as happened, without a value"));
                        }
                    }
                    Some(self.inner.policy.keep)
                }
                State::Parked => {
                    record.parked = Some(format!("{by} could not tell whether it happened"));
                    None
                }
                State::Running | State::Failed | State::Released | State::Forgotten => {
                    record.clear_unsure();
                    Some(self.inner.policy.keep_unused())
                }
            };
            Ok((next, keep, format!("resolved: {}", verdict.name())))
        })
        .await
    }

    /// Frees a key: the next call runs it anew, whatever became of it before.
    ///
    /// # Errors
    /// `not_found`; `not_allowed` while it runs, unless that is meant.
    pub async fn forget(&self, key: &Key, forget: Forget) -> Result<(), Error> {
        let change = self.change(key, &forget.by, |view, record| {
            if !rules::may_forget(view.state, view.lease_left, forget.even_running) {
                return Err(not_allowed(
                    view,
                    "forgotten",
                    "; wait for its lease to end, or forget it even though it runs",
                ));
            }
            let audit = std::mem::take(&mut record.audit);
            *record = Record::new(None);
            record.audit = audit;
            let was = view.state.status();
            Ok((State::Forgotten, Some(KEEP_FORGOTTEN), format!("forgotten while {was}")))
        });
        match change.await {
            Err(Error::Store(error)) if error.kind() == StoreErrorKind::Corrupt => {
                self.drop_unreadable(key, error).await
            }
            other => other.map(drop),
        }
    }

    /// An entry that cannot be read cannot carry an audit line; it is removed.
    async fn drop_unreadable(&self, key: &Key, error: crate::store::StoreError) -> Result<(), Error> {
        let found = self.inner.store.read(std::slice::from_ref(key)).await?;
        let Some(entry) = found.into_iter().next().flatten() else { return Err(error.into()) };
        let delete = Write::Delete { key: key.clone(), expect: entry.version };
        match self.inner.store.commit(vec![delete]).await? {
            Commit::Stored(_) => Ok(()),
            Commit::Conflict(_) => Err(error.into()),
        }
    }

    async fn change(
        &self,
        key: &Key,
        by: &str,
        decide: impl Fn(&View, &mut Record) -> Result<(State, Option<Duration>, String), Error>,
    ) -> Result<State, Error> {
        loop {
            let view = self.look(key).await?.ok_or_else(|| Error::NotFound { key: key.clone() })?;
            let mut record = view.record.clone();
            let (state, keep_for, what) = decide(&view, &mut record)?;
            record.note(self.inner.clock.now(), by, what);
            let attempts = if state == State::Forgotten { 0 } else { view.entry.header.attempts };
            let header = HeaderDraft { attempts, keep_for, ..HeaderDraft::new(state.status()) };
            let draft = Draft { header, body: record.encode()? };
            let write = Write::Put { key: key.clone(), expect: Expect::Version(view.entry.version), draft };
            if let Commit::Stored(_) = self.inner.store.commit(vec![write]).await? {
                return Ok(state);
            }
        }
    }
}

fn not_allowed(view: &View, asked: &'static str, hint: &'static str) -> Error {
    let status = match view.state {
        State::Running => format!("running, with {} of its lease left", human(view.lease_left)),
        other => other.status().to_string(),
    };
    Error::NotAllowed { key: view.entry.key.clone(), asked, status, hint }
}

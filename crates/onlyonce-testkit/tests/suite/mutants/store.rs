//! A plain store with one mistake in it.
//!
//! Everything is under one lock, and nothing is fast; without its [`Bug`] it passes every case.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use onlyonce::Key;
use onlyonce::store::{
    Commit, Entry, Expect, Glimpse, Header, Page, Scan, Store, StoreError, StoreFacts, TakeDue, Version,
    Write, check_body_sizes, check_keys_differ,
};
use onlyonce::time::{Clock, Timestamp};
use onlyonce_testkit::clock::ManualClock;
use tokio::sync::Notify;

use super::bug::Bug;
use super::slot::{Slot, moments};

const MAX_BODY: usize = 128 * 1024;

#[derive(Debug)]
pub(crate) struct BuggyStore {
    pub(super) bug: Bug,
    state: Arc<Mutex<State>>,
    clock: ManualClock,
    /// Where the caller's own clock stands, for a store that takes its word for it.
    callers_clock: Timestamp,
    changed: Arc<Notify>,
    waits: Arc<AtomicUsize>,
    facts_asked: AtomicUsize,
}

#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub(super) slots: BTreeMap<String, Slot>,
    versions: u64,
    versions_of: BTreeMap<String, u64>,
    /// For a store whose index of due entries is not kept in step.
    pub(super) once_due: BTreeMap<String, Timestamp>,
    pub(super) cursors: Vec<String>,
    deleted: Vec<(String, Slot)>,
}

impl BuggyStore {
    pub(crate) fn new(bug: Bug, clock: ManualClock) -> Self {
        Self {
            bug,
            state: Arc::default(),
            callers_clock: clock.now(),
            clock,
            changed: Arc::default(),
            waits: Arc::default(),
            facts_asked: AtomicUsize::new(0),
        }
    }

    /// The same entries, as a process sees them that opens them later, or at the same time.
    pub(crate) fn open_again(&self) -> Self {
        let mut again = Self::new(self.bug, self.clock.clone());
        match self.bug {
            Bug::SecondOpeningIsACopy => *again.lock() = self.lock().clone(),
            _ => again.state = self.state.clone(),
        }
        if !self.has(Bug::OpeningsWakeTheirOwn) {
            again.changed = self.changed.clone();
        }
        self.forget(&mut again.lock());
        again
    }

    fn forget(&self, state: &mut State) {
        let now = self.now();
        match self.bug {
            Bug::EverythingIsForgotten => state.slots.clear(),
            Bug::HeadersAreForgotten => state.slots.values_mut().for_each(|slot| slot.header.holder = None),
            Bug::VersionsStartAgain => state.versions = 0,
            Bug::DeletesAreForgotten => state.slots.extend(std::mem::take(&mut state.deleted)),
            Bug::DueIsForgotten => state.slots.values_mut().for_each(|slot| slot.header.due_at = None),
            Bug::TakesAreForgotten => {
                for slot in state.slots.values_mut().filter(|slot| slot.header.attempts == 1) {
                    slot.header.due_at = Some(now);
                }
            }
            Bug::ExpiredIsForgotten => state.slots.retain(|_, slot| !slot.header.is_expired(now)),
            _ => {}
        }
    }

    pub(super) fn has(&self, bug: Bug) -> bool {
        self.bug == bug
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Timestamp {
        if self.has(Bug::MomentsOfTheCallersClock) { self.callers_clock } else { self.clock.now() }
    }

    fn place(&self, key: &Key) -> String {
        let (namespace, id) = (key.namespace(), key.id());
        match self.bug {
            Bug::KeysFoldCase => format!("{namespace}/{}", id.to_lowercase()),
            Bug::KeysAreTrimmed => format!("{namespace}/{}", id.trim_end_matches(['/', '.', ' '])),
            Bug::IdsAreCut => format!("{namespace}/{}", id.chars().take(255).collect::<String>()),
            Bug::PartsAreJoinedByColon => format!("{namespace}:{id}"),
            Bug::NamespacesFoldCase => format!("{}/{id}", namespace.to_lowercase()),
            Bug::NamespacesAreCut => format!("{:.64}/{id}", namespace),
            _ => key.as_str().to_owned(),
        }
    }

    pub(super) fn is_expired(&self, header: &Header, now: Timestamp) -> bool {
        match self.bug {
            Bug::ExpiryIsNotLookedAt => false,
            Bug::ExpiryIsLateByOne => header.expires_at.is_some_and(|at| at < now),
            _ => header.is_expired(now),
        }
    }

    fn live<'a>(&self, state: &'a State, key: &Key, now: Timestamp) -> Option<&'a Slot> {
        state.slots.get(&self.place(key)).filter(|slot| !self.is_expired(&slot.header, now))
    }

    pub(super) fn next_version(&self, state: &mut State, place: &str, was: Option<Version>) -> Version {
        state.versions += 1;
        let of_key = state.versions_of.entry(place.to_owned()).or_default();
        *of_key += 1;
        let restarted = was.map_or(1, |was| was.get() + 1);
        Version::new(match self.bug {
            Bug::VersionsStartAtZero => state.versions - 1,
            Bug::VersionsRestartAfterDelete | Bug::VersionsRestartAfterExpiry => restarted,
            Bug::VersionsAreCountedPerKey => *of_key,
            Bug::VersionsAreTheTime => self.clock.now().as_millis() as u64 * 1000 + state.versions,
            _ => state.versions,
        })
    }

    fn holds(&self, state: &State, write: &Write, now: Timestamp) -> bool {
        let slot = state.slots.get(&self.place(write.key()));
        let version = slot.map(|slot| slot.version);
        let live = slot.filter(|slot| !self.is_expired(&slot.header, now));
        let kept = if self.has(Bug::ExpiredIsSeenByWrites) { slot } else { live };
        let is = |slot: Option<&Slot>, wanted: Version| {
            slot.is_some_and(|s| {
                s.version == wanted || self.has(Bug::OldVersionsAreTaken) && s.version > wanted
            })
        };
        match (self.bug, write) {
            (Bug::CreateOverwrites, Write::Put { expect: Expect::Absent, .. })
            | (Bug::CheckIgnoresAbsence, Write::Check { expect: Expect::Absent, .. }) => true,
            (Bug::DeleteOfNothingIsStored, Write::Delete { .. }) if slot.is_none() => true,
            (Bug::PutIgnoresVersion, Write::Put { expect: Expect::Version(_), .. })
            | (Bug::TouchIgnoresVersion, Write::Touch { .. })
            | (Bug::CheckIgnoresVersion, Write::Check { expect: Expect::Version(_), .. })
            | (Bug::DeleteIgnoresVersion, Write::Delete { .. }) => live.is_some(),
            (Bug::SweepDeletesAnything, Write::Delete { expect, .. }) => {
                version.is_some_and(|v| v >= *expect)
            }
            (Bug::ExpiredCannotBeDeleted, Write::Delete { expect, .. }) => is(live, *expect),
            (_, Write::Delete { expect, .. }) => is(slot, *expect),
            (_, Write::Touch { expect, .. }) => is(kept, *expect),
            (_, Write::Put { expect, .. } | Write::Check { expect, .. }) => match expect {
                Expect::Absent => live.is_none(),
                Expect::Version(wanted) => is(kept, *wanted),
            },
        }
    }

    fn conflict(&self, state: &mut State, writes: &[Write], now: Timestamp) -> Commit {
        let mut there: Vec<_> = writes
            .iter()
            .map(|write| self.live(state, write.key(), now).map(|slot| self.entry(slot, now)))
            .collect();
        match self.bug {
            Bug::ConflictIsEmpty => there.iter_mut().for_each(|e| *e = None),
            Bug::ConflictIsReversed => there.reverse(),
            Bug::ConflictIsCutShort => there.truncate(1),
            Bug::ConflictIsFirstOnly => there.iter_mut().skip(1).for_each(|e| *e = None),
            Bug::ConflictShowsDraft => {
                for (entry, write) in there.iter_mut().zip(writes) {
                    if let (Some(entry), Write::Put { draft, .. }) = (entry, write) {
                        entry.body = draft.body.clone();
                    }
                }
            }
            Bug::ConflictGivesNewVersion => {
                for write in writes {
                    let place = self.place(write.key());
                    let version = self.next_version(state, &place, None);
                    state.slots.entry(place).and_modify(|slot| slot.version = version);
                }
            }
            _ => {}
        }
        Commit::Conflict(there)
    }

    fn apply(&self, state: &mut State, write: Write, now: Timestamp) -> Version {
        let place = self.place(write.key());
        let old = state.slots.get(&place).cloned();
        let live = old.clone().filter(|slot| !self.is_expired(&slot.header, now));
        match write {
            Write::Put { key, draft, .. } => {
                let was = self.version_before(old.as_ref(), live.as_ref());
                let version = self.next_version(state, &place, was);
                let slot = Slot::put(self.bug, key, version, old.as_ref(), live.as_ref(), draft, now);
                self.keep(state, place, slot)
            }
            Write::Touch { header, .. } => {
                let Some(old) = old else { return Version::default() };
                let version = self.next_version(state, &place, Some(old.version));
                let version = if self.has(Bug::TouchKeepsVersion) { old.version } else { version };
                self.keep(state, place, old.touched(self.bug, version, header, now))
            }
            Write::Check { .. } => {
                if let (Bug::CheckWrites, Some(slot)) = (self.bug, state.slots.get_mut(&place)) {
                    slot.header.updated_at = now;
                }
                live.filter(|_| !self.has(Bug::CheckAnswersNothing)).map(|s| s.version).unwrap_or_default()
            }
            Write::Delete { expect, .. } => {
                if !self.has(Bug::DeleteLeavesEntry) {
                    let slot = state.slots.remove(&place);
                    state.deleted.extend(slot.map(|slot| (place, slot)));
                }
                self.wake();
                expect
            }
        }
    }

    fn version_before(&self, old: Option<&Slot>, live: Option<&Slot>) -> Option<Version> {
        let was = if self.has(Bug::VersionsRestartAfterExpiry) { live } else { old };
        was.map(|slot| slot.version)
    }

    pub(super) fn keep(&self, state: &mut State, place: String, slot: Slot) -> Version {
        let version = slot.version;
        if let Some(at) = slot.header.due_at {
            let first = state.once_due.entry(place.clone()).or_insert(at);
            *first = at.min(*first);
        }
        let answered = match (self.bug, state.slots.insert(place, slot)) {
            (Bug::AnswersOldVersion, Some(old)) => old.version,
            _ => version,
        };
        self.wake();
        answered
    }

    fn wake(&self) {
        match self.bug {
            Bug::NobodyIsWoken => {}
            Bug::OneIsWoken => self.changed.notify_one(),
            _ => self.changed.notify_waiters(),
        }
    }

    pub(super) fn entry(&self, slot: &Slot, now: Timestamp) -> Entry {
        let read_at = if self.has(Bug::ReadAtIsUpdatedAt) { slot.header.updated_at } else { now };
        slot.entry(read_at)
    }

    fn check(&self, writes: &[Write]) -> Result<(), StoreError> {
        if !self.has(Bug::OneKeyTwiceIsTaken) {
            check_keys_differ(writes)?;
        }
        if self.has(Bug::ManyWritesAreRefused) && writes.len() > 100 {
            return Err(StoreError::misconfigured("more than a hundred writes"));
        }
        match self.bug {
            Bug::LimitIsNotLookedAt | Bug::TooLargeStoresTheRest => Ok(()),
            Bug::LimitIsOffByOne => check_body_sizes(writes, MAX_BODY - 1),
            _ => check_body_sizes(writes, MAX_BODY),
        }
    }

    /// The writes that are looked at before anything is written.
    fn judged<'a>(&self, writes: &'a [Write]) -> &'a [Write] {
        let end = match self.bug {
            Bug::CommitLooksAtFirstOnly => writes.len().min(1),
            Bug::CommitStopsAtNamespace => {
                let first = writes.first().map(|w| w.key().namespace());
                writes.iter().take_while(|w| Some(w.key().namespace()) == first).count()
            }
            _ => writes.len(),
        };
        &writes[..end]
    }

    async fn write(&self, mut writes: Vec<Write>) -> Result<Commit, StoreError> {
        if self.has(Bug::TooLargeStoresTheRest) {
            return self.write_what_fits(writes);
        }
        let now = self.now();
        {
            let mut state = self.lock();
            let state = &mut *state;
            if matches!(self.bug, Bug::CommitIsPartial | Bug::CommitSkipsFailedWrites) {
                return Ok(self.write_some(state, writes, now));
            }
            if !self.judged(&writes).iter().all(|write| self.holds(state, write, now)) {
                return Ok(self.conflict(state, &writes, now));
            }
            if self.has(Bug::CommitForgetsLastWrite) && writes.len() > 2 {
                writes.pop();
            }
            if !matches!(self.bug, Bug::CommitInSteps | Bug::CommitCanBeTorn | Bug::PutInHalves) {
                return Ok(Commit::Stored(writes.into_iter().map(|w| self.apply(state, w, now)).collect()));
            }
        }
        let mut versions = Vec::new();
        for write in writes {
            if self.has(Bug::CommitInSteps) || !versions.is_empty() {
                tokio::task::yield_now().await;
            }
            if self.has(Bug::PutInHalves) {
                self.put_header_first(&write, now);
                tokio::task::yield_now().await;
            }
            versions.push(self.apply(&mut self.lock(), write, now));
        }
        Ok(Commit::Stored(versions))
    }

    fn put_header_first(&self, write: &Write, now: Timestamp) {
        let mut state = self.lock();
        if let (Write::Put { draft, .. }, Some(slot)) = (write, state.slots.get_mut(&self.place(write.key())))
        {
            slot.header = moments(self.bug, draft.header.clone(), &slot.header, now);
        }
    }

    fn write_some(&self, state: &mut State, writes: Vec<Write>, now: Timestamp) -> Commit {
        let mut versions = Vec::new();
        let all = writes.clone();
        for write in writes {
            match (self.holds(state, &write, now), self.bug) {
                (true, _) => versions.push(self.apply(state, write, now)),
                (false, Bug::CommitSkipsFailedWrites) if all.len() > 1 => versions.push(Version::new(1)),
                (false, _) => return self.conflict(state, &all, now),
            }
        }
        Commit::Stored(versions)
    }

    fn write_what_fits(&self, writes: Vec<Write>) -> Result<Commit, StoreError> {
        let (mut state, now) = (self.lock(), self.now());
        let state = &mut *state;
        if !writes.iter().all(|write| self.holds(state, write, now)) {
            return Ok(self.conflict(state, &writes, now));
        }
        let mut versions = Vec::new();
        for write in writes {
            check_body_sizes(std::slice::from_ref(&write), MAX_BODY)?;
            versions.push(self.apply(state, write, now));
        }
        Ok(Commit::Stored(versions))
    }
}

#[async_trait]
impl Store for BuggyStore {
    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<Entry>>, StoreError> {
        if self.has(Bug::ReadOfNothingFails) && keys.is_empty() {
            return Err(StoreError::misconfigured("nothing to read"));
        }
        let (state, now) = (self.lock(), self.now());
        let look = |key: &Key| self.live(&state, key, now).map(|slot| self.entry(slot, now));
        let mut found: Vec<_> = keys.iter().map(look).collect();
        match self.bug {
            Bug::ReadSkipsAbsent if keys.len() > 1 => found.retain(Option::is_some),
            Bug::ReadSorts => found.sort_by_key(|e| e.as_ref().map(|e| e.key.clone())),
            Bug::ReadTakesAHundred => found.truncate(100),
            _ => {}
        }
        Ok(found)
    }

    async fn commit(&self, writes: Vec<Write>) -> Result<Commit, StoreError> {
        self.check(&writes)?;
        if self.has(Bug::DroppedWaitsBlock) && self.waits.load(Ordering::SeqCst) > 10 {
            return Err(StoreError::unavailable("too many wait"));
        }
        if writes.is_empty() && self.has(Bug::EmptyCommitConflicts) {
            return Ok(Commit::Conflict(Vec::new()));
        }
        self.write(writes).await
    }

    async fn take_due(&self, take: TakeDue) -> Result<Vec<Entry>, StoreError> {
        let now = self.now();
        let due = {
            let mut state = self.lock();
            let state = &mut *state;
            let due = self.due(state, &take, now);
            if !matches!(self.bug, Bug::TakeInSteps | Bug::TakeCanBeTorn) {
                return Ok(due.iter().filter_map(|place| self.take(state, place, &take, now)).collect());
            }
            due
        };
        let mut taken = Vec::new();
        for place in due {
            if self.has(Bug::TakeCanBeTorn)
                && let Some(slot) = self.lock().slots.get_mut(&place)
            {
                slot.header.holder = Some(take.holder.clone());
            }
            tokio::task::yield_now().await;
            taken.extend(self.take(&mut self.lock(), &place, &take, now));
        }
        Ok(taken)
    }

    async fn scan(&self, scan: Scan) -> Result<Page, StoreError> {
        let (mut state, now) = (self.lock(), self.now());
        let state = &mut *state;
        if self.has(Bug::LooksMoveUpdatedAt) {
            state.slots.values_mut().for_each(|slot| slot.header.updated_at = now);
        }
        let ordered = self.in_order(state);
        let mut found = match self.bug {
            // Limited before it is filtered, and an empty page taken for the end.
            Bug::ScanStopsAtEmptyPage => {
                let mut rest = self.after(state, &scan, ordered);
                rest.truncate(scan.limit.max(1));
                rest
            }
            Bug::ScanSkipsByCount => {
                let matching =
                    ordered.into_iter().filter(|(_, slot)| self.is_scanned(&scan, slot, now)).collect();
                self.after(state, &scan, matching)
            }
            _ => self.after(state, &scan, ordered),
        };
        found.retain(|(_, slot)| self.is_scanned(&scan, slot, now));
        let limit = scan.limit.max(1);
        let more = found.len() > limit || self.has(Bug::ScanStopsAtEmptyPage) && !found.is_empty();
        found.truncate(limit);
        let ends = self.has(Bug::ScanStopsEarly) && scan.after.is_some();
        let next = if more && !ends { self.cursor(&scan, &found) } else { None };
        let read_at = if self.has(Bug::ReadAtIsFrozenInScans) { self.callers_clock } else { now };
        let mut entries: Vec<_> = found.iter().map(|(_, slot)| self.entry(slot, read_at)).collect();
        if self.has(Bug::ScanHasNoBodies) {
            entries.iter_mut().for_each(|entry| entry.body = Bytes::from_static(b"null"));
        }
        Ok(Page { entries, next })
    }

    async fn changed(&self, key: &Key, seen: Version) {
        struct Waits(Arc<AtomicUsize>, bool);
        impl Drop for Waits {
            fn drop(&mut self) {
                // A wait that was dropped half-way is not taken off the count.
                self.0.fetch_sub(usize::from(self.1), Ordering::SeqCst);
            }
        }
        self.waits.fetch_add(1, Ordering::SeqCst);
        let mut waits = Waits(self.waits.clone(), !self.has(Bug::DroppedWaitsBlock));
        let at = self.place(key);
        let is_there = || self.lock().slots.get(&at).is_some_and(|slot| slot.version == seen);
        if self.has(Bug::WaitsForTheNextChange) {
            tokio::task::yield_now().await;
            self.changed.notified().await;
        }
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if !is_there() {
                waits.1 = true;
                return;
            }
            changed.await;
        }
    }

    fn glance(&self, key: &Key) -> Option<Glimpse> {
        let state = self.lock();
        let slot = match self.bug {
            Bug::GlanceSeesExpired => state.slots.get(&self.place(key)),
            _ => self.live(&state, key, self.now()),
        };
        let Entry { header, body, .. } = self.entry(slot?, self.now());
        let attempts = if self.has(Bug::GlanceSeesNoAttempts) { 0 } else { header.attempts };
        Some(Glimpse { status: header.status, attempts, body })
    }

    fn facts(&self) -> StoreFacts {
        let asked = self.facts_asked.fetch_add(1, Ordering::Relaxed);
        let mut facts = StoreFacts::new("naive");
        facts.clock = onlyonce::store::WhoseClock::Injected;
        facts.writes_per_commit = usize::MAX;
        facts.max_body = MAX_BODY;
        facts.notifies = true;
        facts.shared = true;
        facts.durability = onlyonce::store::Durability::Crash;
        match self.bug {
            Bug::FactsAreWrong => facts.name = "",
            Bug::FactsChange => facts.notifies = asked.is_multiple_of(2),
            _ => {}
        }
        facts
    }
}

//! How the store with a mistake finds what is due, and what a scan lists.

use onlyonce::store::{Cursor, Entry, Scan, TakeDue, Version};
use onlyonce::time::Timestamp;

use super::bug::Bug;
use super::slot::Slot;
use super::store::{BuggyStore, State};

impl BuggyStore {
    /// Places of due entries, as the order and the limit of this store have them.
    pub(super) fn due(&self, state: &State, take: &TakeDue, now: Timestamp) -> Vec<String> {
        let is_due = |place: &str, slot: &Slot| self.is_due(state, place, slot, now);
        let mut due: Vec<_> = state.slots.iter().filter(|(place, slot)| is_due(place, slot)).collect();
        due.retain(|(_, slot)| self.has(Bug::TakeIgnoresNamespace) || slot.key.namespace() == take.namespace);
        if self.has(Bug::TakeLimitsBeforeOrder) {
            due.truncate(take.limit);
        }
        due.sort_by_key(|(_, slot)| slot.header.due_at);
        if self.has(Bug::TakeGivesLatestFirst) {
            due.reverse();
        }
        if self.has(Bug::TakeLimitsBeforeStatus) {
            due.truncate(take.limit);
        }
        let any_status = self.has(Bug::TakeIgnoresStatus);
        due.retain(|(_, slot)| any_status || take.statuses.contains(&slot.header.status));
        if self.has(Bug::ExpiredHidesDue) {
            due.truncate(take.limit);
        }
        due.retain(|(_, slot)| self.has(Bug::ExpiredIsTaken) || !self.is_expired(&slot.header, now));
        let limit = if self.has(Bug::TakeIgnoresLimitZero) { take.limit.max(1) } else { take.limit };
        due.into_iter().take(limit).map(|(place, _)| place.clone()).collect()
    }

    fn is_due(&self, state: &State, place: &str, slot: &Slot, now: Timestamp) -> bool {
        let header = &slot.header;
        match self.bug {
            Bug::TakeIsLateByOne => header.due_at.is_some_and(|at| at < now),
            Bug::TakeIsEarly => header.due_at.is_some(),
            Bug::DueNowIsNotDue => header.is_due(now) && header.updated_at < now,
            Bug::TakeForgetsAbandoned => header.is_due(now) && header.attempts == 0,
            Bug::TakeRemembersOldDue => {
                header.is_due(now) || state.once_due.get(place).is_some_and(|at| *at <= now)
            }
            _ => header.is_due(now),
        }
    }

    pub(super) fn take(
        &self,
        state: &mut State,
        place: &str,
        take: &TakeDue,
        now: Timestamp,
    ) -> Option<Entry> {
        let old = state.slots.get(place)?.clone();
        let version = self.next_version(state, place, Some(old.version));
        let slot = old.taken(self.bug, version, take, now);
        let entry = self.entry(&slot, now);
        if !self.has(Bug::TakeIsNotKept) {
            self.keep(state, place.to_owned(), slot);
        }
        Some(entry)
    }

    pub(super) fn in_order(&self, state: &State) -> Vec<(String, Slot)> {
        let mut all: Vec<_> = state.slots.iter().map(|(p, s)| (p.clone(), s.clone())).collect();
        if self.has(Bug::ScanOrdersByVersion) {
            all.sort_by_key(|(_, slot)| slot.version);
        }
        all
    }

    pub(super) fn is_scanned(&self, scan: &Scan, slot: &Slot, now: Timestamp) -> bool {
        let namespace = scan.namespace.as_deref().is_none_or(|wanted| match self.bug {
            Bug::ScanIgnoresNamespace => true,
            Bug::NamespaceIsAPrefix => slot.key.namespace().starts_with(wanted),
            _ => slot.key.namespace() == wanted,
        });
        let any_status = scan.statuses.is_empty()
            || self.has(Bug::ScanIgnoresStatus) && !scan.expired
            || self.has(Bug::ExpiredScanIgnoresStatus) && scan.expired;
        let expired = self.is_expired(&slot.header, now);
        let side = match self.bug {
            Bug::ExpiredIsScanned => expired || !scan.expired,
            Bug::ExpiredScanListsLive => scan.expired || !expired,
            Bug::ExpiredScanListsNothing => !expired && !scan.expired,
            _ => expired == scan.expired,
        };
        let all = !(self.has(Bug::ScanOfAllIsEmpty) && scan.namespace.is_none());
        all && namespace && side && (any_status || scan.statuses.contains(&slot.header.status))
    }

    /// What comes after the cursor; the cursor is where the last page ended.
    pub(super) fn after(
        &self,
        state: &mut State,
        scan: &Scan,
        all: Vec<(String, Slot)>,
    ) -> Vec<(String, Slot)> {
        let Some(Cursor(after)) = scan.after.as_ref() else { return all };
        let used = state.cursors.contains(after);
        state.cursors.push(after.clone());
        match self.bug {
            Bug::ScanStartsAgain => all.into_iter().filter(|_| all_pages_seen(state)).collect(),
            Bug::CursorWorksOnce if used => Vec::new(),
            Bug::ScanSkipsByCount => all.into_iter().skip(after.parse().unwrap_or(0)).collect(),
            Bug::ScanOrdersByVersion => {
                let last = Version::new(after.parse().unwrap_or(0));
                all.into_iter().filter(|(_, slot)| slot.version > last).collect()
            }
            Bug::ScanRepeatsTheLast => all.into_iter().filter(|(place, _)| place >= after).collect(),
            Bug::ScanLosesItsPlace if !state.slots.contains_key(after) => Vec::new(),
            _ => all.into_iter().filter(|(place, _)| place > after).collect(),
        }
    }

    pub(super) fn cursor(&self, scan: &Scan, page: &[(String, Slot)]) -> Option<Cursor> {
        let (place, slot) = page.last()?;
        Some(Cursor(match self.bug {
            Bug::ScanSkipsByCount => {
                let before: usize = scan.after.as_ref().and_then(|c| c.0.parse().ok()).unwrap_or(0);
                (before + page.len()).to_string()
            }
            Bug::ScanOrdersByVersion => slot.version.to_string(),
            _ => place.clone(),
        }))
    }
}

/// A walk that starts again has to end some day, or the case that finds out would take for ever.
fn all_pages_seen(state: &State) -> bool {
    state.cursors.len() < 200
}

//! One entry as the naive store keeps it, and how each write changes it.

use bytes::Bytes;
use onlyonce::Key;
use onlyonce::store::{Draft, Entry, Header, HeaderDraft, Holder, Status, TakeDue, Version};
use onlyonce::time::Timestamp;

use super::bug::Bug;

#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) key: Key,
    pub(super) version: Version,
    pub(super) header: Header,
    pub(super) body: Bytes,
}

/// The header a draft becomes at `now`, over what was there.
pub(super) fn moments(bug: Bug, draft: HeaderDraft, old: &Header, now: Timestamp) -> Header {
    let (due_in, keep_for) = (draft.due_in, draft.keep_for);
    let mut header = draft.at(now, old.created_at);
    match bug {
        Bug::MomentsCountFromCreation => {
            header.due_at = due_in.map(|span| old.created_at.plus(span));
            header.expires_at = keep_for.map(|span| old.created_at.plus(span));
        }
        Bug::MomentsWrap => {
            let wrapped = |span: std::time::Duration| {
                Timestamp::from_millis(now.as_millis().wrapping_add(span.as_millis() as i64))
            };
            header.due_at = due_in.map(wrapped);
            header.expires_at = keep_for.map(wrapped);
        }
        Bug::NoDurationKeepsMoment => {
            header.due_at = header.due_at.or(old.due_at);
            header.expires_at = header.expires_at.or(old.expires_at);
        }
        Bug::EveryEntryExpires => {
            let day = now.plus(std::time::Duration::from_secs(86_400));
            header.expires_at = header.expires_at.or(Some(day));
        }
        Bug::UpdatedAtIsNotMoved => header.updated_at = old.updated_at,
        Bug::HolderIsCut => {
            let cut = |holder: Holder| Holder::parse(holder.worker().split('#').next().unwrap_or_default());
            header.holder = header.holder.map(cut);
        }
        Bug::StatusIsCut => {
            let cut: String = header.status.as_str().chars().take(12).collect();
            header.status = Status::parse(&cut).unwrap_or(header.status);
        }
        _ => {}
    }
    header
}

/// JSON read and written again.
fn reserialised(body: &Bytes) -> Bytes {
    match serde_json::from_slice::<serde_json::Value>(body) {
        Ok(value) => value.to_string().into(),
        Err(_) => body.clone(),
    }
}

fn merged(old: &Bytes, new: &Bytes) -> Bytes {
    let read = |body: &Bytes| serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(body);
    match (read(old), read(new)) {
        (Ok(mut old), Ok(new)) => {
            old.extend(new);
            serde_json::Value::Object(old).to_string().into()
        }
        _ => new.clone(),
    }
}

impl Slot {
    pub(super) fn put(
        bug: Bug,
        key: Key,
        version: Version,
        old: Option<&Self>,
        live: Option<&Self>,
        draft: Draft,
        now: Timestamp,
    ) -> Self {
        let was = if bug == Bug::CreatedAtStaysAfterExpiry { old } else { live };
        let blank = HeaderDraft::new(draft.header.status).at(now, now);
        let before = was.map_or(&blank, |slot| &slot.header);
        let mut header = moments(bug, draft.header, before, now);
        if bug == Bug::CreatedAtIsReset {
            header.created_at = now;
        }
        if let (Bug::OldDueStaysUnderPut, Some(old)) = (bug, old) {
            header.due_at = header.due_at.or(old.header.due_at);
        }
        if let (Bug::ExpiredStaysUnderPut, None, Some(old)) = (bug, live, old) {
            header.attempts = header.attempts.max(old.header.attempts);
            header.holder = header.holder.or_else(|| old.header.holder.clone());
        }
        let body = match (bug, live) {
            (Bug::BodyIsReserialised, _) => reserialised(&draft.body),
            (Bug::FalsyBodyIsNull, _)
                if matches!(&draft.body[..], b"[]" | b"0" | b"\"\"" | b"false" | b"{}") =>
            {
                Bytes::from_static(b"null")
            }
            (Bug::PutMergesBody, Some(live)) => merged(&live.body, &draft.body),
            (Bug::BodyIsCutAt64KiB, _) => draft.body.slice(..draft.body.len().min(65_536)),
            _ => draft.body,
        };
        let version = live.filter(|_| bug == Bug::PutKeepsVersion).map_or(version, |live| live.version);
        Self { key, version, header, body }
    }

    pub(super) fn touched(self, bug: Bug, version: Version, draft: HeaderDraft, now: Timestamp) -> Self {
        let mut header = moments(bug, draft, &self.header, now);
        match bug {
            Bug::TouchMergesHeader => {
                header.holder = header.holder.or_else(|| self.header.holder.clone());
                header.attempts = header.attempts.max(self.header.attempts);
            }
            Bug::TouchDropsHolder => header.holder = None,
            Bug::TouchKeepsExpiry => header.expires_at = self.header.expires_at,
            _ => {}
        }
        let body = match bug {
            Bug::TouchReserialisesBody => reserialised(&self.body),
            Bug::TouchDropsBody => Bytes::from_static(b"null"),
            _ => self.body,
        };
        Self { version, header, body, ..self }
    }

    pub(super) fn taken(self, bug: Bug, version: Version, take: &TakeDue, now: Timestamp) -> Self {
        let old = self.header.clone();
        let mut header = Header {
            holder: Some(take.holder.clone()),
            attempts: old.attempts.saturating_add(1),
            due_at: Some(now.plus(take.lease)),
            updated_at: now,
            ..self.header
        };
        match bug {
            Bug::TakeLeavesDue => header.due_at = old.due_at,
            Bug::TakeKeepsAttempts => header.attempts = old.attempts,
            Bug::AttemptsWrap => header.attempts = old.attempts.wrapping_add(1),
            Bug::TakeKeepsHolder => header.holder = old.holder,
            Bug::TakeChangesStatus => header.status = Status::new("taken"),
            Bug::TakeExtendsExpiry => header.expires_at = old.expires_at.map(|_| now.plus(take.lease)),
            Bug::LeaseWraps => {
                let wrapped = now.as_millis().wrapping_add(take.lease.as_millis() as i64);
                header.due_at = Some(Timestamp::from_millis(wrapped));
            }
            _ => {}
        }
        let version = if bug == Bug::TakeKeepsVersion { self.version } else { version };
        Self { version, header, ..self }
    }

    pub(super) fn entry(&self, read_at: Timestamp) -> Entry {
        Entry {
            key: self.key.clone(),
            version: self.version,
            header: self.header.clone(),
            body: self.body.clone(),
            read_at,
        }
    }
}

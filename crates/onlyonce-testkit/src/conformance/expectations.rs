//! Every kind of write over everything that can be under a key.

use onlyonce::Key;
use onlyonce::store::{Entry, Expect, HeaderDraft, Version, Write};

use super::failure::ensure_eq;
use super::verbs::{OTHER, check, create, delete, gone, plain, put, replace, same, touch};
use super::{Room, Verdict};

/// What a write may find under a key.
#[derive(Clone, Copy, Debug)]
enum State {
    Never,
    Live,
    Replaced,
    Touched,
    Expired,
    Deleted,
    Swept,
    CreatedAfterDelete,
    CreatedAfterExpiry,
}

const STATES: [State; 9] = [
    State::Never,
    State::Live,
    State::Replaced,
    State::Touched,
    State::Expired,
    State::Deleted,
    State::Swept,
    State::CreatedAfterDelete,
    State::CreatedAfterExpiry,
];

/// A key in one of these states, and every version it ever had.
struct Place {
    state: State,
    key: Key,
    live: Option<Version>,
    expired: Option<Version>,
    past: Vec<Version>,
}

impl Place {
    async fn make(room: &Room, state: State, name: &str) -> Verdict<Self> {
        let key = room.key(format!("{name} {state:?}"))?;
        let mut place = Self { state, key, live: None, expired: None, past: Vec::new() };
        match state {
            State::Never => {}
            State::Live => place.create(room, plain()).await?,
            State::Replaced => {
                place.create(room, plain()).await?;
                place.change(room, |key, seen| replace(key, seen, plain(), r#""later""#)).await?;
            }
            State::Touched => {
                place.create(room, plain()).await?;
                place.change(room, |key, seen| touch(key, seen, plain())).await?;
            }
            State::Expired => place.create(room, gone()).await?,
            State::Deleted => {
                place.create(room, plain()).await?;
                place.remove(room).await?;
            }
            State::Swept => {
                place.create(room, gone()).await?;
                place.remove(room).await?;
            }
            State::CreatedAfterDelete => {
                place.create(room, plain()).await?;
                place.remove(room).await?;
                place.create(room, plain()).await?;
            }
            State::CreatedAfterExpiry => {
                place.create(room, gone()).await?;
                place.create(room, plain()).await?;
            }
        }
        Ok(place)
    }

    async fn create(&mut self, room: &Room, header: HeaderDraft) -> Verdict {
        self.past.extend(self.expired.take());
        let expires = header.keep_for.is_some();
        let version = room.store_one(create(&self.key, header, r#""first""#)).await?;
        *(if expires { &mut self.expired } else { &mut self.live }) = Some(version);
        Ok(())
    }

    async fn change(&mut self, room: &Room, write: impl Fn(&Key, Version) -> Write) -> Verdict {
        if let Some(seen) = self.live {
            self.past.push(seen);
            self.live = Some(room.store_one(write(&self.key, seen)).await?);
        }
        Ok(())
    }

    async fn remove(&mut self, room: &Room) -> Verdict {
        for version in self.live.take().into_iter().chain(self.expired.take()) {
            // A store that sweeps by itself may have been faster.
            room.store().commit(vec![delete(&self.key, version)]).await?;
            self.past.push(version);
        }
        Ok(())
    }

    /// Versions that are not there: those that were, and some that never were.
    fn wrong(&self) -> Vec<Version> {
        let most = self.past.iter().chain(&self.live).chain(&self.expired).max().map_or(0, |v| v.get());
        let never = [0, most + 1, most + 1_000_000, i64::MAX as u64];
        self.past.iter().copied().chain(never.map(Version::new)).collect()
    }

    /// The write must be refused with what is there, and change nothing.
    async fn refuses(&self, room: &Room, write: Write) -> Verdict {
        let name = format!("{:?}, {write:?}", self.state);
        self.refuses_quietly(room, write).await.map_err(|failure| failure.at(name))
    }

    async fn refuses_quietly(&self, room: &Room, write: Write) -> Verdict {
        let before = room.look(&self.key).await?;
        ensure_eq!(before.as_ref().map(|e| e.version), self.live, "the live version before the write");
        let told = room.conflict_one(write).await?;
        same_option(told.as_ref(), before.as_ref()).map_err(|failure| failure.at("in the conflict"))?;
        let after = room.look(&self.key).await?;
        same_option(after.as_ref(), before.as_ref()).map_err(|failure| failure.at("after the conflict"))
    }

    /// The write must be stored.
    async fn takes(&self, room: &Room, write: Write) -> Verdict<Version> {
        let name = format!("{:?}, {write:?}", self.state);
        room.store_one(write).await.map_err(|failure| failure.at(name))
    }
}

fn same_option(found: Option<&Entry>, wanted: Option<&Entry>) -> Verdict {
    match (found, wanted) {
        (Some(found), Some(wanted)) => same(found, wanted),
        (found, wanted) => {
            ensure_eq!(found, wanted, "what is there");
            Ok(())
        }
    }
}

pub(super) async fn a_put_over_nothing_holds_only_where_nothing_is_live(room: &Room) -> Verdict {
    for state in STATES {
        let place = Place::make(room, state, "put").await?;
        let write = create(&place.key, HeaderDraft::new(OTHER), r#""new""#);
        if place.live.is_some() {
            place.refuses(room, write).await?;
            continue;
        }
        let version = place.takes(room, write).await?;
        let there = room.there(&place.key).await?;
        ensure_eq!(
            (there.version, there.header.status, &there.body[..]),
            (version, OTHER, &br#""new""#[..]),
            "{state:?}: what was put"
        );
    }
    Ok(())
}

pub(super) async fn a_put_over_a_version_holds_only_over_that_version(room: &Room) -> Verdict {
    for state in STATES {
        let place = Place::make(room, state, "put").await?;
        let write = |seen| replace(&place.key, seen, HeaderDraft::new(OTHER), r#""new""#);
        for wrong in place.wrong().into_iter().chain(place.expired) {
            place.refuses(room, write(wrong)).await?;
        }
        if let Some(live) = place.live {
            let version = place.takes(room, write(live)).await?;
            let there = room.there(&place.key).await?;
            ensure_eq!(
                (there.version, there.header.status, &there.body[..]),
                (version, OTHER, &br#""new""#[..]),
                "{state:?}: what was put"
            );
        }
    }
    Ok(())
}

pub(super) async fn a_touch_holds_only_over_its_version(room: &Room) -> Verdict {
    for state in STATES {
        let place = Place::make(room, state, "touch").await?;
        let write = |seen| touch(&place.key, seen, HeaderDraft::new(OTHER));
        for wrong in place.wrong().into_iter().chain(place.expired) {
            place.refuses(room, write(wrong)).await?;
        }
        if let Some(live) = place.live {
            let before = room.there(&place.key).await?;
            let version = place.takes(room, write(live)).await?;
            let there = room.there(&place.key).await?;
            ensure_eq!(
                (there.version, there.header.status, there.body),
                (version, OTHER, before.body),
                "{state:?}: what was touched"
            );
        }
    }
    Ok(())
}

pub(super) async fn a_check_for_nothing_holds_only_where_nothing_is_live(room: &Room) -> Verdict {
    for state in STATES {
        let place = Place::make(room, state, "check").await?;
        let write = check(&place.key, Expect::Absent);
        if place.live.is_some() {
            place.refuses(room, write).await?;
            continue;
        }
        let version = place.takes(room, write).await?;
        ensure_eq!(version, Version::default(), "{state:?}: what a check that saw nothing answers");
        room.absent(&place.key).await?;
    }
    Ok(())
}

pub(super) async fn a_check_for_a_version_holds_only_for_that_version(room: &Room) -> Verdict {
    for state in STATES {
        let place = Place::make(room, state, "check").await?;
        let write = |seen| check(&place.key, Expect::Version(seen));
        for wrong in place.wrong().into_iter().chain(place.expired) {
            place.refuses(room, write(wrong)).await?;
        }
        if let Some(live) = place.live {
            let before = room.there(&place.key).await?;
            ensure_eq!(place.takes(room, write(live)).await?, live, "{state:?}: what a check answers");
            room.unchanged(&before).await?;
        }
    }
    Ok(())
}

pub(super) async fn a_delete_holds_only_over_its_version_expired_or_not(room: &Room) -> Verdict {
    for state in STATES {
        let place = Place::make(room, state, "delete").await?;
        for wrong in place.wrong() {
            place.refuses(room, delete(&place.key, wrong)).await?;
        }
        if let Some(expired) = place.expired.filter(|_| room.keeps_expired()) {
            ensure_eq!(
                place.takes(room, delete(&place.key, expired)).await?,
                expired,
                "{state:?}: what a delete answers"
            );
        }
        if let Some(live) = place.live {
            ensure_eq!(
                place.takes(room, delete(&place.key, live)).await?,
                live,
                "{state:?}: what a delete answers"
            );
            room.absent(&place.key).await?;
            let gone = Place { live: None, ..place };
            gone.refuses(room, delete(&gone.key, live)).await?;
        }
    }
    Ok(())
}

/// The race every claim is in: somebody was faster, and what they wrote is in the answer.
pub(super) async fn a_conflict_carries_what_is_there(room: &Room) -> Verdict {
    let key = room.key("a")?;
    let header = HeaderDraft {
        holder: Some(super::verbs::holder("winner#7")),
        attempts: 3,
        due_in: Some(super::verbs::HOUR),
        keep_for: Some(2 * super::verbs::HOUR),
        ..HeaderDraft::new(OTHER)
    };
    let version = room.store_one(put(&key, Expect::Absent, header, r#"{"by":"winner"}"#)).await?;
    let there = room.there(&key).await?;
    let told = room.conflict_one(create(&key, plain(), "0")).await?;
    let told = told.ok_or_else(|| super::Failure::new("the conflict carries nothing"))?;
    same(&told, &there)?;
    ensure_eq!(told.version, version, "the version in the conflict");
    super::failure::ensure!(
        told.read_at >= there.header.updated_at && told.read_at >= there.read_at,
        "the conflict was read at {}, before it was written or read last",
        told.read_at
    );
    Ok(())
}

//! A commit is all or nothing.

use bytes::Bytes;
use onlyonce::Key;
use onlyonce::store::{Commit, Entry, Expect, HeaderDraft, StoreErrorKind, Version, Write};

use super::failure::ensure_eq;
use super::verbs::{OTHER, check, create, delete, gone, plain, replace, same, touch};
use super::{Failure, Room, Verdict};

const SIZES: [u32; 5] = [2, 3, 4, 7, 20];

/// Other headers for other writes.
fn other() -> HeaderDraft {
    HeaderDraft::new(OTHER)
}

/// Two or more writes where the store takes one: refused as a whole, and that is all there is to prove.
async fn refuses_as_a_whole(room: &Room) -> Verdict {
    let (a, b) = (room.key("a")?, room.key("b")?);
    let writes = vec![create(&a, plain(), "1"), create(&b, plain(), "2")];
    room.refused(writes, StoreErrorKind::Misconfigured).await?;
    room.absent(&a).await?;
    room.absent(&b).await
}

/// Keys `n-0`, `n-1`, …, each created with its number as body.
async fn created(room: &Room, name: &str, many: u32) -> Verdict<Vec<Entry>> {
    let mut entries = Vec::new();
    for n in 0..many {
        let key = room.key(format!("{name}-{n}"))?;
        room.store_one(create(&key, plain(), n.to_string())).await?;
        entries.push(room.there(&key).await?);
    }
    Ok(entries)
}

/// One write of each kind in turn that holds over these entries.
fn holding(entries: &[Entry]) -> Vec<Write> {
    let writes = entries.iter().enumerate().map(|(n, Entry { key, version, .. })| match n % 4 {
        0 => replace(key, *version, other(), r#""put""#),
        1 => touch(key, *version, other()),
        2 => check(key, Expect::Version(*version)),
        _ => delete(key, *version),
    });
    writes.collect()
}

/// A write of each kind that does not hold over this entry.
fn failing(entry: &Entry) -> [Write; 6] {
    let wrong = Version::new(entry.version.get() + 1_000_000);
    [
        create(&entry.key, other(), r#""put""#),
        replace(&entry.key, wrong, other(), r#""put""#),
        touch(&entry.key, wrong, other()),
        check(&entry.key, Expect::Absent),
        check(&entry.key, Expect::Version(wrong)),
        delete(&entry.key, wrong),
    ]
}

fn keys_of(writes: &[Write]) -> Vec<Key> {
    writes.iter().map(|w| w.key().clone()).collect()
}

pub(super) async fn a_commit_of_many_writes_stores_them_all(room: &Room) -> Verdict {
    if !room.takes(2) {
        return refuses_as_a_whole(room).await;
    }
    for many in SIZES.into_iter().filter(|&n| room.takes(n as usize)) {
        let before = created(room, &format!("all {many}"), many).await?;
        let versions = room.stored(holding(&before)).await?;
        for (n, (was, version)) in before.iter().zip(&versions).enumerate() {
            let now = room.look(&was.key).await?;
            let place = || format!("write {n} of {many}");
            match (n % 4, now) {
                (0, Some(now)) => {
                    ensure_eq!(now.version, *version, "{}: the version of a put", place());
                    ensure_eq!((now.header.status, &now.body[..]), (OTHER, &br#""put""#[..]), "{}", place());
                }
                (1, Some(now)) => {
                    ensure_eq!(now.version, *version, "{}: the version of a touch", place());
                    ensure_eq!((now.header.status, now.body), (OTHER, was.body.clone()), "{}", place());
                }
                (2, Some(now)) => {
                    ensure_eq!(was.version, *version, "{}: what the check answers", place());
                    same(&now, was)?;
                }
                (3, None) => ensure_eq!(was.version, *version, "{}: what the delete answers", place()),
                (_, now) => return Err(Failure::new(format!("{}: there is {now:?}", place()))),
            }
        }
    }
    Ok(())
}

pub(super) async fn one_failed_expectation_anywhere_writes_nothing(room: &Room) -> Verdict {
    if !room.takes(2) {
        return refuses_as_a_whole(room).await;
    }
    for many in SIZES.into_iter().filter(|&n| room.takes(n as usize)) {
        let before = created(room, &format!("one {many}"), many).await?;
        let many = before.len();
        for place in [0, many / 2, many - 1] {
            for wrong in failing(&before[place]) {
                let mut writes = holding(&before);
                let name = format!("write {place} of {many}, {wrong:?}");
                writes[place] = wrong;
                conflict_changes_nothing(room, &before, writes).await.map_err(|f| f.at(name))?;
            }
        }
    }
    Ok(())
}

async fn conflict_changes_nothing(room: &Room, before: &[Entry], writes: Vec<Write>) -> Verdict {
    let told = room.conflicted(writes).await?;
    for (told, was) in told.iter().zip(before) {
        let told = told.as_ref().ok_or_else(|| Failure::new(format!("no {} in the conflict", was.key)))?;
        same(told, was).map_err(|failure| failure.at("in the conflict"))?;
    }
    for was in before {
        room.unchanged(was).await?;
    }
    Ok(())
}

pub(super) async fn a_conflict_carries_one_item_per_write_in_order(room: &Room) -> Verdict {
    if !room.takes(5) {
        return refuses_as_a_whole(room).await;
    }
    let live = created(room, "live", 2).await?;
    let [never, expired, deleted] = ["never", "expired", "deleted"].map(|id| room.key(id));
    let (never, expired, deleted) = (never?, expired?, deleted?);
    room.store_one(create(&expired, gone(), "1")).await?;
    let version = room.store_one(create(&deleted, plain(), "1")).await?;
    room.store_one(delete(&deleted, version)).await?;
    let writes = vec![
        create(&deleted, plain(), "2"),
        check(&live[1].key, Expect::Version(live[1].version)),
        create(&never, plain(), "2"),
        create(&live[0].key, plain(), "2"),
        create(&expired, plain(), "2"),
    ];
    let keys = keys_of(&writes);
    let told = room.conflicted(writes).await?;
    let wanted = [None, Some(&live[1]), None, Some(&live[0]), None];
    for ((key, told), wanted) in keys.iter().zip(&told).zip(wanted) {
        match (told, wanted) {
            (Some(told), Some(wanted)) => same(told, wanted)?,
            (told, wanted) => ensure_eq!(told.as_ref(), wanted, "what the conflict carries for {key}"),
        }
    }
    for key in [&never, &expired, &deleted] {
        room.absent(key).await?;
    }
    Ok(())
}

pub(super) async fn a_check_writes_nothing(room: &Room) -> Verdict {
    let key = room.key("a")?;
    let version = room.store_one(create(&key, plain(), "1")).await?;
    let was = room.there(&key).await?;
    room.pass(room.moment()).await;
    room.store_one(check(&key, Expect::Version(version))).await?;
    room.unchanged(&was).await?;
    let nothing = room.key("nothing")?;
    room.store_one(check(&nothing, Expect::Absent)).await?;
    room.absent(&nothing).await?;
    ensure_eq!(room.walk(room.scan_home(10)).await?.len(), 1, "how many entries there are after two checks");
    Ok(())
}

pub(super) async fn a_failed_check_stops_the_other_writes(room: &Room) -> Verdict {
    if !room.takes(2) {
        return refuses_as_a_whole(room).await;
    }
    let (fence, target) = (room.key("fence")?, room.key("target")?);
    let old = room.store_one(create(&fence, plain(), "1")).await?;
    room.store_one(touch(&fence, old, plain())).await?;
    let writes = vec![check(&fence, Expect::Version(old)), create(&target, plain(), "1")];
    room.conflicted(writes).await?;
    room.absent(&target).await
}

pub(super) async fn one_commit_may_span_namespaces(room: &Room) -> Verdict {
    if !room.takes(2) {
        return refuses_as_a_whole(room).await;
    }
    let (a, b) = (room.key_in("one", "same id")?, room.key_in("two", "same id")?);
    let versions = room.stored(vec![create(&a, plain(), "1"), create(&b, plain(), "2")]).await?;
    for (key, version, body) in [(&a, versions[0], "1"), (&b, versions[1], "2")] {
        let there = room.there(key).await?;
        ensure_eq!((there.version, &there.body[..]), (version, body.as_bytes()), "what is under {key}");
    }
    room.conflicted(vec![replace(&a, versions[0], plain(), "3"), create(&b, plain(), "4")]).await?;
    ensure_eq!(room.there(&a).await?.version, versions[0], "the version of {a} after a conflict in {b}");
    Ok(())
}

pub(super) async fn one_key_twice_in_a_commit_is_refused(room: &Room) -> Verdict {
    if !room.takes(2) {
        return refuses_as_a_whole(room).await;
    }
    let entry = created(room, "twice", 1).await?.remove(0);
    let (key, version) = (&entry.key, entry.version);
    let far = room.key("far")?;
    let writes = || {
        [
            replace(key, version, other(), "1"),
            touch(key, version, other()),
            check(key, Expect::Version(version)),
            delete(key, version),
        ]
    };
    for first in writes() {
        for second in writes() {
            let name = format!("{first:?} and {second:?}");
            let pair = vec![first.clone(), second.clone()];
            room.refused(pair, StoreErrorKind::Misconfigured).await.map_err(|f| f.at(&name))?;
            if room.takes(3) {
                let apart = vec![first.clone(), create(&far, plain(), "1"), second];
                room.refused(apart, StoreErrorKind::Misconfigured).await.map_err(|f| f.at(&name))?;
                room.absent(&far).await?;
            }
            room.unchanged(&entry).await.map_err(|f| f.at(&name))?;
        }
    }
    Ok(())
}

/// No store is asked for more than this many writes at once.
const MANY: usize = 500;

pub(super) async fn as_many_writes_as_the_store_says_are_taken(room: &Room) -> Verdict {
    let many = room.facts().writes_per_commit.min(MANY);
    let keys = room.keys(u32::try_from(many).unwrap_or(1))?;
    let writes: Vec<_> = keys.iter().map(|key| create(key, plain(), "1")).collect();
    room.stored(writes).await?;
    let found = room.store().read(&keys).await?;
    ensure_eq!(found.iter().flatten().count(), many, "how many of {many} were stored");
    Ok(())
}

pub(super) async fn more_writes_than_the_store_says_are_refused(room: &Room) -> Verdict {
    let most = room.facts().writes_per_commit;
    if most >= 10_000 {
        // No limit worth the name: what stays to prove is that a large commit is one commit.
        return a_large_commit_is_one_commit(room).await;
    }
    let keys = room.keys(u32::try_from(most + 1).unwrap_or(u32::MAX))?;
    let writes: Vec<_> = keys.iter().map(|key| create(key, plain(), "1")).collect();
    room.refused(writes, StoreErrorKind::Misconfigured).await?;
    let found = room.store().read(&keys).await?;
    ensure_eq!(found.iter().flatten().count(), 0, "how many of {} refused writes were stored", most + 1);
    Ok(())
}

async fn a_large_commit_is_one_commit(room: &Room) -> Verdict {
    let keys = room.keys(MANY as u32)?;
    room.store_one(create(&keys[MANY - 1], plain(), "0")).await?;
    let writes: Vec<_> = keys.iter().map(|key| create(key, plain(), "1")).collect();
    room.conflicted(writes).await?;
    let found = room.store().read(&keys).await?;
    ensure_eq!(found.iter().flatten().count(), 1, "how many entries there are after a large conflict");
    Ok(())
}

pub(super) async fn a_commit_of_no_writes_stores_nothing(room: &Room) -> Verdict {
    ensure_eq!(room.store().commit(Vec::new()).await?, Commit::Stored(Vec::new()), "an empty commit");
    Ok(())
}

pub(super) async fn one_body_too_large_stores_none_of_the_writes(room: &Room) -> Verdict {
    let most = room.facts().max_body;
    if !room.takes(2) {
        return refuses_as_a_whole(room).await;
    }
    let entry = created(room, "large", 1).await?.remove(0);
    let (before, after) = (room.key("before")?, room.key("after")?);
    let large = Bytes::from(format!("\"{}\"", "x".repeat(most)));
    for place in 0..=1 {
        let mut writes = vec![create(if place == 0 { &after } else { &before }, plain(), "1")];
        writes.insert(place, replace(&entry.key, entry.version, other(), large.clone()));
        room.refused(writes, StoreErrorKind::TooLarge).await?;
    }
    room.absent(&before).await?;
    room.absent(&after).await?;
    room.unchanged(&entry).await
}

//! What was stored is there after a restart.

use std::collections::BTreeSet;

use onlyonce::store::{Durability, HeaderDraft, Scan, Version};

use super::failure::{ensure, ensure_eq};
use super::verbs::{HOUR, OTHER, create, delete, due, gone, holder, plain, touch};
use super::{Room, Verdict};

pub(super) async fn stored_entries_survive_a_restart(room: &Room) -> Verdict {
    ensure!(room.facts().durability != Durability::Process, "a store that is opened again is durable");
    let header = HeaderDraft {
        status: OTHER,
        holder: Some(holder("wörker \"7\"#18446744073709551615")),
        attempts: u32::MAX,
        due_in: Some(HOUR),
        keep_for: Some(24 * HOUR),
    };
    let bodies = ["null", "[]", r#"{ "a" : "é \u0000" }"#, "9007199254740993"];
    let ids = ["a", "../b", "é", "' OR 1"];
    let mut before = Vec::new();
    for (id, body) in ids.into_iter().zip(bodies) {
        let key = room.key(id)?;
        room.store_one(create(&key, header.clone(), body)).await?;
        before.push(room.there(&key).await?);
    }
    for _ in 0..2 {
        room.restart().await?;
        for was in &before {
            room.unchanged(was).await?;
        }
        ensure_eq!(room.walk(room.scan_home(2)).await?.len(), before.len(), "how many a walk finds");
    }
    // The version seen before the restart is good after it.
    for was in &before {
        room.store_one(touch(&was.key, was.version, plain())).await?;
    }
    Ok(())
}

pub(super) async fn versions_go_on_rising_after_a_restart(room: &Room) -> Verdict {
    let [stays, deleted, expired] = ["stays", "deleted", "expired"].map(|id| room.key(id));
    let (stays, deleted, expired) = (stays?, deleted?, expired?);
    let mut given = BTreeSet::new();
    let mut staying = room.store_one(create(&stays, plain(), "1")).await?;
    let mut last = [staying, Version::default(), Version::default()];
    for round in 0..4 {
        staying = room.store_one(touch(&stays, staying, plain())).await?;
        let deletes = room.store_one(create(&deleted, plain(), "1")).await?;
        room.store_one(delete(&deleted, deletes)).await?;
        let expires = room.store_one(create(&expired, gone(), "1")).await?;
        let next = [staying, deletes, expires];
        for (version, last) in next.into_iter().zip(last) {
            ensure!(given.insert(version), "round {round}: version {version} was given twice");
            ensure!(version > last, "round {round}: version {version} came after {last}");
        }
        last = next;
        room.restart().await?;
    }
    Ok(())
}

pub(super) async fn versions_rise_after_a_restart_at_an_earlier_time(room: &Room) -> Verdict {
    let (stays, deleted) = (room.key("stays")?, room.key("deleted")?);
    let mut last = room.store_one(create(&stays, plain(), "1")).await?;
    let mut last_deleted = Version::default();
    for round in 0..3 {
        let next = room.store_one(touch(&stays, last, plain())).await?;
        let again = room.store_one(create(&deleted, plain(), "1")).await?;
        ensure!(next > last, "round {round}: a touch of version {last} got {next}");
        ensure!(again > last_deleted, "round {round}: created again, {last_deleted} became {again}");
        room.store_one(delete(&deleted, again)).await?;
        (last, last_deleted) = (next, again);
        room.turn_back(24 * HOUR);
        room.restart().await?;
    }
    Ok(())
}

pub(super) async fn what_was_deleted_stays_deleted_after_a_restart(room: &Room) -> Verdict {
    let key = room.key("a")?;
    let version = room.store_one(create(&key, due(), "1")).await?;
    room.store_one(delete(&key, version)).await?;
    room.restart().await?;
    room.absent(&key).await?;
    ensure_eq!(room.walk(room.scan_home(10)).await?, [], "what a walk finds");
    ensure_eq!(room.take(10).await?, [], "what is due");
    ensure_eq!(room.conflict_one(touch(&key, version, plain())).await?, None, "what is under it");
    Ok(())
}

pub(super) async fn what_is_due_is_taken_after_a_restart(room: &Room) -> Verdict {
    let keys = room.keys(5)?;
    for key in &keys {
        room.store_one(create(key, due(), "1")).await?;
    }
    let first = room.take(2).await?;
    ensure_eq!(first.len(), 2, "how many were taken before the restart");
    room.restart().await?;
    for entry in &first {
        room.unchanged(entry).await?;
    }
    let second = room.take(100).await?;
    ensure_eq!(second.len(), 3, "how many were taken after the restart");
    ensure!(second.iter().all(|e| first.iter().all(|f| f.key != e.key)), "one was taken twice");
    Ok(())
}

pub(super) async fn what_is_expired_stays_expired_after_a_restart(room: &Room) -> Verdict {
    let key = room.key("a")?;
    let version = room.store_one(create(&key, gone(), "1")).await?;
    room.restart().await?;
    room.absent(&key).await?;
    let found = room.walk(Scan { expired: true, ..room.scan_home(10) }).await?;
    if room.keeps_expired() {
        ensure_eq!(found.iter().map(|e| e.version).collect::<Vec<_>>(), [version], "the expired entries");
        room.store_one(delete(&key, version)).await?;
    }
    Ok(())
}

//! Versions: the numbers everything else leans on.

use std::collections::BTreeSet;

use onlyonce::store::{Expect, Version};

use super::failure::{ensure, ensure_eq};
use super::verbs::{HOUR, check, create, delete, due, gone, plain, replace, touch};
use super::{Room, Verdict};

/// Zero is what a check answers when it saw nothing, so no entry may have it.
pub(super) async fn versions_are_never_zero(room: &Room) -> Verdict {
    let key = room.key("a")?;
    let version = room.store_one(create(&key, plain(), "1")).await?;
    ensure!(version > Version::default(), "the first version is {version}");
    Ok(())
}

pub(super) async fn versions_are_those_the_store_answered(room: &Room) -> Verdict {
    let key = room.key("a")?;
    let put = room.store_one(create(&key, due(), "1")).await?;
    ensure_eq!(room.there(&key).await?.version, put, "the version read after a put");
    let touched = room.store_one(touch(&key, put, due())).await?;
    ensure_eq!(room.there(&key).await?.version, touched, "the version read after a touch");
    let scanned = room.walk(room.scan_home(10)).await?;
    ensure_eq!(scanned.iter().map(|e| e.version).collect::<Vec<_>>(), [touched], "the versions scanned");
    let taken = room.take(10).await?;
    ensure_eq!(taken.len(), 1, "how many were taken");
    ensure_eq!(room.there(&key).await?.version, taken[0].version, "the version read after a take");
    ensure_eq!(
        room.store_one(check(&key, Expect::Version(taken[0].version))).await?,
        taken[0].version,
        "what a check answers"
    );
    ensure_eq!(
        room.store_one(delete(&key, taken[0].version)).await?,
        taken[0].version,
        "what a delete answers"
    );
    Ok(())
}

pub(super) async fn versions_rise_with_every_put(room: &Room) -> Verdict {
    let key = room.key("a")?;
    let mut last = room.store_one(create(&key, plain(), "0")).await?;
    for body in ["1", "1", "2"] {
        let next = room.store_one(replace(&key, last, plain(), body)).await?;
        ensure!(next > last, "a put over version {last} got {next}");
        last = next;
    }
    Ok(())
}

pub(super) async fn versions_rise_with_every_touch(room: &Room) -> Verdict {
    let key = room.key("a")?;
    let mut last = room.store_one(create(&key, plain(), "0")).await?;
    for _ in 0..3 {
        // The very same header: nothing changes but the version.
        let next = room.store_one(touch(&key, last, plain())).await?;
        ensure!(next > last, "a touch of version {last} got {next}");
        last = next;
    }
    Ok(())
}

pub(super) async fn versions_rise_with_every_take(room: &Room) -> Verdict {
    let key = room.key("a")?;
    let mut last = room.store_one(create(&key, due(), "0")).await?;
    for round in 0..3 {
        let taken = room.take(1).await?;
        ensure_eq!(taken.len(), 1, "how many were taken in round {round}");
        ensure!(taken[0].version > last, "a take of version {last} got {}", taken[0].version);
        last = room.store_one(touch(&key, taken[0].version, due())).await?;
        ensure!(last > taken[0].version, "a touch of version {} got {last}", taken[0].version);
    }
    Ok(())
}

pub(super) async fn versions_never_repeat_after_delete(room: &Room) -> Verdict {
    let key = room.key("a")?;
    let mut last = Version::default();
    for round in 0..5 {
        let put = room.store_one(create(&key, plain(), "1")).await?;
        ensure!(put > last, "round {round}: after a delete at version {last}, the key got {put}");
        last = room.store_one(touch(&key, put, plain())).await?;
        room.store_one(delete(&key, last)).await?;
    }
    Ok(())
}

pub(super) async fn versions_never_repeat_after_expiry(room: &Room) -> Verdict {
    let key = room.key("a")?;
    let mut last = Version::default();
    for round in 0..5 {
        let put = room.store_one(create(&key, gone(), "1")).await?;
        ensure!(put > last, "round {round}: after version {last} expired, the key got {put}");
        last = put;
    }
    Ok(())
}

pub(super) async fn versions_never_repeat_after_a_sweep(room: &Room) -> Verdict {
    let key = room.key("a")?;
    let mut last = Version::default();
    for round in 0..5 {
        let put = room.store_one(create(&key, gone(), "1")).await?;
        ensure!(put > last, "round {round}: after version {last} was swept, the key got {put}");
        room.store().commit(vec![delete(&key, put)]).await?;
        last = put;
    }
    Ok(())
}

/// A number made of the time would go back with the clock.
pub(super) async fn versions_rise_though_the_clock_is_set_back(room: &Room) -> Verdict {
    let (kept, deleted) = (room.key("kept")?, room.key("deleted")?);
    let mut last = room.store_one(create(&kept, plain(), "1")).await?;
    let mut last_deleted = room.store_one(create(&deleted, plain(), "1")).await?;
    for round in 0..3 {
        room.store_one(delete(&deleted, last_deleted)).await?;
        room.turn_back(24 * HOUR);
        let next = room.store_one(touch(&kept, last, plain())).await?;
        ensure!(next > last, "round {round}: a touch of version {last} a day earlier got {next}");
        let again = room.store_one(create(&deleted, plain(), "1")).await?;
        ensure!(
            again > last_deleted,
            "round {round}: created again a day earlier, {last_deleted} became {again}"
        );
        (last, last_deleted) = (next, again);
    }
    Ok(())
}

pub(super) async fn versions_never_repeat_across_keys(room: &Room) -> Verdict {
    let mut seen = BTreeSet::new();
    for key in room.keys(40)? {
        let put = room.store_one(create(&key, plain(), "1")).await?;
        let touched = room.store_one(touch(&key, put, plain())).await?;
        room.store_one(delete(&key, touched)).await?;
        let again = room.store_one(create(&key, plain(), "1")).await?;
        for version in [put, touched, again] {
            ensure!(seen.insert(version), "version {version} was given a second time, to {key}");
        }
    }
    Ok(())
}

pub(super) async fn versions_stay_when_a_commit_conflicts(room: &Room) -> Verdict {
    let key = room.key("a")?;
    let old = room.store_one(create(&key, plain(), "1")).await?;
    room.store_one(touch(&key, old, plain())).await?;
    let was = room.there(&key).await?;
    room.conflict_one(create(&key, plain(), "2")).await?;
    room.conflict_one(replace(&key, old, plain(), "2")).await?;
    room.conflict_one(touch(&key, old, due())).await?;
    room.conflict_one(check(&key, Expect::Absent)).await?;
    room.conflict_one(delete(&key, old)).await?;
    room.unchanged(&was).await
}

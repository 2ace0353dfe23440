//! Two who opened the same store, as two processes do, see one another.

use std::collections::BTreeSet;
use std::sync::Arc;

use onlyonce::store::{Commit, HeaderDraft, Store, TakeDue, Version};

use super::contention::{increment, number};
use super::failure::{ensure, ensure_eq};
use super::taking::take_all;
use super::verbs::{CROWDS, create, due, holder, plain, same, together, touch};
use super::waiting::{wait_for, woken};
use super::{Failure, Room, Verdict};

/// The store, opened twice; `None` when it is not shared and says so by refusing.
async fn both(room: &Room) -> Verdict<Option<[Arc<dyn Store>; 2]>> {
    match room.open_again().await {
        Ok(second) => Ok(Some([room.store(), second])),
        Err(failure) if room.facts().shared => Err(failure.at("a shared store was opened a second time")),
        Err(_) => Ok(None),
    }
}

pub(super) async fn two_openings_see_one_another(room: &Room) -> Verdict {
    let Some(both) = both(room).await? else { return Ok(()) };
    let key = room.key("a")?;
    let mut seen = Version::default();
    for round in 0..10 {
        let write = if round == 0 { create(&key, plain(), "1") } else { touch(&key, seen, plain()) };
        let answer = both[round % 2].commit(vec![write]).await?;
        let Commit::Stored(versions) = answer else {
            let failure = format!("round {round}: one did not see what the other wrote: {answer:?}");
            return Err(Failure::new(failure));
        };
        ensure!(versions[0] > seen, "round {round}: version {} after {seen}", versions[0]);
        seen = versions[0];
        let other = both[(round + 1) % 2].read(std::slice::from_ref(&key)).await?.pop().flatten();
        let other = other.ok_or_else(|| Failure::new("the other does not see the entry"))?;
        same(&other, &room.there(&key).await?)?;
    }
    Ok(())
}

pub(super) async fn one_wins_over_two_openings(room: &Room) -> Verdict {
    let Some(both) = both(room).await? else { return Ok(()) };
    for (round, crowd) in (0..4).zip(CROWDS.into_iter().cycle()) {
        let key = room.key(format!("{round}"))?;
        let claims = (0..16).zip(both.iter().cycle()).map(|(n, store)| {
            let header = HeaderDraft { holder: Some(holder(&format!("w{n}#1"))), ..plain() };
            let (store, write) = (store.clone(), create(&key, header, n.to_string()));
            async move { Ok(store.commit(vec![write]).await?) }
        });
        let answers = together(crowd, claims.collect()).await?;
        let winners = answers.iter().filter(|answer| matches!(answer, Commit::Stored(_))).count();
        ensure_eq!(winners, 1, "how many of 16 won, eight at each of two openings");
        let there = room.there(&key).await?;
        for answer in answers {
            let Commit::Conflict(told) = answer else { continue };
            let told = told.into_iter().next().flatten();
            let told = told.ok_or_else(|| Failure::new("a loser was told of nothing"))?;
            same(&told, &there)?;
        }
    }
    Ok(())
}

pub(super) async fn increments_over_two_openings_lose_none(room: &Room) -> Verdict {
    for crowd in CROWDS {
        let key = room.key(format!("{crowd:?}"))?;
        room.store_one(create(&key, plain(), "0")).await?;
        let Some(both) = both(room).await? else { return Ok(()) };
        let tasks =
            (0..6).zip(both.iter().cycle()).map(|(_, store)| increment(store.clone(), key.clone(), 8));
        together(crowd, tasks.collect()).await?;
        ensure_eq!(number(&room.there(&key).await?)?, 48, "{crowd:?}: the counter");
    }
    Ok(())
}

pub(super) async fn two_openings_never_take_the_same_entry(room: &Room) -> Verdict {
    let keys = room.keys(60)?;
    for key in &keys {
        room.store_one(create(key, due(), "1")).await?;
    }
    let Some(both) = both(room).await? else { return Ok(()) };
    let takers = (0..6).zip(both.iter().cycle()).map(|(n, store)| {
        let take = TakeDue { holder: holder(&format!("t{n}#1")), ..room.taking(4) };
        take_all(store.clone(), take)
    });
    let taken = together(CROWDS[1], takers.collect()).await?;
    let mut seen = BTreeSet::new();
    for entry in taken.into_iter().flatten() {
        ensure!(seen.insert(entry.key.clone()), "{} went to two takers", entry.key);
        room.unchanged(&entry).await?;
    }
    ensure_eq!(seen, keys.into_iter().collect(), "which entries were taken");
    Ok(())
}

pub(super) async fn a_change_through_one_opening_wakes_the_other(room: &Room) -> Verdict {
    let Some([first, second]) = both(room).await? else { return Ok(()) };
    let key = room.key("a")?;
    let seen = room.store_one(create(&key, plain(), "1")).await?;
    let waiter = wait_for(second, key.clone(), seen).await?;
    let answer = first.commit(vec![touch(&key, seen, plain())]).await?;
    ensure!(matches!(answer, Commit::Stored(_)), "a touch while somebody waits was answered with {answer:?}");
    if room.facts().notifies {
        return woken(waiter, "a touch through another opening").await;
    }
    waiter.abort();
    Ok(())
}

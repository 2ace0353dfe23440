//! Many at once: one wins, nothing is lost, nothing is torn.

use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, select};
use onlyonce::Key;
use onlyonce::store::{Commit, Entry, Expect, HeaderDraft, Store, Version, Write};

use super::failure::{ensure, ensure_eq};
use super::verbs::{CROWDS, Crowd, check, create, delete, holder, plain, replace, together, touch};
use super::{Failure, Room, Verdict};

const TASKS: usize = 64;

/// Lets 64 commit one write each.
async fn race(room: &Room, crowd: Crowd, write: impl Fn(usize) -> Write) -> Verdict<Vec<Commit>> {
    let commits = (0..TASKS).map(|n| {
        let (store, write) = (room.store(), write(n));
        async move { Ok(store.commit(vec![write]).await?) }
    });
    together(crowd, commits.collect()).await
}

/// The one that won; every other was told `there`.
fn one_winner(answers: &[Commit], told: impl Fn(&Option<Entry>) -> bool) -> Verdict<(usize, Version)> {
    let mut winner = None;
    for (n, answer) in answers.iter().enumerate() {
        match answer {
            Commit::Stored(versions) => {
                ensure!(winner.is_none(), "tasks {winner:?} and {n} both won");
                winner = versions.first().map(|version| (n, *version));
            }
            Commit::Conflict(there) => {
                ensure_eq!(there.len(), 1, "the items of a conflict of one write");
                ensure!(told(&there[0]), "task {n} lost and was told of {:?}", there[0]);
            }
        }
    }
    winner.ok_or_else(|| Failure::new("nobody won"))
}

pub(super) async fn one_of_many_creators_wins(room: &Room) -> Verdict {
    for (round, crowd) in (0..6).zip(CROWDS.into_iter().cycle()) {
        let key = room.key(format!("{round}"))?;
        let write = |n: usize| {
            let header = HeaderDraft { holder: Some(holder(&format!("w{n}#1"))), ..plain() };
            create(&key, header, n.to_string())
        };
        let answers = race(room, crowd, write).await?;
        let there = room.there(&key).await?;
        let (winner, version) = one_winner(&answers, |told| {
            told.as_ref().is_some_and(|e| {
                e.version == there.version && e.body == there.body && e.header.holder == there.header.holder
            })
        })?;
        ensure_eq!(
            (version, there.body.as_ref()),
            (there.version, winner.to_string().as_bytes()),
            "what the winner left"
        );
    }
    Ok(())
}

pub(super) async fn one_of_many_writers_over_one_version_wins(room: &Room) -> Verdict {
    for (round, crowd) in (0..6).zip(CROWDS.into_iter().cycle()) {
        let key = room.key(format!("{round}"))?;
        let seen = room.store_one(create(&key, plain(), "0")).await?;
        let write = |n: usize| match n % 3 {
            0 => replace(&key, seen, plain(), "1"),
            1 => touch(&key, seen, plain()),
            _ => delete(&key, seen),
        };
        let answers = race(room, crowd, write).await?;
        let (winner, version) = one_winner(&answers, |told| told.as_ref().is_none_or(|e| e.version != seen))?;
        let there = room.look(&key).await?.map(|e| e.version);
        let wanted = (winner % 3 != 2).then_some(version);
        ensure_eq!(there, wanted, "what task {winner} left");
    }
    Ok(())
}

pub(super) async fn concurrent_increments_lose_none(room: &Room) -> Verdict {
    const EACH: u64 = 10;
    for crowd in CROWDS {
        let key = room.key(format!("{crowd:?}"))?;
        room.store_one(create(&key, plain(), "0")).await?;
        let tasks = (0..6).map(|_| increment(room.store(), key.clone(), EACH)).collect();
        together(crowd, tasks).await?;
        let there = room.there(&key).await?;
        ensure_eq!(number(&there)?, 6 * EACH, "{crowd:?}: the counter");
    }
    Ok(())
}

pub(super) fn number(entry: &Entry) -> Verdict<u64> {
    let text = String::from_utf8_lossy(&entry.body);
    text.parse().map_err(|_| Failure::new(format!("the counter {} holds {text:?}", entry.key)))
}

pub(super) async fn increment(store: Arc<dyn Store>, key: Key, times: u64) -> Verdict {
    let first = store.read(std::slice::from_ref(&key)).await?.pop().flatten();
    let mut seen = first.ok_or_else(|| Failure::new("the counter is gone"))?;
    let mut left = times;
    while left > 0 {
        let next = number(&seen)? + 1;
        // Whoever else is there gets a chance to be faster.
        tokio::task::yield_now().await;
        match store.commit(vec![replace(&key, seen.version, plain(), next.to_string())]).await? {
            Commit::Stored(versions) => {
                left -= 1;
                seen.version = versions.first().copied().unwrap_or_default();
                seen.body = next.to_string().into();
            }
            // The conflict carries what to add to next: nobody reads again.
            Commit::Conflict(mut there) => {
                seen = there.pop().flatten().ok_or_else(|| Failure::new("a conflict without the counter"))?;
            }
        }
    }
    Ok(())
}

pub(super) async fn concurrent_transfers_keep_the_sum(room: &Room) -> Verdict {
    if !room.takes(2) {
        return concurrent_increments_lose_none(room).await;
    }
    for crowd in CROWDS {
        let keys = (0..5).map(|n| room.key(format!("{crowd:?} {n}"))).collect::<Verdict<Vec<_>>>()?;
        for key in &keys {
            room.store_one(create(key, plain(), "1000")).await?;
        }
        let reader = tokio::spawn(sums(room.store(), keys.clone()));
        together(crowd, (0..8).map(|n| transfer(room.store(), keys.clone(), n)).collect()).await?;
        reader.await??;
        let found: Vec<_> = room.store().read(&keys).await?.into_iter().flatten().collect();
        let sum = found.iter().map(number).sum::<Verdict<u64>>()?;
        ensure_eq!(sum, 5000, "{crowd:?}: the sum after all transfers");
    }
    Ok(())
}

/// Moves 1 from one account to another, in either order of keys: commits that cross must not lock up.
async fn transfer(store: Arc<dyn Store>, keys: Vec<Key>, task: usize) -> Verdict {
    for round in 0..15 {
        let (from, to) = ((task + round) % keys.len(), (task * 3 + round * 2 + 1) % keys.len());
        if from == to {
            continue;
        }
        let pair = [keys[from].clone(), keys[to].clone()];
        let mut seen: Vec<_> = store.read(&pair).await?.into_iter().flatten().collect();
        loop {
            ensure_eq!(seen.len(), 2, "the accounts of a transfer");
            let (less, more) = (number(&seen[0])?.checked_sub(1), number(&seen[1])? + 1);
            let less = less.ok_or_else(|| Failure::new("an account that had 1000 was emptied"))?;
            tokio::task::yield_now().await;
            let writes = vec![
                replace(&pair[0], seen[0].version, plain(), less.to_string()),
                replace(&pair[1], seen[1].version, plain(), more.to_string()),
            ];
            match store.commit(writes).await? {
                Commit::Stored(_) => break,
                Commit::Conflict(there) => seen = there.into_iter().flatten().collect(),
            }
        }
    }
    Ok(())
}

/// Reads all accounts, and when a commit of checks says that all were so at one moment, adds them up.
async fn sums(store: Arc<dyn Store>, keys: Vec<Key>) -> Verdict {
    for _ in 0..100 {
        let seen: Vec<_> = store.read(&keys).await?.into_iter().flatten().collect();
        if store.facts().writes_per_commit < keys.len() {
            return Ok(());
        }
        let checks = seen.iter().map(|e| check(&e.key, Expect::Version(e.version))).collect();
        if let Commit::Stored(_) = store.commit(checks).await? {
            let sum = seen.iter().map(number).sum::<Verdict<u64>>()?;
            ensure_eq!(sum, 5000, "the sum in the middle of transfers");
        }
    }
    Ok(())
}

/// Header and body of one write belong together, for every reader at every moment.
pub(super) async fn a_reader_never_sees_half_a_write(room: &Room) -> Verdict {
    for crowd in CROWDS {
        let key = room.key(format!("{crowd:?}"))?;
        let version = room.store_one(create(&key, plain(), "0")).await?;
        let readers = (0..3).map(|_| see_changes(room.store(), key.clone())).collect();
        let (written, seen) = (write_on(room, &key, version), together(crowd, readers));
        match select(pin!(written), pin!(seen)).await {
            Either::Left((written, _)) => written?,
            Either::Right((seen, _)) => seen.map(drop)?,
        }
    }
    Ok(())
}

/// Writes for as long as anybody looks.
async fn write_on(room: &Room, key: &Key, first: Version) -> Verdict {
    let mut version = first;
    for n in 1..u32::MAX {
        let header = HeaderDraft { attempts: n, ..plain() };
        // Bodies of very different lengths tear where equal ones would not.
        let body = format!("{n}{}", " ".repeat(n as usize * 37 % 4000));
        version = room.store_one(replace(key, version, header, body)).await?;
        tokio::task::yield_now().await;
    }
    Ok(())
}

async fn see_changes(store: Arc<dyn Store>, key: Key) -> Verdict {
    let (mut last, mut changes) = (Version::default(), 0);
    while changes < 30 {
        let there = store.read(std::slice::from_ref(&key)).await?.pop().flatten();
        let there = there.ok_or_else(|| Failure::new("an entry that is only replaced was not there"))?;
        let told: u32 = String::from_utf8_lossy(&there.body).trim_end().parse().unwrap_or(u32::MAX);
        ensure_eq!(told, there.header.attempts, "the number in the body and in the header");
        ensure!(there.version >= last, "version {} was read after {last}", there.version);
        changes += u32::from(there.version > last);
        last = there.version;
        tokio::task::yield_now().await;
    }
    Ok(())
}

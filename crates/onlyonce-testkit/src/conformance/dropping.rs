//! A dropped operation happens as a whole or not at all.

use std::collections::BTreeSet;
use std::pin::pin;
use std::task::Poll;

use onlyonce::Key;
use onlyonce::store::{Commit, Entry, HeaderDraft, Version, Write};

use super::failure::{ensure, ensure_eq};
use super::verbs::{HOUR, create, due, plain, replace, touch};
use super::{Failure, Room, Verdict};

/// Polls at most so many times, then drops.
async fn poll_and_drop<T>(polls: u32, future: impl Future<Output = T>) {
    let mut future = pin!(future);
    let mut left = polls;
    std::future::poll_fn(|context| {
        if left == 0 || future.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        left -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// How often it is polled before it is dropped: not at all, and up to where most have finished.
const POLLS: [u32; 10] = [0, 1, 1, 2, 2, 3, 5, 10, 50, 1000];

fn numbered(key: &Key, seen: Option<Version>, n: u32) -> Write {
    let header = HeaderDraft { attempts: n, ..plain() };
    match seen {
        Some(seen) => replace(key, seen, header, n.to_string()),
        None => create(key, header, n.to_string()),
    }
}

fn number(entry: &Entry) -> Verdict<u32> {
    let told: u32 = String::from_utf8_lossy(&entry.body).parse().unwrap_or(u32::MAX);
    ensure_eq!(told, entry.header.attempts, "the number in the body and in the header of {}", entry.key);
    Ok(told)
}

pub(super) async fn a_dropped_commit_happens_as_a_whole_or_not_at_all(room: &Room) -> Verdict {
    let many = if room.takes(3) { 3 } else { 1 };
    let keys = room.keys(many)?;
    for key in &keys {
        room.store_one(numbered(key, None, 0)).await?;
    }
    for (round, polls) in (1_u32..).zip(POLLS.into_iter().cycle().take(40)) {
        let seen = look_at_all(room, &keys).await?;
        let last = number(&seen[0])?;
        let writes = seen.iter().map(|e| numbered(&e.key, Some(e.version), round)).collect();
        poll_and_drop(polls, room.store().commit(writes)).await;
        let found = fence_off(room, &keys).await?.iter().map(number).collect::<Verdict<Vec<_>>>()?;
        ensure!(
            found.iter().all(|n| *n == last) || found.iter().all(|n| *n == round),
            "a commit of {round} over {last}, dropped after {polls} polls, left {found:?}"
        );
        if polls == 0 {
            ensure_eq!(found[0], last, "what a commit nobody polled has left");
        }
    }
    Ok(())
}

async fn look_at_all(room: &Room, keys: &[Key]) -> Verdict<Vec<Entry>> {
    let found: Vec<_> = room.store().read(keys).await?.into_iter().flatten().collect();
    ensure_eq!(found.len(), keys.len(), "how many entries there are");
    Ok(found)
}

/// Gives every entry a new version, so that what is still under way can no longer happen.
///
/// Gives back what was there before, all at one moment.
async fn fence_off(room: &Room, keys: &[Key]) -> Verdict<Vec<Entry>> {
    let mut seen = look_at_all(room, keys).await?;
    for _ in 0..100 {
        let same = |e: &Entry| HeaderDraft { attempts: e.header.attempts, ..plain() };
        let writes = seen.iter().map(|e| touch(&e.key, e.version, same(e))).collect();
        match room.store().commit(writes).await? {
            Commit::Stored(_) => return Ok(seen),
            Commit::Conflict(there) => seen = there.into_iter().flatten().collect(),
        }
    }
    Err(Failure::new("one dropped commit changed an entry a hundred times"))
}

pub(super) async fn a_dropped_take_leaves_entries_that_come_back(room: &Room) -> Verdict {
    let keys = room.keys(8)?;
    for key in &keys {
        room.store_one(create(key, due(), r#""body""#)).await?;
    }
    for polls in POLLS {
        poll_and_drop(polls, room.store().take_due(room.taking(2))).await;
        for entry in look_at_all(room, &keys).await? {
            ensure_taken_or_not(&entry).map_err(|f| f.at(format!("after {polls} polls")))?;
        }
    }
    if room.is_exact() { all_come_back(room, keys).await } else { Ok(()) }
}

fn ensure_taken_or_not(entry: &Entry) -> Verdict {
    let taken = entry.header.holder.is_some();
    ensure_eq!(entry.header.attempts, u32::from(taken), "the attempts of {entry:?}");
    ensure_eq!(&entry.body[..], &br#""body""#[..], "the body of {}", entry.key);
    let due_at = entry.header.due_at.ok_or_else(|| Failure::new(format!("{} is never due", entry.key)))?;
    let leased = due_at == entry.header.updated_at.plus(HOUR);
    ensure_eq!(leased, taken, "{} has a lease, and has a holder", entry.key);
    Ok(())
}

/// A take that is still under way may be faster once more; then its lease has to run out too.
async fn all_come_back(room: &Room, keys: Vec<Key>) -> Verdict {
    let mut missing: BTreeSet<Key> = keys.into_iter().collect();
    for _ in 0..20 {
        room.pass(HOUR).await;
        for entry in room.take(100).await? {
            missing.remove(&entry.key);
        }
        if missing.is_empty() {
            return Ok(());
        }
    }
    Err(Failure::new(format!("{missing:?} did not come back when the leases of dropped takes ran out")))
}

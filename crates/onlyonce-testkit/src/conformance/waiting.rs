//! `changed` wakes those who wait, and harms nobody who stops waiting.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use onlyonce::Key;
use onlyonce::store::{HeaderDraft, Store, Version, Write};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::failure::ensure;
use super::verbs::{create, delete, due, plain, replace, touch};
use super::{Failure, Room, Verdict, within};

/// A signal that takes longer than this has not come.
const PATIENCE: Duration = Duration::from_secs(5);

type Change = fn(&Key, Version) -> Write;

pub(super) async fn woken(waiter: JoinHandle<()>, by: &str) -> Verdict {
    match within(PATIENCE, waiter).await {
        Some(ended) => Ok(ended?),
        None => Err(Failure::new(format!("nobody was woken by {by} within {PATIENCE:?}"))),
    }
}

/// A task that waits, and has begun to.
pub(super) async fn wait_for(store: Arc<dyn Store>, key: Key, seen: Version) -> Verdict<JoinHandle<()>> {
    let (begun, has_begun) = oneshot::channel();
    let task = tokio::spawn(async move {
        let mut changed = store.changed(&key, seen);
        if changed.as_mut().now_or_never().is_some() {
            return;
        }
        let _ = begun.send(());
        changed.await;
    });
    // An early answer drops the sender; a hint may come early.
    let _ = has_begun.await;
    Ok(task)
}

pub(super) async fn a_change_wakes_those_who_wait(room: &Room) -> Verdict {
    if !room.facts().notifies {
        return waiting_in_vain_harms_nobody(room).await;
    }
    let key = room.key("a")?;
    let changes: [(&str, Change); 3] = [
        ("a put", |key, seen| replace(key, seen, due(), "2")),
        ("a touch", |key, seen| touch(key, seen, due())),
        ("a delete", delete),
    ];
    for (name, change) in changes {
        let seen = room.store_one(create(&key, due(), "1")).await?;
        let waiters = [
            wait_for(room.store(), key.clone(), seen).await?,
            wait_for(room.store(), key.clone(), seen).await?,
        ];
        let changed = room.store_one(change(&key, seen)).await?;
        for waiter in waiters {
            woken(waiter, name).await?;
        }
        room.store().commit(vec![delete(&key, changed)]).await?;
    }
    let seen = room.store_one(create(&key, due(), "1")).await?;
    let waiter = wait_for(room.store(), key.clone(), seen).await?;
    ensure!(room.take(1).await?.len() == 1, "a due entry was not taken");
    woken(waiter, "a take").await
}

/// Without a signal nobody has to be woken, but waiting must not stop anything either.
async fn waiting_in_vain_harms_nobody(room: &Room) -> Verdict {
    let key = room.key("in vain")?;
    let seen = room.store_one(create(&key, plain(), "1")).await?;
    let waiter = wait_for(room.store(), key.clone(), seen).await?;
    let touched = room.store_one(touch(&key, seen, plain())).await?;
    waiter.abort();
    room.store_one(delete(&key, touched)).await?;
    room.absent(&key).await
}

pub(super) async fn what_has_changed_already_wakes_at_once(room: &Room) -> Verdict {
    let key = room.key("a")?;
    let old = room.store_one(create(&key, plain(), "1")).await?;
    let new = room.store_one(touch(&key, old, plain())).await?;
    if room.facts().notifies {
        woken(wait_for(room.store(), key.clone(), old).await?, "a version that is no longer there").await?;
        room.store_one(delete(&key, new)).await?;
        woken(wait_for(room.store(), key.clone(), new).await?, "a delete before the wait").await?;
        return Ok(());
    }
    waiting_in_vain_harms_nobody(room).await
}

/// A change between the look and the wait must not be slept through.
pub(super) async fn no_change_is_slept_through(room: &Room) -> Verdict {
    let key = room.key("a")?;
    let mut seen = room.store_one(create(&key, plain(), "1")).await?;
    for _ in 0..100 {
        let (store, at) = (room.store(), key.clone());
        let waiter = tokio::spawn(async move { store.changed(&at, seen).await });
        let next = room.store_one(touch(&key, seen, plain())).await?;
        if room.facts().notifies {
            woken(waiter, "a touch that raced with the wait").await?;
        } else {
            waiter.abort();
        }
        seen = next;
    }
    Ok(())
}

pub(super) async fn a_dropped_wait_harms_nobody(room: &Room) -> Verdict {
    let key = room.key("a")?;
    let mut seen = room.store_one(create(&key, plain(), "1")).await?;
    let store = room.store();
    for attempts in 0..50 {
        // Dropped unpolled, polled once and dropped, and dropped while the entry changes.
        drop(store.changed(&key, seen));
        let mut polled = store.changed(&key, seen);
        let _ = polled.as_mut().now_or_never();
        let mut kept = store.changed(&key, seen);
        let _ = kept.as_mut().now_or_never();
        drop(polled);
        seen = room.store_one(touch(&key, seen, HeaderDraft { attempts, ..plain() })).await?;
        drop(kept);
    }
    ensure!(room.there(&key).await?.version == seen, "the last touch is not there");
    a_change_wakes_those_who_wait_again(room, &key, seen).await
}

async fn a_change_wakes_those_who_wait_again(room: &Room, key: &Key, seen: Version) -> Verdict {
    let waiter = wait_for(room.store(), key.clone(), seen).await?;
    room.store_one(touch(key, seen, plain())).await?;
    if room.facts().notifies {
        return woken(waiter, "a touch after fifty dropped waits").await;
    }
    waiter.abort();
    Ok(())
}

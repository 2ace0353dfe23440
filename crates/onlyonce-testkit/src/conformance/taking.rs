//! `take_due` hands each due entry to one taker.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use onlyonce::Key;
use onlyonce::store::{Commit, Entry, Header, HeaderDraft, Status, Store, TakeDue, Version, Write};
use onlyonce::time::BoxFuture;

use super::failure::{ensure, ensure_eq};
use super::verbs::{
    CROWDS, Crowd, HOUR, OTHER, PLAIN, create, delete, due, holder, plain, replace, together, touch,
};
use super::{Failure, Room, Verdict};

fn due_in(span: Duration) -> HeaderDraft {
    HeaderDraft { due_in: Some(span), ..plain() }
}

fn keys_of(entries: &[Entry]) -> Vec<Key> {
    entries.iter().map(|e| e.key.clone()).collect()
}

pub(super) async fn a_take_sets_holder_lease_and_attempts(room: &Room) -> Verdict {
    let key = room.key("a")?;
    let header =
        HeaderDraft { holder: Some(holder("before#1")), attempts: 4, keep_for: Some(24 * HOUR), ..due() };
    room.store_one(create(&key, header, r#"{ "body" : 1 }"#)).await?;
    let before = room.there(&key).await?;
    let taken = room.take(10).await?;
    ensure_eq!(taken.len(), 1, "how many of one due entry were taken");
    let (taken, was) = (&taken[0], &before.header);
    let wanted = Header {
        holder: Some(holder("taker#1")),
        attempts: 5,
        due_at: Some(taken.header.updated_at.plus(HOUR)),
        updated_at: taken.header.updated_at,
        ..was.clone()
    };
    ensure_eq!(taken.header, wanted, "the header after the take");
    ensure_eq!(taken.body, before.body, "the body after the take");
    ensure!(taken.version > before.version, "version {} taken over {}", taken.version, before.version);
    ensure!(taken.header.updated_at >= was.updated_at, "the take is stamped before the put");
    room.unchanged(taken).await
}

pub(super) async fn a_take_gives_the_earliest_first(room: &Room) -> Verdict {
    let keys = room.keys(20)?;
    let step = room.moment() / 20;
    let mut due_at = BTreeMap::new();
    for (n, key) in keys.iter().enumerate() {
        // In an order that is neither that of the keys nor of the moments.
        let steps = u32::try_from(n * 7 % 20).unwrap_or(0);
        room.store_one(create(key, due_in(step * steps), "1")).await?;
        due_at.insert(key.clone(), room.there(key).await?.header.due_at);
    }
    room.pass(room.moment()).await;
    let taken = keys_of(&room.take(100).await?);
    ensure_eq!(taken.len(), keys.len(), "how many were taken");
    let order: Vec<_> = taken.iter().map(|key| due_at.get(key).copied().flatten()).collect();
    ensure!(order.is_sorted(), "the entries taken were due at {order:?}");
    Ok(())
}

pub(super) async fn a_limited_take_gives_the_earliest_of_all(room: &Room) -> Verdict {
    let keys = room.keys(60)?;
    for (n, key) in keys.iter().enumerate().rev() {
        let wait = if n < 5 { Duration::ZERO } else { room.moment() };
        room.store_one(create(key, due_in(wait), "1")).await?;
    }
    room.pass(room.moment()).await;
    let first: BTreeSet<_> = keys_of(&room.take(5).await?).into_iter().collect();
    ensure_eq!(first, keys[..5].iter().cloned().collect(), "the five that were due first");
    let mut rest = BTreeSet::new();
    for _ in 0..11 {
        let taken = room.take(5).await?;
        ensure!(taken.len() <= 5, "a take of at most 5 gave {}", taken.len());
        rest.extend(keys_of(&taken));
    }
    ensure_eq!(rest, keys[5..].iter().cloned().collect(), "the others, five by five");
    ensure_eq!(room.take(5).await?, [], "what is left to take");
    Ok(())
}

pub(super) async fn a_take_of_none_takes_none(room: &Room) -> Verdict {
    let key = room.key("a")?;
    room.store_one(create(&key, due(), "1")).await?;
    let was = room.there(&key).await?;
    ensure_eq!(room.take(0).await?, [], "what a take of at most 0 took");
    let nothing = TakeDue { statuses: Vec::new(), ..room.taking(10) };
    ensure_eq!(room.store().take_due(nothing).await?, [], "what a take of no status took");
    room.unchanged(&was).await?;
    ensure_eq!(keys_of(&room.take(usize::MAX).await?), [key], "what a take without a limit took");
    Ok(())
}

pub(super) async fn a_take_looks_only_at_the_given_statuses(room: &Room) -> Verdict {
    let third = Status::new("third");
    for (id, status) in [("a", PLAIN), ("b", OTHER), ("c", third), ("d", OTHER)] {
        room.store_one(create(&room.key(id)?, HeaderDraft { status, ..due() }, "1")).await?;
    }
    let take = |statuses| TakeDue { statuses, ..room.taking(10) };
    let both: BTreeSet<_> =
        room.store().take_due(take(vec![third, PLAIN])).await?.into_iter().map(|e| e.key).collect();
    ensure_eq!(both, [room.key("a")?, room.key("c")?].into(), "the entries of two statuses");
    let others: BTreeSet<_> =
        room.store().take_due(take(vec![OTHER])).await?.into_iter().map(|e| e.key).collect();
    ensure_eq!(others, [room.key("b")?, room.key("d")?].into(), "the entries of the third status");
    Ok(())
}

/// Entries nobody asked for must not hide those behind them.
pub(super) async fn other_statuses_do_not_use_up_the_limit_of_a_take(room: &Room) -> Verdict {
    for n in 0..30 {
        let key = room.key(format!("other {n}"))?;
        room.store_one(create(&key, HeaderDraft { status: OTHER, ..due() }, "1")).await?;
    }
    room.pass(Duration::from_millis(1)).await;
    let key = room.key("mine")?;
    room.store_one(create(&key, due(), "1")).await?;
    ensure_eq!(keys_of(&room.take(1).await?), [key], "what was taken behind 30 entries of another status");
    Ok(())
}

pub(super) async fn what_is_not_due_is_not_taken(room: &Room) -> Verdict {
    let (later, never) = (room.key("later")?, room.key("never")?);
    room.store_one(create(&later, due_in(HOUR), "1")).await?;
    room.store_one(create(&never, plain(), "1")).await?;
    let was = [room.there(&later).await?, room.there(&never).await?];
    room.pass(room.moment()).await;
    ensure_eq!(room.take(10).await?, [], "what was taken before it was due");
    for was in &was {
        room.unchanged(was).await?;
    }
    Ok(())
}

pub(super) async fn an_entry_is_due_from_its_very_moment_on(room: &Room) -> Verdict {
    let key = room.key("a")?;
    room.store_one(create(&key, due_in(room.moment()), "1")).await?;
    if room.is_exact() {
        room.pass(room.moment() - Duration::from_millis(1)).await;
        ensure_eq!(room.take(10).await?, [], "what was taken a millisecond too early");
        room.pass(Duration::from_millis(1)).await;
    } else {
        room.pass(room.moment()).await;
    }
    ensure_eq!(keys_of(&room.take(10).await?), [key], "what was taken at its very moment");
    Ok(())
}

pub(super) async fn a_leased_entry_is_not_taken_again(room: &Room) -> Verdict {
    let key = room.key("a")?;
    room.store_one(create(&key, due(), "1")).await?;
    let first = room.take(10).await?;
    ensure_eq!(keys_of(&first), [key], "the first take");
    room.pass(room.moment()).await;
    ensure_eq!(room.take(10).await?, [], "what was taken while it was leased");
    room.unchanged(&first[0]).await
}

pub(super) async fn an_abandoned_lease_is_due_again(room: &Room) -> Verdict {
    let key = room.key("a")?;
    room.store_one(create(&key, due(), "1")).await?;
    let short = TakeDue { lease: room.moment(), ..room.taking(10) };
    let first = room.store().take_due(short.clone()).await?;
    ensure_eq!(keys_of(&first), std::slice::from_ref(&key), "the first take");
    room.pass(room.moment()).await;
    let second = room.store().take_due(TakeDue { holder: holder("second#2"), ..short }).await?;
    ensure_eq!(keys_of(&second), std::slice::from_ref(&key), "the take after the lease ran out");
    let header = &second[0].header;
    ensure_eq!((header.attempts, header.holder.clone()), (2, Some(holder("second#2"))), "its second lease");
    // The first holder comes back late: its fence is the lower one, and nothing of it holds.
    for late in [
        touch(&key, first[0].version, plain()),
        replace(&key, first[0].version, plain(), "2"),
        delete(&key, first[0].version),
    ] {
        room.conflict_one(late).await?;
    }
    room.unchanged(&second[0]).await
}

/// Creates an entry and changes it once.
async fn changed(
    room: &Room,
    id: &str,
    header: HeaderDraft,
    change: impl Fn(&Key, Version) -> Write,
) -> Verdict<Key> {
    let key = room.key(id)?;
    let version = room.store_one(create(&key, header, "1")).await?;
    room.store_one(change(&key, version)).await?;
    Ok(key)
}

pub(super) async fn a_take_follows_every_change_of_what_is_due(room: &Room) -> Verdict {
    let other = HeaderDraft { status: OTHER, ..due() };
    changed(room, "deleted", due(), delete).await?;
    changed(room, "freed", due(), |key, seen| touch(key, seen, plain())).await?;
    changed(room, "later", due(), |key, seen| touch(key, seen, due_in(HOUR))).await?;
    changed(room, "put later", due(), |key, seen| replace(key, seen, due_in(HOUR), "2")).await?;
    changed(room, "status", due(), |key, seen| touch(key, seen, other.clone())).await?;
    let wanted = [
        changed(room, "sooner", due_in(HOUR), |key, seen| touch(key, seen, due())).await?,
        changed(room, "put sooner", plain(), |key, seen| replace(key, seen, due(), "2")).await?,
        changed(room, "same", due(), |key, seen| touch(key, seen, due())).await?,
        changed(room, "from other", other.clone(), |key, seen| touch(key, seen, due())).await?,
    ];
    let taken: BTreeSet<_> = keys_of(&room.take(100).await?).into_iter().collect();
    ensure_eq!(taken, wanted.into(), "what is due after every kind of change");
    Ok(())
}

pub(super) async fn a_lease_of_no_time_is_due_again_at_once(room: &Room) -> Verdict {
    let keys = room.keys(3)?;
    for key in &keys {
        room.store_one(create(key, due(), "1")).await?;
    }
    for round in 1..=3 {
        let taken = room.store().take_due(TakeDue { lease: Duration::ZERO, ..room.taking(10) }).await?;
        let distinct: BTreeSet<_> = keys_of(&taken).into_iter().collect();
        ensure_eq!(
            (taken.len(), distinct.len()),
            (3, 3),
            "round {round}: how many were taken, and how many differ"
        );
        ensure!(taken.iter().all(|e| e.header.attempts == round), "round {round}: the attempts of {taken:?}");
    }
    Ok(())
}

/// Takes a few at a time until nothing is left.
pub(super) async fn take_all(store: Arc<dyn Store>, take: TakeDue) -> Verdict<Vec<Entry>> {
    let mut mine = Vec::new();
    for _ in 0..1000 {
        let taken = store.take_due(take.clone()).await?;
        if taken.is_empty() {
            return Ok(mine);
        }
        mine.extend(taken);
    }
    Err(Failure::new("a thousand takes, and something is due still"))
}

/// Many takers: every entry goes to exactly one of them.
pub(super) async fn two_takers_never_get_the_same_entry(room: &Room) -> Verdict {
    for crowd in CROWDS {
        takers_share_nothing(room, crowd).await.map_err(|f| f.at(format!("{crowd:?}")))?;
    }
    Ok(())
}

async fn takers_share_nothing(room: &Room, crowd: Crowd) -> Verdict {
    let keys = room.keys(120)?;
    for key in &keys {
        room.store_one(create(key, due(), "1")).await?;
    }
    let takers = (0..12).map(|n| {
        let take = TakeDue { holder: holder(&format!("t{n}#1")), ..room.taking(7) };
        take_all(room.store(), take)
    });
    let mut seen = BTreeSet::new();
    for entry in together(crowd, takers.collect()).await?.into_iter().flatten() {
        ensure_eq!(entry.header.attempts, 1, "how often {} was taken", entry.key);
        ensure!(seen.insert(entry.key.clone()), "{} went to two takers", entry.key);
        room.unchanged(&entry).await?;
        room.store_one(delete(&entry.key, entry.version)).await?;
    }
    ensure_eq!(seen, keys.into_iter().collect(), "which entries were taken");
    Ok(())
}

async fn delete_all(store: Arc<dyn Store>, seen: Vec<Entry>) -> Verdict<Vec<Entry>> {
    let mut mine = Vec::new();
    for entry in seen.into_iter().rev() {
        if let Commit::Stored(_) = store.commit(vec![delete(&entry.key, entry.version)]).await? {
            mine.push(entry);
        }
        tokio::task::yield_now().await;
    }
    Ok(mine)
}

/// A taker and a writer that saw the same version: exactly one of them has it.
pub(super) async fn a_taker_and_a_writer_never_both_win(room: &Room) -> Verdict {
    for crowd in CROWDS {
        taken_or_deleted(room, crowd).await.map_err(|f| f.at(format!("{crowd:?}")))?;
    }
    Ok(())
}

async fn taken_or_deleted(room: &Room, crowd: Crowd) -> Verdict {
    let mut seen = Vec::new();
    for n in 0..60 {
        let key = room.key(format!("{crowd:?} {n}"))?;
        room.store_one(create(&key, due(), "1")).await?;
        seen.push(room.there(&key).await?);
    }
    let work = (0..6).map(|n| -> BoxFuture<'static, Verdict<Vec<Entry>>> {
        match n % 2 {
            0 => Box::pin(take_all(room.store(), room.taking(3))),
            _ => Box::pin(delete_all(room.store(), seen.clone())),
        }
    });
    let mut won: Vec<_> =
        together(crowd, work.collect()).await?.into_iter().flatten().map(|e| e.key).collect();
    won.sort();
    let mut wanted: Vec<_> = seen.into_iter().map(|e| e.key).collect();
    wanted.sort();
    ensure_eq!(won, wanted, "each entry went to one, who took it or deleted it");
    Ok(())
}

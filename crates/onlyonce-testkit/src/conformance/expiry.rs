//! An entry past its `expires_at` is not there.

use std::time::Duration;

use onlyonce::Key;
use onlyonce::store::{Entry, Expect, HeaderDraft, Scan, Version};

use super::failure::{ensure, ensure_eq};
use super::verbs::{HOUR, OTHER, check, create, delete, due, gone, holder, plain, replace, touch};
use super::{Room, Verdict};

const MILLISECOND: Duration = Duration::from_millis(1);

fn kept(span: Duration) -> HeaderDraft {
    HeaderDraft { keep_for: Some(span), ..plain() }
}

/// An entry that was there and has run out.
async fn run_out(room: &Room, id: &str, header: HeaderDraft) -> Verdict<(Key, Version)> {
    let key = room.key(id)?;
    let header = HeaderDraft { keep_for: Some(room.moment()), ..header };
    let version = room.store_one(create(&key, header, r#""old""#)).await?;
    room.pass(room.moment()).await;
    Ok((key, version))
}

fn keys_of(entries: &[Entry]) -> Vec<Key> {
    let mut keys: Vec<_> = entries.iter().map(|e| e.key.clone()).collect();
    keys.sort();
    keys
}

async fn expired(room: &Room) -> Verdict<Vec<Entry>> {
    room.walk(Scan { expired: true, ..room.scan_home(10) }).await
}

pub(super) async fn an_expired_entry_is_not_read(room: &Room) -> Verdict {
    let key = room.key("stays")?;
    room.store_one(create(&key, kept(24 * HOUR), "1")).await?;
    let (out, _) = run_out(room, "goes", plain()).await?;
    room.absent(&out).await?;
    room.there(&key).await.map(drop)
}

pub(super) async fn an_entry_is_gone_from_its_very_moment_on(room: &Room) -> Verdict {
    let key = room.key("a")?;
    let span = room.moment();
    room.store_one(create(&key, kept(span), "1")).await?;
    if room.is_exact() {
        room.pass(span - MILLISECOND).await;
        room.there(&key).await.map_err(|f| f.at("a millisecond before its end"))?;
        room.pass(MILLISECOND).await;
    } else {
        room.pass(span).await;
    }
    room.absent(&key).await.map_err(|f| f.at("at its end"))
}

pub(super) async fn what_is_kept_for_no_time_is_gone_at_once(room: &Room) -> Verdict {
    let key = room.key("put")?;
    room.store_one(create(&key, gone(), "1")).await?;
    room.absent(&key).await?;
    let key = room.key("touched")?;
    let version = room.store_one(create(&key, plain(), "1")).await?;
    room.store_one(touch(&key, version, gone())).await?;
    room.absent(&key).await
}

pub(super) async fn an_entry_without_an_end_stays(room: &Room) -> Verdict {
    let key = room.key("a")?;
    room.store_one(create(&key, plain(), "1")).await?;
    let was = room.there(&key).await?;
    room.pass(if room.is_exact() { 365 * 24 * HOUR } else { room.moment() }).await;
    room.unchanged(&was).await
}

pub(super) async fn no_write_finds_an_expired_entry(room: &Room) -> Verdict {
    let (key, version) = run_out(room, "a", plain()).await?;
    let writes = [
        replace(&key, version, plain(), r#""new""#),
        touch(&key, version, plain()),
        check(&key, Expect::Version(version)),
    ];
    for write in writes {
        let name = format!("{write:?}");
        ensure_eq!(room.conflict_one(write).await?, None, "what the conflict carries for {name}");
        room.absent(&key).await?;
    }
    ensure_eq!(room.store_one(check(&key, Expect::Absent)).await?, Version::default(), "a check for nothing");
    Ok(())
}

pub(super) async fn an_expired_entry_gives_way_to_a_put(room: &Room) -> Verdict {
    let header = HeaderDraft {
        holder: Some(holder("old#1")),
        attempts: 9,
        due_in: Some(Duration::ZERO),
        ..HeaderDraft::new(OTHER)
    };
    let (key, old) = run_out(room, "a", header).await?;
    let new = room.store_one(create(&key, plain(), r#""new""#)).await?;
    ensure!(new > old, "the put over expired version {old} got {new}");
    let there = room.there(&key).await?;
    let header = &there.header;
    ensure_eq!(
        (header.status, header.holder.as_ref(), header.attempts, header.due_at, header.expires_at),
        (plain().status, None, 0, None, None),
        "the header after the put"
    );
    ensure_eq!(&there.body[..], &br#""new""#[..], "the body after the put");
    ensure_eq!(header.created_at, header.updated_at, "it is created anew; created_at and updated_at");
    ensure_eq!(expired(room).await?, [], "what a scan for expired entries still lists");
    let mut take = room.taking(10);
    take.statuses.push(OTHER);
    ensure_eq!(room.store().take_due(take).await?, [], "the new entry is not due, but was taken");
    Ok(())
}

pub(super) async fn an_expired_entry_is_not_taken(room: &Room) -> Verdict {
    let (out, _) = run_out(room, "out", due()).await?;
    let key = room.key("live")?;
    room.store_one(create(&key, due(), "1")).await?;
    let taken = room.take(10).await?;
    ensure_eq!(keys_of(&taken), [key], "what was taken while {out} was expired");
    room.absent(&out).await
}

/// The earliest due entries being expired must not hide the due ones behind them.
pub(super) async fn expired_entries_do_not_use_up_the_limit_of_a_take(room: &Room) -> Verdict {
    for n in 0..30 {
        let key = room.key(format!("out {n}"))?;
        room.store_one(create(&key, HeaderDraft { keep_for: Some(Duration::ZERO), ..due() }, "1")).await?;
    }
    room.pass(MILLISECOND).await;
    let key = room.key("live")?;
    room.store_one(create(&key, due(), "1")).await?;
    ensure_eq!(keys_of(&room.take(1).await?), [key], "what was taken behind 30 expired entries");
    Ok(())
}

pub(super) async fn a_taken_entry_still_expires(room: &Room) -> Verdict {
    let key = room.key("a")?;
    let header = HeaderDraft { keep_for: Some(2 * HOUR), ..due() };
    let version = room.store_one(create(&key, header, "1")).await?;
    let before = room.there(&key).await?;
    let taken = room.take(1).await?;
    ensure_eq!(taken.len(), 1, "how many of one due entry were taken");
    ensure_eq!(taken[0].header.expires_at, before.header.expires_at, "expires_at after a take");
    ensure!(taken[0].version > version, "the take gave version {} over {version}", taken[0].version);
    if room.is_exact() {
        room.pass(2 * HOUR).await;
        room.absent(&key).await?;
        ensure_eq!(room.take(1).await?, [], "its lease ran out and so did the entry, yet it was taken");
    }
    Ok(())
}

pub(super) async fn a_plain_scan_passes_over_expired_entries(room: &Room) -> Verdict {
    let (out, _) = run_out(room, "out", plain()).await?;
    let key = room.key("live")?;
    room.store_one(create(&key, plain(), "1")).await?;
    ensure_eq!(keys_of(&room.walk(room.scan_home(1)).await?), [key], "what a scan lists beside {out}");
    Ok(())
}

pub(super) async fn a_scan_for_expired_entries_lists_nothing_live(room: &Room) -> Verdict {
    let header = HeaderDraft { holder: Some(holder("h#1")), attempts: 2, ..gone() };
    let (out, live) = (room.key("out")?, room.key("live")?);
    let version = room.store_one(create(&out, header, r#"{"old": 1}"#)).await?;
    room.store_one(create(&live, kept(24 * HOUR), "1")).await?;
    room.store_one(create(&room.key("stays")?, plain(), "1")).await?;
    let found = expired(room).await?;
    if room.keeps_expired() {
        ensure_eq!(keys_of(&found), std::slice::from_ref(&out), "what a scan for expired entries lists");
    }
    for entry in &found {
        ensure_eq!(
            (&entry.key, entry.version, &entry.body[..]),
            (&out, version, &br#"{"old": 1}"#[..]),
            "an expired entry as the scan gives it"
        );
        ensure_eq!(
            (entry.header.attempts, entry.header.holder.clone()),
            (2, Some(holder("h#1"))),
            "its header"
        );
        ensure!(entry.header.is_expired(entry.read_at), "{entry:?} is listed as expired and is not");
    }
    Ok(())
}

pub(super) async fn a_scan_for_expired_entries_pages_and_filters(room: &Room) -> Verdict {
    let mut wanted = Vec::new();
    for (n, key) in room.keys(23)?.into_iter().enumerate() {
        let status = if n % 2 == 0 { plain().status } else { OTHER };
        room.store_one(create(&key, HeaderDraft { status, ..gone() }, "1")).await?;
        wanted.extend((n % 2 == 1).then_some(key));
    }
    room.store_one(create(&room.key_in("elsewhere", "a")?, HeaderDraft { status: OTHER, ..gone() }, "1"))
        .await?;
    wanted.sort();
    for limit in [1, 2, 7, 100] {
        let scan = Scan { expired: true, statuses: vec![OTHER], ..room.scan_home(limit) };
        let found = keys_of(&room.walk(scan).await?);
        if room.keeps_expired() {
            ensure_eq!(found, wanted, "the expired entries with one status, {limit} to a page");
        }
    }
    Ok(())
}

pub(super) async fn an_expired_entry_is_deleted_at_its_version(room: &Room) -> Verdict {
    let (key, version) = run_out(room, "a", plain()).await?;
    let wrong = Version::new(version.get() + 1);
    ensure_eq!(room.conflict_one(delete(&key, wrong)).await?, None, "what the conflict carries");
    if room.keeps_expired() {
        ensure_eq!(expired(room).await?.len(), 1, "how many expired entries a wrong delete leaves");
        ensure_eq!(room.store_one(delete(&key, version)).await?, version, "what the delete answers");
    }
    ensure_eq!(expired(room).await?, [], "what a scan for expired entries lists after the delete");
    ensure_eq!(room.conflict_one(delete(&key, version)).await?, None, "what a second delete finds");
    Ok(())
}

/// A sweeper must not remove what has come to life again since it looked.
pub(super) async fn a_sweep_never_deletes_a_new_entry(room: &Room) -> Verdict {
    let (key, old) = run_out(room, "a", plain()).await?;
    room.store_one(create(&key, plain(), r#""new""#)).await?;
    let was = room.there(&key).await?;
    room.conflict_one(delete(&key, old)).await?;
    room.unchanged(&was).await
}

pub(super) async fn an_end_moves_with_a_touch_or_a_put(room: &Room) -> Verdict {
    let [longer, shorter, put, freed] = ["longer", "shorter", "put", "freed"].map(|id| room.key(id));
    let (longer, shorter, put, freed) = (longer?, shorter?, put?, freed?);
    // Long enough that a slow disk does not let it run out before it is touched.
    let soon = room.moment() * 10;
    for (key, first, second) in
        [(&longer, soon, Some(24 * HOUR)), (&shorter, 24 * HOUR, Some(soon)), (&freed, soon, None)]
    {
        let version = room.store_one(create(key, kept(first), "1")).await?;
        room.store_one(touch(key, version, HeaderDraft { keep_for: second, ..plain() })).await?;
    }
    let version = room.store_one(create(&put, kept(soon), "1")).await?;
    room.store_one(replace(&put, version, kept(24 * HOUR), "1")).await?;
    room.pass(soon).await;
    room.absent(&shorter).await?;
    for key in [&longer, &put, &freed] {
        room.there(key).await?;
    }
    Ok(())
}

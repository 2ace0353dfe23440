//! Durations go in, moments come out.

use std::time::Duration;

use onlyonce::store::{HeaderDraft, WhoseClock};
use onlyonce::time::Timestamp;

use super::failure::{ensure, ensure_eq};
use super::verbs::{HOUR, create, due, plain, replace, same, touch};
use super::{Room, Verdict};

const YEAR: Duration = Duration::from_secs(366 * 86_400);

/// Fails unless `found` is `span` after `from`, by a server's clock to a second, else to the millisecond.
fn ensure_after(
    room: &Room,
    what: &str,
    found: Option<Timestamp>,
    from: Timestamp,
    span: Duration,
) -> Verdict {
    let slack =
        if room.facts().clock == WhoseClock::Server { Duration::from_secs(1) } else { Duration::ZERO };
    let wanted = from.plus(span);
    let close = found.is_some_and(|at| at.since(wanted).max(wanted.since(at)) <= slack);
    ensure!(close, "{what} should be {span:?} after {from}, it is {found:?}");
    Ok(())
}

pub(super) async fn durations_become_moments_by_the_stores_clock(room: &Room) -> Verdict {
    let key = room.key("a")?;
    let header = HeaderDraft { due_in: Some(HOUR), keep_for: Some(3 * HOUR), ..plain() };
    let put = room.store_one(create(&key, header, "1")).await?;
    let first = room.there(&key).await?.header;
    ensure_after(room, "due_at", first.due_at, first.updated_at, HOUR)?;
    ensure_after(room, "expires_at", first.expires_at, first.updated_at, 3 * HOUR)?;
    room.pass(room.moment()).await;
    let header = HeaderDraft { due_in: Some(2 * HOUR), keep_for: Some(4 * HOUR), ..plain() };
    let touched = room.store_one(touch(&key, put, header)).await?;
    let second = room.there(&key).await?.header;
    ensure_after(room, "due_at", second.due_at, second.updated_at, 2 * HOUR)?;
    ensure_after(room, "expires_at", second.expires_at, second.updated_at, 4 * HOUR)?;
    let header = HeaderDraft { due_in: Some(room.moment()), keep_for: Some(HOUR), ..plain() };
    room.store_one(replace(&key, touched, header, "2")).await?;
    let third = room.there(&key).await?.header;
    ensure_after(room, "due_at", third.due_at, third.updated_at, room.moment())?;
    ensure_after(room, "expires_at", third.expires_at, third.updated_at, HOUR)
}

pub(super) async fn no_duration_gives_no_moment(room: &Room) -> Verdict {
    let key = room.key("a")?;
    let version = room.store_one(create(&key, plain(), "1")).await?;
    let header = room.there(&key).await?.header;
    ensure_eq!((header.due_at, header.expires_at), (None, None), "moments nobody asked for after a put");
    room.store_one(touch(&key, version, plain())).await?;
    let header = room.there(&key).await?.header;
    ensure_eq!((header.due_at, header.expires_at), (None, None), "moments nobody asked for after a touch");
    Ok(())
}

pub(super) async fn moments_can_be_taken_away(room: &Room) -> Verdict {
    let full = HeaderDraft { due_in: Some(HOUR), keep_for: Some(HOUR), ..plain() };
    let key = room.key("touched")?;
    let version = room.store_one(create(&key, full.clone(), "1")).await?;
    room.store_one(touch(&key, version, plain())).await?;
    let touched = room.there(&key).await?.header;
    ensure_eq!((touched.due_at, touched.expires_at), (None, None), "moments after a touch without them");
    let key = room.key("put")?;
    let version = room.store_one(create(&key, full, "1")).await?;
    room.store_one(replace(&key, version, plain(), "1")).await?;
    let put = room.there(&key).await?.header;
    ensure_eq!((put.due_at, put.expires_at), (None, None), "moments after a put without them");
    Ok(())
}

pub(super) async fn writes_are_stamped_by_the_stores_clock(room: &Room) -> Verdict {
    let (first, second) = (room.key("first")?, room.key("second")?);
    room.store_one(create(&first, plain(), "1")).await?;
    room.pass(room.moment()).await;
    room.store_one(create(&second, plain(), "1")).await?;
    let (first, second) = (room.there(&first).await?.header, room.there(&second).await?.header);
    let between = second.updated_at.since(first.updated_at);
    ensure!(between >= room.moment(), "{:?} passed, the stamps are {between:?} apart", room.moment());
    if room.is_exact() {
        ensure_eq!(between, room.moment(), "how far two stamps are apart");
    }
    Ok(())
}

pub(super) async fn reads_are_stamped_by_the_stores_clock(room: &Room) -> Verdict {
    let key = room.key("a")?;
    room.store_one(create(&key, due(), "1")).await?;
    let first = room.there(&key).await?;
    ensure!(first.read_at >= first.header.updated_at, "read at {} before it was written", first.read_at);
    room.pass(room.moment()).await;
    let conflict = room.conflict_one(create(&key, plain(), "2")).await?;
    let mut later = vec![room.there(&key).await?];
    later.extend(conflict);
    later.extend(room.walk(room.scan_home(1)).await?);
    later.extend(room.take(1).await?);
    ensure_eq!(later.len(), 4, "how often it was seen");
    for (how, entry) in ["a read", "a conflict", "a scan", "a take"].iter().zip(&later) {
        let passed = entry.read_at.since(first.read_at);
        ensure!(passed >= room.moment(), "by {how}, {passed:?} passed, and it was {:?}", room.moment());
        if room.is_exact() {
            ensure_eq!(passed, room.moment(), "the time passed by {how}");
        }
    }
    Ok(())
}

pub(super) async fn what_is_due_in_no_time_is_due_at_once(room: &Room) -> Verdict {
    let key = room.key("a")?;
    let version = room.store_one(create(&key, due(), "1")).await?;
    let header = room.there(&key).await?.header;
    ensure_after(room, "due_at", header.due_at, header.updated_at, Duration::ZERO)?;
    room.store_one(touch(&key, version, due())).await?;
    ensure_eq!(room.take(10).await?.len(), 1, "how many of one due entry were taken");
    Ok(())
}

pub(super) async fn very_long_durations_do_not_wrap(room: &Room) -> Verdict {
    let spans = [
        1000 * YEAR,
        Duration::from_millis(i64::MAX as u64),
        Duration::from_secs(i64::MAX as u64),
        Duration::from_secs(u64::MAX),
        Duration::MAX,
    ];
    for span in spans {
        let key = room.key(format!("{span:?}"))?;
        let long = HeaderDraft { due_in: Some(span), keep_for: Some(span), ..plain() };
        let version = room.store_one(create(&key, long.clone(), "1")).await?;
        ensure_far(room, &room.there(&key).await?.header.due_at, span)?;
        room.store_one(touch(&key, version, long)).await?;
        let there = room.there(&key).await?;
        ensure_far(room, &there.header.due_at, span)?;
        ensure_far(room, &there.header.expires_at, span)?;
        ensure_eq!(room.take(10).await?, [], "what is due in {span:?} was taken");
        let scanned = room.walk(room.scan_home(10)).await?;
        let mine = scanned.iter().find(|e| e.key == key);
        same(mine.ok_or_else(|| super::Failure::new(format!("a scan does not see {key}")))?, &there)?;
    }
    Ok(())
}

fn ensure_far(room: &Room, found: &Option<Timestamp>, span: Duration) -> Verdict {
    let far = Timestamp::from_millis(0).plus(200 * YEAR);
    ensure!(found.is_some_and(|at| at > far), "{span:?} from now became {found:?} on {}", room.facts().name);
    Ok(())
}

pub(super) async fn a_very_long_lease_does_not_wrap(room: &Room) -> Verdict {
    let key = room.key("a")?;
    room.store_one(create(&key, due(), "1")).await?;
    let mut take = room.taking(1);
    take.lease = Duration::MAX;
    let taken = room.store().take_due(take.clone()).await?;
    ensure_eq!(taken.len(), 1, "how many were taken");
    ensure_far(room, &taken[0].header.due_at, take.lease)?;
    room.unchanged(&taken[0]).await?;
    ensure_eq!(room.store().take_due(take).await?, [], "what is leased for ever was taken again");
    Ok(())
}

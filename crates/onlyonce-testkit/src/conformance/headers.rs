//! Headers come back as they were given, and say when.

use std::time::Duration;

use onlyonce::store::{Header, HeaderDraft, Holder, Status};

use super::failure::{ensure, ensure_eq};
use super::verbs::{HOUR, OTHER, check, create, delete, due, gone, plain, replace, touch};
use super::{Room, Verdict};

/// Headers at the ends of what a header may be.
fn odd_headers() -> Vec<HeaderDraft> {
    let workers = [
        "",
        " ",
        "w",
        "a#b",
        "#",
        "host:1234/thread 7",
        r#"quote " and ' and ` and \"#,
        "Ünïcödé 😀 e\u{301}",
        "line\nbreak\ttab",
        "null",
        "'; DROP TABLE entries; --",
        "{\"json\":[1]}",
    ];
    let mut headers: Vec<_> = workers
        .iter()
        .flat_map(|worker| [0, 1, u64::MAX].map(|claim| Holder::new((*worker).into(), claim)))
        .map(|holder| HeaderDraft { holder: Some(holder), ..plain() })
        .collect();
    headers.extend([0, 1, i32::MAX as u32, u32::MAX].map(|attempts| HeaderDraft { attempts, ..plain() }));
    let long = ["a", "0", "_", "running", "aaaaaaaaaaaaaaaaaaaaaaa", "null", "true"];
    headers.extend(long.into_iter().filter_map(Status::parse).map(HeaderDraft::new));
    headers.push(HeaderDraft { due_in: Some(HOUR), ..plain() });
    headers.push(HeaderDraft { keep_for: Some(HOUR), ..plain() });
    headers
}

fn ensure_given(found: &Header, given: &HeaderDraft) -> Verdict {
    ensure_eq!(
        (&found.status, &found.holder, found.attempts, found.due_at.is_some(), found.expires_at.is_some()),
        (&given.status, &given.holder, given.attempts, given.due_in.is_some(), given.keep_for.is_some()),
        "the header that came back"
    );
    Ok(())
}

pub(super) async fn a_header_comes_back_as_it_was_put(room: &Room) -> Verdict {
    for (n, header) in odd_headers().into_iter().enumerate() {
        let key = room.key(format!("{n}"))?;
        room.store_one(create(&key, header.clone(), "1")).await?;
        let there = room.there(&key).await?;
        ensure_given(&there.header, &header)?;
        let told = room.conflict_one(create(&key, plain(), "2")).await?;
        ensure_eq!(told.map(|e| e.header), Some(there.header), "the header in a conflict");
    }
    let scanned = room.walk(room.scan_home(100)).await?;
    for entry in &scanned {
        room.unchanged(entry).await.map_err(|f| f.at("as a scan gave it"))?;
    }
    ensure_eq!(scanned.len(), odd_headers().len(), "how many a scan gave");
    Ok(())
}

pub(super) async fn a_header_comes_back_as_it_was_touched(room: &Room) -> Verdict {
    let key = room.key("a")?;
    let mut version = room.store_one(create(&key, plain(), "1")).await?;
    for header in odd_headers() {
        version = room.store_one(touch(&key, version, header.clone())).await?;
        ensure_given(&room.there(&key).await?.header, &header)?;
    }
    Ok(())
}

pub(super) async fn nothing_of_the_old_header_stays(room: &Room) -> Verdict {
    let full = HeaderDraft {
        status: OTHER,
        holder: Some(Holder::new("w".into(), 3)),
        attempts: 7,
        due_in: Some(HOUR),
        keep_for: Some(HOUR),
    };
    let (put, touched) = (room.key("put")?, room.key("touched")?);
    let version = room.store_one(create(&put, full.clone(), "1")).await?;
    room.store_one(replace(&put, version, plain(), "2")).await?;
    ensure_given(&room.there(&put).await?.header, &plain())?;
    let version = room.store_one(create(&touched, full, "1")).await?;
    room.store_one(touch(&touched, version, plain())).await?;
    ensure_given(&room.there(&touched).await?.header, &plain())
}

pub(super) async fn created_at_stays_through_puts_touches_and_takes(room: &Room) -> Verdict {
    let key = room.key("a")?;
    let put = room.store_one(create(&key, due(), "1")).await?;
    let first = room.there(&key).await?.header;
    ensure_eq!(first.created_at, first.updated_at, "the moments of the first put");
    room.pass(room.moment()).await;
    let touched = room.store_one(touch(&key, put, due())).await?;
    ensure_eq!(room.there(&key).await?.header.created_at, first.created_at, "created_at after a touch");
    let again = room.store_one(replace(&key, touched, due(), "2")).await?;
    ensure_eq!(room.there(&key).await?.header.created_at, first.created_at, "created_at after a put");
    let taken = room.take(1).await?;
    ensure_eq!(taken.len(), 1, "how many of one due entry were taken");
    ensure!(taken[0].version > again, "a take gives a new version");
    ensure_eq!(taken[0].header.created_at, first.created_at, "created_at after a take");
    room.unchanged(&taken[0]).await
}

pub(super) async fn created_at_starts_anew_where_nothing_was(room: &Room) -> Verdict {
    let (deleted, expired) = (room.key("deleted")?, room.key("expired")?);
    let version = room.store_one(create(&deleted, plain(), "1")).await?;
    let first = room.there(&deleted).await?.header.created_at;
    room.store_one(delete(&deleted, version)).await?;
    room.store_one(create(&expired, gone(), "1")).await?;
    room.pass(room.moment()).await;
    for key in [&deleted, &expired] {
        room.store_one(create(key, plain(), "2")).await?;
        let header = room.there(key).await?.header;
        ensure!(header.created_at > first, "{key} says it was created at {}", header.created_at);
        ensure_eq!(header.created_at, header.updated_at, "the moments of {key} after its new first put");
    }
    Ok(())
}

pub(super) async fn updated_at_is_the_last_write_of_any_kind(room: &Room) -> Verdict {
    let key = room.key("a")?;
    let mut version = room.store_one(create(&key, due(), "1")).await?;
    let mut last = room.there(&key).await?.header.updated_at;
    for kind in ["put", "touch", "take"] {
        room.pass(room.moment()).await;
        version = match kind {
            "put" => room.store_one(replace(&key, version, due(), "2")).await?,
            "touch" => room.store_one(touch(&key, version, due())).await?,
            _ => room.take(1).await?.first().map(|e| e.version).unwrap_or_default(),
        };
        let there = room.there(&key).await?;
        let moved = there.header.updated_at.since(last);
        ensure_eq!(there.version, version, "the version after a {kind}");
        ensure!(moved >= room.moment(), "a {kind} moved updated_at by {moved:?}, not {:?}", room.moment());
        last = there.header.updated_at;
    }
    Ok(())
}

pub(super) async fn updated_at_stays_when_nothing_is_written(room: &Room) -> Verdict {
    let key = room.key("a")?;
    let version = room.store_one(create(&key, plain(), "1")).await?;
    let was = room.there(&key).await?;
    room.pass(room.moment()).await;
    room.store_one(check(&key, onlyonce::store::Expect::Version(version))).await?;
    room.conflict_one(create(&key, plain(), "2")).await?;
    room.walk(room.scan_home(10)).await?;
    room.take(10).await?;
    room.unchanged(&was).await
}

/// The highest count stays where it is; it must not become 0, an error, or an entry nobody can read.
pub(super) async fn attempts_do_not_wrap(room: &Room) -> Verdict {
    let key = room.key("a")?;
    room.store_one(create(&key, HeaderDraft { attempts: u32::MAX, ..due() }, "1")).await?;
    let mut take = room.taking(1);
    take.lease = Duration::ZERO;
    for round in 0..2 {
        let taken = room.store().take_due(take.clone()).await?;
        ensure_eq!(
            taken.iter().map(|e| e.header.attempts).collect::<Vec<_>>(),
            [u32::MAX],
            "the attempts after {} takes too many",
            round + 1
        );
        room.unchanged(&taken[0]).await?;
    }
    Ok(())
}

//! A read gives one item per key, in order.

use onlyonce::store::{Glimpse, HeaderDraft};

use super::failure::{ensure, ensure_eq};
use super::verbs::{OTHER, create, delete, gone, plain, replace, touch};
use super::{Room, Verdict};

pub(super) async fn a_read_gives_one_item_per_key_in_order(room: &Room) -> Verdict {
    let keys = room.keys(12)?;
    for (n, key) in keys.iter().enumerate().filter(|(n, _)| n % 3 != 1) {
        room.store_one(create(key, plain(), n.to_string())).await?;
    }
    // Backwards, with some twice, some absent, and one from elsewhere.
    let elsewhere = room.key_in("elsewhere", keys[0].id())?;
    room.store_one(create(&elsewhere, plain(), "99")).await?;
    let mut asked: Vec<_> = keys.iter().rev().chain(&keys).cloned().collect();
    asked.insert(5, elsewhere.clone());
    asked.push(keys[0].clone());
    let found = room.store().read(&asked).await?;
    ensure_eq!(found.len(), asked.len(), "how many items came back");
    for (key, entry) in asked.iter().zip(&found) {
        let number = keys.iter().position(|k| k == key).unwrap_or(99);
        let wanted = (*key == elsewhere || number % 3 != 1).then(|| (key.clone(), number.to_string()));
        let found = entry.as_ref().map(|e| (e.key.clone(), String::from_utf8_lossy(&e.body).into_owned()));
        ensure_eq!(found, wanted, "what came back for {key}");
    }
    Ok(())
}

pub(super) async fn a_read_of_no_keys_gives_nothing(room: &Room) -> Verdict {
    ensure_eq!(room.store().read(&[]).await?, [], "a read of no keys");
    Ok(())
}

pub(super) async fn a_read_of_many_keys_works(room: &Room) -> Verdict {
    let keys = room.keys(1500)?;
    for key in keys.iter().step_by(100) {
        room.store_one(create(key, plain(), "1")).await?;
    }
    let found = room.store().read(&keys).await?;
    ensure_eq!(found.len(), keys.len(), "how many items came back");
    for (n, (key, entry)) in keys.iter().zip(&found).enumerate() {
        let wanted = (n % 100 == 0).then_some(key);
        ensure_eq!(entry.as_ref().map(|e| &e.key), wanted, "item {n} of {}", keys.len());
    }
    Ok(())
}

pub(super) async fn a_glance_shows_what_a_read_gives(room: &Room) -> Verdict {
    let keys = room.keys(6)?;
    let [_never, live, replaced, touched, deleted, expired] = &keys[..] else { return Ok(()) };
    room.store_one(create(live, plain(), "1")).await?;
    let version = room.store_one(create(replaced, plain(), "2")).await?;
    let header = HeaderDraft { attempts: 3, ..HeaderDraft::new(OTHER) };
    room.store_one(replace(replaced, version, header.clone(), "3")).await?;
    let version = room.store_one(create(touched, plain(), "4")).await?;
    room.store_one(touch(touched, version, header)).await?;
    let version = room.store_one(create(deleted, plain(), "5")).await?;
    room.store_one(delete(deleted, version)).await?;
    room.store_one(create(expired, gone(), "6")).await?;
    for key in &keys {
        let read = room.look(key).await?.map(|entry| Glimpse {
            status: entry.header.status,
            attempts: entry.header.attempts,
            body: entry.body,
        });
        let seen = room.store().glance(key);
        // A store may always say nothing.
        ensure!(seen.is_none() || seen == read, "a glance at {key} shows {seen:?}, a read gives {read:?}");
    }
    Ok(())
}

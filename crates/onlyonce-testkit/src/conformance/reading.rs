//! A read gives one item per key, in order.

use super::failure::ensure_eq;
use super::verbs::{create, plain};
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

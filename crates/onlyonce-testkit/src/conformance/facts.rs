//! What a store says of itself makes sense.

use super::failure::{ensure, ensure_eq};
use super::{Room, Verdict};

pub(super) async fn the_facts_make_sense(room: &Room) -> Verdict {
    let facts = room.facts();
    let word = facts.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    ensure!(word && !facts.name.is_empty(), "a store's name is one plain word, not {:?}", facts.name);
    ensure!(facts.writes_per_commit >= 1, "a store takes at least one write per commit");
    let sane = 64 * 1024..=32 * 1024 * 1024;
    ensure!(
        sane.contains(&facts.max_body),
        "bodies of up to {} bytes; 64 KiB to 32 MiB is sane",
        facts.max_body
    );
    Ok(())
}

pub(super) async fn the_facts_stay_the_same(room: &Room) -> Verdict {
    let before = room.facts();
    let key = room.key("a")?;
    room.store_one(super::verbs::create(&key, super::verbs::plain(), "1")).await?;
    ensure_eq!(room.facts(), before, "the facts after a write");
    Ok(())
}

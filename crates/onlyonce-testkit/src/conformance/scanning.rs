//! A walk sees every entry that is there all the while, exactly once.

use onlyonce::Key;
use onlyonce::store::{Cursor, Entry, HeaderDraft, Scan, Status};

use super::failure::{ensure, ensure_eq};
use super::verbs::{HOUR, OTHER, PLAIN, create, delete, due, holder, plain, replace, touch};
use super::{Room, Verdict};

async fn fill(room: &Room, many: u32) -> Verdict<Vec<Key>> {
    let keys = room.keys(many)?;
    for key in &keys {
        room.store_one(create(key, plain(), "1")).await?;
    }
    Ok(keys)
}

/// Each key once, whatever the order.
fn once(found: Vec<Key>, wanted: &[Key], what: &str) -> Verdict {
    let mut wanted = wanted.to_vec();
    wanted.sort();
    let mut sorted = found;
    sorted.sort();
    ensure_eq!(sorted, wanted, "{what}");
    Ok(())
}

async fn walk_keys(room: &Room, scan: Scan) -> Verdict<Vec<Key>> {
    Ok(room.walk(scan).await?.into_iter().map(|e| e.key).collect())
}

pub(super) async fn a_scan_gives_whole_entries(room: &Room) -> Verdict {
    let header = HeaderDraft {
        status: OTHER,
        holder: Some(holder("w#9")),
        attempts: 2,
        due_in: Some(HOUR),
        keep_for: Some(2 * HOUR),
    };
    let keys = room.keys(5)?;
    for key in &keys {
        room.store_one(create(key, header.clone(), format!(r#"{{"key": {:?} }}"#, key.id()))).await?;
    }
    let found = room.walk(room.scan_home(2)).await?;
    for entry in &found {
        room.unchanged(entry).await?;
    }
    once(found.into_iter().map(|e| e.key).collect(), &keys, "the keys scanned")
}

pub(super) async fn a_scan_of_nothing_ends(room: &Room) -> Verdict {
    room.store_one(create(&room.key_in("elsewhere", "a")?, plain(), "1")).await?;
    for limit in [0, 1, 100] {
        ensure_eq!(room.walk(room.scan_home(limit)).await?, [], "an empty namespace, {limit} to a page");
    }
    Ok(())
}

pub(super) async fn a_walk_sees_each_entry_exactly_once(room: &Room) -> Verdict {
    let keys = fill(room, 29).await?;
    for limit in [0, 1, 2, 7, 28, 29, 30, 1000, usize::MAX] {
        once(walk_keys(room, room.scan_home(limit)).await?, &keys, &format!("a walk, {limit} to a page"))?;
    }
    Ok(())
}

pub(super) async fn a_scan_looks_only_at_its_namespace(room: &Room) -> Verdict {
    let keys = fill(room, 5).await?;
    let others = ["other", "hom", "home.", "home2", "Home"];
    for name in others {
        room.store_one(create(&room.key_in(name, "a")?, plain(), "1")).await?;
    }
    once(walk_keys(room, room.scan_home(2)).await?, &keys, "the keys of one namespace")?;
    for name in others {
        let scan = Scan { namespace: Some(room.namespace(name)), ..room.scan_home(2) };
        once(walk_keys(room, scan).await?, &[room.key_in(name, "a")?], "the keys of another namespace")?;
    }
    Ok(())
}

pub(super) async fn a_scan_without_a_namespace_looks_at_all(room: &Room) -> Verdict {
    let mut keys = fill(room, 5).await?;
    for name in ["one", "two"] {
        let key = room.key_in(name, "a")?;
        room.store_one(create(&key, plain(), "1")).await?;
        keys.push(key);
    }
    if room.is_alone() {
        for limit in [1, 2, 100] {
            let scan = Scan { limit, ..Scan::default() };
            once(walk_keys(room, scan).await?, &keys, "the keys of all namespaces")?;
        }
        return Ok(());
    }
    // In somebody's own store a walk over everything could take for ever: the first page has to do.
    let page = room.store().scan(Scan { limit: 100, ..Scan::default() }).await?;
    ensure!(!page.entries.is_empty() || page.next.is_some(), "a store with entries in it lists none");
    Ok(())
}

pub(super) async fn a_scan_looks_only_at_the_given_statuses(room: &Room) -> Verdict {
    let third = Status::new("third");
    let statuses = [PLAIN, OTHER, third];
    let keys = room.keys(30)?;
    for (key, status) in keys.iter().zip(statuses.into_iter().cycle()) {
        room.store_one(create(key, HeaderDraft::new(status), "1")).await?;
    }
    let of = |wanted: &[Status]| -> Vec<Key> {
        let all = keys.iter().zip(statuses.into_iter().cycle());
        all.filter(|(_, s)| wanted.contains(s)).map(|(key, _)| key.clone()).collect()
    };
    for wanted in [vec![OTHER], vec![PLAIN, third], statuses.to_vec(), vec![Status::new("nobody")]] {
        for limit in [1, 2, 7, 100] {
            let scan = Scan { statuses: wanted.clone(), ..room.scan_home(limit) };
            once(walk_keys(room, scan).await?, &of(&wanted), &format!("{wanted:?}, {limit} to a page"))?;
        }
    }
    Ok(())
}

/// Goes page by page, so that something can be done in between.
struct Walk<'a> {
    room: &'a Room,
    limit: usize,
    pages: usize,
    after: Option<Cursor>,
}

impl<'a> Walk<'a> {
    fn new(room: &'a Room, limit: usize) -> Self {
        Self { room, limit, pages: 0, after: None }
    }

    async fn next(&mut self) -> Verdict<Option<Vec<Entry>>> {
        if self.pages > 0 && self.after.is_none() {
            return Ok(None);
        }
        ensure!(self.pages < 10_000, "a walk of 10,000 pages has not come to its end");
        self.pages += 1;
        let scan = Scan { after: self.after.take(), ..self.room.scan_home(self.limit) };
        let page = self.room.store().scan(scan).await?;
        self.after = page.next;
        Ok(Some(page.entries))
    }
}

async fn clear(room: &Room) -> Verdict {
    for entry in room.walk(room.scan_home(100)).await? {
        room.store_one(delete(&entry.key, entry.version)).await?;
    }
    Ok(())
}

pub(super) async fn a_walk_sees_what_stays_once_while_others_come_and_go(room: &Room) -> Verdict {
    for limit in [1, 2, 7] {
        let stay: Vec<_> = fill(room, 40).await?.into_iter().step_by(2).collect();
        let mut seen = Vec::new();
        let mut walk = Walk::new(room, limit);
        while let Some(page) = walk.next().await? {
            if walk.pages < 60 {
                come(room, walk.pages).await?;
            }
            for entry in page {
                if stay.contains(&entry.key) {
                    seen.push(entry.key);
                } else if !entry.key.id().ends_with("new") {
                    room.store_one(delete(&entry.key, entry.version)).await?;
                }
            }
        }
        once(seen, &stay, &format!("what stayed, {limit} to a page"))?;
        clear(room).await?;
    }
    Ok(())
}

/// New entries at either end of any order by key, and at the end of any order by age.
async fn come(room: &Room, round: usize) -> Verdict {
    for id in [format!("{round:08x}-new"), format!("{:08x}-new", usize::MAX - round)] {
        room.store_one(create(&room.key(id)?, plain(), "1")).await?;
    }
    Ok(())
}

pub(super) async fn a_walk_sees_each_entry_once_while_it_is_written(room: &Room) -> Verdict {
    for limit in [1, 2, 7] {
        let keys = fill(room, 30).await?;
        let mut seen = Vec::new();
        let mut walk = Walk::new(room, limit);
        while let Some(page) = walk.next().await? {
            // Those just seen, and one that may be yet to come, get new versions and new moments.
            let mut again: Vec<_> = page.into_iter().map(|e| e.key).collect();
            seen.extend(again.clone());
            again.push(keys[walk.pages * 11 % keys.len()].clone());
            for key in again {
                let version = room.there(&key).await?.version;
                let touched = room.store_one(touch(&key, version, due())).await?;
                room.store_one(replace(&key, touched, plain(), r#""longer than before""#)).await?;
            }
        }
        once(seen, &keys, &format!("a walk over entries being written, {limit} to a page"))?;
        clear(room).await?;
    }
    Ok(())
}

pub(super) async fn a_cursor_outlives_the_entry_it_stands_on(room: &Room) -> Verdict {
    let keys = fill(room, 20).await?;
    let page = room.store().scan(room.scan_home(7)).await?;
    let mut seen: Vec<_> = page.entries.iter().map(|e| e.key.clone()).collect();
    for entry in &page.entries {
        room.store_one(delete(&entry.key, entry.version)).await?;
    }
    if page.next.is_some() {
        seen.extend(walk_keys(room, Scan { after: page.next, ..room.scan_home(7) }).await?);
    }
    once(seen, &keys, "a walk whose first page was deleted behind it")
}

pub(super) async fn a_cursor_is_text_that_can_be_kept(room: &Room) -> Verdict {
    let keys = fill(room, 9).await?;
    let first = room.store().scan(room.scan_home(4)).await?;
    let text = first.next.as_ref().map(|c| c.0.clone());
    let from = |after: Option<String>| Scan { after: after.map(Cursor), ..room.scan_home(4) };
    let once_more = walk_keys(room, from(text.clone())).await?;
    ensure_eq!(walk_keys(room, from(text)).await?, once_more, "the rest of a walk, walked twice");
    let mut seen: Vec<_> = first.entries.into_iter().map(|e| e.key).collect();
    seen.extend(once_more);
    once(seen, &keys, "a walk that was broken off and gone on with")
}

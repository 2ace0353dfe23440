//! Files that are not as they were written: found out, told apart, left alone.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use onlyonce::store::{Holder, TakeDue};

use super::*;

/// Fails for this key, says which file and what to do, and changes nothing.
async fn is_damaged(store: &FileStore, place: &Place, key: &Key, why: &str) {
    let error = read(store, key).await.expect_err(why);
    assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{why}: {error}");
    let file = place.file(key);
    assert!(error.to_string().contains(&format!("{} is damaged", file.display())), "{error}");
    assert!(error.to_string().contains("backup"), "{error}");
}

async fn neighbours_are_fine(store: &FileStore, damaged: &Key, other: &Key) {
    assert_eq!(read(store, other).await.unwrap().unwrap().body, "\"other\"");
    let found = walk(store).await;
    assert!(found.contains(other) && !found.contains(damaged), "{found:?}");
}

#[tokio::test]
async fn a_flipped_byte_anywhere_fails_its_own_key_only() {
    let place = Place::new();
    let store = place.open();
    let [bent, other] = neighbours(2).try_into().unwrap();
    stored(&store, create(&bent, "{\"a\": [1, 2]}")).await;
    stored(&store, create(&other, "\"other\"")).await;
    let whole = fs::read(place.file(&bent)).unwrap();
    for at in 0..whole.len() {
        for mask in [0x01, 0x20, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] ^= mask;
            fs::write(place.file(&bent), bytes).unwrap();
            is_damaged(&store, &place, &bent, &format!("byte {at}, mask {mask:x}")).await;
        }
    }
    neighbours_are_fine(&store, &bent, &other).await;
    fs::write(place.file(&bent), &whole).unwrap();
    assert_eq!(read(&store, &bent).await.unwrap().unwrap().body, "{\"a\": [1, 2]}");
}

#[tokio::test]
async fn a_file_cut_at_any_length_fails_its_own_key_only() {
    let place = Place::new();
    let store = place.open();
    let [cut, other] = neighbours(2).try_into().unwrap();
    stored(&store, create(&cut, "{\"a\": 1}")).await;
    stored(&store, create(&other, "\"other\"")).await;
    let whole = fs::read(place.file(&cut)).unwrap();
    for len in 0..whole.len() {
        fs::write(place.file(&cut), &whole[..len]).unwrap();
        is_damaged(&store, &place, &cut, &format!("cut at {len}")).await;
    }
    neighbours_are_fine(&store, &cut, &other).await;
}

#[tokio::test]
async fn no_write_touches_a_damaged_file() {
    let place = Place::new();
    let store = place.open();
    let [bent, other] = neighbours(2).try_into().unwrap();
    let version = stored(&store, create(&bent, "1")).await;
    stored(&store, create(&other, "\"other\"")).await;
    fs::write(place.file(&bent), "not an entry").unwrap();
    let header = HeaderDraft::new(PLAIN);
    for write in [
        create(&bent, "2"),
        put(&bent, Expect::Version(version), "2"),
        Write::Touch { key: bent.clone(), expect: version, header },
        Write::Check { key: bent.clone(), expect: Expect::Absent },
        delete(&bent, version),
    ] {
        let (kind, message) = refused(&store, write.clone()).await;
        assert_eq!(kind, StoreErrorKind::Corrupt, "{write:?}: {message}");
    }
    assert_eq!(fs::read(place.file(&bent)).unwrap(), b"not an entry");
    neighbours_are_fine(&store, &bent, &other).await;
}

#[tokio::test]
async fn what_is_due_is_taken_past_a_damaged_file() {
    let place = Place::new();
    let store = place.open();
    let keys = neighbours(4);
    for key in &keys {
        let header = HeaderDraft { due_in: Some(Duration::ZERO), ..HeaderDraft::new(PLAIN) };
        let draft = Draft { header, body: "1".into() };
        stored(&store, Write::Put { key: key.clone(), expect: Expect::Absent, draft }).await;
    }
    let whole = fs::read(place.file(&keys[0])).unwrap();
    fs::write(place.file(&keys[0]), &whole[..whole.len() - 1]).unwrap();
    // The head is whole and the length is right, so only the second look, under the lock, can tell.
    let mut whole = fs::read(place.file(&keys[1])).unwrap();
    let body = whole.len() - 2;
    whole[body] = b'7';
    fs::write(place.file(&keys[1]), &whole).unwrap();
    let take = TakeDue {
        namespace: "n".to_owned(),
        statuses: vec![PLAIN],
        holder: Holder::parse("w#1"),
        lease: Duration::from_secs(60),
        limit: 2,
    };
    let mut taken: Vec<Key> = store.take_due(take).await.unwrap().into_iter().map(|e| e.key).collect();
    taken.sort();
    let mut wanted = keys[2..].to_vec();
    wanted.sort();
    assert_eq!(taken, wanted);
}

/// Puts something in the place of an entry, and asks for the entry.
async fn in_its_place(what: &str, make: impl FnOnce(&Path, &Path)) {
    let place = Place::new();
    let store = place.open();
    let [key, other] = neighbours(2).try_into().unwrap();
    let version = stored(&store, create(&key, "1")).await;
    stored(&store, create(&other, "\"other\"")).await;
    let aside = place.path().join("aside");
    fs::rename(place.file(&key), &aside).unwrap();
    make(&place.file(&key), &aside);
    is_damaged(&store, &place, &key, what).await;
    assert_eq!(
        refused(&store, put(&key, Expect::Version(version), "2")).await.0,
        StoreErrorKind::Corrupt,
        "{what}"
    );
    neighbours_are_fine(&store, &key, &other).await;
}

#[tokio::test]
async fn what_is_no_entry_is_told_apart() {
    in_its_place("an empty file", |file, _| fs::write(file, "").unwrap()).await;
    in_its_place("a text", |file, _| fs::write(file, "hello\nworld\n").unwrap()).await;
    in_its_place("JSON of another kind", |file, _| fs::write(file, "{\"onlyonce\":\"entry\"}\n").unwrap())
        .await;
    in_its_place("bytes that are no text", |file, _| fs::write(file, [0xff; 3000]).unwrap()).await;
    in_its_place("a directory", |file, _| fs::create_dir(file).unwrap()).await;
    in_its_place("a symlink to the very entry", |file, aside| symlink(aside, file).unwrap()).await;
    in_its_place("a symlink to nothing", |file, _| symlink("nowhere", file).unwrap()).await;
    in_its_place("a file larger than any of ours", |file, _| {
        fs::File::create(file).unwrap().set_len(1 << 40).unwrap();
    })
    .await;
    in_its_place("a pipe", |file, _| {
        let made = std::process::Command::new("mkfifo").arg(file).status().unwrap();
        assert!(made.success());
    })
    .await;
}

#[tokio::test]
async fn an_entry_under_another_name_is_told_apart() {
    let place = Place::new();
    let store = place.open();
    let [key, other] = neighbours(2).try_into().unwrap();
    stored(&store, create(&other, "\"other\"")).await;
    fs::copy(place.file(&other), place.file(&key)).unwrap();
    is_damaged(&store, &place, &key, "a copy of another entry").await;
    neighbours_are_fine(&store, &key, &other).await;
    let shard = place.shard(&key);
    for name in ["notes.txt", "0123", &"A".repeat(64), &"f".repeat(64), "caf\u{e9}"] {
        fs::write(shard.join(name), "mine").unwrap();
    }
    neighbours_are_fine(&store, &key, &other).await;
    assert_eq!(fs::read(shard.join("notes.txt")).unwrap(), b"mine");
}

#[tokio::test]
async fn a_file_given_up_makes_room_and_the_versions_go_on_far_above() {
    let place = Place::new();
    let store = place.open();
    let [key, other] = neighbours(2).try_into().unwrap();
    let mut version = stored(&store, create(&key, "1")).await;
    stored(&store, create(&other, "\"other\"")).await;
    for _ in 0..5 {
        version = stored(&store, put(&key, Expect::Version(version), "2")).await;
    }
    fs::write(place.file(&key), "spilled").unwrap();
    let message = read(&store, &key).await.unwrap_err().to_string();
    let given_up = format!("{}.corrupt", place.file(&key).display());
    assert!(message.ends_with(&format!("renaming it to {given_up}")), "{message}");
    fs::rename(place.file(&key), given_up).unwrap();
    // As after a power cut, when the lock file has forgotten the highest version.
    fs::write(place.shard(&key).join("lock"), "").unwrap();
    assert_eq!(read(&store, &key).await.unwrap(), None);
    let above = stored(&store, create(&key, "3")).await;
    assert!(above.get() > version.get() + 1_000_000, "{above} after {version}");
    assert_eq!(read(&store, &other).await.unwrap().unwrap().body, "\"other\"");
}

#[tokio::test]
async fn a_damaged_floor_stops_new_keys_of_its_shard_until_it_is_given_up() {
    let place = Place::new();
    let store = place.open();
    let [gone, stays, new] = neighbours(3).try_into().unwrap();
    let version = stored(&store, create(&stays, "1")).await;
    let removed = stored(&store, create(&gone, "1")).await;
    stored(&store, delete(&gone, removed)).await;
    let floor = place.shard(&gone).join("floor");
    fs::write(&floor, "spilled").unwrap();
    let (kind, message) = refused(&store, create(&new, "1")).await;
    assert_eq!(kind, StoreErrorKind::Corrupt);
    assert!(message.contains(&format!("{}.corrupt", floor.display())), "{message}");
    let version = stored(&store, put(&stays, Expect::Version(version), "2")).await;
    assert_eq!(refused(&store, delete(&stays, version)).await.0, StoreErrorKind::Corrupt);
    fs::rename(&floor, place.shard(&gone).join("floor.corrupt")).unwrap();
    let above = stored(&store, create(&new, "1")).await;
    assert!(above.get() > removed.get() + 1_000_000, "{above} after {removed}");
    stored(&store, delete(&stays, version)).await;
}

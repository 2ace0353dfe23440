//! No key and no symlink leads out of the directory.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

#[tokio::test]
async fn no_key_can_walk_out_of_the_directory() {
    let place = Place::new();
    let store = place.open();
    let long = "\u{1F600}".repeat(256);
    let ids = [
        "../../../../x",
        "/etc/passwd",
        "..",
        ".",
        "a/../b",
        "lock",
        "floor",
        "\u{1F600}",
        "\"'\\`$(x)",
        "A",
        "a",
    ];
    let keys: Vec<Key> = ids.iter().copied().chain([long.as_str()]).map(key).collect();
    for (n, key) in keys.iter().enumerate() {
        stored(&store, create(key, n.to_string())).await;
    }
    for namespace in [".", "..", "store.json", "0"] {
        stored(&store, create(&Key::new(namespace, "x").unwrap(), "1")).await;
    }
    for (n, key) in keys.iter().enumerate() {
        assert_eq!(read(&store, key).await.unwrap().unwrap().body, n.to_string());
        assert!(place.file(key).is_file(), "{key}");
    }
    assert_eq!(walk(&store).await.len(), keys.len() + 4);
    let above: Vec<_> = fs::read_dir(place.above.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(above, ["store"]);
}

#[tokio::test]
async fn bodies_come_back_byte_for_byte_after_a_reopening() {
    let place = Place::new();
    let bodies = [
        "[]",
        "0",
        "\"\"",
        "false",
        "null",
        "{\n  \"a\": 1\n}\n",
        " 1 ",
        "1.0e0",
        "\"\\u00e9\\ud83d\\ude00\"",
    ];
    let store = place.open();
    for (n, body) in bodies.iter().enumerate() {
        stored(&store, create(&key(&n.to_string()), *body)).await;
    }
    drop(store);
    let store = place.open();
    for (n, body) in bodies.iter().enumerate() {
        assert_eq!(read(&store, &key(&n.to_string())).await.unwrap().unwrap().body, *body);
    }
}

#[tokio::test]
async fn what_is_made_is_for_this_user_alone() {
    let place = Place::new();
    let store = place.open();
    let version = stored(&store, create(&key("a"), "1")).await;
    stored(&store, delete(&key("a"), version)).await;
    stored(&store, create(&key("a"), "1")).await;
    let paths = tree(&place.path());
    assert!(paths.len() > 5, "{paths:?}");
    for path in paths.iter().chain([&place.path()]) {
        let mode = fs::metadata(path).unwrap().permissions().mode();
        // Of `store.json`, of an entry, of a directory: nothing for the group, nothing for the others.
        assert_eq!(mode & 0o077, 0, "{} has mode {mode:o}", path.display());
    }
}

/// Puts a symlink to an outside directory in the place of a directory, and asks for a write.
async fn a_write_through(link: impl Fn(&Place, &Key) -> PathBuf) {
    let place = Place::new();
    let store = place.open();
    let key = key("a");
    let version = stored(&store, create(&key, "1")).await;
    let (link, outside) = (link(&place, &key), place.above.path().join("outside"));
    fs::rename(&link, &outside).unwrap();
    symlink(&outside, &link).unwrap();
    let before = tree(&outside);
    for write in [put(&key, Expect::Version(version), "2"), delete(&key, version)] {
        let (kind, message) = refused(&store, write).await;
        assert_eq!(kind, StoreErrorKind::Misconfigured, "{message}");
        assert!(message.contains("symlink"), "{message}");
    }
    assert_eq!(read(&store, &key).await.unwrap_err().kind(), StoreErrorKind::Misconfigured);
    assert_eq!(tree(&outside), before);
    // Only what lies behind the link is lost to the store.
    let far = (0..)
        .map(|n| super::key(&n.to_string()))
        .find(|far| place.shard(far).parent() != place.shard(&key).parent());
    stored(&store, create(&far.unwrap(), "1")).await;
}

#[tokio::test]
async fn a_symlink_in_the_place_of_a_shard_is_not_followed() {
    a_write_through(Place::shard).await;
    a_write_through(|place, key| place.shard(key).parent().unwrap().to_owned()).await;
}

#[tokio::test]
async fn symlinks_in_the_place_of_the_stores_own_files_are_not_followed() {
    let place = Place::new();
    let store = place.open();
    let key = key("a");
    let version = stored(&store, create(&key, "1")).await;
    let outside = place.above.path().join("outside");
    fs::write(&outside, "mine").unwrap();
    symlink(&outside, place.shard(&key).join("temp")).unwrap();
    let version = stored(&store, put(&key, Expect::Version(version), "2")).await;
    symlink(&outside, place.shard(&key).join("floor")).unwrap();
    assert_eq!(refused(&store, delete(&key, version)).await.0, StoreErrorKind::Corrupt);
    let lock = place.shard(&key).join("lock");
    fs::remove_file(&lock).unwrap();
    symlink(&outside, &lock).unwrap();
    let (kind, message) = refused(&store, put(&key, Expect::Version(version), "3")).await;
    assert_eq!(kind, StoreErrorKind::Misconfigured, "{message}");
    assert_eq!(fs::read(&outside).unwrap(), b"mine");
}

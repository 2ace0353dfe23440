//! Versions rise per key through everything that can happen to a store.

use std::fs;

use super::*;

#[tokio::test]
async fn they_rise_through_deletes_and_reopenings() {
    let place = Place::new();
    let keys = neighbours(3);
    let mut last = [Version::default(); 3];
    for round in 0..6 {
        let store = place.open();
        for (key, last) in keys.iter().zip(&mut last) {
            let version = stored(&store, create(key, "1")).await;
            assert!(version > *last, "round {round}: {version} after {last}");
            *last = stored(&store, put(key, Expect::Version(version), "2")).await;
            assert!(*last > version);
        }
        // In either order: the first delete raises the floor, or finds it high enough.
        let mut order: Vec<usize> = (0..3).collect();
        order.rotate_left(round % 3);
        for n in order {
            assert_eq!(stored(&store, delete(&keys[n], last[n])).await, last[n]);
        }
        // What a power cut may do to the lock file: it was never waited for.
        fs::write(place.shard(&keys[0]).join("lock"), ["", "settled 00000000000000000000\n"][round % 2])
            .unwrap();
    }
    assert_eq!(walk(&place.open()).await, []);
}

#[tokio::test]
async fn a_delete_cut_off_between_its_two_renames_has_happened() {
    let place = Place::new();
    let key = key("a");
    let store = place.open();
    let version = stored(&store, create(&key, "1")).await;
    stored(&store, delete(&key, version)).await;
    let shard = place.shard(&key);
    fs::rename(shard.join("floor"), place.file(&key)).unwrap();
    for word in ["", "writing 00000000000000000000\n", "settled 00000000000000000000\n"] {
        fs::write(shard.join("lock"), word).unwrap();
        assert_eq!(read(&store, &key).await.unwrap(), None);
        assert_eq!(walk(&store).await, []);
    }
    assert_eq!(
        store.commit(vec![delete(&key, version)]).await.unwrap(),
        Commit::Conflict(vec![None]),
        "what was deleted is not deleted again"
    );
    let next = stored(&store, create(&key, "2")).await;
    assert!(next > version, "{next} after {version}");
}

#[tokio::test]
async fn a_write_cut_off_before_its_rename_has_not_happened() {
    let place = Place::new();
    let [key, other] = neighbours(2).try_into().unwrap();
    let store = place.open();
    let version = stored(&store, create(&key, "1")).await;
    let whole = fs::read(place.file(&key)).unwrap();
    let (temp, lock) = (place.shard(&key).join("temp"), place.shard(&key).join("lock"));
    for len in [0, 1, whole.len() / 2, whole.len()] {
        fs::write(&temp, &whole[..len]).unwrap();
        fs::write(&lock, "writing 00000000000000000000\n").unwrap();
        assert_eq!(read(&store, &key).await.unwrap().unwrap().version, version);
        assert!(!temp.exists(), "a look tidies up when nobody has the lock");
        assert!(fs::read_to_string(&lock).unwrap().starts_with("settled "));
    }
    fs::write(&temp, &whole).unwrap();
    let next = stored(&store, create(&other, "2")).await;
    assert!(next > version, "the highest version is looked up again: {next} after {version}");
    assert!(!temp.exists(), "a write uses the name");
    assert_eq!(read(&store, &key).await.unwrap().unwrap().body, "1");
}

#[tokio::test]
async fn a_deleted_body_is_nowhere_any_more() {
    let place = Place::new();
    let store = place.open();
    let key = key("a");
    let version = stored(&store, create(&key, "\"a secret\"")).await;
    stored(&store, delete(&key, version)).await;
    for path in tree(&place.path()).iter().filter(|path| path.is_file()) {
        let text = fs::read_to_string(path).unwrap();
        assert!(!text.contains("secret") && !text.contains("n/a"), "{}: {text}", path.display());
    }
}

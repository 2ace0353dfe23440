//! Somebody holds a lock and does not let go.

use std::fs::File;
use std::time::Duration;

use super::*;

const PATIENCE: Duration = Duration::from_secs(10);

/// A store on a clock that stands still, one entry in it, and the lock of its shard in the test's hands.
async fn held() -> (Place, ManualClock, Arc<FileStore>, Vec<Key>, File) {
    let (place, clock) = (Place::new(), ManualClock::new());
    let store = Arc::new(FileStore::with_clock(place.path(), Arc::new(clock.clone())).unwrap());
    let keys = neighbours(2);
    stored(&store, create(&keys[0], "1")).await;
    let lock = File::open(place.shard(&keys[0]).join("lock")).unwrap();
    lock.lock().unwrap();
    (place, clock, store, keys, lock)
}

#[tokio::test]
async fn a_write_that_waits_too_long_is_taken_back() {
    let (_place, clock, store, keys, lock) = held().await;
    let waits = tokio::spawn({
        let (store, write) = (Arc::clone(&store), create(&keys[1], "late"));
        async move { store.commit(vec![write]).await }
    });
    clock.until_asleep(1).await;
    clock.advance(PATIENCE);
    let error = waits.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("10 s"), "{error}");
    drop(lock);
    // A later write to the same shard stands in the same line: when it is through, so is the first.
    stored(&store, create(&keys[1], "next")).await;
    assert_eq!(read(&store, &keys[1]).await.unwrap().unwrap().body, "next");
}

#[tokio::test]
async fn a_reader_waits_for_no_lock() {
    let (place, _clock, store, keys, lock) = held().await;
    assert_eq!(read(&store, &keys[0]).await.unwrap().unwrap().body, "1");
    assert_eq!(walk(&store).await, keys[..1]);
    // As while a writer is at work: the reader waits for the disk, and leaves the word to the writer.
    let writing = "writing 00000000000000000000\n";
    let word = place.shard(&keys[0]).join("lock");
    std::fs::write(&word, writing).unwrap();
    assert_eq!(read(&store, &keys[0]).await.unwrap().unwrap().body, "1");
    assert_eq!(walk(&store).await, keys[..1]);
    assert_eq!(std::fs::read_to_string(&word).unwrap(), writing);
    drop(lock);
    assert_eq!(read(&store, &keys[0]).await.unwrap().unwrap().body, "1");
    assert!(std::fs::read_to_string(&word).unwrap().starts_with("settled "));
}

#[tokio::test]
async fn writes_to_other_shards_pass_a_held_lock() {
    let (place, _clock, store, keys, _lock) = held().await;
    let mut far = (0..).map(|n| key(&n.to_string())).filter(|far| place.shard(far) != place.shard(&keys[0]));
    for _ in 0..40 {
        stored(&store, create(&far.next().unwrap(), "1")).await;
    }
}

#[tokio::test]
async fn a_lock_file_that_was_removed_keeps_nobody_waiting_and_lets_nobody_in() {
    let (place, clock, store, keys, lock) = held().await;
    let asked = |body: &'static str| {
        let (store, write) = (Arc::clone(&store), create(&keys[1], body));
        tokio::spawn(async move { store.commit(vec![write]).await })
    };
    let waits = asked("first");
    clock.until_asleep(1).await;
    let name = place.shard(&keys[0]).join("lock");
    std::fs::remove_file(&name).unwrap();
    let new = File::create(&name).unwrap();
    new.lock().unwrap();
    drop(lock);
    clock.advance(PATIENCE);
    assert_eq!(waits.await.unwrap().unwrap_err().kind(), StoreErrorKind::Unavailable);
    drop(new);
    assert!(matches!(asked("second").await.unwrap().unwrap(), Commit::Stored(_)));
    assert_eq!(read(&store, &keys[1]).await.unwrap().unwrap().body, "second");
}

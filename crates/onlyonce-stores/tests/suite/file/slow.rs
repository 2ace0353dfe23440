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

/// The test runs itself again under strace, which holds every sync of the temp file for a second.
#[tokio::test]
#[ignore = "needs strace"]
async fn a_write_on_a_disk_that_hangs_is_uncertain_needs_strace() {
    const DIR: &str = "ONLYONCE_TEST_HANGING";
    if let Some(dir) = std::env::var_os(DIR) {
        return hangs(Path::new(&dir)).await;
    }
    let place = Place::new();
    let temp = place.shard(&neighbours(1)[0]).join("temp");
    let ran = std::process::Command::new("strace")
        .args([
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            "trace=fsync",
            "-e",
            "inject=fsync:delay_enter=1s",
            "-P",
        ])
        .arg(temp)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "file::slow::a_write_on_a_disk_that_hangs_is_uncertain_needs_strace"])
        .args(["--include-ignored", "--nocapture"])
        .env(DIR, place.path())
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

async fn hangs(path: &Path) {
    let clock = ManualClock::new();
    let store = Arc::new(FileStore::with_clock(path, Arc::new(clock.clone())).unwrap());
    let keys = neighbours(2);
    stored(&store, create(&keys[0], "1")).await;
    let waits = tokio::spawn({
        let (store, write) = (Arc::clone(&store), create(&keys[1], "late"));
        async move { store.commit(vec![write]).await }
    });
    clock.until_asleep(1).await;
    let name = file_name(&keys[0]);
    let word = path.join(&name[..1]).join(&name[1..2]).join("lock");
    while !std::fs::read_to_string(&word).unwrap().starts_with("writing") {
        tokio::task::yield_now().await;
    }
    for _ in 0..2 {
        clock.until_asleep(1).await;
        clock.advance(PATIENCE);
        tokio::task::yield_now().await;
    }
    let error = waits.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Uncertain, "{error}");
    // It stood in line before this one, so it is through now.
    stored(&store, delete(&keys[0], read(&store, &keys[0]).await.unwrap().unwrap().version)).await;
    assert_eq!(read(&store, &keys[1]).await.unwrap().unwrap().body, "late");
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
async fn a_lock_file_that_lost_its_name_lets_nobody_in() {
    let (place, clock, store, keys, lock) = held().await;
    let asked = |body: &'static str| {
        let (store, write) = (Arc::clone(&store), create(&keys[1], body));
        tokio::spawn(async move { store.commit(vec![write]).await })
    };
    let waits = asked("first");
    clock.until_asleep(1).await;
    // In one step, and locked before it has the name: the writer waits for the old one, or for this.
    let new = File::create(place.path().join("new")).unwrap();
    new.lock().unwrap();
    std::fs::rename(place.path().join("new"), place.shard(&keys[0]).join("lock")).unwrap();
    drop(lock);
    clock.advance(PATIENCE);
    assert_eq!(waits.await.unwrap().unwrap_err().kind(), StoreErrorKind::Unavailable);
    drop(new);
    assert!(matches!(asked("second").await.unwrap().unwrap(), Commit::Stored(_)));
    assert_eq!(read(&store, &keys[1]).await.unwrap().unwrap().body, "second");
}

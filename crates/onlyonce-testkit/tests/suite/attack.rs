//! Misuse and odd input: what a careless caller does must not break a promise.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, join, select};
use onlyonce::engine::rules::State;
use onlyonce::store::{
    Commit, Entry, MemoryStore, Page, Scan, Store, StoreError, StoreFacts, TakeDue, Version, Write,
};
use onlyonce::time::{Clock, SystemClock};
use onlyonce::{
    Claimed, Engine, Error, Guard, Key, Lease, OnCrash, OnDuplicate, OnFailure, Policy, Processor, RunError,
};
use onlyonce_testkit::clock::ManualClock;

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(test);
}

fn key() -> Key {
    Key::new("attack", "1").unwrap()
}

async fn claim(engine: &Engine) -> Guard {
    match engine.once::<Error>(key()).claim::<u32>().await.unwrap() {
        Claimed::Run(guard) => guard,
        Claimed::Replay(_) => panic!("nobody has called it before"),
    }
}

async fn call(engine: &Engine, value: u32) -> onlyonce::Ran<u32> {
    engine.once::<Error>(key()).run(async |_| Ok(value)).await.unwrap()
}

fn is_lost<T>(answer: &Result<T, RunError<Error>>) -> bool {
    matches!(answer, Err(RunError::Guard(Error::LeaseLost { .. })))
}

#[test]
fn a_lease_kept_after_the_end_cannot_begin_an_effect_over_the_outcome() {
    run(async {
        let engine = Engine::new(MemoryStore::new());
        let mut kept: Option<Lease> = None;
        let body = async |lease: Lease| {
            kept = Some(lease);
            Ok(7)
        };
        engine.once::<Error>(key()).run(body).await.unwrap();
        let lease = kept.unwrap();
        let late = lease.effect("late").run(async |_| Ok::<_, Error>(1)).await;
        assert!(is_lost(&late), "the body has ended, and its lease with it");
        assert!(lease.check().is_err());
        assert!(lease.completion(&8).await.is_err());
        let again = call(&engine, 9).await;
        assert_eq!((again.value, again.replayed), (7, true));
    });
}

#[test]
fn an_effect_that_outlives_its_body_leaves_the_outcome_alone() {
    run(async {
        let engine = Engine::new(MemoryStore::new());
        let guard = claim(&engine).await;
        let lease = guard.lease();
        let late = lease.effect("slow").run(async |_| {
            guard.complete(&7).await?;
            Ok::<_, Error>(1)
        });
        assert!(is_lost(&late.await), "its end cannot be recorded any more");
        assert_eq!(engine.look(&key()).await.unwrap().unwrap().state, State::Completed);
        assert_eq!(call(&engine, 9).await.value, 7);
    });
}

#[test]
fn a_worker_that_starts_again_under_its_old_name_replays_its_old_outcomes() {
    run(async {
        let store = Arc::new(MemoryStore::new());
        let worker = || Engine::builder(store.clone()).worker("billing-1").build();
        assert_eq!(call(&worker(), 1).await.value, 1);
        let again = call(&worker(), 2).await;
        assert_eq!((again.value, again.replayed), (1, true));
    });
}

#[test]
fn a_worker_that_starts_again_under_its_old_name_finds_its_own_crash() {
    run(async {
        let clock = ManualClock::new();
        let store = Arc::new(MemoryStore::with_clock(Arc::new(clock.clone())));
        let worker =
            || Engine::builder(store.clone()).clock(Arc::new(clock.clone())).worker("billing-1").build();
        // Never settled and never dropped, as in a killed process.
        std::mem::forget(claim(&worker()).await);
        let park = Policy::default().on_crash(OnCrash::Park);
        let ran = worker().once::<Error>(key()).policy(park).run(async |_| Ok(2)).await;
        assert!(matches!(ran, Err(RunError::Guard(Error::InProgress { .. }))), "{ran:?}");
    });
}

#[test]
fn the_longest_times_there_are_work() {
    run(async {
        let longest = Policy::default()
            .lease(Duration::MAX)
            .max_lease_total(Duration::MAX)
            .keep(Duration::MAX)
            .wait(Duration::MAX)
            .on_duplicate(OnDuplicate::Wait);
        let engine = Engine::builder(MemoryStore::new()).policy(longest).build();
        let guard = claim(&engine).await;
        let settle = async {
            tokio::task::yield_now().await;
            guard.complete(&1).await.unwrap();
        };
        let (follower, ()) = join(call(&engine, 2), settle).await;
        assert_eq!((follower.value, follower.waited), (1, true));
        let other = Engine::builder(MemoryStore::new()).build();
        for odd in [Duration::MAX, Duration::MAX / 2] {
            let policy = Policy::default().heartbeat(odd);
            let ran = other.once::<Error>(key()).policy(policy).run(async |_| Ok(2)).await;
            assert!(matches!(ran, Err(RunError::Guard(Error::BadPolicy { .. }))), "{ran:?}");
        }
    });
}

#[test]
fn an_effect_value_too_large_to_store_does_not_run_the_effect_again_and_again() {
    run(async {
        let engine = Engine::new(MemoryStore::new());
        let big = "x".repeat(17 * 1024 * 1024);
        let body = async |lease: Lease| {
            let value = lease.effect("big").run(async |_| Ok::<_, Error>(big.clone())).await;
            Ok(value.map_err(RunError::merge)?.len())
        };
        let ran = engine.once::<Error>(key()).run(body).await.unwrap();
        assert_eq!(ran.value, big.len());
        assert_eq!(engine.look(&key()).await.unwrap().unwrap().state, State::Completed);
    });
}

#[test]
fn a_failure_too_large_to_store_is_the_outcome_all_the_same() {
    run(async {
        let engine = Engine::new(MemoryStore::new());
        let lock = Policy::default().on_failure(OnFailure::Lock);
        let body = async |_: Lease| Err::<u32, String>("é".repeat(9 * 1024 * 1024));
        let call = || engine.once::<String>(key()).policy(lock.clone());
        call().run_keeping_errors(body).await.unwrap_err().body().unwrap();
        let again = call().run(async |_| Ok(1)).await;
        let Err(RunError::Guard(Error::FailedBefore { message, .. })) = again else { panic!("{again:?}") };
        assert!(message.starts_with("éé") && message.len() < 100_000);
    });
}

#[test]
fn a_forgotten_failure_does_not_forget_the_effects_that_stand() {
    run(async {
        let clock = ManualClock::new();
        let store = MemoryStore::with_clock(Arc::new(clock.clone()));
        let engine = Engine::builder(store).clock(Arc::new(clock.clone())).build();
        let short = Policy::default().keep_failures(Duration::from_secs(1));
        let mut charged = 0;
        for _ in 0..2 {
            let body = async |lease: Lease| {
                let charge = async |_| {
                    charged += 1;
                    Ok::<_, Error>(())
                };
                lease.effect("charge").run(charge).await.map_err(RunError::merge)?;
                Err::<(), _>(Error::BlockingInAsync)
            };
            engine.once(key()).policy(short.clone()).run(body).await.unwrap_err();
            clock.advance(Duration::from_secs(60));
        }
        assert_eq!(charged, 1);
    });
}

#[test]
fn a_body_that_panics_before_its_first_step_follows_on_failure() {
    run(async {
        let engine = Engine::new(MemoryStore::new());
        let body = |_: Lease| -> std::future::Ready<Result<u32, Error>> { panic!("at once") };
        let panicked = tokio::spawn({
            let engine = engine.clone();
            async move { engine.once(key()).run(body).await }
        });
        assert!(panicked.await.unwrap_err().is_panic());
        assert_eq!(engine.look(&key()).await.unwrap().unwrap().state, State::Released);
    });
}

#[test]
fn calls_with_effects_can_be_spawned() {
    run(async {
        let engine = Engine::new(MemoryStore::new());
        let spawned = tokio::spawn(async move {
            let body = async |lease: Lease| {
                let effect = lease.effect("charge").undo(async |(): ()| Ok::<_, Error>(()));
                let name = effect.key().await;
                effect
                    .run(async |given| {
                        assert_eq!(given, name);
                        Ok::<_, Error>(())
                    })
                    .await
                    .map_err(RunError::merge)
            };
            engine.once(key()).run(body).await.map(drop).map_err(RunError::merge)
        });
        spawned.await.unwrap().unwrap();
    });
}

#[test]
fn a_processor_can_be_spawned_and_keeps_to_its_engine() {
    run(async {
        let engine =
            Engine::builder(MemoryStore::new()).policy(Policy::default().lease(Duration::ZERO)).build();
        let double = Processor::new(engine, "attack", async |n: &u32| Ok::<_, Error>(n * 2));
        let spawned = tokio::spawn(async move { double.process(&2).await });
        let ran = spawned.await.unwrap();
        assert!(matches!(ran, Err(RunError::Guard(Error::BadPolicy { .. }))), "{ran:?}");
    });
}

#[test]
fn two_effects_of_one_name_at_once_run_one_body() {
    run(async {
        let engine = Engine::new(MemoryStore::new());
        let guard = claim(&engine).await;
        let lease = guard.lease();
        let (begun, ended) = (tokio::sync::Notify::new(), tokio::sync::Notify::new());
        let first = lease.effect("charge").run(async |_| {
            begun.notify_one();
            ended.notified().await;
            Ok::<_, Error>(1)
        });
        let second = async {
            begun.notified().await;
            let second = lease.effect("charge").run(async |_| Ok::<_, Error>(2)).await;
            ended.notify_one();
            second
        };
        let (first, second) = join(first, second).await;
        assert_eq!(first.unwrap(), 1);
        assert!(second.is_err(), "{second:?}");
        guard.complete(&0).await.unwrap();
    });
}

/// Panics when the lease of `boom` is extended.
#[derive(Debug)]
struct Explosive(MemoryStore);

#[async_trait::async_trait]
impl Store for Explosive {
    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<Entry>>, StoreError> {
        self.0.read(keys).await
    }

    async fn commit(&self, writes: Vec<Write>) -> Result<Commit, StoreError> {
        let beats = |write: &Write| matches!(write, Write::Touch { key, .. } if key.id() == "boom");
        assert!(!writes.iter().any(beats), "this store panics on purpose");
        self.0.commit(writes).await
    }

    async fn take_due(&self, take: TakeDue) -> Result<Vec<Entry>, StoreError> {
        self.0.take_due(take).await
    }

    async fn scan(&self, scan: Scan) -> Result<Page, StoreError> {
        self.0.scan(scan).await
    }

    async fn changed(&self, key: &Key, seen: Version) {
        self.0.changed(key, seen).await;
    }

    fn facts(&self) -> StoreFacts {
        self.0.facts()
    }
}

/// One lease whose heartbeat panics is lost; its neighbour's heart goes on beating.
#[test]
fn a_store_that_panics_fails_its_own_lease_only() {
    run(async {
        let engine = Engine::new(Explosive(MemoryStore::new()));
        let policy = Arc::new(Policy::default().lease(Duration::from_millis(500)));
        let mut guards = Vec::new();
        for id in ["boom", "calm"] {
            let call = engine.once::<Error>(Key::new("attack", id).unwrap()).policy(policy.clone());
            let Claimed::Run(guard) = call.claim::<u64>().await.unwrap() else { panic!("a fresh key") };
            guards.push(guard);
        }
        let (calm, boom) = (guards.pop().unwrap(), guards.pop().unwrap());
        let clock = SystemClock::new();
        let patience = clock.sleep_until(clock.monotonic() + Duration::from_secs(20));
        let lease = boom.lease();
        let lost = std::pin::pin!(lease.lost());
        let noticed = matches!(select(lost, patience).await, Either::Left(_));
        assert!(noticed, "nobody looks after the leases any more");
        assert!(!calm.lease().is_lost());
        calm.complete(&7).await.unwrap();
    });
}

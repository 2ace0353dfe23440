//! One error per code, each from the real thing that says it.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use onlyonce::key::{ContentId, JsonKey};
use onlyonce::store::{
    Draft, Expect, HeaderDraft, MemoryStore, Status, Store, StoreError, StoreErrorKind, StoreFacts, Version,
    Write, check_body_sizes, check_write_count,
};
use onlyonce::time::parse_duration;
use onlyonce::{
    Claimed, Engine, Error, Forget, Guard, Key, OnCrash, OnDuplicate, OnFailure, Policy, RunError, Verdict,
    fingerprint_of,
};
use onlyonce_testkit::chance::SeededChance;
use onlyonce_testkit::clock::ManualClock;
use onlyonce_testkit::faults::{Asked, Fault, FaultyStore};

/// In the order of [`Error::CODES`].
pub(super) fn samples() -> Vec<Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut all = runtime.block_on(guard_samples());
    all.extend(bad_samples());
    all.push(runtime.block_on(blocking_in_async()));
    all.extend(runtime.block_on(store_samples()));
    all
}

async fn guard_samples() -> Vec<Error> {
    vec![
        in_progress().await,
        duplicate_execution().await,
        input_changed().await,
        parked().await,
        lease_lost().await,
        failed_before().await,
        result_not_stored().await,
        result_mismatch().await,
        not_recorded().await,
        not_found().await,
        not_allowed().await,
    ]
}

fn key() -> Key {
    Key::new("shop", "4711").unwrap()
}

/// Two workers on one store, each with a clock of its own, as on two machines.
struct Shop {
    store: Arc<MemoryStore>,
    store_clock: ManualClock,
    first: Engine,
    second: Engine,
}

impl Shop {
    fn new() -> Self {
        let store_clock = ManualClock::new();
        let store = Arc::new(MemoryStore::with_clock(Arc::new(store_clock.clone())));
        let worker = |name: &str| {
            Engine::builder(store.clone())
                .clock(Arc::new(ManualClock::new()))
                .chance(Arc::new(SeededChance::new(1)))
                .worker(name)
                .build()
        };
        Self { first: worker("web-1"), second: worker("web-2"), store, store_clock }
    }

    async fn claim(&self, policy: Policy) -> Guard {
        match self.first.once::<Error>(key()).policy(policy).claim::<u32>().await.unwrap() {
            Claimed::Run(guard) => guard,
            Claimed::Replay(_) => panic!("nobody has called it before"),
        }
    }

    /// What the second worker is told.
    async fn refused(&self, policy: Policy) -> Error {
        let answer = self.second.once::<Error>(key()).policy(policy).run(async |_| Ok(2)).await;
        guard_answer(answer)
    }
}

fn guard_answer<T: std::fmt::Debug>(answer: Result<T, RunError<Error>>) -> Error {
    match answer {
        Err(RunError::Guard(error)) => error,
        other => panic!("expected the guard's answer, got {other:?}"),
    }
}

async fn in_progress() -> Error {
    let shop = Shop::new();
    let policy = Policy::default().lease(Duration::from_secs(90));
    let _running = shop.claim(policy.clone()).await;
    shop.refused(policy).await
}

async fn duplicate_execution() -> Error {
    let shop = Shop::new();
    shop.claim(Policy::default()).await.complete(&1).await.unwrap();
    shop.refused(Policy::default().on_duplicate(OnDuplicate::Raise)).await
}

async fn input_changed() -> Error {
    let shop = Shop::new();
    let call =
        async |engine: &Engine, cents: u32| engine.once(key()).input(&cents).run(async |_| Ok(cents)).await;
    call(&shop.first, 1999).await.unwrap();
    guard_answer(call(&shop.second, 2999).await)
}

async fn parked() -> Error {
    let shop = Shop::new();
    let _dead = shop.claim(Policy::default()).await;
    shop.store_clock.advance(Duration::from_secs(15 * 60));
    shop.refused(Policy::default().on_crash(OnCrash::Park)).await
}

async fn lease_lost() -> Error {
    let shop = Shop::new();
    let slow = shop.claim(Policy::default()).await;
    shop.second.forget(&key(), Forget::by("ann").even_running()).await.unwrap();
    slow.complete(&1).await.unwrap_err()
}

async fn failed_before() -> Error {
    let shop = Shop::new();
    shop.claim(Policy::default()).await.fail("card refused".to_owned(), OnFailure::Lock).await.unwrap();
    shop.refused(Policy::default()).await
}

async fn result_not_stored() -> Error {
    let shop = Shop::new();
    shop.claim(Policy::default()).await.complete(&"x".repeat(4 << 20)).await.unwrap();
    shop.refused(Policy::default()).await
}

async fn result_mismatch() -> Error {
    let shop = Shop::new();
    shop.claim(Policy::default()).await.complete(&"1999 EUR").await.unwrap();
    shop.refused(Policy::default()).await
}

/// The store goes away after the claim, and stays away until the lease is over.
async fn not_recorded() -> Error {
    let clock = ManualClock::new();
    let store = FaultyStore::new(MemoryStore::with_clock(Arc::new(clock.clone())), Arc::new(clock.clone()));
    let store = Arc::new(store);
    let engine = Engine::builder(store.clone()).clock(Arc::new(clock.clone())).build();
    let policy = Policy::default().lease(Duration::from_secs(2));
    let claimed = engine.once::<Error>(key()).policy(policy).claim::<u32>().await.unwrap();
    let Claimed::Run(guard) = claimed else { panic!("nobody has called it before") };
    (0..1000).for_each(|_| store.when(|asked| matches!(asked, Asked::Commit(_)), Fault::LoseRequest));
    let time = async {
        loop {
            clock.until_asleep(1).await;
            clock.advance_to_next(Duration::from_secs(1));
            tokio::task::yield_now().await;
        }
    };
    match select(pin!(guard.complete(&1)), pin!(time)).await {
        Either::Left((answer, _)) => as_from_a_server(answer.unwrap_err()),
        Either::Right(((), _)) => panic!("time never ends"),
    }
}

/// The same, with what a server's store would say in place of what the injected fault says.
fn as_from_a_server(error: Error) -> Error {
    match error {
        Error::NotRecorded { key, .. } => {
            Error::NotRecorded { key, source: StoreError::uncertain("no answer from the server within 5 s") }
        }
        other => other,
    }
}

async fn not_found() -> Error {
    Shop::new().first.resolve(&key(), Verdict::DidNot, "ann").await.unwrap_err()
}

async fn not_allowed() -> Error {
    let shop = Shop::new();
    shop.claim(Policy::default()).await.complete(&1).await.unwrap();
    shop.second.resolve(&key(), Verdict::DidNot, "ann").await.unwrap_err()
}

fn bad_samples() -> Vec<Error> {
    vec![
        Key::parse("4711").unwrap_err(),
        JsonKey::new().key("shop", br#"{"a": 1, "a": 2}"#).unwrap_err(),
        fingerprint_of(&f64::NAN).unwrap_err(),
        JsonKey::new().exclude(["sent_at"]).unwrap_err(),
        parse_duration("10").unwrap_err(),
        Policy::default().max_lease_total(Duration::from_secs(1)).check().unwrap_err(),
        onlyonce_stores::open("sqlit:app.db").unwrap_err(),
        ContentId::of_file("scan.pdf").unwrap_err(),
    ]
}

async fn blocking_in_async() -> Error {
    Shop::new().first.blocking().look(&key()).unwrap_err()
}

async fn store_samples() -> Vec<Error> {
    let delete = |id| Write::Delete { key: Key::new("shop", id).unwrap(), expect: Version::new(1) };
    let draft = Draft { header: HeaderDraft::new(Status::new("x")), body: vec![b'1'; 4 << 20].into() };
    let large = [Write::Put { key: key(), expect: Expect::Absent, draft }];
    vec![
        StoreError::unavailable("the database is locked by another process for more than 5 s").into(),
        StoreError::uncertain("the connection closed before the answer came").into(),
        check_body_sizes(&large, 1 << 20).unwrap_err().into(),
        corrupt().await,
        check_write_count(&[delete("a"), delete("b")], &StoreFacts::new("file")).unwrap_err().into(),
    ]
}

/// Somebody wrote into the store by hand.
async fn corrupt() -> Error {
    let shop = Shop::new();
    let draft = Draft { header: HeaderDraft::new(Status::new("completed")), body: "1".into() };
    shop.store.commit(vec![Write::Put { key: key(), expect: Expect::Absent, draft }]).await.unwrap();
    let error = shop.refused(Policy::default()).await;
    assert!(matches!(&error, Error::Store(store) if store.kind() == StoreErrorKind::Corrupt), "{error}");
    error
}

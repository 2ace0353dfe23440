//! Each fault does what its name says, and no more.

use std::sync::Arc;
use std::time::Duration;

use onlyonce::Key;
use onlyonce::store::{
    Commit, Draft, Entry, Expect, HeaderDraft, Holder, MemoryStore, Scan, Status, Store, StoreErrorKind,
    TakeDue, Version, Write,
};
use onlyonce::time::Clock;
use onlyonce_testkit::chance::SeededChance;
use onlyonce_testkit::clock::ManualClock;
use onlyonce_testkit::faults::{Asked, Call, Fault, FaultyStore, Rates};

const RUNNING: Status = Status::new("running");

type Faulty = Arc<FaultyStore<MemoryStore>>;

fn faulty() -> (Faulty, ManualClock) {
    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(Arc::new(clock.clone()));
    (Arc::new(FaultyStore::new(store, Arc::new(clock.clone()))), clock)
}

fn key(id: &str) -> Key {
    Key::new("faults", id).expect("a key")
}

fn create(id: &str) -> Vec<Write> {
    let draft = Draft { header: HeaderDraft::new(RUNNING), body: "1".into() };
    vec![Write::Put { key: key(id), expect: Expect::Absent, draft }]
}

async fn under(store: &Faulty, id: &str) -> Option<Entry> {
    store.inner().read(&[key(id)]).await.expect("a read").remove(0)
}

fn kind<T: std::fmt::Debug>(answer: Result<T, onlyonce::store::StoreError>) -> StoreErrorKind {
    answer.expect_err("an error").kind()
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(test);
}

#[test]
fn a_refused_call_did_not_happen() {
    run(async {
        let (store, _) = faulty();
        store.script([(Call::Commit, Fault::Refuse)]);
        assert_eq!(kind(store.commit(create("a")).await), StoreErrorKind::Unavailable);
        assert_eq!(under(&store, "a").await, None);
        assert_eq!((store.tally().refused, store.tally().calls, store.tally().faults()), (1, 1, 1));
    });
}

#[test]
fn a_lost_request_is_uncertain_and_did_not_happen() {
    run(async {
        let (store, _) = faulty();
        store.script([(Call::Commit, Fault::LoseRequest)]);
        assert_eq!(kind(store.commit(create("a")).await), StoreErrorKind::Uncertain);
        assert_eq!(under(&store, "a").await, None);
        assert_eq!(store.tally().requests_lost, 1);
    });
}

#[test]
fn a_lost_reply_is_uncertain_and_happened() {
    run(async {
        let (store, _) = faulty();
        store.script([(Call::Commit, Fault::LoseReply)]);
        assert_eq!(kind(store.commit(create("a")).await), StoreErrorKind::Uncertain);
        assert!(under(&store, "a").await.is_some());
        assert_eq!(store.tally().replies_lost, 1);
    });
}

#[test]
fn a_repeated_call_finds_what_it_did_itself() {
    run(async {
        let (store, _) = faulty();
        store.script([(Call::Commit, Fault::Repeat)]);
        let answer = store.commit(create("a")).await.expect("an answer");
        let there = under(&store, "a").await;
        assert!(matches!(answer, Commit::Conflict(found) if found == [there]));
        assert_eq!(store.tally().repeated, 1);
    });
}

#[test]
fn a_late_call_happens_when_it_lands() {
    run(async {
        let (store, _) = faulty();
        store.script([(Call::Commit, Fault::Late), (Call::Commit, Fault::Late)]);
        assert_eq!(kind(store.commit(create("a")).await), StoreErrorKind::Uncertain);
        assert_eq!(kind(store.commit(create("a")).await), StoreErrorKind::Uncertain);
        assert_eq!(under(&store, "a").await, None);
        assert_eq!(store.land().await.expect("an answer"), 1, "the second finds the first");
        assert!(under(&store, "a").await.is_some());
        assert_eq!(store.land().await.expect("an answer"), 0, "nothing lands twice");
        assert_eq!(store.tally().late, 2);
    });
}

#[test]
fn a_delayed_call_waits_on_the_clock() {
    run(async {
        let (store, clock) = faulty();
        store.script([(Call::Commit, Fault::Delay(Duration::from_secs(5)))]);
        let task = tokio::spawn({
            let store = store.clone();
            async move { store.commit(create("a")).await }
        });
        clock.until_asleep(1).await;
        assert_eq!(under(&store, "a").await, None);
        clock.advance(Duration::from_secs(5));
        assert!(matches!(task.await.expect("no panic"), Ok(Commit::Stored(_))));
        let stamped = under(&store, "a").await.expect("an entry").header.updated_at;
        assert_eq!(stamped, clock.now(), "it reached the store after the delay");
        assert_eq!(store.tally().delayed, 1);
    });
}

#[test]
fn a_hanging_call_waits_for_its_release_before_or_after_it_happens() {
    run(async {
        let (store, _) = faulty();
        for (id, fault, happened) in [("a", Fault::Hang, false), ("b", Fault::HangReply, true)] {
            store.script([(Call::Commit, fault)]);
            let task = tokio::spawn({
                let store = store.clone();
                async move { store.commit(create(id)).await }
            });
            store.until_hanging(1).await;
            assert!(!task.is_finished());
            assert_eq!(under(&store, id).await.is_some(), happened, "{fault:?}");
            store.release();
            assert!(matches!(task.await.expect("no panic"), Ok(Commit::Stored(_))));
        }
        assert_eq!(store.tally().hung, 2);
    });
}

#[test]
fn a_hanging_call_that_is_dropped_hangs_no_more() {
    run(async {
        let (store, _) = faulty();
        store.script([(Call::Commit, Fault::Hang), (Call::Commit, Fault::Hang)]);
        let spawn = |id: &'static str| {
            let store = store.clone();
            tokio::spawn(async move { store.commit(create(id)).await })
        };
        let (dropped, kept) = (spawn("dropped"), spawn("kept"));
        store.until_hanging(2).await;
        dropped.abort();
        assert!(dropped.await.is_err());
        store.release();
        assert!(kept.await.expect("no panic").is_ok());
        assert_eq!(under(&store, "dropped").await, None);
    });
}

#[test]
fn a_script_is_met_step_by_step_by_the_calls_it_is_about() {
    run(async {
        let (store, _) = faulty();
        store.script([
            (Call::Commit, Fault::Pass),
            (Call::Read, Fault::Refuse),
            (Call::Commit, Fault::Refuse),
        ]);
        assert!(store.scan(Scan { limit: 1, ..Scan::default() }).await.is_ok());
        assert!(store.commit(create("a")).await.is_ok());
        assert_eq!(kind(store.commit(create("b")).await), StoreErrorKind::Unavailable);
        assert_eq!(kind(store.read(&[key("a")]).await), StoreErrorKind::Unavailable);
        assert_eq!(store.steps_left(), 0);
        assert!(store.read(&[key("a")]).await.is_ok());
    });
}

#[test]
fn a_fault_can_be_chosen_by_what_is_asked() {
    run(async {
        let (store, _) = faulty();
        let about_b =
            |asked: &Asked| matches!(asked, Asked::Commit(w) if w.iter().any(|w| w.key().id() == "b"));
        store.when(about_b, Fault::Refuse);
        assert!(store.commit(create("a")).await.is_ok());
        assert!(store.commit(create("b")).await.is_err());
        assert!(store.commit(create("b")).await.is_ok());
    });
}

/// Looking changes nothing, so nothing about it can be uncertain.
#[test]
fn a_lost_look_is_only_unavailable() {
    run(async {
        let (store, _) = faulty();
        for fault in [Fault::LoseRequest, Fault::LoseReply, Fault::Late] {
            store.script([(Call::Any, fault), (Call::Any, fault)]);
            assert_eq!(kind(store.read(&[key("a")]).await), StoreErrorKind::Unavailable);
            assert_eq!(kind(store.scan(Scan::default()).await), StoreErrorKind::Unavailable);
        }
        assert_eq!(store.tally().refused, 6);
    });
}

#[test]
fn a_take_whose_reply_is_lost_has_taken() {
    run(async {
        let (store, _) = faulty();
        let header = HeaderDraft { due_in: Some(Duration::ZERO), ..HeaderDraft::new(RUNNING) };
        let draft = Draft { header, body: "1".into() };
        store
            .commit(vec![Write::Put { key: key("a"), expect: Expect::Absent, draft }])
            .await
            .expect("stored");
        store.script([(Call::TakeDue, Fault::LoseReply)]);
        let take = TakeDue {
            namespace: "faults".to_owned(),
            statuses: vec![RUNNING],
            holder: Holder::parse("w#1"),
            lease: Duration::from_secs(60),
            limit: 1,
        };
        assert_eq!(kind(store.take_due(take).await), StoreErrorKind::Uncertain);
        assert_eq!(under(&store, "a").await.expect("an entry").header.holder, Some(Holder::parse("w#1")));
    });
}

async fn storm(seed: u64) -> (Vec<bool>, u64) {
    let (store, _) = faulty();
    let rates =
        Rates { refuse: 100, lose_request: 50, lose_reply: 50, repeat: 100, late: 50, ..Rates::default() };
    store.seeded(SeededChance::new(seed), rates);
    let mut answers = Vec::new();
    for n in 0..500 {
        answers.push(store.commit(create(&n.to_string())).await.is_ok());
    }
    let faults = store.tally().faults();
    assert!((120..230).contains(&faults), "{faults} faults in 500 calls at a rate of 350 in 1000");
    store.heal();
    assert!(store.read(&[key("0")]).await.is_ok());
    (answers, faults)
}

#[test]
fn one_seed_gives_one_storm() {
    run(async {
        assert_eq!(storm(1).await, storm(1).await);
        assert_ne!(storm(1).await, storm(2).await);
    });
}

#[test]
fn changed_and_facts_go_straight_through() {
    run(async {
        let (store, _) = faulty();
        assert_eq!(store.facts(), store.inner().facts());
        store.changed(&key("a"), Version::new(1)).await;
    });
}

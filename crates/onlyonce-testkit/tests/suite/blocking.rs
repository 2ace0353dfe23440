//! The sync door: with and without a runtime around it.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use onlyonce::engine::rules::State;
use onlyonce::store::{MemoryStore, Observed, Observer, Operation, Scan};
use onlyonce::time::SystemClock;
use onlyonce::{Engine, Error, Forget, OnDuplicate, OnFailure, Policy, RunError, Sweep, Verdict};
use onlyonce_testkit::scenarios::{Tally, Trouble, key, word};
use tokio::runtime::{Builder, Runtime};

fn engine() -> Engine {
    Engine::new(MemoryStore::new())
}

fn multi_thread() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn waits() -> Policy {
    Policy::default().on_duplicate(OnDuplicate::Wait)
}

/// Runs once, is replayed, and has its effects: whatever the thread is.
fn works(engine: &Engine, id: &str) {
    let effects = Tally::default();
    let call = || {
        engine.blocking().once(key(id)).input("one").run(|lease| {
            let charge = lease.effect("charge");
            assert_eq!(charge.key()?, lease.effect_key("charge"));
            charge.run(|_| Ok::<_, Trouble>(effects.add())).map_err(Trouble::from)
        })
    };
    assert_eq!(word(&call()), "ran");
    let again = call().unwrap();
    assert_eq!((again.value, again.replayed, effects.get()), (1, true, 1));
}

/// Is refused, and runs nothing.
fn is_refused(engine: &Engine, id: &str) {
    let runs = Tally::default();
    let outcome = engine.blocking().once::<Trouble>(key(id)).run(|_| Ok(runs.add()));
    match outcome {
        Err(RunError::Guard(error @ Error::BlockingInAsync)) => {
            assert_eq!((error.code(), error.exit_code()), ("blocking_in_async", 64));
            assert!(error.to_string().contains("spawn_blocking"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    let code = |error: Error| error.code();
    let door = engine.blocking();
    assert_eq!(door.look(&key(id)).map_err(code).unwrap_err(), "blocking_in_async");
    assert_eq!(door.list(Scan::default()).map_err(code).unwrap_err(), "blocking_in_async");
    assert_eq!(door.sweep(Sweep::default()).map_err(code).unwrap_err(), "blocking_in_async");
    assert_eq!(door.forget(&key(id), Forget::by("ann")).map_err(code).unwrap_err(), "blocking_in_async");
    let resolved = door.resolve(&key(id), Verdict::DidNot, "ann");
    assert_eq!(resolved.map_err(code).unwrap_err(), "blocking_in_async");
    assert_eq!(runs.get(), 0);
}

#[test]
fn it_works_without_a_runtime() {
    works(&engine(), "a");
    std::thread::spawn(|| works(&engine(), "a")).join().unwrap();
}

#[test]
fn it_works_on_blocking_threads_of_both_runtimes() {
    for runtime in [multi_thread(), current_thread()] {
        let engine = engine();
        runtime.block_on(async {
            let its = engine.clone();
            tokio::task::spawn_blocking(move || works(&its, "a")).await.unwrap();
        });
    }
}

#[test]
fn it_works_in_block_in_place() {
    let engine = engine();
    multi_thread().block_on(async {
        let its = engine.clone();
        tokio::spawn(async move { tokio::task::block_in_place(|| works(&its, "task")) }).await.unwrap();
        tokio::task::block_in_place(|| works(&engine, "root"));
    });
}

#[test]
fn it_works_on_a_thread_that_only_knows_a_runtime() {
    let (runtime, engine) = (multi_thread(), engine());
    let _entered = runtime.enter();
    works(&engine, "a");
}

#[test]
fn inside_async_code_it_is_refused() {
    for runtime in [multi_thread(), current_thread()] {
        let engine = engine();
        runtime.block_on(async {
            is_refused(&engine, "root");
            let its = engine.clone();
            tokio::spawn(async move { is_refused(&its, "task") }).await.unwrap();
            let its = engine.clone();
            let body = async |_| {
                is_refused(&its, "nested");
                Ok::<_, Trouble>(1_u64)
            };
            assert_eq!(word(&engine.once(key("outer")).run(body).await), "ran");
            assert!(engine.look(&key("nested")).await.unwrap().is_none());
        });
    }
    let local = tokio::task::LocalSet::new();
    local.block_on(&current_thread(), async {
        tokio::task::spawn_local(async { is_refused(&engine(), "local") }).await.unwrap();
    });
}

#[test]
fn a_refusal_leaves_the_task_its_budget() {
    current_thread().block_on(async {
        let engine = engine();
        for n in 0..200 {
            is_refused(&engine, "a");
            // Would wait for ever, or never yield, if the budget were gone or without end.
            let (sender, receiver) = tokio::sync::oneshot::channel();
            sender.send(n).unwrap();
            assert_eq!(receiver.await, Ok(n));
        }
        let other = tokio::spawn(async { 7 });
        assert_eq!(other.await.unwrap(), 7);
    });
}

#[test]
fn bodies_may_call_for_other_keys() {
    let engine = engine();
    let outer = engine.blocking().once(key("outer")).run(|lease| {
        let effect = lease.effect("step").run(|_| {
            let inner = engine.blocking().once::<Trouble>(key("inner")).run(|_| Ok(1_u64));
            inner.map(|ran| ran.value + 1).map_err(Trouble::from)
        });
        let own = engine.blocking().once::<Trouble>(key("outer")).run(|_| Ok(0_u64));
        assert_eq!(word(&own), "in_progress");
        effect.map_err(Trouble::from)
    });
    assert_eq!(outer.unwrap().value, 2);
}

#[test]
fn many_threads_at_once_run_one_body() {
    let (engine, runs, start) = (engine(), Tally::default(), Arc::new(Barrier::new(32)));
    let threads: Vec<_> = (0..32)
        .map(|_| {
            let (engine, runs, start) = (engine.clone(), runs.clone(), start.clone());
            std::thread::spawn(move || {
                start.wait();
                engine.blocking().once::<Trouble>(key("a")).policy(waits()).run(|_| Ok(runs.add()))
            })
        })
        .collect();
    let outcomes: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect();
    assert!(outcomes.iter().all(|ran| ran.value == 1));
    assert_eq!(outcomes.iter().filter(|ran| !ran.replayed).count(), 1);
    assert_eq!(runs.get(), 1);
}

#[test]
fn sync_and_async_callers_share_one_flight() {
    let (engine, runtime) = (engine(), multi_thread());
    let (started, running) = channel();
    let (end, ended) = channel::<()>();
    let its = engine.clone();
    let first = std::thread::spawn(move || {
        its.blocking().once::<Trouble>(key("a")).run(|_| {
            started.send(()).unwrap();
            ended.recv().unwrap();
            Ok(1_u64)
        })
    });
    running.recv().unwrap();
    runtime.block_on(async {
        let asked = engine.once::<Trouble>(key("a")).run(async |_| Ok(2_u64)).await;
        assert_eq!(word(&asked), "in_progress");
        let its = engine.clone();
        let waiting = tokio::spawn(async move {
            its.once::<Trouble>(key("a")).policy(waits()).run(async |_| Ok(2_u64)).await
        });
        end.send(()).unwrap();
        assert_eq!(waiting.await.unwrap().unwrap().value, 1);
    });
    assert_eq!(word(&first.join().unwrap()), "ran");
}

#[test]
fn a_panic_is_recorded_and_goes_on() {
    let engine = engine();
    for (id, on_failure, state) in
        [("free", OnFailure::Unlock, State::Released), ("kept", OnFailure::Lock, State::Failed)]
    {
        let (its, policy) = (engine.clone(), Policy::default().on_failure(on_failure));
        let thread = std::thread::spawn(move || {
            its.blocking()
                .once::<Trouble>(key(id))
                .policy(policy)
                .run(|_| -> Result<u64, _> { panic!("lost my head") })
        });
        let panic = thread.join().unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"lost my head"));
        let view = engine.blocking().look(&key(id)).unwrap().unwrap();
        assert_eq!((view.state, view.record.failure.map(|failure| failure.panicked)), (state, Some(true)));
    }
    assert_eq!(engine.live_leases(), 0);
}

#[test]
fn kept_errors_decisions_and_undos_have_their_sync_words() {
    let engine = engine();
    let call = |body: Result<u64, Trouble>| {
        let once = engine.blocking().once(key("kept")).policy(Policy::default());
        once.on_error(|_: &Trouble| OnFailure::Lock).run_keeping_errors(|_| body)
    };
    assert_eq!(call(Err(Trouble::new("no funds"))).unwrap_err().body(), Some(Trouble::new("no funds")));
    assert_eq!(call(Ok(1)).unwrap_err().body(), Some(Trouble::new("no funds")));

    let undone = Arc::new(Mutex::new(Vec::new()));
    let failed = engine.blocking().once::<Trouble>(key("undone")).run(|lease| {
        for name in ["one", "two"] {
            let sees = undone.clone();
            let undo = move |value: String| {
                sees.lock().unwrap().push(value);
                Ok::<_, Trouble>(())
            };
            lease.effect(name).undo(undo).run(|_| Ok::<_, Trouble>(name.to_owned()))?;
        }
        Err::<u64, _>(Trouble::new("no stock"))
    });
    assert_eq!(word(&failed), "failed");
    assert_eq!(*undone.lock().unwrap(), ["two", "one"]);
}

#[test]
fn the_other_words_are_there_too() {
    let engine = engine();
    let door = engine.blocking();
    door.once::<Trouble>(key("a")).run(|_| Ok(1_u64)).unwrap();
    assert_eq!(door.look(&key("a")).unwrap().map(|view| view.state), Some(State::Completed));
    assert_eq!(door.list(Scan { limit: 10, ..Scan::default() }).unwrap().views.len(), 1);
    assert_eq!(door.resolve(&key("a"), Verdict::DidNot, "ann").unwrap_err().code(), "not_allowed");
    door.forget(&key("a"), Forget::by("ann")).unwrap();
    assert_eq!(door.sweep(Sweep::default()).unwrap().forgotten, 0);
    assert_eq!(word(&door.once::<Trouble>(key("a")).run(|_| Ok(2_u64))), "ran");
}

/// Says when a heartbeat has been stored.
#[derive(Debug)]
struct Beats(Mutex<std::sync::mpsc::Sender<()>>);

impl Observer for Beats {
    fn observe(&self, operation: &Operation) {
        if operation.name == "commit" && operation.error.is_none() {
            let _ = self.0.lock().unwrap().send(());
        }
    }
}

/// An engine on the system's clock whose commits can be waited for.
fn beating() -> (Engine, Receiver<()>) {
    let (sender, beats) = channel();
    let observer = Arc::new(Beats(Mutex::new(sender)));
    let store = Observed::new(MemoryStore::new(), Arc::new(SystemClock::new()), observer);
    // A long lease with quick beats: a machine that stands still for a while loses nothing.
    let policy = Policy::default().lease(Duration::from_secs(60)).heartbeat(Duration::from_millis(5));
    (Engine::builder(store).policy(policy).build(), beats)
}

/// Blocks this thread until the claim and five beats are stored.
fn block_for_beats(beats: &Receiver<()>) {
    for _ in 0..6 {
        beats.recv().unwrap();
    }
}

#[test]
fn a_body_that_blocks_its_thread_has_heartbeats() {
    let (engine, beats) = beating();
    let ran = engine.blocking().once::<Trouble>(key("sync")).run(|lease| {
        block_for_beats(&beats);
        lease.check()?;
        Ok(1_u64)
    });
    assert_eq!(word(&ran), "ran");

    let (engine, beats) = beating();
    current_thread().block_on(async {
        let body = async |lease: onlyonce::Lease| {
            block_for_beats(&beats);
            lease.check()?;
            Ok::<_, Trouble>(1_u64)
        };
        assert_eq!(word(&engine.once(key("async")).run(body).await), "ran", "the only thread of its runtime");
    });
}

#[test]
fn a_sync_body_is_told_that_its_lease_is_lost() {
    let (engine, _beats) = beating();
    let other = engine.clone();
    let outcome = engine.blocking().once::<Trouble>(key("a")).run(|lease| {
        other.blocking().forget(&key("a"), Forget::by("ann").even_running())?;
        while lease.check().is_ok() {
            std::thread::yield_now();
        }
        Ok(1_u64)
    });
    assert_eq!(word(&outcome), "lease_lost");
}

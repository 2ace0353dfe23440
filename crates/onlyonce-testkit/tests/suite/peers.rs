//! Defects seen in other systems, each as a test that it is not one of ours.

use std::time::Duration;

use onlyonce::engine::rules::State;
use onlyonce::time::Clock;
use onlyonce::{Claimed, Forget, Key, Lease, OnCrash, OnDuplicate, Policy, Sweep};
use onlyonce_testkit::scenarios::{
    Ask, Fault, LEASE, Oracle, Scene, Stage, Tally, Trouble, happened, key, play, policy, word,
};

use crate::stages;

/// Plays the scene on every store; a failure says on which.
fn on_every_store(scene: impl AsyncFn(Stage) -> Scene) {
    let stores =
        [("memory", stages::memory as fn() -> Stage), ("file", stages::file), ("sqlite", stages::sqlite)];
    for (name, stage) in stores {
        play(scene(stage())).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

fn waits() -> Policy {
    policy().on_duplicate(OnDuplicate::Wait)
}

/// AWS Powertools: completion is unconditional, so a slow first run overwrites the second one's result.
#[test]
fn powertools_a_slow_first_run_does_not_overwrite_the_second_result() {
    on_every_store(async |stage| {
        let (slow, first) = stage.zombie(&key("a")).await;
        assert_eq!(stage.worker().run(&key("a"), policy(), 2).await?.value, 2);
        assert_eq!(word(&first.ends(Ok(1)).await), "lease_lost");
        assert_eq!(slow.run(&key("a"), policy(), 3).await?.value, 2);
        Ok(())
    });
}

/// AWS Powertools: release is unconditional, so a slow first run that fails deletes the second one's claim and
/// lets a third one run beside it.
#[test]
fn powertools_a_slow_failure_does_not_open_a_third_run() {
    on_every_store(async |stage| {
        let (_, first) = stage.zombie(&key("a")).await;
        let second = stage.worker().hold(&key("a")).await;
        assert_eq!(word(&first.ends(Err(Trouble::new("too late"))).await), "failed");
        assert_eq!(word(&stage.worker().run(&key("a"), policy(), 3).await), "in_progress");
        assert_eq!(second.ends(Ok(2)).await?.value, 2);
        Ok(())
    });
}

/// Powertools TypeScript: the in-progress check compares milliseconds of the second with a whole timestamp, and so
/// never fires. Ours is asked at every part of a second, around the end of the lease too.
#[test]
fn powertools_ts_a_running_key_is_in_progress_at_every_millisecond() {
    on_every_store(async |stage| {
        let (paused, asks) = (stage.sleeper(), stage.worker());
        let first = paused.hold(&key("a")).await;
        let mut left = LEASE;
        for step_ms in [0, 1, 498, 1, 499, 1, 1000, 56_999, 999] {
            let step = Duration::from_millis(step_ms);
            stage.pass(step).await;
            left -= step;
            assert_eq!(word(&asks.run(&key("a"), policy(), 2).await), "in_progress", "{left:?} left");
        }
        stage.pass(left - Duration::from_millis(1)).await;
        assert_eq!(word(&asks.run(&key("a"), policy(), 2).await), "in_progress");
        stage.pass(Duration::from_millis(1)).await;
        assert_eq!(word(&asks.run(&key("a"), policy(), 2).await), "ran");
        first.dropped().await;
        Ok(())
    });
}

/// Powertools, cache layer: the hash of the payload is lost on completion, so a faithful retry is refused.
#[test]
fn powertools_cache_a_faithful_retry_is_replayed() {
    on_every_store(async |stage| {
        let worker = stage.worker();
        let call = async |input: &str| {
            worker.once::<Trouble>(key("a")).policy(policy()).input(input).run(async |_| Ok(7_u64)).await
        };
        assert_eq!(word(&call("order 1").await), "ran");
        for _ in 0..3 {
            assert_eq!(word(&call("order 1").await), "replayed");
            assert_eq!(word(&call("order 2").await), "input_changed");
        }
        Ok(())
    });
}

/// Powertools Python: `[]`, `0`, `""` and `False` come back as `None`.
#[test]
fn powertools_empty_values_replay_as_themselves() {
    on_every_store(async |stage| {
        for (id, value) in [("[]", "[]"), ("0", "0"), ("text", "\"\""), ("false", "false"), ("null", "null")]
        {
            let value: serde_json::Value = serde_json::from_str(value)?;
            let call =
                async || stage.worker().once::<Trouble>(key(id)).run(async |_| Ok(value.clone())).await;
            assert_eq!(call().await?.value, value);
            let again = call().await?;
            assert_eq!((again.value, again.replayed), (value.clone(), true));
        }
        Ok(())
    });
}

/// Powertools: after a time-out the payment is allowed again, and users report double withdrawals; the time
/// cannot be set. Here it can be, it is renewed, and what happens after a crash is for the policy to say.
#[test]
fn powertools_a_payment_is_not_made_again_after_a_timeout() {
    on_every_store(async |stage| {
        let withdrawals = Tally::default();
        let brief = policy().lease(Duration::from_secs(5));
        let paying = stage.worker().hold_under(&key("slow"), brief.clone()).await;
        stage.pass(LEASE).await;
        let worker = stage.worker();
        let again = worker.once::<Trouble>(key("slow")).policy(brief);
        assert_eq!(word(&again.run(async |_| Ok(withdrawals.add())).await), "in_progress");
        assert_eq!(word(&paying.ends(Ok(1)).await), "ran");

        for (id, on_crash, expected) in [
            ("park", policy().on_crash(OnCrash::Park), "parked"),
            ("ask", Oracle::says(happened(1)).policy(), "replayed"),
        ] {
            stage.crash(&key(id)).await;
            let worker = stage.worker();
            let again = worker.once::<Trouble>(key(id)).policy(on_crash);
            assert_eq!(word(&again.run(async |_| Ok(withdrawals.add())).await), expected);
        }
        assert_eq!(withdrawals.get(), 0);
        Ok(())
    });
}

/// River, pg-boss: completion is guarded by the state alone. A rescued job is `running` again, so its old worker
/// finishes the new attempt.
#[test]
fn river_an_old_worker_does_not_finish_the_new_attempt() {
    on_every_store(async |stage| {
        let (_, old) = stage.zombie(&key("a")).await;
        let new = stage.worker().hold(&key("a")).await;
        assert_eq!(stage.worker().state(&key("a")).await?, Some(State::Running), "the same state as before");
        assert_eq!(word(&old.ends(Ok(1)).await), "lease_lost");
        assert_eq!(stage.worker().state(&key("a")).await?, Some(State::Running));
        assert_eq!(new.ends(Ok(2)).await?.value, 2);
        assert_eq!(stage.worker().run(&key("a"), policy(), 3).await?.value, 2);
        Ok(())
    });
}

/// River: the transactional completion of an old worker commits its business transaction.
#[test]
fn river_an_old_workers_transaction_is_rolled_back() {
    on_every_store(async |stage| {
        let (_, old) = stage.zombie(&key("a")).await;
        let new = stage.worker().hold(&key("a")).await;
        let completion = old.lease.completion(&1_u64).await?;
        let answer = stage.store().commit(completion.writes()).await;
        let refused = completion.check(answer).err().ok_or("the transaction must be rolled back")?;
        assert_eq!(refused.code(), "lease_lost");
        drop(completion);
        assert_eq!(new.ends(Ok(2)).await?.value, 2);
        old.dropped().await;
        Ok(())
    });
}

/// Oban: completion matches the id alone. Whatever has become of the key, a lease that is over completes nothing.
#[test]
fn oban_an_id_alone_completes_nothing() {
    on_every_store(async |stage| {
        let other = stage.worker();
        for id in ["completed", "released", "forgotten"] {
            let (_, old) = stage.zombie(&key(id)).await;
            match id {
                "completed" => assert_eq!(other.run(&key(id), policy(), 2).await?.value, 2),
                "released" => assert_eq!(word(&other.fail(&key(id), policy(), "no").await), "failed"),
                _ => other.forget(&key(id), Forget::by("ann")).await?,
            }
            let before = other.view(&key(id)).await?.entry.version;
            assert_eq!(word(&old.ends(Ok(1)).await), "lease_lost", "{id}");
            assert_eq!(other.view(&key(id)).await?.entry.version, before, "{id}");
        }
        Ok(())
    });
}

/// Watermill: the key is stored before the handler runs and not removed on error, so the redelivery of a failed
/// message is dropped.
#[test]
fn watermill_a_failed_message_is_handled_when_it_comes_again() {
    on_every_store(async |stage| {
        let handled = Tally::default();
        for delivery in 1..=3 {
            let handle = async |_: Lease| match handled.add() {
                1 | 2 => Err(Trouble::new("database is down")),
                times => Ok(times),
            };
            let outcome = stage.worker().once(key("message")).policy(policy()).run(handle).await;
            assert_eq!(word(&outcome), if delivery < 3 { "failed" } else { "ran" });
        }
        assert_eq!(word(&stage.worker().run(&key("message"), policy(), 9).await), "replayed");
        assert_eq!(handled.get(), 3);
        Ok(())
    });
}

/// Svix: a start lock of five seconds that is never renewed.
#[test]
fn svix_a_lock_is_renewed_for_as_long_as_the_work_takes() {
    on_every_store(async |stage| {
        let brief = policy().lease(Duration::from_secs(5));
        let work = stage.worker().hold_under(&key("a"), brief.clone()).await;
        for _ in 0..6 {
            stage.pass(Duration::from_secs(5)).await;
            assert_eq!(word(&stage.worker().run(&key("a"), brief.clone(), 2).await), "in_progress");
        }
        assert_eq!(work.ends(Ok(1)).await?.attempt, 1);
        Ok(())
    });
}

/// axum-idempotent: concurrent duplicates can both reach the handler.
#[test]
fn axum_idempotent_concurrent_duplicates_reach_the_handler_once() {
    on_every_store(async |stage| {
        let (workers, runs) = ([stage.worker(), stage.worker(), stage.worker()], Tally::default());
        let calls: Vec<_> = (0..12)
            .map(|n| {
                let (worker, runs) = (workers[n % 3].clone(), runs.clone());
                tokio::spawn(async move {
                    let handler = async |_| {
                        tokio::task::yield_now().await;
                        Ok::<_, Trouble>(runs.add())
                    };
                    worker.once(key("a")).policy(waits()).run(handler).await
                })
            })
            .collect();
        for call in calls {
            assert_eq!(stage.play(call).await??.value, 1);
        }
        assert_eq!(runs.get(), 1);
        Ok(())
    });
}

/// `idempotent` 2.0: its memory and its Valkey store answer a second completion differently.
#[test]
fn idempotent_every_store_answers_a_second_completion_alike() {
    let answers = |stage: fn() -> Stage| {
        let heard = std::sync::Mutex::new(Vec::new());
        let scene = async |stage: Stage| -> Scene {
            let worker = stage.worker();
            let Claimed::Run(first) =
                worker.once::<Trouble>(key("a")).policy(policy()).claim::<u64>().await?
            else {
                return Err("nobody has it".into());
            };
            let (lease, again) = (first.lease(), first.lease());
            let completion = lease.completion(&1_u64).await?;
            let answer = completion.check(stage.store().commit(completion.writes()).await);
            heard.lock().unwrap().push(format!("{answer:?}"));
            let answer = completion.check(stage.store().commit(completion.writes()).await);
            heard.lock().unwrap().push(format!("{answer:?}"));
            drop(completion);
            let late = format!("{:?}", first.complete(&2_u64).await);
            heard.lock().unwrap().push(late);
            let late = again.effect("late").run(async |_| Ok::<_, Trouble>(1_u64)).await;
            heard.lock().unwrap().push(format!("{late:?}"));
            let replayed = format!("{:?}", stage.worker().run(&key("a"), policy(), 3).await?);
            heard.lock().unwrap().push(replayed);
            Ok(())
        };
        play(scene(stage())).unwrap();
        heard.into_inner().unwrap()
    };
    let memory = answers(stages::memory);
    assert_eq!(memory.len(), 5);
    for stage in [stages::file as fn() -> Stage, stages::sqlite, stages::prefixed] {
        assert_eq!(answers(stage), memory);
    }
}

/// BullMQ, sidekiq-unique-jobs: orphan locks block jobs silently. Here one says who has had it since when, ends by
/// itself, and can be freed by hand.
#[test]
fn bullmq_an_orphan_lock_is_seen_ends_and_can_be_freed() {
    on_every_store(async |stage| {
        let (dead, looker) = (stage.sleeper(), stage.worker());
        let began = stage.clock().now();
        for id in ["ends", "freed"] {
            let orphan = dead.hold(&key(id)).await;
            let view = looker.view(&key(id)).await?;
            let holder = view.entry.header.holder.map(|holder| holder.to_string());
            assert_eq!((view.state, holder), (State::Running, Some(orphan.lease.holder())));
            assert_eq!((view.entry.header.created_at, view.lease_left), (began, LEASE));
            dead.wire.fail(Ask::Touch, Fault::Unavailable, 1);
            orphan.dropped().await;
        }
        looker.forget(&key("freed"), Forget::by("ann").even_running()).await?;
        assert_eq!(word(&looker.run(&key("freed"), policy(), 1).await), "ran");
        assert_eq!(looker.view(&key("freed")).await?.record.audit[0].by, "ann");
        stage.pass(LEASE).await;
        assert!(looker.view(&key("ends")).await?.is_overdue());
        assert_eq!(word(&looker.run(&key("ends"), policy(), 1).await), "ran");
        Ok(())
    });
}

/// NServiceBus and others: the sweeper deletes without a bound, and stops everybody else meanwhile.
#[test]
fn nservicebus_a_sweep_is_bounded_and_lets_others_go_on() {
    on_every_store(async |stage| {
        let worker = stage.worker();
        for n in 0..30 {
            worker.run(&key(format!("{n}")), policy().keep(Duration::from_secs(1)), n).await?;
        }
        stage.pass(Duration::from_secs(1)).await;
        worker.wire.take_asked();
        let swept = worker.sweep(Sweep::default().at_most(10)).await?;
        assert_eq!((swept.forgotten, swept.more), (10, true));
        assert_eq!(worker.wire.count(Ask::Delete), 10, "one small delete each");

        worker.wire.fail(Ask::Delete, Fault::HeldRequest, 1);
        let sweeper = worker.clone();
        let sweep = tokio::spawn(async move { sweeper.sweep(Sweep::default()).await });
        worker.wire.until_held(1).await;
        for n in 0..30 {
            assert_eq!(word(&stage.worker().run(&key(format!("{n}")), policy(), n).await), "ran");
        }
        worker.wire.let_go();
        assert!(sweep.await??.forgotten <= 20);
        Ok(())
    });
}

/// Trigger.dev, Oban: the batch path follows other rules than the single path.
#[test]
fn trigger_dev_a_batch_follows_the_rules_of_single_calls() {
    on_every_store(async |stage| {
        let worker = stage.worker();
        let running = stage.worker().hold(&key("running")).await;
        worker.run(&key("done"), policy(), 1).await?;
        let _ = worker.fail(&key("failed"), policy(), "no").await;
        let ids = ["running", "done", "failed", "new", "new"];
        let calls = ids.map(|id| worker.once::<Trouble>(key(id)).policy(policy()).input("x"));
        let batch = worker.once_many(calls, async |_, _| Ok(2_u64)).await;
        let words: Vec<_> = batch.iter().map(word).collect();
        assert_eq!(words, ["in_progress", "replayed", "ran", "ran", "replayed"]);
        let other = worker.once::<Trouble>(key("new")).input("y");
        assert_eq!(word(&worker.once_many([other], async |_, _| Ok(3_u64)).await[0]), "input_changed");
        assert_eq!(word(&running.ends(Ok(1)).await), "ran");
        Ok(())
    });
}

/// firebase-functions: two consumers of one event share its id, and block each other.
#[test]
fn firebase_two_consumers_of_one_event_do_not_meet() {
    on_every_store(async |stage| {
        let worker = stage.worker();
        let (mail, bill) = (Key::new("mail", "event 1")?, Key::new("bill", "event 1")?);
        let mailing = worker.hold(&mail).await;
        assert_eq!(worker.run(&bill, policy(), 2).await?.value, 2);
        worker.forget(&bill, Forget::by("ann")).await?;
        assert_eq!(mailing.ends(Ok(1)).await?.value, 1);
        assert_eq!(worker.run(&mail, policy(), 3).await?.value, 1);
        Ok(())
    });
}

/// Job queues that use the attempt as the fence: after an administrator's retry it counts from the start, and an old
/// worker's number fits the new run.
#[test]
fn attempts_are_no_fence_after_an_administrators_retry() {
    on_every_store(async |stage| {
        let old = stage.sleeper();
        let first = old.hold(&key("a")).await;
        stage.worker().forget(&key("a"), Forget::by("ann").even_running()).await?;
        let second = stage.worker().hold(&key("a")).await;
        assert_eq!(second.lease.attempt(), first.lease.attempt(), "the same attempt, counted anew");
        assert!(second.lease.fence() > first.lease.fence(), "and a higher fence");
        assert_eq!(word(&first.ends(Ok(1)).await), "lease_lost");
        assert_eq!(second.ends(Ok(2)).await?.value, 2);
        assert_eq!(stage.worker().run(&key("a"), policy(), 3).await?.value, 2);
        Ok(())
    });
}

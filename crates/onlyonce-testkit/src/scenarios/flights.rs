//! Concurrent calls of one process meet before they reach the store.

use std::time::Duration;

use futures_util::future::join_all;
use onlyonce::{OnDuplicate, OnFailure, Policy};

use super::*;

fn waits() -> Policy {
    policy().on_duplicate(OnDuplicate::Wait)
}

/// So many calls at once: one runs, and the store is asked as for one.
async fn storm(stage: &Stage, many: usize) -> Scene {
    let (worker, key, runs) = (stage.worker(), key(format!("{many}")), Tally::default());
    let calls = (0..many).map(|_| {
        let (worker, key, runs) = (worker.clone(), key.clone(), runs.clone());
        tokio::spawn(async move {
            let body = async |_| {
                tokio::task::yield_now().await;
                Ok::<_, Trouble>(runs.add())
            };
            worker.once(key).policy(waits()).run(body).await
        })
    });
    let mut replays = 0;
    for outcome in join_all(calls).await {
        let ran = outcome??;
        assert_eq!(ran.value, 1);
        replays += usize::from(ran.replayed);
    }
    assert_eq!((runs.get(), replays), (1, many - 1));
    assert_eq!(worker.wire.take_asked(), [Ask::Create, Ask::Replace]);
    Ok(())
}

pub(super) async fn many_calls_at_once_run_one_body_in_two_trips(stage: Stage) -> Scene {
    storm(&stage, 10).await?;
    storm(&stage, 64).await
}

pub(super) async fn many_calls_at_once_replay_in_one_trip(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    stage.worker().run(&key, policy(), 1).await?;
    worker.wire.fail(Ask::Create, Fault::HeldRequest, 1);
    let calls: Vec<_> = (0..64).map(|_| worker.start(&key, policy(), 9)).collect();
    stage.idle().await;
    worker.wire.let_go();
    for outcome in join_all(calls).await {
        assert_eq!(outcome??.value, 1);
    }
    assert_eq!(worker.wire.take_asked(), [Ask::Create]);
    Ok(())
}

pub(super) async fn many_workers_at_once_run_one_body(stage: Stage) -> Scene {
    let key = key("a");
    let calls: Vec<_> = (0..8).map(|n| stage.worker().start(&key, waits(), n)).collect();
    let outcomes = stage.play(join_all(calls)).await;
    let ran: Vec<_> = outcomes.into_iter().collect::<Result<Result<Vec<_>, _>, _>>()??;
    assert_eq!(ran.iter().filter(|ran| !ran.replayed).count(), 1);
    assert!(ran.iter().all(|each| each.value == ran[0].value), "{ran:?}");
    Ok(())
}

pub(super) async fn calls_for_other_keys_never_wait(stage: Stage) -> Scene {
    let worker = stage.worker();
    let running = worker.hold(&key("running")).await;
    worker.wire.fail(Ask::Create, Fault::HeldRequest, 1);
    let asking = worker.start(&key("asking"), policy(), 1);
    worker.wire.until_held(1).await;
    for n in 0..20 {
        assert_eq!(word(&worker.run(&key(format!("{n}")), policy(), n).await), "ran");
    }
    worker.wire.let_go();
    assert_eq!(word(&asking.await?), "ran");
    assert_eq!(word(&running.ends(Ok(1)).await), "ran");
    Ok(())
}

pub(super) async fn a_call_joins_while_the_first_is_still_asking(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    worker.wire.fail(Ask::Create, Fault::HeldRequest, 1);
    let first = worker.start(&key, policy(), 1);
    worker.wire.until_held(1).await;
    let others: Vec<_> = (0..5).map(|_| worker.start(&key, waits(), 9)).collect();
    stage.idle().await;
    worker.wire.let_go();
    assert_eq!(word(&first.await?), "ran");
    for other in others {
        assert_eq!(other.await??.value, 1);
    }
    assert_eq!(worker.wire.take_asked(), [Ask::Create, Ask::Replace]);
    Ok(())
}

pub(super) async fn a_call_that_joined_while_asking_is_told_when_the_body_runs(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    worker.wire.fail(Ask::Create, Fault::HeldRequest, 1);
    let (holder, held_key) = (worker.clone(), key.clone());
    let first = tokio::spawn(async move { holder.hold(&held_key).await });
    worker.wire.until_held(1).await;
    let other = worker.start(&key, policy(), 9);
    stage.idle().await;
    assert!(!other.is_finished(), "nobody knows yet whether it runs here");
    worker.wire.let_go();
    assert_eq!(word(&other.await?), "in_progress");
    assert_eq!(word(&first.await?.ends(Ok(1)).await), "ran");
    Ok(())
}

pub(super) async fn when_the_first_is_dropped_while_asking_the_next_asks(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    worker.wire.fail(Ask::Create, Fault::HeldRequest, 1);
    let first = worker.start(&key, policy(), 1);
    worker.wire.until_held(1).await;
    let next = worker.start(&key, policy(), 2);
    stage.idle().await;
    first.abort();
    assert_eq!(stage.play(next).await??.value, 2);
    Ok(())
}

pub(super) async fn when_the_first_is_dropped_in_its_body_the_next_runs(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    let first = worker.hold(&key).await;
    let next = worker.start(&key, waits(), 2);
    stage.idle().await;
    first.dropped().await;
    let ran = stage.play(next).await??;
    assert_eq!((ran.value, ran.replayed, ran.attempt), (2, false, 2));
    Ok(())
}

pub(super) async fn a_claim_whose_call_was_dropped_before_the_answer_is_freed(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    worker.wire.fail(Ask::Create, Fault::HeldReply, 1);
    let first = worker.start(&key, policy(), 1);
    worker.wire.until_held(1).await;
    first.abort();
    stage.idle().await;
    let ran = stage.at_once(stage.worker().run(&key, policy(), 2)).await?;
    assert_eq!((ran.value, ran.replayed), (2, false), "nothing ran, so nothing is unsure");
    Ok(())
}

pub(super) async fn after_a_failure_the_others_run_one_by_one(stage: Stage) -> Scene {
    let (worker, key, runs) = (stage.worker(), key("a"), Tally::default());
    let calls = (0..5).map(|_| {
        let (worker, key, runs) = (worker.clone(), key.clone(), runs.clone());
        tokio::spawn(async move {
            let body = async |lease: onlyonce::Lease| {
                tokio::task::yield_now().await;
                runs.add();
                if lease.attempt() < 3 { Err(Trouble::new("not yet")) } else { Ok(lease.attempt()) }
            };
            worker.once(key).policy(waits()).run(body).await
        })
    });
    let outcomes = stage.play(join_all(calls)).await;
    let outcomes = outcomes.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut words: Vec<_> = outcomes.iter().map(word).collect();
    words.sort_unstable();
    assert_eq!(words, ["failed", "failed", "ran", "replayed", "replayed"]);
    assert_eq!(runs.get(), 3);
    Ok(())
}

pub(super) async fn a_kept_failure_reaches_all_that_wait_without_a_trip(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    let first = worker.hold_under(&key, policy().on_failure(OnFailure::Lock)).await;
    let others: Vec<_> = (0..10).map(|_| worker.start(&key, waits(), 9)).collect();
    stage.idle().await;
    worker.wire.take_asked();
    assert_eq!(word(&first.ends(Err(Trouble::new("no funds"))).await), "failed");
    for other in others {
        assert_eq!(word(&other.await?), "failed_before");
    }
    assert_eq!(worker.wire.take_asked(), [Ask::Replace]);
    Ok(())
}

pub(super) async fn a_call_of_another_input_in_one_flight_is_refused(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    let call = |input: &'static str| {
        let (worker, key) = (worker.clone(), key.clone());
        async move { worker.once::<Trouble>(key).policy(waits()).input(input).run(async |_| Ok(1_u64)).await }
    };
    worker.wire.fail(Ask::Create, Fault::HeldRequest, 1);
    let first = tokio::spawn(call("one"));
    worker.wire.until_held(1).await;
    let (same, other) = (tokio::spawn(call("one")), tokio::spawn(call("another")));
    stage.idle().await;
    worker.wire.let_go();
    assert_eq!(word(&first.await?), "ran");
    assert_eq!(word(&same.await?), "replayed");
    assert_eq!(word(&other.await?), "input_changed");
    Ok(())
}

pub(super) async fn a_lost_lease_no_longer_speaks_for_the_key(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    let goes_on = policy().on_lease_lost(onlyonce::OnLeaseLost::Tell);
    let first = worker.hold_under(&key, goes_on).await;
    worker.wire.fail(Ask::Touch, Fault::Unavailable, u32::MAX);
    stage.pass(LEASE + Duration::from_secs(1)).await;
    assert!(first.lease.is_lost());
    assert_eq!(stage.worker().run(&key, policy(), 2).await?.value, 2);
    // The old body still runs here, but what is recorded is another one's.
    assert_eq!(stage.at_once(worker.run(&key, policy(), 3)).await?.value, 2);
    assert_eq!(word(&first.ends(Ok(1)).await), "lease_lost");
    assert_eq!(worker.run(&key, policy(), 3).await?.value, 2);
    Ok(())
}

pub(super) async fn a_late_body_leaves_a_new_flight_of_its_key_alone(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    let late = worker.hold_under(&key, policy().on_lease_lost(onlyonce::OnLeaseLost::Tell)).await;
    worker.wire.fail(Ask::Touch, Fault::Unavailable, u32::MAX);
    stage.pass(LEASE + Duration::from_secs(1)).await;
    worker.wire.mend();
    let next = worker.hold(&key).await;
    assert_eq!(next.lease.attempt(), 2);
    assert_eq!(word(&late.ends(Ok(1)).await), "lease_lost");
    worker.wire.take_asked();
    assert_eq!(word(&worker.run(&key, policy(), 3).await), "in_progress");
    assert_eq!(worker.wire.take_asked(), [], "it met the call under way, and not the store");
    assert_eq!(next.ends(Ok(2)).await?.value, 2);
    Ok(())
}

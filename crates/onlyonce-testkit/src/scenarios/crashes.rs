//! Workers that die in the middle.

use std::time::Duration;

use onlyonce::engine::rules::State;
use onlyonce::telemetry::Outcome as Counted;
use onlyonce::{Claimed, OnCrash, OnDuplicate, Policy, Verdict};

use super::*;

fn parks() -> Policy {
    policy().on_crash(OnCrash::Park)
}

pub(super) async fn the_next_call_takes_over_when_the_lease_ran_out(stage: Stage) -> Scene {
    let (dead, next, key) = (stage.sleeper(), stage.worker(), key("a"));
    let first = dead.hold(&key).await;
    dead.dies();
    stage.pass(LEASE - Duration::from_millis(1)).await;
    assert_eq!(word(&next.run(&key, policy(), 2).await), "in_progress");
    stage.pass(Duration::from_millis(1)).await;
    let second = next.hold(&key).await;
    assert_eq!(second.lease.attempt(), 2);
    assert!(second.lease.fence() > first.lease.fence(), "a later lease has a higher fence");
    assert_eq!(second.ends(Ok(2)).await?.attempt, 2);
    assert_eq!(next.stats().of(Counted::Takeover), 1);
    assert_eq!(stage.worker().run(&key, policy(), 3).await?.value, 2);
    first.dropped().await;
    Ok(())
}

pub(super) async fn a_crash_is_parked_when_the_policy_says_so(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    stage.crash(&key).await;
    stage.pass(Duration::from_secs(90)).await;
    let error = refusal(worker.run(&key, parks(), 2).await);
    assert_eq!((error.code(), error.exit_code(), error.is_retryable()), ("parked", 77, false));
    let view = worker.view(&key).await?;
    assert_eq!(view.state, State::Parked);
    let reason = view.record.parked.ok_or("a parked key says why")?;
    assert!(reason.contains("attempt 1") && reason.contains("90 s"), "{reason}");
    assert!(error.to_string().contains(&reason), "{error}");
    stage.pass(1000 * KEEP).await;
    assert_eq!(
        word(&stage.worker().run(&key, policy(), 2).await),
        "parked",
        "it waits for an answer for ever"
    );
    Ok(())
}

pub(super) async fn a_probe_that_knows_the_value_completes_the_key(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    stage.crash(&key).await;
    let oracle = Oracle::says(happened(5));
    let ran = worker.run(&key, oracle.policy(), 2).await?;
    assert_eq!((ran.value, ran.replayed), (5, true));
    let asked = oracle.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!((&asked[0].key, asked[0].attempt, &asked[0].effect), (&key, 1, &None));
    let again = stage.worker().run(&key, policy(), 3).await?;
    assert_eq!((again.value, again.replayed, again.attempt), (5, true, ran.attempt));
    assert_eq!(oracle.asked().len(), 1);
    Ok(())
}

pub(super) async fn a_probe_that_knows_no_value_completes_the_key_without(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    stage.crash(&key).await;
    let oracle = Oracle::says(Verdict::Happened(None));
    assert_eq!(word(&worker.run(&key, oracle.policy(), 2).await), "result_not_stored");
    assert_eq!(worker.state(&key).await?, Some(State::Completed));
    assert_eq!(word(&stage.worker().run(&key, policy(), 2).await), "result_not_stored");
    Ok(())
}

pub(super) async fn a_probe_that_says_no_lets_the_body_run(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    stage.crash(&key).await;
    let oracle = Oracle::says(Verdict::DidNot);
    let ran = worker.run(&key, oracle.policy(), 2).await?;
    assert_eq!((ran.value, ran.replayed, ran.attempt, oracle.asked().len()), (2, false, 2, 1));
    Ok(())
}

pub(super) async fn a_probe_that_cannot_tell_parks_the_key(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    stage.crash(&key).await;
    let error = refusal(worker.run(&key, Oracle::says(Verdict::CannotTell).policy(), 2).await);
    assert_eq!(error.code(), "parked");
    assert_eq!(worker.state(&key).await?, Some(State::Parked));
    assert_eq!(word(&worker.run(&key, policy(), 2).await), "parked");
    // Whoever brings a probe that knows more is heard.
    let oracle = Oracle::says(happened(5));
    assert_eq!(stage.worker().run(&key, oracle.policy(), 2).await?.value, 5);
    Ok(())
}

pub(super) async fn a_probe_is_not_asked_when_nobody_died(stage: Stage) -> Scene {
    let (worker, oracle) = (stage.worker(), Oracle::says(Verdict::CannotTell));
    assert_eq!(word(&worker.run(&key("fresh"), oracle.policy(), 1).await), "ran");
    assert_eq!(word(&worker.run(&key("fresh"), oracle.policy(), 1).await), "replayed");
    let _ = worker.fail(&key("released"), oracle.policy(), "timeout").await;
    assert_eq!(word(&worker.run(&key("released"), oracle.policy(), 1).await), "ran");
    assert_eq!(oracle.asked(), []);
    Ok(())
}

pub(super) async fn one_caller_of_many_asks_the_probe(stage: Stage) -> Scene {
    let key = key("a");
    stage.crash(&key).await;
    let oracle = Oracle::says_after(happened(5), stage.clock(), Duration::from_secs(5));
    let asks = oracle.policy().on_duplicate(OnDuplicate::Wait);
    let workers = [stage.worker(), stage.worker(), stage.worker()];
    let calls: Vec<_> =
        workers.iter().flat_map(|worker| (0..5).map(|_| worker.start(&key, asks.clone(), 2))).collect();
    for call in calls {
        assert_eq!(stage.play(call).await??.value, 5);
    }
    assert_eq!(oracle.asked().len(), 1);
    Ok(())
}

pub(super) async fn a_slow_probe_keeps_its_lease(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    stage.crash(&key).await;
    let oracle = Oracle::says_after(happened(5), stage.clock(), 5 * LEASE);
    let asking = worker.start(&key, oracle.policy(), 2);
    stage.pass(4 * LEASE).await;
    assert_eq!(word(&stage.worker().run(&key, policy(), 3).await), "in_progress");
    assert_eq!(stage.play(asking).await??.value, 5);
    Ok(())
}

pub(super) async fn a_key_that_kills_its_workers_is_parked_in_the_end(stage: Stage) -> Scene {
    let (key, patience) = (key("a"), policy().max_attempts(3));
    for attempt in 1..=3 {
        let (dead, call) = stage.zombie_under(&key, patience.clone()).await;
        assert_eq!(call.lease.attempt(), attempt);
        dead.dies();
        call.dropped().await;
    }
    let worker = stage.worker();
    assert_eq!(word(&worker.run(&key, patience, 4).await), "parked");
    assert_eq!(worker.view(&key).await?.entry.header.attempts, 3, "it did not run a fourth time");
    Ok(())
}

pub(super) async fn a_dropped_call_frees_its_lease_at_once(stage: Stage) -> Scene {
    let (worker, other, key) = (stage.worker(), stage.worker(), key("a"));
    worker.hold(&key).await.dropped().await;
    stage.idle().await;
    assert!(worker.view(&key).await?.is_overdue());
    assert_eq!(worker.live_leases(), 0);
    let ran = other.run(&key, policy(), 2).await?;
    assert_eq!((ran.value, ran.attempt), (2, 2));
    Ok(())
}

pub(super) async fn a_dropped_call_is_a_crash_to_the_next(stage: Stage) -> Scene {
    let worker = stage.worker();
    for (id, policy, expected) in [
        ("parks", parks(), "parked"),
        ("asks", Oracle::says(happened(5)).policy(), "replayed"),
        ("spent", policy().max_attempts(1), "parked"),
    ] {
        worker.hold(&key(id)).await.dropped().await;
        stage.idle().await;
        assert_eq!(word(&worker.run(&key(id), policy, 2).await), expected, "{id}");
    }
    Ok(())
}

pub(super) async fn a_dropped_guard_is_a_crash_to_the_next(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    let claimed = worker.once::<Trouble>(key.clone()).claim::<u64>().await?;
    let Claimed::Run(guard) = claimed else { return Err("nobody has it".into()) };
    assert_eq!(word(&worker.run(&key, policy(), 2).await), "in_progress");
    drop(guard);
    stage.idle().await;
    assert_eq!(word(&stage.worker().run(&key, parks(), 2).await), "parked");
    Ok(())
}

pub(super) async fn a_dropped_call_whose_store_is_down_ends_with_its_lease(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    let call = worker.hold(&key).await;
    worker.wire.fail(Ask::Touch, Fault::Unavailable, u32::MAX);
    call.dropped().await;
    stage.idle().await;
    assert_eq!(word(&stage.worker().run(&key, policy(), 2).await), "in_progress");
    stage.pass(LEASE).await;
    assert_eq!(word(&stage.worker().run(&key, policy(), 2).await), "ran");
    Ok(())
}

pub(super) async fn a_worker_that_starts_again_is_not_its_predecessor(stage: Stage) -> Scene {
    let key = key("a");
    let named = || stage.worker_with(crate::clock::ManualClock::new(), |builder| builder.worker("web-1"));
    let before = named();
    let call = before.hold(&key).await;
    before.dies();
    let after = named();
    assert_eq!(
        word(&after.run(&key, policy(), 2).await),
        "in_progress",
        "the old lease is not the new one's"
    );
    stage.pass(LEASE).await;
    assert_eq!(word(&after.run(&key, parks(), 2).await), "parked", "its predecessor died in the middle");
    call.dropped().await;
    Ok(())
}

pub(super) async fn a_claim_by_hand_is_settled_by_hand(stage: Stage) -> Scene {
    let worker = stage.worker();
    let claim = async |id: &str| worker.once::<Trouble>(key(id)).policy(policy()).claim::<u64>().await;
    let Claimed::Run(guard) = claim("value").await? else { return Err("nobody has it".into()) };
    guard.lease().check()?;
    assert_eq!(claim("value").await.err().map(|error| error.code()), Some("in_progress"));
    guard.complete(&1_u64).await?;
    let Claimed::Replay(ran) = claim("value").await? else { return Err("it is completed".into()) };
    assert_eq!((ran.value, ran.replayed, ran.attempt), (1, true, 1));

    let Claimed::Run(guard) = claim("failure").await? else { return Err("nobody has it".into()) };
    guard.fail("no funds".to_owned(), onlyonce::OnFailure::Lock).await?;
    assert_eq!(claim("failure").await.err().map(|error| error.code()), Some("failed_before"));

    stage.crash(&key("asks")).await;
    let asks = Oracle::says(happened(5)).policy();
    let claimed = worker.once::<Trouble>(key("asks")).policy(asks).claim::<u64>().await?;
    let Claimed::Replay(ran) = claimed else { return Err("the probe knows".into()) };
    assert_eq!(ran.value, 5);
    assert_eq!(worker.live_leases(), 0);
    Ok(())
}

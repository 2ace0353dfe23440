//! What a call does when the store cannot be reached at all.

use onlyonce::telemetry::Outcome as Counted;
use onlyonce::{Lease, OnStoreDown, Policy};

use super::*;

fn open() -> Policy {
    policy().on_store_down(OnStoreDown::Open)
}

pub(super) async fn a_call_without_a_store_fails_closed(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    worker.wire.fail_any(Fault::Unavailable, u32::MAX);
    assert_eq!(word(&stage.play(worker.run(&key, policy(), 1)).await), "store_unavailable");
    assert_eq!(worker.stats().of(Counted::FailOpen), 0);
    assert_eq!(worker.stats().acquisition_failures(), 1);
    Ok(())
}

pub(super) async fn a_call_without_a_store_runs_unguarded_when_told_to(stage: Stage) -> Scene {
    let (worker, key, runs) = (stage.worker(), key("a"), Tally::default());
    worker.wire.fail_any(Fault::Unavailable, u32::MAX);
    let body = async |lease: Lease| {
        assert!(!lease.is_guarded() && !lease.is_lost() && lease.check().is_ok());
        assert_eq!((lease.fence(), lease.attempt()), (0, 1));
        Ok::<_, Trouble>(lease.effect("charge").run(async |_| Ok::<_, Trouble>(runs.add())).await?)
    };
    let ran = stage.play(worker.once(key.clone()).policy(open()).run(body)).await?;
    assert_eq!((ran.value, ran.guarded, ran.replayed), (1, false, false));
    let count = |outcome| worker.stats().of(outcome);
    assert_eq!((count(Counted::FailOpen), count(Counted::First)), (1, 0), "nothing was recorded");
    assert_eq!(worker.live_leases(), 0);
    worker.wire.mend();
    assert_eq!(word(&worker.run(&key, open(), 2).await), "ran", "nothing was recorded");
    Ok(())
}

pub(super) async fn an_unguarded_failure_is_given_back(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    worker.wire.fail_any(Fault::LostRequest, u32::MAX);
    assert_eq!(word(&stage.play(worker.fail(&key, open(), "timeout")).await), "failed");
    Ok(())
}

pub(super) async fn a_completion_without_a_store_succeeds_when_told_to(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    let call = worker.hold_under(&key, open()).await;
    worker.wire.fail_any(Fault::Unavailable, u32::MAX);
    let ran = stage.play(call.ends(Ok(1))).await?;
    assert_eq!(ran.value, 1);
    let count = |outcome| worker.stats().of(outcome);
    assert_eq!((count(Counted::FailOpen), count(Counted::First)), (1, 0), "nothing was recorded");
    Ok(())
}

pub(super) async fn a_store_that_answers_is_never_gone_round(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    let running = stage.worker().hold(&key).await;
    assert_eq!(word(&worker.run(&key, open(), 1).await), "in_progress");
    running.ends(Ok(2)).await?;
    assert_eq!(word(&worker.run(&key, open(), 1).await), "replayed");
    worker.wire.fail(Ask::Create, Fault::TooLarge, 1);
    let refused = worker.run(&super::key("b"), open(), 1).await;
    assert_eq!(word(&refused), "store_too_large", "a store that refuses is not a store that is down");
    Ok(())
}

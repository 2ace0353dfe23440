//! How long outcomes are kept, and how they go.

use std::time::Duration;

use futures_util::future::join_all;
use onlyonce::engine::rules::State;
use onlyonce::store::Scan;
use onlyonce::{OnCrash, OnFailure, Sweep};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

pub(super) async fn an_outcome_is_there_for_its_time_and_no_longer(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    let first = worker.hold(&key).await;
    let fence = first.lease.fence();
    first.ends(Ok(1)).await?;
    stage.pass(KEEP - Duration::from_millis(1)).await;
    assert_eq!(word(&stage.worker().run(&key, policy(), 2).await), "replayed");
    stage.pass(Duration::from_millis(1)).await;
    assert!(worker.look(&key).await?.is_none());
    let again = worker.hold(&key).await;
    assert_eq!(again.lease.attempt(), 1, "nobody knows that it ran before");
    assert!(again.lease.fence() > fence);
    assert_eq!(again.ends(Ok(2)).await?.value, 2);
    assert_eq!(stage.worker().run(&key, policy(), 3).await?.value, 2);
    Ok(())
}

pub(super) async fn a_replay_does_not_lengthen_an_outcomes_time(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    worker.run(&key, policy(), 1).await?;
    for _ in 0..4 {
        stage.pass(KEEP / 4 - SECOND).await;
        assert_eq!(word(&worker.run(&key, policy().keep(100 * KEEP), 2).await), "replayed");
    }
    stage.pass(4 * SECOND).await;
    assert_eq!(word(&worker.run(&key, policy(), 2).await), "ran");
    Ok(())
}

/// So many outcomes whose time is over.
async fn expired(stage: &Stage, worker: &Worker, many: u64) -> Scene {
    for n in 0..many {
        worker.run(&key(format!("{n:03}")), policy().keep(SECOND), n).await?;
    }
    stage.pass(SECOND).await;
    Ok(())
}

async fn still_kept(stage: &Stage) -> Scene<usize> {
    let mut many = 0;
    for expired in [false, true] {
        let page = stage.store().scan(Scan { expired, limit: 1000, ..Scan::default() }).await?;
        many += page.entries.len();
    }
    Ok(many)
}

pub(super) async fn a_sweep_forgets_what_is_past_its_time_and_nothing_else(stage: Stage) -> Scene {
    let worker = stage.worker();
    let call = worker.hold(&key("running")).await;
    stage.crash(&key("overdue")).await;
    stage.crash(&key("parked")).await;
    drop(worker.run(&key("parked"), policy().on_crash(OnCrash::Park), 1).await);
    worker.run(&key("completed"), policy(), 1).await?;
    drop(worker.fail(&key("failed"), policy().on_failure(OnFailure::Lock), "no funds").await);
    expired(&stage, &worker, 3).await?;
    let swept = worker.sweep(Sweep::default()).await?;
    assert_eq!((swept.forgotten, swept.kept, swept.more), (3, 0, false));
    for (id, state) in [
        ("running", State::Running),
        ("overdue", State::Running),
        ("parked", State::Parked),
        ("completed", State::Completed),
        ("failed", State::Failed),
    ] {
        assert_eq!(worker.state(&key(id)).await?, Some(state));
    }
    assert_eq!(still_kept(&stage).await?, 5);
    assert_eq!(word(&call.ends(Ok(1)).await), "ran");
    Ok(())
}

pub(super) async fn a_sweep_forgets_at_most_as_many_as_asked(stage: Stage) -> Scene {
    let worker = stage.worker();
    expired(&stage, &worker, 7).await?;
    let mut gone = 0;
    for _ in 0..2 {
        let swept = worker.sweep(Sweep::default().at_most(3)).await?;
        assert_eq!((swept.forgotten, swept.more), (3, true));
        gone += swept.forgotten;
        assert_eq!(still_kept(&stage).await?, 7 - gone);
    }
    let swept = worker.sweep(Sweep::default().at_most(3)).await?;
    assert_eq!((swept.forgotten, swept.more), (1, false));
    assert_eq!(worker.sweep(Sweep::default().at_most(0)).await?.forgotten, 0);
    Ok(())
}

pub(super) async fn a_sweep_stays_in_its_namespace(stage: Stage) -> Scene {
    let worker = stage.worker();
    expired(&stage, &worker, 2).await?;
    let elsewhere = Sweep::default().namespace("elsewhere");
    assert_eq!(worker.sweep(elsewhere).await?.forgotten, 0);
    assert_eq!(worker.sweep(Sweep::default().namespace("scenes")).await?.forgotten, 2);
    Ok(())
}

pub(super) async fn a_key_that_is_used_again_is_not_swept(stage: Stage) -> Scene {
    let (worker, other) = (stage.worker(), stage.worker());
    expired(&stage, &worker, 1).await?;
    worker.wire.fail(Ask::Delete, Fault::HeldRequest, 1);
    let sweeper = worker.clone();
    let sweep = tokio::spawn(async move { sweeper.sweep(Sweep::default()).await });
    worker.wire.until_held(1).await;
    assert_eq!(word(&other.run(&key("000"), policy(), 9).await), "ran");
    worker.wire.let_go();
    let swept = sweep.await??;
    assert_eq!((swept.forgotten, swept.kept), (0, 1));
    assert_eq!(other.run(&key("000"), policy(), 10).await?.value, 9);
    Ok(())
}

pub(super) async fn two_sweeps_at_once_forget_each_key_once(stage: Stage) -> Scene {
    let workers = [stage.worker(), stage.worker()];
    expired(&stage, &workers[0], 20).await?;
    let swept = join_all(workers.iter().map(|worker| worker.sweep(Sweep::default()))).await;
    let swept = swept.into_iter().collect::<Result<Vec<_>, _>>()?;
    assert_eq!(swept.iter().map(|swept| swept.forgotten).sum::<usize>(), 20, "{swept:?}");
    assert_eq!(still_kept(&stage).await?, 0);
    Ok(())
}

pub(super) async fn a_sweep_that_breaks_off_can_be_done_again(stage: Stage) -> Scene {
    let worker = stage.worker();
    expired(&stage, &worker, 5).await?;
    for fault in [Fault::Unavailable, Fault::LostReply] {
        worker.wire.fail(Ask::Delete, fault, 1);
        let error = worker.sweep(Sweep::default()).await.err().ok_or("the store was down")?;
        assert!(error.is_retryable());
    }
    worker.sweep(Sweep::default()).await?;
    assert_eq!(still_kept(&stage).await?, 0);
    Ok(())
}

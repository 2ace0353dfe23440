//! Leases that are kept alive, and leases that are lost.

use std::time::Duration;

use onlyonce::time::Clock;
use onlyonce::{Forget, OnLeaseLost};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

pub(super) async fn a_body_may_run_far_longer_than_its_lease(stage: Stage) -> Scene {
    let (worker, other, key) = (stage.worker(), stage.worker(), key("a"));
    let call = worker.hold(&key).await;
    for _ in 0..5 {
        stage.pass(2 * LEASE).await;
        assert_eq!(word(&other.run(&key, policy(), 2).await), "in_progress");
    }
    assert_eq!(call.ends(Ok(1)).await?.attempt, 1);
    let beats = worker.wire.count(Ask::Touch);
    assert!((45..=55).contains(&beats), "a beat every fifth of the lease, not {beats} in ten leases");
    Ok(())
}

pub(super) async fn heartbeats_come_as_often_as_the_policy_says(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    let call = worker.hold_under(&key, policy().heartbeat(25 * SECOND)).await;
    worker.wire.take_asked();
    stage.pass(24 * SECOND).await;
    assert_eq!(worker.wire.count(Ask::Touch), 0);
    stage.pass(28 * SECOND).await;
    assert_eq!(worker.wire.count(Ask::Touch), 2);
    assert_eq!(word(&call.ends(Ok(1)).await), "ran");
    Ok(())
}

pub(super) async fn a_heartbeat_changes_the_lease_and_not_the_record(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    let call = worker.hold(&key).await;
    let before = worker.view(&key).await?;
    stage.pass(LEASE / 4).await;
    let after = worker.view(&key).await?;
    assert!(after.entry.version > before.entry.version, "a beat was written");
    assert!(after.entry.header.due_at > before.entry.header.due_at, "the lease ends later");
    assert_eq!(after.entry.body, before.entry.body);
    let kept = |view: &onlyonce::engine::View| {
        let header = view.entry.header.clone();
        (header.status, header.holder, header.attempts, header.created_at)
    };
    assert_eq!(kept(&after), kept(&before));
    assert_eq!(call.lease.fence(), before.entry.version.get(), "the fence is the version of the claim");
    assert_eq!(word(&call.ends(Ok(1)).await), "ran");
    Ok(())
}

pub(super) async fn a_settled_or_dropped_lease_has_no_heartbeat(stage: Stage) -> Scene {
    let worker = stage.worker();
    let done = worker.hold(&key("done")).await;
    let dropped = worker.hold(&key("dropped")).await;
    assert_eq!(worker.live_leases(), 2);
    done.ends(Ok(1)).await?;
    dropped.dropped().await;
    stage.idle().await;
    assert_eq!(worker.live_leases(), 0);
    worker.wire.take_asked();
    stage.pass(3 * LEASE).await;
    assert_eq!(worker.wire.take_asked(), []);
    Ok(())
}

pub(super) async fn a_heartbeat_that_fails_is_tried_again(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    let call = worker.hold(&key).await;
    for fault in [Fault::Unavailable, Fault::LostRequest, Fault::LostReply] {
        worker.wire.fail(Ask::Touch, fault, 5);
        stage.pass(2 * LEASE).await;
    }
    assert_eq!(worker.stats().heartbeat_failures(), 15);
    assert_eq!(word(&stage.worker().run(&key, policy(), 2).await), "in_progress");
    assert_eq!(word(&call.ends(Ok(1)).await), "ran");
    Ok(())
}

pub(super) async fn a_lost_lease_stops_its_body_before_another_can_run(stage: Stage) -> Scene {
    for fault in [Fault::Unavailable, Fault::LostRequest, Fault::HeldRequest] {
        let (worker, other, key) = (stage.worker(), stage.worker(), key(format!("{fault:?}")));
        let call = worker.hold(&key).await;
        let begun = stage.clock().monotonic();
        worker.wire.fail(Ask::Touch, fault, u32::MAX);
        let outcome = stage.play(call.gives_up()).await;
        let error = refusal(outcome);
        assert_eq!((error.code(), error.exit_code(), error.is_retryable()), ("lease_lost", 74, true));
        let lived = stage.clock().monotonic() - begun;
        assert!(LEASE * 9 / 10 < lived && lived < LEASE, "{lived:?} of {LEASE:?}");
        assert_eq!(
            word(&other.run(&key, policy(), 2).await),
            "in_progress",
            "the store keeps it a little longer"
        );
        stage.pass(LEASE - lived).await;
        assert_eq!(other.run(&key, policy(), 2).await?.value, 2);
    }
    Ok(())
}

pub(super) async fn a_body_that_is_told_goes_on_and_is_refused_in_the_end(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    let call = worker.hold_under(&key, policy().on_lease_lost(OnLeaseLost::Tell)).await;
    worker.wire.fail(Ask::Touch, Fault::Unavailable, u32::MAX);
    let lease = call.lease.clone();
    let told = tokio::spawn(async move { lease.lost().await });
    stage.pass(LEASE).await;
    stage.at_once(told).await?;
    assert!(call.lease.is_lost() && call.lease.check().is_err() && !call.is_over());
    assert_eq!(stage.worker().run(&key, policy(), 2).await?.value, 2);
    assert_eq!(word(&call.ends(Ok(1)).await), "lease_lost");
    assert_eq!(stage.worker().run(&key, policy(), 3).await?.value, 2);
    Ok(())
}

pub(super) async fn a_lease_lives_no_longer_than_its_ceiling(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    let ceiling = 5 * LEASE;
    let call = worker.hold_under(&key, policy().max_lease_total(ceiling)).await;
    let begun = stage.clock().monotonic();
    assert_eq!(word(&stage.play(call.gives_up()).await), "lease_lost");
    let lived = stage.clock().monotonic() - begun;
    assert!(ceiling - LEASE <= lived && lived <= ceiling, "{lived:?} of at most {ceiling:?}");
    stage.pass(LEASE).await;
    assert_eq!(word(&stage.worker().run(&key, policy(), 2).await), "ran");
    Ok(())
}

pub(super) async fn a_heartbeat_that_hangs_does_not_stop_the_others(stage: Stage) -> Scene {
    let worker = stage.worker();
    let tells = policy().on_lease_lost(OnLeaseLost::Tell);
    let hangs = worker.hold_under(&key("hangs"), tells).await;
    stage.pass(SECOND).await;
    let others = [worker.hold(&key("b")).await, worker.hold(&key("c")).await];
    worker.wire.fail(Ask::Touch, Fault::HeldRequest, 1);
    stage.pass(5 * LEASE).await;
    assert!(hangs.lease.is_lost());
    for other in others {
        assert!(!other.lease.is_lost());
        assert_eq!(word(&other.ends(Ok(1)).await), "ran");
    }
    // What hung may arrive after all; it is late, and refused.
    assert_eq!(stage.worker().run(&key("hangs"), policy(), 2).await?.value, 2);
    worker.wire.let_go();
    stage.idle().await;
    assert_eq!(word(&hangs.ends(Ok(1)).await), "lease_lost");
    assert_eq!(stage.worker().run(&key("hangs"), policy(), 3).await?.value, 2);
    Ok(())
}

pub(super) async fn many_leases_are_extended_together(stage: Stage) -> Scene {
    const MANY: usize = 40;
    let worker = stage.worker();
    let mut calls = Vec::new();
    for n in 0..MANY {
        calls.push(worker.hold(&key(format!("{n}"))).await);
        stage.pass(Duration::from_millis(1)).await;
    }
    worker.wire.take_asked();
    worker.wire.fail(Ask::Touch, Fault::HeldRequest, u32::try_from(MANY)?);
    stage.pass(LEASE / 4).await;
    worker.wire.until_held(MANY).await;
    worker.wire.let_go();
    stage.pass(3 * LEASE).await;
    let beats = worker.wire.count(Ask::Touch);
    assert!(
        (MANY * 14..=MANY * 18).contains(&beats),
        "{beats} beats of {MANY} leases in three lease lengths"
    );
    assert_eq!(worker.live_leases(), MANY);
    for call in calls {
        assert_eq!(word(&call.ends(Ok(1)).await), "ran");
    }
    Ok(())
}

pub(super) async fn a_body_whose_key_was_forgotten_is_stopped_at_the_next_beat(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    let call = worker.hold(&key).await;
    stage.worker().forget(&key, Forget::by("ann").even_running()).await?;
    stage.pass(LEASE / 4).await;
    assert!(call.is_over());
    assert_eq!(word(&call.gives_up().await), "lease_lost");
    Ok(())
}

pub(super) async fn an_answer_slower_than_the_lease_is_no_lease(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    worker.wire.fail(Ask::Create, Fault::HeldReply, 1);
    let call = worker.start(&key, policy(), 1);
    worker.wire.until_held(1).await;
    stage.pass(LEASE).await;
    worker.wire.let_go();
    assert_eq!(word(&call.await?), "lease_lost", "its lease began when it asked, and not when it heard");
    assert_eq!(word(&stage.worker().run(&key, policy(), 2).await), "ran");
    Ok(())
}

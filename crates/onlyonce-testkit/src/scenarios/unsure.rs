//! Requests and replies that are lost on the way.

use onlyonce::engine::EffectState;
use onlyonce::engine::rules::State;
use onlyonce::time::Clock;
use onlyonce::{Lease, OnDuplicate, OnFailure, RunError};

use super::*;

const LOST: [Fault; 3] = [Fault::Unavailable, Fault::LostRequest, Fault::LostReply];

pub(super) async fn a_claim_finds_itself_after_a_lost_reply(stage: Stage) -> Scene {
    for fault in LOST {
        for times in 1..=2 {
            let (worker, key) = (stage.worker(), key(format!("{fault:?} {times}")));
            worker.wire.fail(Ask::Create, fault, times);
            let ran = stage.play(worker.run(&key, policy(), 1)).await?;
            assert_eq!((ran.value, ran.replayed, ran.attempt), (1, false, 1), "{key}");
            assert_eq!(stage.worker().run(&key, policy(), 2).await?.value, 1, "{key}");
        }
    }
    Ok(())
}

pub(super) async fn a_claim_finds_itself_when_reading_back_fails_too(stage: Stage) -> Scene {
    for (fault, read) in LOST.into_iter().flat_map(|fault| LOST.map(|read| (fault, read))) {
        let (worker, key) = (stage.worker(), key(format!("{fault:?} {read:?}")));
        worker.wire.fail(Ask::Create, fault, 1);
        worker.wire.fail(Ask::Read, read, 1);
        let ran = stage.play(worker.run(&key, policy(), 1)).await?;
        assert_eq!((ran.value, ran.replayed, ran.attempt), (1, false, 1), "{key}");
    }
    Ok(())
}

pub(super) async fn a_claim_whose_reply_was_lost_is_not_mistaken_for_anothers(stage: Stage) -> Scene {
    for fault in LOST {
        let (worker, other, key) = (stage.worker(), stage.worker(), key(format!("{fault:?}")));
        let running = other.hold(&key).await;
        worker.wire.fail(Ask::Create, fault, 1);
        assert_eq!(word(&stage.play(worker.run(&key, policy(), 1)).await), "in_progress", "{fault:?}");
        running.ends(Ok(2)).await?;
        worker.wire.fail(Ask::Create, fault, 1);
        assert_eq!(stage.play(worker.run(&key, policy(), 1)).await?.value, 2, "{fault:?}");
    }
    Ok(())
}

pub(super) async fn a_takeover_finds_itself_after_a_lost_reply(stage: Stage) -> Scene {
    for fault in LOST {
        let (worker, key) = (stage.worker(), key(format!("{fault:?}")));
        stage.crash(&key).await;
        worker.wire.fail(Ask::Replace, fault, 1);
        let ran = stage.play(worker.run(&key, policy(), 2)).await?;
        assert_eq!((ran.value, ran.replayed, ran.attempt), (2, false, 2), "{fault:?}");
        assert_eq!(stage.worker().run(&key, policy(), 3).await?.value, 2, "{fault:?}");
    }
    Ok(())
}

pub(super) async fn a_claim_that_stays_unanswered_runs_nothing(stage: Stage) -> Scene {
    for (fault, code) in [(Fault::Unavailable, "store_unavailable"), (Fault::LostRequest, "store_uncertain")]
    {
        let (worker, key, runs) = (stage.worker(), key(format!("{fault:?}")), Tally::default());
        worker.wire.fail_any(fault, u32::MAX);
        let body = async |_| Ok::<_, Trouble>(runs.add());
        let error = refusal(stage.play(worker.once(key.clone()).policy(policy()).run(body)).await);
        assert_eq!((error.code(), error.exit_code(), error.is_retryable()), (code, 69, true));
        assert_eq!((runs.get(), worker.stats().acquisition_failures()), (0, 1));
        worker.wire.mend();
        assert_eq!(word(&worker.run(&key, policy(), 1).await), "ran");
    }
    Ok(())
}

pub(super) async fn a_completion_is_tried_until_it_is_recorded(stage: Stage) -> Scene {
    for fault in LOST {
        for times in [1, 2, 8] {
            let (worker, key) = (stage.worker(), key(format!("{fault:?} {times}")));
            let call = worker.hold(&key).await;
            worker.wire.fail(Ask::Replace, fault, times);
            worker.wire.fail(Ask::Read, fault, times / 2);
            let ran = stage.play(call.ends(Ok(1))).await?;
            assert_eq!((ran.value, ran.replayed), (1, false), "{key}");
            assert_eq!(stage.worker().run(&key, policy(), 2).await?.value, 1, "{key}");
        }
    }
    Ok(())
}

pub(super) async fn those_who_wait_hear_of_a_completion_whose_reply_was_lost(stage: Stage) -> Scene {
    for fault in LOST {
        let (worker, key) = (stage.worker(), key(format!("{fault:?}")));
        let call = worker.hold(&key).await;
        let waits = policy().on_duplicate(OnDuplicate::Wait);
        let waiting = [worker.start(&key, waits.clone(), 9), stage.worker().start(&key, waits, 9)];
        stage.idle().await;
        worker.wire.fail(Ask::Replace, fault, 2);
        assert_eq!(word(&stage.play(call.ends(Ok(1))).await), "ran");
        for waiting in waiting {
            assert_eq!(stage.play(waiting).await??.value, 1, "{fault:?}");
        }
    }
    Ok(())
}

pub(super) async fn a_failure_is_tried_until_it_is_recorded(stage: Stage) -> Scene {
    for fault in LOST {
        let (worker, key) = (stage.worker(), key(format!("{fault:?}")));
        let call = worker.hold_under(&key, policy().on_failure(OnFailure::Lock)).await;
        worker.wire.fail(Ask::Replace, fault, 3);
        assert_eq!(word(&stage.play(call.ends(Err(Trouble::new("no funds")))).await), "failed");
        assert_eq!(word(&stage.worker().run(&key, policy(), 2).await), "failed_before", "{fault:?}");
    }
    Ok(())
}

pub(super) async fn a_completion_that_stays_unanswered_says_so_when_the_lease_ends(stage: Stage) -> Scene {
    for fault in [Fault::Unavailable, Fault::LostRequest] {
        let (worker, key) = (stage.worker(), key(format!("{fault:?}")));
        let call = worker.hold(&key).await;
        let begun = stage.clock().monotonic();
        worker.wire.fail_any(fault, u32::MAX);
        let error = refusal(stage.play(call.ends(Ok(1))).await);
        assert_eq!((error.code(), error.exit_code(), error.is_retryable()), ("not_recorded", 69, true));
        let took = stage.clock().monotonic() - begun;
        assert!(LEASE / 2 < took && took <= LEASE, "it tried for {took:?}");
        stage.pass(LEASE).await;
        let next = stage.worker().run(&key, policy().on_crash(onlyonce::OnCrash::Park), 2).await;
        assert_eq!(word(&next), "parked", "nobody knows, and nobody pretends to");
    }
    Ok(())
}

pub(super) async fn a_completion_recorded_in_silence_is_the_outcome(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    let call = worker.hold(&key).await;
    worker.wire.fail(Ask::Replace, Fault::LostReply, 1);
    worker.wire.fail_any(Fault::Unavailable, u32::MAX);
    assert_eq!(word(&stage.play(call.ends(Ok(1))).await), "not_recorded");
    let ran = stage.worker().run(&key, policy(), 2).await?;
    assert_eq!((ran.value, ran.replayed), (1, true), "it was recorded, and only the worker does not know");
    Ok(())
}

pub(super) async fn an_effect_runs_once_through_lost_replies(stage: Stage) -> Scene {
    for fault in LOST {
        for times in [1, 4] {
            let (worker, key, runs) = (stage.worker(), key(format!("{fault:?} {times}")), Tally::default());
            let body = async |lease: Lease| {
                worker.wire.fail(Ask::Replace, fault, times);
                let charged = lease.effect("charge").run(async |_| {
                    worker.wire.fail(Ask::Replace, fault, times);
                    Ok::<_, Trouble>(runs.add())
                });
                Ok::<_, Trouble>(charged.await?)
            };
            let ran = stage.play(worker.once(key.clone()).policy(policy()).run(body)).await?;
            assert_eq!((ran.value, runs.get()), (1, 1), "{key}");
            let effects = worker.view(&key).await?.record.effects;
            assert_eq!((effects.len(), effects[0].state), (1, EffectState::Done), "{key}");
        }
    }
    Ok(())
}

pub(super) async fn an_effect_that_cannot_be_announced_does_not_run(stage: Stage) -> Scene {
    let (worker, key, runs) = (stage.worker(), key("a"), Tally::default());
    let body = async |lease: Lease| {
        worker.wire.fail_any(Fault::Unavailable, u32::MAX);
        let charged = lease.effect("charge").run(async |_| Ok::<_, Trouble>(runs.add())).await;
        let code = charged.err().and_then(|error| error.guard().map(|error| error.code()));
        assert_eq!(code, Some("not_recorded"));
        Err::<u64, _>(Trouble::new("store down"))
    };
    let tells = policy().on_lease_lost(onlyonce::OnLeaseLost::Tell);
    let outcome = stage.play(worker.once(key.clone()).policy(tells).run(body)).await;
    assert_eq!(word(&outcome), "failed");
    assert_eq!(runs.get(), 0);
    Ok(())
}

pub(super) async fn an_effect_that_cannot_be_recorded_stays_begun(stage: Stage) -> Scene {
    let (worker, key, runs) = (stage.worker(), key("a"), Tally::default());
    let body = async |lease: Lease| {
        let charged = lease.effect("charge").run(async |_| {
            worker.wire.fail_any(Fault::Unavailable, u32::MAX);
            Ok::<_, Trouble>(runs.add())
        });
        charged.await.map_err(Trouble::from)
    };
    let tells = policy().on_lease_lost(onlyonce::OnLeaseLost::Tell);
    let outcome = stage.play(worker.once(key.clone()).policy(tells).run(body)).await;
    assert!(
        matches!(&outcome, Err(RunError::Body(Trouble(text))) if text.contains("not_recorded")),
        "{outcome:?}"
    );
    stage.pass(LEASE).await;
    let view = stage.worker().view(&key).await?;
    assert_eq!((view.state, view.record.effects[0].state), (State::Running, EffectState::Started));
    Ok(())
}

pub(super) async fn a_heartbeat_that_arrived_in_silence_does_not_confuse_the_rest(stage: Stage) -> Scene {
    let (worker, key, runs) = (stage.worker(), key("a"), Tally::default());
    let body = async |lease: Lease| {
        for n in 0..3 {
            worker.wire.fail(Ask::Touch, Fault::LostReply, 1);
            stage.pass(LEASE / 4).await;
            lease.effect(&format!("step {n}")).run(async |_| Ok::<_, Trouble>(runs.add())).await?;
        }
        worker.wire.fail(Ask::Touch, Fault::LostReply, 1);
        stage.pass(LEASE / 4).await;
        Ok::<_, Trouble>(runs.get())
    };
    assert_eq!(worker.once(key.clone()).policy(policy()).run(body).await?.value, 3);
    assert_eq!(stage.worker().run(&key, policy(), 9).await?.value, 3);
    Ok(())
}

//! What a call is answered that is not the first.

use std::time::Duration;

use onlyonce::engine::rules::State;
use onlyonce::{Forget, Key, OnCrash, OnDuplicate, OnFailure};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// What `return`, `raise` and `wait` are answered, by a worker that saw it happen and by one that did not.
async fn answered(here: &Worker, elsewhere: &Worker, keys: [&Key; 6], words: [&str; 3]) {
    let asks = [OnDuplicate::Return, OnDuplicate::Raise, OnDuplicate::Wait];
    for ((on_duplicate, expected), keys) in asks.into_iter().zip(words).zip(keys.chunks(2)) {
        for (worker, key) in [here, elsewhere].into_iter().zip(keys) {
            let outcome = worker.run(key, policy().on_duplicate(on_duplicate), 9).await;
            assert_eq!(word(&outcome), expected, "{on_duplicate:?} for {key}: {outcome:?}");
        }
    }
}

fn six() -> [Key; 6] {
    [1, 2, 3, 4, 5, 6].map(|n| key(format!("{n}")))
}

pub(super) async fn a_completed_key_is_returned_or_raised(stage: Stage) -> Scene {
    let (here, key) = (stage.worker(), key("a"));
    here.run(&key, policy(), 1).await?;
    let words = ["replayed", "duplicate_execution", "replayed"];
    answered(&here, &stage.worker(), [&key; 6], words).await;
    Ok(())
}

pub(super) async fn a_kept_failure_is_returned_or_raised(stage: Stage) -> Scene {
    let (here, key) = (stage.worker(), key("a"));
    let _ = here.fail(&key, policy().on_failure(OnFailure::Lock), "no funds").await;
    let words = ["failed_before", "duplicate_execution", "failed_before"];
    answered(&here, &stage.worker(), [&key; 6], words).await;
    assert_eq!(here.state(&key).await?, Some(State::Failed));
    Ok(())
}

pub(super) async fn a_released_key_runs_again_for_everybody(stage: Stage) -> Scene {
    let (here, keys) = (stage.worker(), six());
    for key in &keys {
        let _ = here.fail(key, policy(), "timeout").await;
    }
    answered(&here, &stage.worker(), keys.each_ref(), ["ran"; 3]).await;
    Ok(())
}

pub(super) async fn a_forgotten_key_runs_again_for_everybody(stage: Stage) -> Scene {
    let (here, keys) = (stage.worker(), six());
    for key in &keys {
        here.run(key, policy(), 1).await?;
        here.forget(key, Forget::by("ann")).await?;
    }
    answered(&here, &stage.worker(), keys.each_ref(), ["ran"; 3]).await;
    Ok(())
}

pub(super) async fn a_parked_key_is_parked_for_everybody(stage: Stage) -> Scene {
    let (here, key) = (stage.worker(), key("a"));
    stage.crash(&key).await;
    let parked = here.run(&key, policy().on_crash(OnCrash::Park), 1).await;
    assert_eq!(word(&parked), "parked");
    answered(&here, &stage.worker(), [&key; 6], ["parked"; 3]).await;
    Ok(())
}

pub(super) async fn an_overdue_key_is_taken_over_by_everybody(stage: Stage) -> Scene {
    let (here, keys) = (stage.worker(), six());
    for key in &keys {
        stage.crash(key).await;
    }
    answered(&here, &stage.worker(), keys.each_ref(), ["ran"; 3]).await;
    Ok(())
}

pub(super) async fn a_running_key_is_in_progress_or_raised(stage: Stage) -> Scene {
    let (here, elsewhere, key) = (stage.worker(), stage.worker(), key("a"));
    let first = here.hold(&key).await;
    for worker in [&here, &elsewhere] {
        for (on_duplicate, expected) in
            [(OnDuplicate::Return, "in_progress"), (OnDuplicate::Raise, "duplicate_execution")]
        {
            let outcome = worker.run(&key, policy().on_duplicate(on_duplicate), 9).await;
            assert_eq!(word(&outcome), expected, "{outcome:?}");
        }
    }
    let waits = policy().on_duplicate(OnDuplicate::Wait);
    let waiting = [here.start(&key, waits.clone(), 9), elsewhere.start(&key, waits, 9)];
    stage.idle().await;
    first.ends(Ok(1)).await?;
    for waiting in waiting {
        let ran = stage.play(waiting).await??;
        assert_eq!((ran.value, ran.replayed, ran.waited), (1, true, true));
    }
    Ok(())
}

pub(super) async fn in_progress_says_who_runs_it_and_for_how_long(stage: Stage) -> Scene {
    let (paused, key) = (stage.sleeper(), key("a"));
    let first = paused.hold(&key).await;
    stage.pass(20 * SECOND).await;
    match refusal(stage.worker().run(&key, policy(), 9).await) {
        onlyonce::Error::InProgress { holder, retry_after, .. } => {
            assert_eq!((holder, retry_after), (first.lease.holder(), 40 * SECOND));
        }
        other => return Err(other.into()),
    }
    match refusal(paused.run(&key, policy(), 9).await) {
        onlyonce::Error::InProgress { holder, .. } => assert_eq!(holder, first.lease.holder()),
        other => return Err(other.into()),
    }
    Ok(())
}

pub(super) async fn a_wait_ends_at_once_when_the_first_completes(stage: Stage) -> Scene {
    let (here, elsewhere, key) = (stage.worker(), stage.worker(), key("a"));
    let first = here.hold(&key).await;
    let waits = policy().on_duplicate(OnDuplicate::Wait);
    let follower = here.start(&key, waits.clone(), 9);
    let stranger = elsewhere.start(&key, waits, 9);
    stage.idle().await;
    stage.at_once(first.told(Ok(1))).await?;
    assert_eq!(stage.at_once(follower).await??.value, 1);
    let ran = match stage.store().facts().notifies {
        true => stage.at_once(stranger).await??,
        false => stage.play(stranger).await??,
    };
    assert_eq!((ran.value, ran.replayed, ran.waited), (1, true, true));
    Ok(())
}

pub(super) async fn a_wait_takes_over_when_the_lease_runs_out(stage: Stage) -> Scene {
    let (dead, waiter, key) = (stage.sleeper(), stage.worker(), key("a"));
    let first = dead.hold(&key).await;
    dead.dies();
    let waits = policy().on_duplicate(OnDuplicate::Wait).wait(10 * LEASE);
    let waiting = waiter.start(&key, waits, 2);
    stage.pass(LEASE - SECOND).await;
    assert!(!waiting.is_finished(), "the lease has not run out yet");
    let ran = stage.play(waiting).await??;
    assert_eq!((ran.value, ran.replayed, ran.attempt), (2, false, 2));
    first.dropped().await;
    Ok(())
}

pub(super) async fn a_wait_parks_when_the_lease_runs_out_and_the_policy_says_so(stage: Stage) -> Scene {
    let (dead, waiter, key) = (stage.sleeper(), stage.worker(), key("a"));
    let first = dead.hold(&key).await;
    dead.dies();
    let waits = policy().on_duplicate(OnDuplicate::Wait).on_crash(OnCrash::Park).wait(10 * LEASE);
    let waiting = waiter.start(&key, waits, 2);
    assert_eq!(word(&stage.play(waiting).await?), "parked");
    first.dropped().await;
    Ok(())
}

pub(super) async fn a_wait_runs_itself_when_the_first_failed(stage: Stage) -> Scene {
    let (here, elsewhere) = (stage.worker(), stage.worker());
    let waits = policy().on_duplicate(OnDuplicate::Wait);
    for (waiter, id) in [(&here, "follower"), (&elsewhere, "stranger")] {
        let first = here.hold(&key(id)).await;
        let waiting = waiter.start(&key(id), waits.clone(), 2);
        stage.idle().await;
        let failed = first.ends(Err(Trouble::new("timeout"))).await;
        assert_eq!(word(&failed), "failed");
        let ran = stage.play(waiting).await??;
        assert_eq!((ran.value, ran.replayed, ran.attempt), (2, false, 2), "{id}");
    }
    Ok(())
}

pub(super) async fn a_wait_is_given_a_failure_that_is_the_outcome(stage: Stage) -> Scene {
    let (here, elsewhere, key) = (stage.worker(), stage.worker(), key("a"));
    let first = here.hold_under(&key, policy().on_failure(OnFailure::Lock)).await;
    let waits = policy().on_duplicate(OnDuplicate::Wait);
    let waiting = [here.start(&key, waits.clone(), 9), elsewhere.start(&key, waits, 9)];
    stage.idle().await;
    assert_eq!(word(&first.ends(Err(Trouble::new("no funds"))).await), "failed");
    for waiting in waiting {
        let error = refusal(stage.play(waiting).await?);
        assert_eq!(error.code(), "failed_before");
        assert!(error.to_string().contains("no funds"), "{error}");
    }
    Ok(())
}

pub(super) async fn a_wait_gives_up_after_its_time_and_not_before(stage: Stage) -> Scene {
    let (here, elsewhere, key) = (stage.worker(), stage.worker(), key("a"));
    let first = here.hold(&key).await;
    let waits = policy().on_duplicate(OnDuplicate::Wait).wait(5 * SECOND);
    let waiting = [here.start(&key, waits.clone(), 9), elsewhere.start(&key, waits, 9)];
    stage.pass(5 * SECOND - Duration::from_millis(1)).await;
    assert!(waiting.iter().all(|waiting| !waiting.is_finished()), "there is still time");
    stage.pass(Duration::from_millis(1)).await;
    for waiting in waiting {
        assert_eq!(word(&stage.at_once(waiting).await?), "in_progress");
    }
    assert_eq!(word(&first.ends(Ok(1)).await), "ran");
    Ok(())
}

pub(super) async fn a_wait_runs_when_the_key_is_forgotten(stage: Stage) -> Scene {
    let (dead, waiter, key) = (stage.sleeper(), stage.worker(), key("a"));
    let first = dead.hold(&key).await;
    dead.dies();
    let waiting = waiter.start(&key, policy().on_duplicate(OnDuplicate::Wait), 2);
    stage.idle().await;
    stage.worker().forget(&key, Forget::by("ann").even_running()).await?;
    assert_eq!(word(&stage.play(waiting).await?), "ran");
    first.dropped().await;
    Ok(())
}

pub(super) async fn a_wait_looks_again_when_the_outcome_has_expired_meanwhile(stage: Stage) -> Scene {
    let (paused, key) = (stage.worker(), key("a"));
    let waiter = stage.sleeper();
    let first = paused.hold_under(&key, policy().keep(SECOND)).await;
    let waiting = waiter.start(&key, policy().on_duplicate(OnDuplicate::Wait), 2);
    stage.idle().await;
    waiter.wire.fail(Ask::Read, Fault::HeldRequest, 1);
    first.ends(Ok(1)).await?;
    waiter.clock.advance(SECOND);
    waiter.wire.until_held(1).await;
    stage.pass(2 * SECOND).await;
    waiter.wire.let_go();
    let ran = waiting.await??;
    assert_eq!((ran.value, ran.replayed, ran.attempt), (2, false, 1));
    Ok(())
}

pub(super) async fn a_wait_outlasts_a_store_that_is_down_for_a_while(stage: Stage) -> Scene {
    let (here, waiter, key) = (stage.worker(), stage.worker(), key("a"));
    let first = here.hold(&key).await;
    let waiting = waiter.start(&key, policy().on_duplicate(OnDuplicate::Wait), 9);
    stage.idle().await;
    waiter.wire.fail(Ask::Read, Fault::Unavailable, 5);
    waiter.wire.fail(Ask::Read, Fault::LostReply, 2);
    first.ends(Ok(1)).await?;
    assert_eq!(stage.play(waiting).await??.value, 1);
    Ok(())
}

pub(super) async fn each_caller_of_one_flight_is_answered_by_its_own_policy(stage: Stage) -> Scene {
    let (here, elsewhere, key) = (stage.worker(), stage.worker(), key("a"));
    let first = elsewhere.hold(&key).await;
    let waits = policy().on_duplicate(OnDuplicate::Wait);
    let waiting = here.start(&key, waits, 9);
    stage.idle().await;
    here.wire.take_asked();
    assert_eq!(word(&here.run(&key, policy(), 9).await), "in_progress");
    let raised = here.run(&key, policy().on_duplicate(OnDuplicate::Raise), 9).await;
    assert_eq!(word(&raised), "duplicate_execution");
    assert_eq!(here.wire.count(Ask::Create), 0, "they share what the waiting call has seen");
    first.ends(Ok(1)).await?;
    assert_eq!(word(&stage.play(waiting).await?), "replayed");
    Ok(())
}

//! Bodies that fail, and bodies that panic.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use onlyonce::engine::rules::State;
use onlyonce::{OnFailure, Policy};

use super::*;

fn locks() -> Policy {
    policy().on_failure(OnFailure::Lock)
}

pub(super) async fn a_failure_is_given_back_and_the_next_call_runs(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    let failed = worker.fail(&key, policy(), "timeout").await;
    assert_eq!(failed.err().and_then(|error| error.body()), Some(Trouble::new("timeout")));
    let view = worker.view(&key).await?;
    assert_eq!(view.state, State::Released);
    let failure = view.record.failure.ok_or("the failure stays visible")?;
    assert_eq!((failure.message.as_str(), failure.panicked), ("timeout", false));
    let ran = stage.worker().run(&key, policy(), 2).await?;
    assert_eq!((ran.value, ran.replayed, ran.attempt), (2, false, 2));
    assert_eq!(worker.run(&key, policy(), 3).await?.value, 2);
    Ok(())
}

pub(super) async fn a_kept_failure_is_the_outcome_everywhere(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    assert_eq!(word(&worker.fail(&key, locks(), "no funds").await), "failed");
    for worker in [worker, stage.worker()] {
        let error = refusal(worker.run(&key, policy(), 2).await);
        assert_eq!((error.code(), error.exit_code(), error.is_retryable()), ("failed_before", 1, false));
        assert!(error.to_string().contains("no funds"), "{error}");
    }
    Ok(())
}

pub(super) async fn a_kept_error_comes_back_as_it_was(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    let call = async |worker: &Worker, body: Result<u64, Trouble>| {
        worker.once(key.clone()).policy(locks()).run_keeping_errors(async |_| body).await
    };
    assert_eq!(word(&call(&worker, Err(Trouble::new("no funds"))).await), "failed");
    for worker in [&worker, &stage.worker()] {
        let again = call(worker, Ok(1)).await.err().and_then(|error| error.body());
        assert_eq!(again, Some(Trouble::new("no funds")));
    }
    // A caller that does not ask for the error itself, and one whose error is of another type.
    assert_eq!(word(&worker.run(&key, policy(), 1).await), "failed_before");
    let other = worker.once::<u64>(key.clone()).run_keeping_errors(async |_| Ok(1_u64)).await;
    assert_eq!(word(&other), "failed_before");
    Ok(())
}

pub(super) async fn each_error_decides_for_itself_and_for_how_long(stage: Stage) -> Scene {
    let worker = stage.worker();
    let brief = Duration::from_secs(10);
    let call = async |id: &str, why: &str| {
        worker
            .once(key(id))
            .policy(locks())
            .on_error(move |error: &Trouble| match error.0.as_str() {
                "timeout" => OnFailure::Unlock.into(),
                "rate limit" => OnFailure::Lock.keep(brief),
                _ => OnFailure::Lock.keep(2 * KEEP),
            })
            .run(async |_| Err::<u64, _>(Trouble::new(why)))
            .await
    };
    for why in ["timeout", "rate limit", "no funds"] {
        assert_eq!(word(&call(why, why).await), "failed");
    }
    let next = async |id: &str| word(&worker.run(&key(id), policy(), 1).await).to_owned();
    assert_eq!(next("timeout").await, "ran");
    assert_eq!(next("rate limit").await, "failed_before");
    stage.pass(brief).await;
    assert_eq!(next("rate limit").await, "ran");
    stage.pass(KEEP).await;
    assert_eq!(next("no funds").await, "failed_before");
    stage.pass(KEEP).await;
    assert_eq!(next("no funds").await, "ran");
    Ok(())
}

pub(super) async fn failures_are_kept_for_a_time_of_their_own(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    let brief = Duration::from_secs(10);
    let _ = worker.fail(&key, locks().keep_failures(brief), "no funds").await;
    stage.pass(brief - Duration::from_millis(1)).await;
    assert_eq!(word(&worker.run(&key, policy(), 1).await), "failed_before");
    stage.pass(Duration::from_millis(1)).await;
    let ran = worker.run(&key, policy(), 1).await?;
    assert_eq!((ran.replayed, ran.attempt), (false, 1));
    Ok(())
}

/// Calls with a body that panics like this; gives the panic.
async fn panics(worker: &Worker, id: &str, policy: Policy, how: fn()) -> Box<dyn std::any::Any + Send> {
    let body = async |_| {
        how();
        Ok::<u64, Trouble>(1)
    };
    let call = worker.once(key(id)).policy(policy).run(body);
    match AssertUnwindSafe(call).catch_unwind().await {
        Err(panic) => panic,
        Ok(outcome) => Box::new(format!("no panic, but {outcome:?}")),
    }
}

#[expect(clippy::panic, reason = "these are bodies that panic")]
pub(super) async fn a_panic_is_recorded_and_goes_on(stage: Stage) -> Scene {
    let worker = stage.worker();
    let panic = panics(&worker, "str", policy(), || panic!("lost my head")).await;
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"lost my head"));
    let view = worker.view(&key("str")).await?;
    let failure = view.record.failure.ok_or("the failure stays visible")?;
    assert_eq!((view.state, failure.panicked), (State::Released, true));
    assert_eq!(failure.message, "the body panicked: lost my head");
    assert_eq!(word(&worker.run(&key("str"), policy(), 1).await), "ran");

    let panic = panics(&worker, "string", policy(), || panic!("head {}", std::hint::black_box(7))).await;
    assert_eq!(panic.downcast_ref::<String>().map(String::as_str), Some("head 7"));
    let panic = panics(&worker, "any", policy(), || std::panic::panic_any(7_u8)).await;
    assert_eq!(panic.downcast_ref::<u8>(), Some(&7));
    assert_eq!(worker.live_leases(), 0);
    Ok(())
}

#[expect(clippy::panic, reason = "these are bodies that panic")]
pub(super) async fn a_panic_can_be_the_outcome(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    panics(&worker, "a", locks(), || panic!("lost my head")).await;
    assert_eq!(worker.state(&key).await?, Some(State::Failed));
    for worker in [worker, stage.worker()] {
        let error = refusal(worker.run(&key, policy(), 1).await);
        assert!(error.to_string().contains("the body panicked: lost my head"), "{error}");
        let kept = worker.once::<Trouble>(key.clone()).run_keeping_errors(async |_| Ok(1_u64)).await;
        assert_eq!(word(&kept), "failed_before", "a panic is no error of the body's type");
    }
    Ok(())
}

pub(super) async fn a_failure_too_large_to_store_frees_the_key_all_the_same(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    let long = "no ".repeat(stage.store().facts().max_body / 2);
    for keeps in [policy(), locks()] {
        let call = worker.once(key.clone()).policy(keeps);
        let failed = call.run_keeping_errors(async |_| Err::<u64, _>(Trouble::new(&long))).await;
        assert_eq!(failed.err().and_then(|error| error.body()).map(|error| error.0.len()), Some(long.len()));
        let view = worker.view(&key).await?;
        assert!(
            matches!(view.state, State::Released | State::Failed),
            "it ended, and says so: {:?}",
            view.state
        );
        let message = view.record.failure.ok_or("the failure stays visible")?.message;
        assert!(message.starts_with("no no no") && message.len() < 10_000, "{} bytes", message.len());
    }
    Ok(())
}

pub(super) async fn a_failure_that_cannot_be_recorded_is_still_given_back(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    worker.wire.fail(Ask::Replace, Fault::Unavailable, u32::MAX);
    let call = worker.fail(&key, policy(), "timeout");
    let failed = stage.play(call).await;
    assert_eq!(failed.err().and_then(|error| error.body()), Some(Trouble::new("timeout")));
    stage.pass(LEASE).await;
    let ran = stage.worker().run(&key, policy(), 2).await?;
    assert_eq!((ran.value, ran.attempt), (2, 2), "the lease ran out by itself");
    Ok(())
}

//! One key stands for one input.

use onlyonce::engine::rules::State;
use onlyonce::{Forget, Key, OnCrash, OnDuplicate, OnFailure, Policy};

use super::*;

/// A call with this input; its value is the input.
async fn with(worker: &Worker, key: &Key, policy: Policy, input: &str) -> Outcome<String> {
    let call = worker.once(key.clone()).policy(policy).input(input);
    call.run(async |_| Ok(input.to_owned())).await
}

async fn fails_with(worker: &Worker, key: &Key, policy: Policy, input: &str) -> Outcome<String> {
    let call = worker.once(key.clone()).policy(policy).input(input);
    call.run(async |_| Err(Trouble::new("timeout"))).await
}

pub(super) async fn another_input_is_refused_and_the_same_replays(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    with(&worker, &key, policy(), "one").await?;
    for worker in [&worker, &stage.worker()] {
        assert_eq!(with(worker, &key, policy(), "one").await?.value, "one");
        for on_duplicate in [OnDuplicate::Return, OnDuplicate::Raise, OnDuplicate::Wait] {
            let other = with(worker, &key, policy().on_duplicate(on_duplicate), "two").await;
            let error = refusal(other);
            assert_eq!((error.code(), error.exit_code(), error.is_retryable()), ("input_changed", 65, false));
        }
        let untold = worker.once::<Trouble>(key.clone()).run(async |_| Ok(String::new())).await;
        assert_eq!(word(&untold), "replayed", "a call that tells no input contradicts none");
    }
    Ok(())
}

pub(super) async fn another_input_is_refused_while_it_runs(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    let (runner, its_key) = (worker.clone(), key.clone());
    let (started, running) = tokio::sync::oneshot::channel();
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let first = tokio::spawn(async move {
        let body = async |_| {
            let _ = started.send(());
            let _ = ended.await;
            Ok::<_, Trouble>("one".to_owned())
        };
        runner.once(its_key).policy(policy()).input("one").run(body).await
    });
    running.await?;
    for worker in [&worker, &stage.worker()] {
        for on_duplicate in [OnDuplicate::Return, OnDuplicate::Wait] {
            let asks = policy().on_duplicate(on_duplicate);
            assert_eq!(word(&with(worker, &key, asks, "two").await), "input_changed");
        }
        assert_eq!(word(&with(worker, &key, policy(), "one").await), "in_progress");
    }
    let _ = end.send(());
    assert_eq!(word(&first.await?), "ran");
    Ok(())
}

pub(super) async fn another_input_is_refused_in_every_state_that_means_something(stage: Stage) -> Scene {
    let worker = stage.worker();
    let locked = policy().on_failure(OnFailure::Lock);
    let _ = fails_with(&worker, &key("failed"), locked, "one").await;
    for id in ["overdue", "parked", "resolved"] {
        let dead = stage.sleeper();
        let call = dead.once::<Trouble>(key(id)).policy(policy()).input("one").claim::<String>().await?;
        dead.dies();
        drop(call);
    }
    stage.pass(LEASE).await;
    for id in ["parked", "resolved"] {
        let parks = policy().on_crash(OnCrash::Park);
        assert_eq!(word(&with(&worker, &key(id), parks, "one").await), "parked");
    }
    let value = onlyonce::Verdict::happened_with("one")?;
    assert_eq!(worker.resolve(&key("resolved"), value, "ann").await?, State::Completed);
    for (id, same) in
        [("failed", "failed_before"), ("parked", "parked"), ("resolved", "replayed"), ("overdue", "ran")]
    {
        assert_eq!(word(&with(&worker, &key(id), policy(), "two").await), "input_changed", "{id}");
        assert_eq!(word(&with(&worker, &key(id), policy(), "one").await), same, "{id}");
    }
    Ok(())
}

pub(super) async fn a_freed_key_takes_a_corrected_input(stage: Stage) -> Scene {
    let worker = stage.worker();
    let _ = fails_with(&worker, &key("released"), policy(), "wrong").await;
    with(&worker, &key("forgotten"), policy(), "wrong").await?;
    worker.forget(&key("forgotten"), Forget::by("ann")).await?;
    with(&worker, &key("expired"), policy(), "wrong").await?;
    stage.pass(KEEP).await;
    let _ = fails_with(&worker, &key("released"), policy(), "wrong").await;
    for id in ["released", "forgotten", "expired"] {
        assert_eq!(with(&worker, &key(id), policy(), "right").await?.value, "right", "{id}");
        assert_eq!(word(&with(&worker, &key(id), policy(), "wrong").await), "input_changed", "{id}");
    }
    Ok(())
}

pub(super) async fn a_freed_key_with_effects_takes_no_other_input(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    let call = worker.once(key.clone()).policy(policy()).input("one");
    let body = async |lease: onlyonce::Lease| {
        lease.effect("charge").run(async |_| Ok::<_, Trouble>(1_u64)).await?;
        Err::<String, _>(Trouble::new("timeout"))
    };
    assert_eq!(word(&call.run(body).await), "failed");
    assert_eq!(worker.state(&key).await?, Some(State::Released));
    assert_eq!(word(&with(&worker, &key, policy(), "two").await), "input_changed");
    assert_eq!(word(&with(&worker, &key, policy(), "one").await), "ran");
    Ok(())
}

pub(super) async fn a_takeover_that_tells_no_input_keeps_the_one_that_was_told(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    let dead = stage.sleeper();
    let call = dead.once::<Trouble>(key.clone()).policy(policy()).input("one").claim::<String>().await?;
    dead.dies();
    stage.pass(LEASE).await;
    let body = async |_| Ok::<_, Trouble>("taken over".to_owned());
    assert_eq!(word(&worker.once(key.clone()).policy(policy()).run(body).await), "ran");
    assert_eq!(word(&with(&worker, &key, policy(), "two").await), "input_changed");
    assert_eq!(with(&worker, &key, policy(), "one").await?.value, "taken over");
    drop(call);
    Ok(())
}

pub(super) async fn an_input_without_a_fingerprint_runs_nothing(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    let call = worker.once::<Trouble>(key.clone()).input(&f64::NAN);
    let error = refusal(call.run(async |_| Ok(1_u64)).await);
    assert_eq!((error.code(), error.exit_code()), ("bad_input", 65));
    assert_eq!(worker.look(&key).await?.map(|view| view.state), None);
    assert_eq!(worker.wire.count(Ask::Create), 0);
    Ok(())
}

pub(super) async fn equal_inputs_are_equal_however_they_are_written(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    let call = async |input: &serde_json::Value| {
        worker.once::<Trouble>(key.clone()).input(input).run(async |_| Ok(1_u64)).await
    };
    assert_eq!(word(&call(&serde_json::json!({"a": 1, "b": [1.0, null]})).await), "ran");
    assert_eq!(word(&call(&serde_json::json!({"b": [1, null], "a": 1})).await), "replayed");
    assert_eq!(word(&call(&serde_json::json!({"b": [null, 1], "a": 1})).await), "input_changed");
    Ok(())
}

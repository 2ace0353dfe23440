//! Changes in the outside world, recorded before and after.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use onlyonce::engine::EffectState;
use onlyonce::engine::rules::State;
use onlyonce::{Key, Lease, OnCrash, Policy, RunError, Verdict};

use super::*;

/// An effect that counts its runs and gives how many that were.
async fn charge(lease: &Lease, runs: &Tally) -> Result<u64, RunError<Trouble>> {
    lease.effect("charge").run(async |_| Ok(runs.add())).await
}

/// A body that charges and then ends like this.
async fn charges(
    worker: &Worker,
    key: &Key,
    policy: Policy,
    runs: &Tally,
    end: Result<(), Trouble>,
) -> Outcome {
    let body = async |lease: Lease| {
        let charged = charge(&lease, runs).await?;
        end.map(|()| charged)
    };
    worker.once(key.clone()).policy(policy).run(body).await
}

/// A worker dies in the middle of its effect.
async fn dies_in_effect(stage: &Stage, key: &Key) -> Scene {
    let (victim, its_key) = (stage.sleeper(), key.clone());
    let (begun, running) = tokio::sync::oneshot::channel();
    let its_worker = victim.clone();
    let call = tokio::spawn(async move {
        let body = async |lease: Lease| {
            let effect = lease.effect("charge").run(async |effect_key| {
                let _ = begun.send(effect_key);
                std::future::pending::<Result<u64, Trouble>>().await
            });
            effect.await.map_err(Trouble::from)
        };
        its_worker.once(its_key).policy(policy()).run(body).await
    });
    running.await?;
    victim.dies();
    stage.pass(LEASE).await;
    call.abort();
    Ok(())
}

/// The key is free again, and only its effect is unsure.
async fn panics_in_effect(worker: &Worker, key: &Key) -> Scene {
    let panicking = worker.once::<Trouble>(key.clone()).policy(policy()).run(async |lease: Lease| {
        let effect =
            lease.effect("charge").run(async |_| -> Result<u64, Trouble> { std::panic::panic_any(()) });
        effect.await.map_err(Trouble::from)
    });
    assert!(AssertUnwindSafe(panicking).catch_unwind().await.is_err());
    assert_eq!(worker.state(key).await?, Some(State::Released));
    assert_eq!(state_of(worker, key).await?, charge_is(EffectState::Started));
    Ok(())
}

async fn state_of(worker: &Worker, key: &Key) -> Result<Vec<(String, EffectState)>, onlyonce::Error> {
    let effects = worker.view(key).await?.record.effects;
    Ok(effects.into_iter().map(|effect| (effect.name, effect.state)).collect())
}

fn charge_is(state: EffectState) -> Vec<(String, EffectState)> {
    vec![("charge".to_owned(), state)]
}

pub(super) async fn an_effect_is_recorded_before_and_after(stage: Stage) -> Scene {
    let (worker, key, looker) = (stage.worker(), key("a"), stage.worker());
    let during = worker.once(key.clone()).policy(policy()).run(async |lease: Lease| {
        let effect = lease.effect("charge").run(async |_| {
            assert_eq!(state_of(&looker, &key).await?, charge_is(EffectState::Started));
            Ok::<_, Trouble>(7_u64)
        });
        let value = effect.await?;
        assert_eq!(state_of(&looker, &key).await?, charge_is(EffectState::Done));
        Ok::<_, Trouble>(value)
    });
    assert_eq!(during.await?.value, 7);
    assert_eq!(state_of(&looker, &key).await?, charge_is(EffectState::Done));
    Ok(())
}

pub(super) async fn a_done_effect_is_not_run_again(stage: Stage) -> Scene {
    let (worker, runs) = (stage.worker(), Tally::default());
    let failed = charges(&worker, &key("failed"), policy(), &runs, Err(Trouble::new("timeout"))).await;
    assert_eq!(word(&failed), "failed");
    let again = charges(&stage.worker(), &key("failed"), policy(), &runs, Ok(())).await?;
    assert_eq!((again.value, again.replayed, again.attempt, runs.get()), (1, false, 2, 1));

    let (victim, its_key, its_runs) = (stage.sleeper(), key("crashed"), runs.clone());
    let its_worker = victim.clone();
    let (charged, done) = tokio::sync::oneshot::channel();
    let call = tokio::spawn(async move {
        let body = async |lease: Lease| {
            let _ = charged.send(charge(&lease, &its_runs).await);
            std::future::pending::<Result<u64, Trouble>>().await
        };
        its_worker.once(its_key).policy(policy()).run(body).await
    });
    assert_eq!(done.await??, 2);
    victim.dies();
    stage.pass(LEASE).await;
    call.abort();
    let again = charges(&worker, &key("crashed"), policy(), &runs, Ok(())).await?;
    assert_eq!((again.value, again.attempt, runs.get()), (2, 2, 2));
    Ok(())
}

pub(super) async fn one_effect_named_twice_in_a_body_runs_once(stage: Stage) -> Scene {
    let (worker, runs) = (stage.worker(), Tally::default());
    let body =
        async |lease: Lease| Ok::<_, Trouble>([charge(&lease, &runs).await?, charge(&lease, &runs).await?]);
    let ran = worker.once(key("a")).policy(policy()).run(body).await?;
    assert_eq!((ran.value, runs.get()), ([1, 1], 1));
    Ok(())
}

pub(super) async fn a_begun_effect_is_run_again_under_retry(stage: Stage) -> Scene {
    let (worker, key, runs) = (stage.worker(), key("a"), Tally::default());
    dies_in_effect(&stage, &key).await?;
    assert_eq!(state_of(&worker, &key).await?, charge_is(EffectState::Started));
    let ran = charges(&worker, &key, policy(), &runs, Ok(())).await?;
    assert_eq!((ran.value, ran.attempt), (1, 2));
    Ok(())
}

pub(super) async fn a_begun_effect_parks_its_key_under_park(stage: Stage) -> Scene {
    let (worker, key, runs) = (stage.worker(), key("a"), Tally::default());
    panics_in_effect(&worker, &key).await?;
    let parks = policy().on_crash(OnCrash::Park);
    let outcome = charges(&worker, &key, parks, &runs, Ok(())).await;
    assert!(matches!(&outcome, Err(RunError::Body(Trouble(text))) if text.contains("parked")), "{outcome:?}");
    assert_eq!((runs.get(), worker.state(&key).await?), (0, Some(State::Parked)));
    let reason = worker.view(&key).await?.record.parked.unwrap_or_default();
    assert!(reason.contains("\"charge\"") && reason.contains("began"), "{reason}");
    assert_eq!(word(&worker.run(&key, policy(), 1).await), "parked");
    Ok(())
}

/// An effect that was begun, and a worker that asks this oracle about it.
async fn asks(stage: &Stage, key: &Key, verdict: Verdict) -> Scene<(Outcome, Tally)> {
    let (worker, runs) = (stage.worker(), Tally::default());
    panics_in_effect(&worker, key).await?;
    let oracle = Oracle::says(verdict);
    let outcome = charges(&worker, key, oracle.policy(), &runs, Ok(())).await;
    let asked = oracle.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].effect.as_deref(), Some("charge"));
    assert_eq!((&asked[0].key, asked[0].attempt), (key, 1));
    assert!(asked[0].effect_key.as_ref().is_some_and(|key| key.starts_with("once_")));
    Ok((outcome, runs))
}

pub(super) async fn a_begun_effect_is_asked_about_under_probe(stage: Stage) -> Scene {
    let (outcome, runs) = asks(&stage, &key("value"), happened(5)).await?;
    assert_eq!((outcome?.value, runs.get()), (5, 0));

    let (outcome, runs) = asks(&stage, &key("no value"), Verdict::Happened(None)).await?;
    assert!(matches!(&outcome, Err(RunError::Body(Trouble(text))) if text.contains("result_not_stored")));
    assert_eq!(runs.get(), 0);
    assert_eq!(state_of(&stage.worker(), &key("no value")).await?, charge_is(EffectState::Done));

    let (outcome, runs) = asks(&stage, &key("did not"), Verdict::DidNot).await?;
    assert_eq!((outcome?.value, runs.get()), (1, 1));

    let (outcome, runs) = asks(&stage, &key("cannot tell"), Verdict::CannotTell).await?;
    assert!(matches!(&outcome, Err(RunError::Body(Trouble(text))) if text.contains("parked")));
    assert_eq!(runs.get(), 0);
    assert_eq!(stage.worker().state(&key("cannot tell")).await?, Some(State::Parked));
    Ok(())
}

pub(super) async fn a_slow_probe_of_an_effect_keeps_its_lease(stage: Stage) -> Scene {
    let (worker, key, runs) = (stage.worker(), key("a"), Tally::default());
    panics_in_effect(&worker, &key).await?;
    let oracle = Oracle::says_after(happened(5), stage.clock(), 5 * LEASE);
    let outcome = stage.play(charges(&worker, &key, oracle.policy(), &runs, Ok(()))).await;
    assert_eq!((outcome?.value, runs.get()), (5, 0));
    Ok(())
}

pub(super) async fn a_failed_effect_did_not_happen_and_runs_again(stage: Stage) -> Scene {
    let (worker, key, runs) = (stage.worker(), key("a"), Tally::default());
    let body = async |lease: Lease| {
        let effect = lease.effect("charge").run(async |_| Err::<u64, _>(Trouble::new("refused")));
        effect.await.map_err(Trouble::from)
    };
    let outcome = worker.once(key.clone()).policy(policy()).run(body).await;
    assert_eq!(outcome.err().and_then(|error| error.body()), Some(Trouble::new("refused")));
    assert_eq!(state_of(&worker, &key).await?, charge_is(EffectState::Failed));
    let parks = policy().on_crash(OnCrash::Park);
    assert_eq!(charges(&worker, &key, parks, &runs, Ok(())).await?.value, 1);
    Ok(())
}

/// The keys a body would hand to the outside.
async fn keys_of(worker: &Worker, key: &Key, end: Result<(), Trouble>) -> (Vec<String>, Outcome<()>) {
    let mut keys = Vec::new();
    let body = async |lease: Lease| {
        for name in ["charge", "mail", ""] {
            let effect = lease.effect(name);
            let told = effect.key().await;
            assert_eq!(told, lease.effect_key(name));
            let handed = effect.run(async |key| Ok::<_, Trouble>(key)).await?;
            assert_eq!(handed, told);
            keys.push(told);
        }
        end
    };
    let outcome = worker.once(key.clone()).policy(policy()).run(body).await;
    (keys, outcome)
}

pub(super) async fn effect_keys_are_stable_and_belong_to_key_and_name(stage: Stage) -> Scene {
    let worker = stage.worker();
    let (first, failed) = keys_of(&worker, &key("a"), Err(Trouble::new("timeout"))).await;
    assert_eq!(word(&failed), "failed");
    let (again, _) = keys_of(&stage.worker(), &key("a"), Ok(())).await;
    assert_eq!(first, again, "stable across retries and workers");
    let (other, _) = keys_of(&worker, &key("b"), Ok(())).await;
    let (shifted, _) = keys_of(&worker, &key("ach"), Ok(())).await;
    let mut all: Vec<_> = [first, other, shifted].concat();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 9, "no two names or keys share one: {all:?}");
    assert!(all.iter().all(|key| key.len() == 45 && key.is_ascii()), "{all:?}");
    Ok(())
}

pub(super) async fn effects_may_run_side_by_side(stage: Stage) -> Scene {
    let (worker, key, runs) = (stage.worker(), key("a"), Tally::default());
    let names: Vec<String> = (0..10).map(|n| format!("part {n}")).collect();
    let body = async |lease: Lease| {
        let effects = names.iter().map(|name| {
            let (lease, runs) = (lease.clone(), runs.clone());
            async move {
                let effect = lease.effect(name).run(async |_| {
                    tokio::task::yield_now().await;
                    runs.add();
                    Ok::<_, Trouble>(name.clone())
                });
                effect.await.map_err(Trouble::from)
            }
        });
        let values = join_all(effects).await.into_iter().collect::<Result<Vec<_>, _>>()?;
        if lease.attempt() == 1 { Err(Trouble::new("timeout")) } else { Ok(values) }
    };
    assert_eq!(word(&worker.once(key.clone()).policy(policy()).run(&body).await), "failed");
    let done = state_of(&worker, &key).await?;
    assert_eq!((done.len(), runs.get()), (10, 10));
    assert!(done.iter().all(|(_, state)| *state == EffectState::Done), "{done:?}");
    let again = worker.once(key.clone()).policy(policy()).run(&body).await?;
    assert_eq!((again.value, runs.get()), (names.clone(), 10));
    Ok(())
}

pub(super) async fn an_effect_extends_its_lease(stage: Stage) -> Scene {
    let (worker, key, runs) = (stage.worker(), key("a"), Tally::default());
    worker.wire.fail(Ask::Touch, Fault::Unavailable, u32::MAX);
    let body = async |lease: Lease| {
        for n in 0..10 {
            lease.effect(&format!("step {n}")).run(async |_| Ok::<_, Trouble>(runs.add())).await?;
            stage.pass(LEASE / 2).await;
        }
        Ok::<_, Trouble>(runs.get())
    };
    assert_eq!(worker.once(key).policy(policy()).run(body).await?.value, 10);
    Ok(())
}

pub(super) async fn an_effect_of_another_type_is_refused_and_stays(stage: Stage) -> Scene {
    let (worker, key, runs) = (stage.worker(), key("a"), Tally::default());
    let _ = charges(&worker, &key, policy(), &runs, Err(Trouble::new("timeout"))).await;
    let body = async |lease: Lease| {
        let effect = lease.effect("charge").run(async |_| Ok::<_, Trouble>(vec![runs.add()]));
        effect.await.map_err(Trouble::from)
    };
    let outcome = worker.once(key.clone()).policy(policy()).run(body).await;
    assert!(matches!(&outcome, Err(RunError::Body(Trouble(text))) if text.contains("result_mismatch")));
    assert_eq!(charges(&worker, &key, policy(), &runs, Ok(())).await?.value, 1);
    Ok(())
}

pub(super) async fn an_effect_whose_value_cannot_be_kept_is_done_all_the_same(stage: Stage) -> Scene {
    let worker = stage.worker_with(stage.clock().clone(), |builder| builder.max_result(100));
    let (key, runs) = (key("a"), Tally::default());
    let body = async |lease: Lease| {
        let effect = lease.effect("upload").run(async |_| {
            runs.add();
            Ok::<_, Trouble>("x".repeat(200))
        });
        let value = effect.await?;
        assert_eq!(value.len(), 200);
        Err::<u64, _>(Trouble::new("timeout"))
    };
    assert_eq!(word(&worker.once(key.clone()).policy(policy()).run(&body).await), "failed");
    assert_eq!(state_of(&worker, &key).await?, [("upload".to_owned(), EffectState::Done)]);
    let again = worker.once(key.clone()).policy(policy()).run(&body).await;
    assert!(
        matches!(&again, Err(RunError::Body(Trouble(text))) if text.contains("result_not_stored")),
        "{again:?}"
    );
    assert_eq!(runs.get(), 1, "it happened, and must not happen twice");
    Ok(())
}

pub(super) async fn a_forgotten_or_expired_key_has_no_effects(stage: Stage) -> Scene {
    let (worker, runs) = (stage.worker(), Tally::default());
    for id in ["forgotten", "expired"] {
        let brief = policy().keep(Duration::from_secs(2)).keep_failures(Duration::from_secs(1));
        let _ = charges(&worker, &key(id), brief, &runs, Err(Trouble::new("timeout"))).await;
    }
    stage.pass(Duration::from_secs(1)).await;
    let kept = worker.look(&key("expired")).await?.is_some_and(|view| !view.record.effects.is_empty());
    assert!(kept, "effects are kept as long as an outcome, however short failures are");
    worker.forget(&key("forgotten"), onlyonce::Forget::by("ann")).await?;
    stage.pass(Duration::from_secs(1)).await;
    assert_eq!(charges(&worker, &key("forgotten"), policy(), &runs, Ok(())).await?.value, 3);
    assert_eq!(charges(&worker, &key("expired"), policy(), &runs, Ok(())).await?.value, 4);
    Ok(())
}

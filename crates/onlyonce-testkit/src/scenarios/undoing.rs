//! Effects that are taken back when the body fails.

use std::sync::{Arc, Mutex, PoisonError};

use onlyonce::engine::EffectState;
use onlyonce::engine::rules::State;
use onlyonce::{Key, Lease, OnCrash};

use super::*;

/// What was done and taken back in the outside world, in order.
#[derive(Clone, Debug, Default)]
struct World(Arc<Mutex<Vec<String>>>);

impl World {
    fn note(&self, text: impl Into<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(text.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Does a step that can be taken back, unless this one's undo is said to fail.
async fn step(lease: &Lease, world: &World, name: &str, fails_to_undo: bool) -> Result<String, Trouble> {
    let (outside, inside) = (world.clone(), world.clone());
    let undo = move |value: String| async move {
        outside.note(format!("undo {value}"));
        if fails_to_undo { Err(Trouble::new("no way back")) } else { Ok(()) }
    };
    let effect = lease.effect(name).undo(undo);
    let done = effect.run(async |_| {
        inside.note(format!("do {name}"));
        Ok::<_, Trouble>(name.to_owned())
    });
    done.await.map_err(Trouble::from)
}

async fn three_steps(worker: &Worker, key: &Key, world: &World, end: Result<(), Trouble>) -> Outcome<()> {
    let body = async |lease: Lease| {
        for name in ["one", "two", "three"] {
            step(&lease, world, name, false).await?;
        }
        end
    };
    worker.once(key.clone()).policy(policy()).run(body).await
}

async fn states(worker: &Worker, key: &Key) -> Result<Vec<EffectState>, onlyonce::Error> {
    Ok(worker.view(key).await?.record.effects.into_iter().map(|effect| effect.state).collect())
}

pub(super) async fn a_failed_body_takes_its_effects_back_last_first(stage: Stage) -> Scene {
    let (worker, key, world) = (stage.worker(), key("a"), World::default());
    let failed = three_steps(&worker, &key, &world, Err(Trouble::new("no stock"))).await;
    assert_eq!(failed.err().and_then(|error| error.body()), Some(Trouble::new("no stock")));
    assert_eq!(world.take(), ["do one", "do two", "do three", "undo three", "undo two", "undo one"]);
    assert_eq!(states(&worker, &key).await?, [EffectState::Undone; 3]);
    assert_eq!(worker.state(&key).await?, Some(State::Released));
    Ok(())
}

pub(super) async fn a_body_that_succeeds_takes_nothing_back(stage: Stage) -> Scene {
    let (worker, key, world) = (stage.worker(), key("a"), World::default());
    three_steps(&worker, &key, &world, Ok(())).await?;
    assert_eq!(world.take(), ["do one", "do two", "do three"]);
    assert_eq!(states(&worker, &key).await?, [EffectState::Done; 3]);
    Ok(())
}

pub(super) async fn an_effect_taken_back_is_done_anew_under_a_new_key(stage: Stage) -> Scene {
    let (worker, key, world) = (stage.worker(), key("a"), World::default());
    let mut keys = Vec::new();
    for attempt in 1..=3 {
        let body = async |lease: Lease| {
            assert_eq!(lease.attempt(), attempt);
            keys.push(lease.effect("one").key().await);
            step(&lease, &world, "one", false).await?;
            if attempt < 3 { Err(Trouble::new("no stock")) } else { Ok(()) }
        };
        let outcome = worker.once(key.clone()).policy(policy()).run(body).await;
        assert_eq!(word(&outcome), if attempt < 3 { "failed" } else { "ran" });
    }
    assert_eq!(world.take(), ["do one", "undo one", "do one", "undo one", "do one"]);
    assert!(keys[0] != keys[1] && keys[1] != keys[2] && keys[0] != keys[2], "{keys:?}");
    Ok(())
}

pub(super) async fn each_undo_is_recorded_when_it_begins_and_when_it_ends(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    let looker = stage.worker();
    let its_key = key.clone();
    let seen: Arc<Mutex<Option<Vec<EffectState>>>> = Arc::default();
    let sees = seen.clone();
    let body = async |lease: Lease| {
        lease.effect("one").run(async |_| Ok::<_, Trouble>(1_u64)).await?;
        let undo = move |_: u64| async move {
            let found = states(&looker, &its_key).await?;
            *sees.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
            Ok::<_, Trouble>(())
        };
        lease.effect("two").undo(undo).run(async |_| Ok::<_, Trouble>(2_u64)).await?;
        Err::<u64, _>(Trouble::new("no stock"))
    };
    assert_eq!(word(&worker.once(key.clone()).policy(policy()).run(body).await), "failed");
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner).take();
    assert_eq!(seen, Some(vec![EffectState::Done, EffectState::Undoing]));
    assert_eq!(states(&worker, &key).await?, [EffectState::Done, EffectState::Undone]);
    Ok(())
}

pub(super) async fn an_undo_that_fails_parks_the_key(stage: Stage) -> Scene {
    let (worker, key, world) = (stage.worker(), key("a"), World::default());
    let body = async |lease: Lease| {
        step(&lease, &world, "one", false).await?;
        step(&lease, &world, "two", true).await?;
        step(&lease, &world, "three", false).await?;
        Err::<(), _>(Trouble::new("no stock"))
    };
    let outcome = worker.once(key.clone()).policy(policy()).run(body).await;
    assert_eq!(outcome.err().and_then(|error| error.body()), Some(Trouble::new("no stock")));
    assert_eq!(world.take(), ["do one", "do two", "do three", "undo three", "undo two"]);
    let view = worker.view(&key).await?;
    assert_eq!(view.state, State::Parked);
    let reason = view.record.parked.unwrap_or_default();
    assert!(reason.contains("\"two\"") && reason.contains("no way back"), "{reason}");
    let failure = view.record.failure.ok_or("the failure that began it stays visible")?;
    assert_eq!(failure.message, "no stock");
    assert_eq!(states(&worker, &key).await?, [EffectState::Done, EffectState::Done, EffectState::Undone]);
    assert_eq!(word(&worker.run(&key, policy(), 1).await), "parked");
    Ok(())
}

pub(super) async fn a_replayed_effect_can_still_be_taken_back(stage: Stage) -> Scene {
    let (worker, key, world) = (stage.worker(), key("a"), World::default());
    let call = worker.once::<Trouble>(key.clone()).policy(policy()).claim::<u64>().await?;
    let onlyonce::Claimed::Run(guard) = call else { return Err("nobody has it".into()) };
    step(&guard.lease(), &world, "one", false).await?;
    drop(guard);
    stage.idle().await;
    assert_eq!(world.take(), ["do one"]);
    let body = async |lease: Lease| {
        step(&lease, &world, "one", false).await?;
        Err::<(), _>(Trouble::new("no stock"))
    };
    let outcome = stage.worker().once(key.clone()).policy(policy()).run(body).await;
    assert_eq!(word(&outcome), "failed");
    assert_eq!(world.take(), ["undo one"]);
    assert_eq!(states(&worker, &key).await?, [EffectState::Undone]);
    Ok(())
}

pub(super) async fn a_panic_takes_the_effects_back_too(stage: Stage) -> Scene {
    use futures_util::FutureExt;
    let (worker, key, world) = (stage.worker(), key("a"), World::default());
    let body = async |lease: Lease| -> Result<(), Trouble> {
        step(&lease, &world, "one", false).await?;
        std::panic::panic_any("lost my head")
    };
    let call = worker.once(key.clone()).policy(policy()).run(body);
    assert!(std::panic::AssertUnwindSafe(call).catch_unwind().await.is_err());
    assert_eq!(world.take(), ["do one", "undo one"]);
    assert_eq!(worker.state(&key).await?, Some(State::Released));
    Ok(())
}

/// A worker dies between the undo of `two` and that of `one`.
async fn dies_while_undoing(stage: &Stage, key: &Key, world: &World) -> Scene {
    let (victim, its_key, its_world) = (stage.sleeper(), key.clone(), world.clone());
    let its_worker = victim.clone();
    let (begun, undoing) = tokio::sync::oneshot::channel();
    let call = tokio::spawn(async move {
        let body = async |lease: Lease| {
            let hangs = move |_: u64| async move {
                let _ = begun.send(());
                std::future::pending::<Result<(), Trouble>>().await
            };
            lease.effect("one").undo(hangs).run(async |_| Ok::<_, Trouble>(1_u64)).await?;
            step(&lease, &its_world, "two", false).await?;
            Err::<u64, _>(Trouble::new("no stock"))
        };
        its_worker.once(its_key).policy(policy()).run(body).await
    });
    undoing.await?;
    victim.dies();
    stage.pass(LEASE).await;
    call.abort();
    Ok(())
}

pub(super) async fn a_crash_between_undos_is_known_to_the_next(stage: Stage) -> Scene {
    let (worker, key, world) = (stage.worker(), key("a"), World::default());
    dies_while_undoing(&stage, &key, &world).await?;
    assert_eq!(world.take(), ["do two", "undo two"]);
    assert_eq!(states(&worker, &key).await?, [EffectState::Undoing, EffectState::Undone]);
    let oracle = Oracle::says(onlyonce::Verdict::CannotTell);
    assert_eq!(word(&worker.run(&key, oracle.policy(), 1).await), "parked");
    Ok(())
}

pub(super) async fn an_effect_whose_undo_was_begun_parks_under_park(stage: Stage) -> Scene {
    let (worker, key, world) = (stage.worker(), key("a"), World::default());
    dies_while_undoing(&stage, &key, &world).await?;
    world.take();
    // A first takeover that fails before the effect leaves it to the next one.
    assert_eq!(word(&worker.fail(&key, policy(), "early").await), "failed");
    let body = async |lease: Lease| step(&lease, &world, "one", false).await;
    let outcome = worker.once(key.clone()).policy(policy().on_crash(OnCrash::Park)).run(body).await;
    assert_eq!(word(&outcome), "failed");
    assert_eq!((world.take(), worker.state(&key).await?), (vec![], Some(State::Parked)));
    Ok(())
}

pub(super) async fn a_late_worker_takes_nothing_back(stage: Stage) -> Scene {
    let (paused, next, key, world) = (stage.sleeper(), stage.worker(), key("a"), World::default());
    let body = async |lease: Lease| {
        step(&lease, &world, "one", false).await?;
        stage.pass(LEASE).await;
        next.run(&key, policy(), 2).await?;
        Err::<u64, _>(Trouble::new("too late"))
    };
    let outcome = paused.once(key.clone()).policy(policy()).run(body).await;
    assert_eq!(word(&outcome), "failed");
    assert_eq!(world.take(), ["do one"], "another one has the key, and may rely on it");
    assert_eq!(next.run(&key, policy(), 3).await?.value, 2);
    Ok(())
}

//! What a late worker may not do.

use std::time::Duration;

use onlyonce::engine::rules::State;
use onlyonce::store::{Commit, Entry};
use onlyonce::{Claimed, Forget, Guard, Key, OnFailure, OnLeaseLost, RunError, Sweep};

use super::*;

/// What became of the key while its first worker slept.
#[derive(Clone, Copy, Debug)]
enum Meanwhile {
    Runs,
    Completed,
    Failed,
    Released,
    Parked,
    Forgotten,
    Swept,
}

const MEANWHILE: [Meanwhile; 7] = [
    Meanwhile::Runs,
    Meanwhile::Completed,
    Meanwhile::Failed,
    Meanwhile::Released,
    Meanwhile::Parked,
    Meanwhile::Forgotten,
    Meanwhile::Swept,
];

/// A worker that slept through its lease, and what another one has made of the key since.
struct Late {
    guard: Guard,
    there: Option<Entry>,
    worker: Worker,
    key: Key,
    /// The other one's call, where it still runs.
    other: Option<Underway>,
}

impl Meanwhile {
    async fn happens(self, stage: &Stage) -> Scene<Late> {
        let (worker, other, key) = (stage.sleeper(), stage.worker(), key(format!("{self:?}")));
        let claimed = worker.once::<Trouble>(key.clone()).claim::<u64>().await?;
        let Claimed::Run(guard) = claimed else { return Err("nobody has it".into()) };
        stage.pass(LEASE).await;
        let mut running = None;
        match self {
            Self::Runs => running = Some(other.hold(&key).await),
            Self::Completed => {
                other.run(&key, policy(), 2).await?;
            }
            Self::Failed => drop(other.fail(&key, policy().on_failure(OnFailure::Lock), "no funds").await),
            Self::Released => drop(other.fail(&key, policy(), "timeout").await),
            Self::Parked => drop(other.run(&key, policy().on_crash(onlyonce::OnCrash::Park), 2).await),
            Self::Forgotten => other.forget(&key, Forget::by("ann")).await?,
            Self::Swept => {
                other.run(&key, policy().keep(Duration::from_secs(1)), 2).await?;
                stage.pass(Duration::from_secs(1)).await;
                assert_eq!(other.sweep(Sweep::default()).await?.forgotten, 1);
            }
        }
        let there = read(stage, &key).await?;
        Ok(Late { guard, there, worker, key, other: running })
    }
}

async fn read(stage: &Stage, key: &Key) -> Result<Option<Entry>, onlyonce::Error> {
    Ok(stage.store().read(std::slice::from_ref(key)).await?.into_iter().next().flatten())
}

impl Late {
    /// The late worker changed nothing, and the other one's call ends as if it had never been.
    async fn changed_nothing(
        there: Option<Entry>,
        other: Option<Underway>,
        key: &Key,
        stage: &Stage,
    ) -> Scene {
        let now = read(stage, key).await?;
        let (was, is) =
            (there.map(|e| (e.version, e.header, e.body)), now.map(|e| (e.version, e.header, e.body)));
        assert_eq!(was, is, "{key}");
        if let Some(other) = other {
            assert_eq!(other.ends(Ok(2)).await?.value, 2);
            assert_eq!(stage.worker().run(key, policy(), 3).await?.value, 2);
        }
        Ok(())
    }
}

fn is_lost<T: std::fmt::Debug>(answer: Result<T, onlyonce::Error>) {
    match answer {
        Err(error) => assert_eq!(error.code(), "lease_lost", "{error}"),
        Ok(value) => assert_eq!(format!("{value:?}"), "lease_lost"),
    }
}

pub(super) async fn a_late_completion_is_refused(stage: Stage) -> Scene {
    for meanwhile in MEANWHILE {
        let Late { guard, there, key, other, .. } = meanwhile.happens(&stage).await?;
        is_lost(guard.complete(&1_u64).await);
        Late::changed_nothing(there, other, &key, &stage).await?;
    }
    Ok(())
}

pub(super) async fn a_late_failure_is_refused(stage: Stage) -> Scene {
    for decision in [OnFailure::Unlock, OnFailure::Lock] {
        for meanwhile in MEANWHILE {
            let Late { guard, there, key, other, worker } = meanwhile.happens(&stage).await?;
            is_lost(guard.fail("too late".to_owned(), decision).await);
            Late::changed_nothing(there, other, &key, &stage).await?;
            worker.forget(&key, Forget::by("ann")).await.or_else(not_found)?;
        }
    }
    Ok(())
}

fn not_found(error: onlyonce::Error) -> Result<(), onlyonce::Error> {
    if error.code() == "not_found" { Ok(()) } else { Err(error) }
}

pub(super) async fn a_late_heartbeat_is_refused_and_tells_the_body(stage: Stage) -> Scene {
    for meanwhile in MEANWHILE {
        let Late { guard, there, key, other, worker } = meanwhile.happens(&stage).await?;
        let lease = guard.lease();
        assert!(!lease.is_lost(), "it slept, and knows nothing");
        worker.clock.advance(LEASE / 5);
        stage.idle().await;
        assert!(lease.is_lost(), "{meanwhile:?}");
        is_lost(lease.check());
        Late::changed_nothing(there, other, &key, &stage).await?;
        drop(guard);
    }
    Ok(())
}

pub(super) async fn a_late_effect_does_not_run(stage: Stage) -> Scene {
    for meanwhile in MEANWHILE {
        let Late { guard, there, key, other, .. } = meanwhile.happens(&stage).await?;
        let (lease, runs) = (guard.lease(), Tally::default());
        let effect = lease.effect("charge").run(async |_| Ok::<_, Trouble>(runs.add())).await;
        match effect {
            Err(RunError::Guard(error)) => is_lost::<()>(Err(error)),
            other => return Err(format!("{meanwhile:?}: {other:?}").into()),
        }
        assert_eq!(runs.get(), 0, "{meanwhile:?}");
        drop(guard);
        stage.idle().await;
        Late::changed_nothing(there, other, &key, &stage).await?;
    }
    Ok(())
}

pub(super) async fn an_effect_that_ended_too_late_is_not_recorded(stage: Stage) -> Scene {
    let (worker, next, key) = (stage.sleeper(), stage.worker(), key("a"));
    let Claimed::Run(guard) = worker.once::<Trouble>(key.clone()).claim::<u64>().await? else {
        return Err("nobody has it".into());
    };
    let lease = guard.lease();
    let took_over = async |_| {
        stage.pass(LEASE).await;
        next.run(&key, policy(), 2).await?;
        Ok::<_, Trouble>(1_u64)
    };
    match lease.effect("charge").run(took_over).await {
        Err(RunError::Guard(error)) => is_lost::<()>(Err(error)),
        other => return Err(format!("{other:?}").into()),
    }
    is_lost(guard.complete(&1_u64).await);
    let view = next.view(&key).await?;
    assert_eq!((view.state, next.run(&key, policy(), 3).await?.value), (State::Completed, 2));
    Ok(())
}

pub(super) async fn a_late_completion_in_a_transaction_is_refused(stage: Stage) -> Scene {
    for meanwhile in MEANWHILE {
        let Late { guard, there, key, other, .. } = meanwhile.happens(&stage).await?;
        let lease = guard.lease();
        let completion = lease.completion(&1_u64).await?;
        let answer = stage.store().commit(completion.writes()).await;
        assert!(matches!(answer, Ok(Commit::Conflict(_))), "{meanwhile:?}: {answer:?}");
        is_lost(completion.check(answer));
        drop(completion);
        drop(guard);
        stage.idle().await;
        Late::changed_nothing(there, other, &key, &stage).await?;
    }
    Ok(())
}

pub(super) async fn a_late_body_is_told_that_its_lease_is_lost(stage: Stage) -> Scene {
    for on_lease_lost in [OnLeaseLost::Cancel, OnLeaseLost::Tell] {
        for late in [Ok(1), Err(Trouble::new("too late"))] {
            let key = key(format!("{on_lease_lost:?} {late:?}"));
            let (_, call) = stage.zombie_under(&key, policy().on_lease_lost(on_lease_lost)).await;
            let next = stage.worker();
            next.run(&key, policy(), 2).await?;
            let expected = if late.is_ok() { "lease_lost" } else { "failed" };
            assert_eq!(word(&call.ends(late).await), expected, "its own error, or that it came too late");
            assert_eq!(next.run(&key, policy(), 3).await?.value, 2);
        }
    }
    Ok(())
}

pub(super) async fn a_late_drop_leaves_the_new_lease_alone(stage: Stage) -> Scene {
    let key = key("a");
    let (_, late) = stage.zombie(&key).await;
    let next = stage.worker().hold(&key).await;
    late.dropped().await;
    stage.idle().await;
    assert_eq!(word(&stage.worker().run(&key, policy(), 3).await), "in_progress");
    assert_eq!(next.ends(Ok(2)).await?.value, 2);
    Ok(())
}

pub(super) async fn a_late_worker_whose_key_nobody_took_may_finish(stage: Stage) -> Scene {
    let key = key("a");
    let (_, late) = stage.zombie(&key).await;
    assert_eq!(word(&late.ends(Ok(1)).await), "ran");
    assert_eq!(stage.worker().run(&key, policy(), 3).await?.value, 1);
    Ok(())
}

pub(super) async fn fences_rise_whatever_becomes_of_the_key(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    let mut fences = Vec::new();
    let brief = policy().keep(Duration::from_secs(1));
    let mut run = async |why: &str| -> Scene {
        let call = worker.hold_under(&key, brief.clone()).await;
        fences.push((call.lease.fence(), why.to_owned()));
        let ended = if why.contains("failed") { Err(Trouble::new(why)) } else { Ok(1) };
        let _ = call.ends(ended).await;
        Ok(())
    };
    run("first").await?;
    stage.pass(Duration::from_secs(1)).await;
    run("after expiry").await?;
    stage.pass(Duration::from_secs(1)).await;
    worker.sweep(Sweep::default()).await?;
    run("after a sweep").await?;
    worker.forget(&key, Forget::by("ann")).await?;
    run("after it was forgotten, failed").await?;
    run("after a failure").await?;
    worker.forget(&key, Forget::by("ann")).await?;
    stage.crash(&key).await;
    run("after a crash").await?;
    let rise = fences.windows(2).all(|pair| pair[0].0 < pair[1].0);
    assert!(rise && fences[0].0 > 0, "{fences:?}");
    Ok(())
}

pub(super) async fn a_store_clock_that_jumps_ahead_gives_the_key_to_one_other(stage: Stage) -> Scene {
    let (worker, next, key) = (stage.worker(), stage.worker(), key("a"));
    let first = worker.hold(&key).await;
    stage.clock().jump_forward(10 * LEASE);
    let second = next.hold(&key).await;
    assert!(second.lease.fence() > first.lease.fence());
    stage.pass(LEASE / 2).await;
    assert_eq!(word(&first.gives_up().await), "lease_lost", "its next heartbeat told it");
    assert_eq!(second.ends(Ok(2)).await?.value, 2);
    Ok(())
}

pub(super) async fn a_wall_clock_that_jumps_back_frees_nothing_early(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    let first = worker.hold(&key).await;
    stage.clock().jump_back(10 * LEASE);
    assert_eq!(word(&stage.worker().run(&key, policy(), 2).await), "in_progress");
    assert_eq!(word(&first.ends(Ok(1)).await), "ran");
    assert_eq!(stage.worker().run(&key, policy(), 2).await?.value, 1);
    Ok(())
}

//! Every call is counted once, by what became of it.

use futures_util::FutureExt;
use onlyonce::telemetry::Outcome as Counted;
use onlyonce::{Claimed, OnCrash, OnDuplicate, OnFailure, Verdict};

use super::*;

/// What this worker has counted since the last time it was asked, beside takeovers.
#[derive(Default)]
struct Counts(Vec<(Counted, u64)>);

impl Counts {
    fn news(&mut self, worker: &Worker) -> Vec<Counted> {
        let now: Vec<_> =
            Counted::ALL.iter().map(|outcome| (*outcome, worker.stats().of(*outcome))).collect();
        let before = std::mem::replace(&mut self.0, now.clone());
        let mut news = Vec::new();
        for (index, (outcome, count)) in now.into_iter().enumerate() {
            let since = count - before.get(index).map_or(0, |(_, count)| *count);
            news.extend((0..since).map(|_| outcome).filter(|outcome| *outcome != Counted::Takeover));
        }
        news
    }
}

pub(super) async fn every_answer_has_its_counter(stage: Stage) -> Scene {
    let (worker, other, mut counts) = (stage.worker(), stage.worker(), Counts::default());
    let raises = policy().on_duplicate(OnDuplicate::Raise);
    worker.run(&key("a"), policy(), 1).await?;
    assert_eq!(counts.news(&worker), [Counted::First]);
    worker.run(&key("a"), policy(), 1).await?;
    assert_eq!(counts.news(&worker), [Counted::Replay]);
    drop(worker.run(&key("a"), raises, 1).await);
    assert_eq!(counts.news(&worker), [Counted::Duplicate]);
    drop(worker.fail(&key("fails"), policy(), "timeout").await);
    assert_eq!(counts.news(&worker), [Counted::Failed]);
    let running = other.hold(&key("busy")).await;
    drop(worker.run(&key("busy"), policy(), 1).await);
    assert_eq!(counts.news(&worker), [Counted::InProgress]);
    let waiting = worker.start(&key("busy"), policy().on_duplicate(OnDuplicate::Wait), 1);
    stage.idle().await;
    running.ends(Ok(2)).await?;
    stage.play(waiting).await??;
    assert_eq!(counts.news(&worker), [Counted::ReplayAfterWait]);
    worker.once::<Trouble>(key("input")).input("one").run(async |_| Ok(1_u64)).await?;
    drop(worker.once::<Trouble>(key("input")).input("two").run(async |_| Ok(1_u64)).await);
    assert_eq!(counts.news(&worker), [Counted::First, Counted::Mismatch]);
    let _ = worker.fail(&key("locked"), policy().on_failure(OnFailure::Lock), "no funds").await;
    drop(worker.run(&key("locked"), policy(), 1).await);
    assert_eq!(counts.news(&worker), [Counted::Replay, Counted::Failed]);
    assert_eq!(worker.stats().replay_rate(), Some(3.0 / 5.0));
    Ok(())
}

pub(super) async fn crashes_are_counted_once_and_beside_them_the_takeover(stage: Stage) -> Scene {
    let (worker, mut counts) = (stage.worker(), Counts::default());
    let cases = [
        ("retry", policy(), Counted::First, 1),
        ("park", policy().on_crash(OnCrash::Park), Counted::Parked, 0),
        ("happened", Oracle::says(happened(5)).policy(), Counted::Replay, 1),
        ("did not", Oracle::says(Verdict::DidNot).policy(), Counted::First, 1),
        ("cannot tell", Oracle::says(Verdict::CannotTell).policy(), Counted::Parked, 1),
    ];
    for (id, policy, expected, takeovers) in cases {
        stage.crash(&key(id)).await;
        let before = worker.stats().of(Counted::Takeover);
        drop(worker.run(&key(id), policy, 1).await);
        assert_eq!(counts.news(&worker), [expected], "{id}");
        assert_eq!(worker.stats().of(Counted::Takeover) - before, takeovers, "{id}");
    }
    drop(worker.run(&key("park"), policy(), 1).await);
    assert_eq!(counts.news(&worker), [Counted::Parked]);
    Ok(())
}

pub(super) async fn lost_leases_are_counted_once(stage: Stage) -> Scene {
    let worker = stage.worker();
    let mut counts = Counts::default();
    let call = worker.hold(&key("stopped")).await;
    worker.wire.fail(Ask::Touch, Fault::Unavailable, u32::MAX);
    assert_eq!(word(&stage.play(call.gives_up()).await), "lease_lost");
    assert_eq!(counts.news(&worker), [Counted::LeaseLost]);
    assert!(worker.stats().heartbeat_failures() > 0);

    let key = key("late");
    let (late, call) = stage.zombie(&key).await;
    stage.worker().run(&key, policy(), 2).await?;
    assert_eq!(word(&call.ends(Ok(1)).await), "lease_lost");
    assert_eq!(Counts::default().news(&late), [Counted::LeaseLost]);
    Ok(())
}

pub(super) async fn panics_and_claims_by_hand_are_counted_too(stage: Stage) -> Scene {
    let (worker, mut counts) = (stage.worker(), Counts::default());
    let panics =
        worker.once::<Trouble>(key("panics")).run(async |_| -> Result<u64, _> { std::panic::panic_any(()) });
    assert!(std::panic::AssertUnwindSafe(panics).catch_unwind().await.is_err());
    assert_eq!(counts.news(&worker), [Counted::Failed]);
    let claim = async |id: &str| worker.once::<Trouble>(key(id)).claim::<u64>().await;
    let Claimed::Run(guard) = claim("a").await? else { return Err("nobody has it".into()) };
    guard.complete(&1_u64).await?;
    assert_eq!(counts.news(&worker), [Counted::First]);
    drop(claim("a").await?);
    assert_eq!(counts.news(&worker), [Counted::Replay]);
    let Claimed::Run(guard) = claim("b").await? else { return Err("nobody has it".into()) };
    guard.fail("timeout".to_owned(), OnFailure::Unlock).await?;
    assert_eq!(counts.news(&worker), [Counted::Failed]);
    Ok(())
}

//! Many calls at once follow the same rules as one.

use onlyonce::{Lease, OnDuplicate, OnFailure, Once, Policy};

use super::*;
use crate::chance::SeededChance;

/// One call of a sequence: which key, which input, and how its body ends.
#[derive(Clone, Copy, Debug)]
struct Step {
    key: u64,
    input: u64,
    on_duplicate: OnDuplicate,
    on_failure: OnFailure,
    fails: bool,
}

impl Step {
    fn any(chance: &SeededChance) -> Self {
        let duplicates = [OnDuplicate::Return, OnDuplicate::Return, OnDuplicate::Raise, OnDuplicate::Wait];
        Self {
            key: chance.below(6),
            input: chance.below(8) / 7,
            on_duplicate: chance.pick(&duplicates).copied().unwrap_or_default(),
            on_failure: if chance.happens(300) { OnFailure::Lock } else { OnFailure::Unlock },
            fails: chance.happens(300),
        }
    }

    fn call<'e>(&self, worker: &'e Worker, round: &str) -> Once<'e, Trouble> {
        let policy: Policy = policy().on_duplicate(self.on_duplicate).on_failure(self.on_failure);
        worker.once(key(format!("{round} {}", self.key))).policy(policy).input(&self.input)
    }

    async fn body(&self, index: usize, lease: &Lease) -> Result<(usize, u32), Trouble> {
        tokio::task::yield_now().await;
        if self.fails { Err(Trouble(format!("{index} failed"))) } else { Ok((index, lease.attempt())) }
    }
}

/// What a caller can tell of an outcome.
fn told(outcome: &Outcome<(usize, u32)>) -> String {
    match outcome {
        Ok(ran) => format!("{:?} {} {}", ran.value, ran.replayed, ran.attempt),
        Err(error) => {
            let text = error.to_string();
            // The two runs have keys of their own; the rest of the message is the same.
            let after_key =
                text.split_once("scenes/").map_or(text.as_str(), |(_, rest)| &rest[rest.len().min(4)..]);
            format!("{} {after_key}", word(outcome))
        }
    }
}

pub(super) async fn a_batch_is_answered_as_its_calls_one_by_one(stage: Stage) -> Scene {
    for seed in 0..12 {
        let chance = SeededChance::new(seed);
        let steps: Vec<Step> = (0..chance.below(20)).map(|_| Step::any(&chance)).collect();
        let (batching, calling) = (stage.worker(), stage.worker());
        let calls = steps.iter().map(|step| step.call(&batching, &format!("b{seed:02}")));
        let batch =
            batching.once_many(calls, async |index, lease| steps[index].body(index, &lease).await).await;
        let mut singles = Vec::new();
        for (index, step) in steps.iter().enumerate() {
            let call = step.call(&calling, &format!("s{seed:02}"));
            singles.push(call.run(async |lease| step.body(index, &lease).await).await);
        }
        let (batch, singles): (Vec<_>, Vec<_>) =
            (batch.iter().map(told).collect(), singles.iter().map(told).collect());
        assert_eq!(batch, singles, "seed {seed}: {steps:#?}");
    }
    Ok(())
}

pub(super) async fn a_key_that_comes_twice_in_a_batch_runs_once(stage: Stage) -> Scene {
    let (worker, runs) = (stage.worker(), Tally::default());
    let calls = ["a", "b", "a", "c", "a"].map(|id| worker.once::<Trouble>(key(id)));
    let outcomes = worker
        .once_many(calls, async |index, _| {
            runs.add();
            Ok(index)
        })
        .await;
    let told: Vec<_> =
        outcomes.iter().map(|outcome| (word(outcome), outcome.as_ref().ok().map(|ran| ran.value))).collect();
    assert_eq!(
        told,
        [("ran", Some(0)), ("ran", Some(1)), ("replayed", Some(0)), ("ran", Some(3)), ("replayed", Some(0)),]
    );
    assert_eq!(runs.get(), 3);
    Ok(())
}

pub(super) async fn one_call_that_fails_does_not_fail_its_neighbours(stage: Stage) -> Scene {
    let worker = stage.worker();
    let elsewhere = stage.worker().hold(&key("busy")).await;
    stage.crash(&key("parked")).await;
    let parks = policy().on_crash(onlyonce::OnCrash::Park);
    let bad = policy().lease(std::time::Duration::ZERO);
    let calls = [
        worker.once(key("a")).policy(policy()),
        worker.once(key("fails")).policy(policy()),
        worker.once(key("busy")).policy(policy()),
        worker.once(key("parked")).policy(parks),
        worker.once(key("bad")).policy(bad),
        worker.once(key("b")).input(&f64::NAN),
        worker.once(key("z")).policy(policy()),
    ];
    let outcomes = worker
        .once_many(calls, async |index, _| if index == 1 { Err(Trouble::new("timeout")) } else { Ok(index) })
        .await;
    let words: Vec<_> = outcomes.iter().map(word).collect();
    assert_eq!(words, ["ran", "failed", "in_progress", "parked", "bad_policy", "bad_input", "ran"]);
    assert_eq!(word(&elsewhere.ends(Ok(1)).await), "ran");
    Ok(())
}

pub(super) async fn an_empty_batch_asks_nothing(stage: Stage) -> Scene {
    let worker = stage.worker();
    let none: [Once<'_, Trouble>; 0] = [];
    assert!(worker.once_many(none, async |index, _| Ok(index)).await.is_empty());
    assert_eq!(worker.wire.take_asked(), []);
    Ok(())
}

pub(super) async fn a_batch_goes_out_together(stage: Stage) -> Scene {
    let worker = stage.worker();
    let calls: Vec<_> = (0..30).map(|n| worker.once::<Trouble>(key(format!("{n}")))).collect();
    let outcomes = worker.once_many(calls, async |index, _| Ok(index)).await;
    for (index, outcome) in outcomes.into_iter().enumerate() {
        assert_eq!(outcome?.value, index);
    }
    let asked = worker.wire.take_asked();
    assert_eq!(asked.len(), 60);
    Ok(())
}

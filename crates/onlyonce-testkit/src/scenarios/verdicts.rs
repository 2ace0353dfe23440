//! People who decide about keys: resolve, forget, and the lines they leave.

use std::time::Duration;

use onlyonce::engine::rules::State;
use onlyonce::time::Clock;
use onlyonce::{Claimed, Forget, Guard, Key, OnCrash, OnFailure, Verdict};

use super::*;

/// What a key can be when somebody decides about it.
const STATES: [&str; 7] = ["running", "overdue", "completed", "failed", "released", "parked", "forgotten"];

/// Brings a key into this state; a running one stays so while its guard is kept.
async fn arranged(stage: &Stage, state: &str, id: &str) -> Scene<(Key, Option<Guard>)> {
    let (worker, key) = (stage.worker(), key(format!("{state} {id}")));
    let mut guard = None;
    match state {
        "running" => {
            let Claimed::Run(mine) = worker.once::<Trouble>(key.clone()).claim::<u64>().await? else {
                return Err("nobody has it".into());
            };
            guard = Some(mine);
        }
        "overdue" => stage.crash(&key).await,
        "completed" => {
            worker.run(&key, policy(), 1).await?;
        }
        "failed" => drop(worker.fail(&key, policy().on_failure(OnFailure::Lock), "no funds").await),
        "released" => drop(worker.fail(&key, policy(), "timeout").await),
        "parked" => {
            stage.crash(&key).await;
            drop(worker.run(&key, policy().on_crash(OnCrash::Park), 1).await);
        }
        _ => {
            worker.run(&key, policy(), 1).await?;
            worker.forget(&key, Forget::by("bob")).await?;
        }
    }
    Ok((key, guard))
}

pub(super) async fn a_verdict_is_taken_only_where_one_is_awaited(stage: Stage) -> Scene {
    let admin = stage.worker();
    let verdicts = [
        (happened(5), State::Completed, "replayed"),
        (Verdict::Happened(None), State::Completed, "result_not_stored"),
        (Verdict::DidNot, State::Released, "ran"),
        (Verdict::CannotTell, State::Parked, "parked"),
    ];
    for (n, (verdict, becomes, next)) in verdicts.into_iter().enumerate() {
        for state in STATES {
            let (key, guard) = arranged(&stage, state, &n.to_string()).await?;
            let before = admin.view(&key).await?.entry;
            let answer = admin.resolve(&key, verdict.clone(), "ann").await;
            if matches!(state, "overdue" | "parked") {
                assert_eq!(answer?, becomes, "{key}");
                assert_eq!(word(&stage.worker().run(&key, policy(), 2).await), next, "{key}");
            } else {
                let error = answer.err().ok_or("it is not awaited")?;
                assert_eq!((error.code(), error.exit_code()), ("not_allowed", 65), "{key}");
                assert_eq!(admin.view(&key).await?.entry, before, "{key}");
            }
            drop(guard);
        }
    }
    Ok(())
}

pub(super) async fn a_resolved_value_is_the_outcome_everywhere(stage: Stage) -> Scene {
    let (key, _) = arranged(&stage, "parked", "a").await?;
    stage.worker().resolve(&key, happened(5), "ann").await?;
    for _ in 0..2 {
        let ran = stage.worker().run(&key, policy(), 2).await?;
        assert_eq!((ran.value, ran.replayed), (5, true));
    }
    stage.pass(KEEP).await;
    assert_eq!(word(&stage.worker().run(&key, policy(), 2).await), "ran", "and it is kept as long as one");
    Ok(())
}

pub(super) async fn a_resolved_key_is_not_the_late_workers_any_more(stage: Stage) -> Scene {
    for (verdict, expected) in [(happened(5), 5), (Verdict::DidNot, 2)] {
        let key = key(format!("{expected}"));
        let (_, late) = stage.zombie(&key).await;
        stage.worker().resolve(&key, verdict, "ann").await?;
        assert_eq!(word(&late.ends(Ok(1)).await), "lease_lost");
        assert_eq!(stage.worker().run(&key, policy(), 2).await?.value, expected);
    }
    Ok(())
}

pub(super) async fn any_key_but_a_running_one_can_be_forgotten(stage: Stage) -> Scene {
    let admin = stage.worker();
    for state in STATES {
        let (key, guard) = arranged(&stage, state, "a").await?;
        let answer = admin.forget(&key, Forget::by("ann")).await;
        if state == "running" {
            let error = answer.err().ok_or("it runs")?;
            assert_eq!((error.code(), error.exit_code()), ("not_allowed", 65));
            assert!(error.to_string().contains("of its lease left"), "{error}");
            assert_eq!(admin.state(&key).await?, Some(State::Running));
            if let Some(guard) = guard {
                guard.complete(&1_u64).await?;
            }
            assert_eq!(word(&admin.run(&key, policy(), 2).await), "replayed");
        } else {
            answer?;
            assert_eq!(admin.state(&key).await?, Some(State::Forgotten), "{key}");
            assert_eq!(word(&stage.worker().run(&key, policy(), 2).await), "ran", "{key}");
        }
    }
    Ok(())
}

pub(super) async fn a_forgotten_key_begins_anew(stage: Stage) -> Scene {
    let (admin, key) = (stage.worker(), key("a"));
    let spent = policy().max_attempts(2);
    for _ in 0..2 {
        stage.crash(&key).await;
    }
    assert_eq!(word(&admin.run(&key, spent.clone(), 1).await), "parked");
    let before = admin.view(&key).await?.entry.version;
    admin.forget(&key, Forget::by("ann")).await?;
    let call = admin.hold_under(&key, spent).await;
    assert_eq!(call.lease.attempt(), 1, "what it did before is forgotten");
    assert!(call.lease.fence() > before.get());
    assert_eq!(word(&call.ends(Ok(1)).await), "ran");
    Ok(())
}

pub(super) async fn a_key_forgotten_while_it_runs_is_lost_to_its_worker(stage: Stage) -> Scene {
    let key = key("a");
    let paused = stage.sleeper();
    let late = paused.hold(&key).await;
    stage.worker().forget(&key, Forget::by("ann").even_running()).await?;
    assert_eq!(stage.worker().run(&key, policy(), 2).await?.value, 2);
    assert_eq!(word(&late.ends(Ok(1)).await), "lease_lost");
    assert_eq!(stage.worker().run(&key, policy(), 3).await?.value, 2);
    Ok(())
}

pub(super) async fn every_decision_leaves_a_line_that_outlives_the_next_run(stage: Stage) -> Scene {
    let (admin, key) = (stage.worker(), key("a"));
    stage.crash(&key).await;
    admin.resolve(&key, Verdict::CannotTell, "ann").await?;
    let first_at = stage.clock().now();
    stage.pass(Duration::from_secs(5)).await;
    admin.resolve(&key, Verdict::DidNot, "bob").await?;
    stage.worker().run(&key, policy(), 1).await?;
    admin.forget(&key, Forget::by("eve")).await?;
    stage.worker().run(&key, policy(), 2).await?;
    let audit = admin.view(&key).await?.record.audit;
    let lines: Vec<_> = audit.iter().map(|line| (line.by.as_str(), line.what.as_str())).collect();
    assert_eq!(
        lines,
        [
            ("ann", "resolved: cannot tell"),
            ("bob", "resolved: did not happen"),
            ("eve", "forgotten while completed"),
        ]
    );
    assert_eq!(audit[0].at, first_at);
    assert_eq!(audit[1].at, first_at.plus(Duration::from_secs(5)));
    Ok(())
}

pub(super) async fn the_audit_trail_keeps_the_latest_lines(stage: Stage) -> Scene {
    let (admin, key) = (stage.worker(), key("a"));
    admin.run(&key, policy(), 1).await?;
    for n in 0..25 {
        admin.forget(&key, Forget::by(format!("visitor {n}"))).await?;
    }
    let audit = admin.view(&key).await?.record.audit;
    assert_eq!(audit.len(), 20);
    assert_eq!((audit[0].by.as_str(), audit[19].by.as_str()), ("visitor 5", "visitor 24"));
    Ok(())
}

pub(super) async fn a_key_that_is_not_there_cannot_be_decided_about(stage: Stage) -> Scene {
    let (admin, key) = (stage.worker(), key("a"));
    assert!(admin.look(&key).await?.is_none());
    for answer in [
        admin.resolve(&key, Verdict::DidNot, "ann").await.map(drop),
        admin.forget(&key, Forget::by("ann").even_running()).await,
    ] {
        let error = answer.err().ok_or("there is nothing")?;
        assert_eq!((error.code(), error.exit_code()), ("not_found", 65));
    }
    assert!(admin.look(&key).await?.is_none());
    Ok(())
}

pub(super) async fn two_decisions_at_once_are_made_one_after_the_other(stage: Stage) -> Scene {
    let key = key("a");
    stage.crash(&key).await;
    let (ann, bob) = (stage.worker(), stage.worker());
    ann.wire.fail(Ask::Replace, Fault::HeldRequest, 1);
    let (hers, its_key) = (ann.clone(), key.clone());
    let first = tokio::spawn(async move { hers.resolve(&its_key, happened(1), "ann").await });
    ann.wire.until_held(1).await;
    assert_eq!(bob.resolve(&key, happened(2), "bob").await?, State::Completed);
    ann.wire.let_go();
    let error = first.await?.err().ok_or("bob was faster")?;
    assert_eq!(error.code(), "not_allowed");
    assert_eq!(stage.worker().run(&key, policy(), 3).await?.value, 2);
    Ok(())
}

pub(super) async fn records_can_be_listed_page_by_page(stage: Stage) -> Scene {
    let worker = stage.worker();
    for n in 0..12 {
        worker.run(&key(format!("{n}")), policy(), n).await?;
    }
    let _ = worker.fail(&key("failed"), policy(), "timeout").await;
    let mut scan =
        onlyonce::store::Scan { namespace: Some("scenes".to_owned()), limit: 5, ..Default::default() };
    let mut seen = Vec::new();
    loop {
        let listing = worker.list(scan.clone()).await?;
        assert!(listing.unreadable.is_empty());
        seen.extend(listing.views.into_iter().map(|view| (view.entry.key, view.state)));
        match listing.next {
            Some(next) => scan.after = Some(next),
            None => break,
        }
    }
    seen.sort_by(|a, b| a.0.cmp(&b.0));
    seen.dedup();
    assert_eq!(seen.len(), 13);
    assert_eq!(seen.iter().filter(|(_, state)| *state == State::Completed).count(), 12);
    Ok(())
}

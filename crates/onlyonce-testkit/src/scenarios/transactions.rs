//! Completions that are written together with the effect, in the caller's own commit.

use std::time::Duration;

use bytes::Bytes;
use onlyonce::engine::rules::State;
use onlyonce::store::{Draft, Expect, HeaderDraft, Status, Write};
use onlyonce::{Key, Lease, OnDuplicate, OnFailure};

use super::*;

/// The effect itself: an entry of the caller's own.
fn receipt(key: &Key) -> Write {
    let header = HeaderDraft::new(Status::new("receipt"));
    Write::Put {
        key: key.clone(),
        expect: Expect::Absent,
        draft: Draft { header, body: Bytes::from_static(b"{}") },
    }
}

/// Commits the completion, with the effect where the store takes two writes at once.
async fn commit(stage: &Stage, lease: &Lease, value: u64) -> Result<(), Trouble> {
    let completion = lease.completion(&value).await?;
    let mut writes = completion.writes();
    if stage.store().facts().writes_per_commit > 1 {
        writes.push(receipt(&key(format!("receipt of {}", lease.fence()))));
    }
    completion.check(stage.store().commit(writes).await)?;
    Ok(())
}

pub(super) async fn a_completion_can_be_part_of_the_callers_commit(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    let ran = worker.once(key.clone()).policy(policy()).run(async |lease: Lease| {
        commit(&stage, &lease, 1).await?;
        assert_eq!(stage.worker().run(&key, policy(), 2).await?.value, 1, "it is recorded at once");
        Ok::<_, Trouble>(1_u64)
    });
    assert_eq!(word(&ran.await), "ran");
    for worker in [&worker, &stage.worker()] {
        assert_eq!(worker.run(&key, policy(), 2).await?.value, 1);
    }
    Ok(())
}

pub(super) async fn what_was_committed_is_the_outcome_whatever_the_body_ends_with(stage: Stage) -> Scene {
    let worker = stage.worker();
    for (id, end) in [("value", Ok(7)), ("failure", Err(Trouble::new("too late to fail")))] {
        let call = worker.hold_under(&key(id), policy().on_failure(OnFailure::Lock)).await;
        commit(&stage, &call.lease, 1).await?;
        let _ = call.ends(end).await;
        for worker in [&worker, &stage.worker()] {
            assert_eq!(worker.run(&key(id), policy(), 2).await?.value, 1, "{id}");
        }
    }
    Ok(())
}

pub(super) async fn those_who_wait_are_given_what_was_committed(stage: Stage) -> Scene {
    let worker = stage.worker();
    let locks = policy().on_failure(OnFailure::Lock);
    for (id, end) in [("value", Ok(7)), ("failure", Err(Trouble::new("too late to fail")))] {
        let call = worker.hold_under(&key(id), locks.clone()).await;
        let waits = policy().on_duplicate(OnDuplicate::Wait);
        let waiting = [worker.start(&key(id), waits.clone(), 9), stage.worker().start(&key(id), waits, 9)];
        stage.idle().await;
        commit(&stage, &call.lease, 1).await?;
        let _ = call.ends(end).await;
        for waiting in waiting {
            assert_eq!(stage.play(waiting).await??.value, 1, "{id}");
        }
    }
    Ok(())
}

pub(super) async fn a_body_may_work_on_after_its_commit(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    let call = worker.hold_under(&key, policy().keep(100 * LEASE)).await;
    commit(&stage, &call.lease, 1).await?;
    stage.pass(10 * LEASE).await;
    assert!(!call.is_over(), "its outcome is recorded; there is nothing left to lose");
    assert_eq!(word(&call.ends(Ok(1)).await), "ran");
    assert_eq!(stage.worker().run(&key, policy(), 2).await?.value, 1);
    Ok(())
}

pub(super) async fn heartbeats_pause_while_a_completion_is_open(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    let call = worker.hold(&key).await;
    let completion = call.lease.completion(&1_u64).await?;
    worker.wire.take_asked();
    stage.pass(LEASE / 2).await;
    assert_eq!(worker.wire.take_asked(), [], "a beat would change the version the completion expects");
    completion.check(stage.store().commit(completion.writes()).await)?;
    drop(completion);
    assert_eq!(word(&call.ends(Ok(1)).await), "ran");
    Ok(())
}

pub(super) async fn a_completion_that_was_not_committed_changes_nothing(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    let call = worker.hold(&key).await;
    drop(call.lease.completion(&1_u64).await?);
    stage.pass(2 * LEASE).await;
    assert_eq!(worker.state(&key).await?, Some(State::Running), "heartbeats go on");
    assert_eq!(call.ends(Ok(2)).await?.value, 2);
    assert_eq!(stage.worker().run(&key, policy(), 3).await?.value, 2);
    Ok(())
}

pub(super) async fn a_completion_that_cannot_be_stored_says_so_before_the_commit(stage: Stage) -> Scene {
    let worker = stage.worker_with(stage.clock().clone(), |builder| builder.max_result(10));
    let call = worker.hold(&key("a")).await;
    let error = call.lease.completion("more than ten bytes").await.err().ok_or("too long")?;
    assert_eq!(error.code(), "result_not_stored");
    assert_eq!(word(&call.ends(Ok(1)).await), "ran");
    Ok(())
}

pub(super) async fn a_completion_of_a_lost_lease_is_not_begun(stage: Stage) -> Scene {
    let worker = stage.worker();
    let call = worker.hold_under(&key("a"), policy().on_lease_lost(onlyonce::OnLeaseLost::Tell)).await;
    worker.wire.fail(Ask::Touch, Fault::Unavailable, u32::MAX);
    stage.pass(LEASE + Duration::from_secs(1)).await;
    let error = call.lease.completion(&1_u64).await.err().ok_or("it is lost")?;
    assert_eq!(error.code(), "lease_lost");
    call.dropped().await;
    Ok(())
}

//! Results that cannot be kept, or cannot be read as what was asked for.

use std::collections::BTreeMap;

use onlyonce::OnDuplicate;
use onlyonce::engine::rules::State;
use serde::Serialize;
use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Error as _, Serializer};

use super::*;

/// A worker that stores at most so many bytes of a result.
fn limited(stage: &Stage, bytes: usize) -> Worker {
    stage.worker_with(stage.clock().clone(), |builder| builder.max_result(bytes))
}

async fn text(worker: &Worker, id: &str, text: &str) -> Outcome<String> {
    let waits = policy().on_duplicate(OnDuplicate::Wait);
    worker.once(key(id)).policy(waits).run(async |_| Ok(text.to_owned())).await
}

pub(super) async fn a_result_over_the_limit_runs_and_is_not_stored(stage: Stage) -> Scene {
    let worker = limited(&stage, 10);
    assert_eq!(text(&worker, "fits", "12345678").await?.value, "12345678");
    assert_eq!(word(&text(&worker, "fits", "x").await), "replayed");
    assert_eq!(text(&worker, "long", "123456789").await?.value, "123456789");
    for worker in [&worker, &stage.worker()] {
        let error = refusal(text(worker, "long", "x").await);
        assert_eq!((error.code(), error.exit_code()), ("result_not_stored", 65));
        assert!(
            error.to_string().contains("11 bytes") && error.to_string().contains("at most 10"),
            "{error}"
        );
    }
    let view = worker.view(&key("long")).await?;
    assert_eq!((view.state, view.record.value.is_none()), (State::Completed, true));
    Ok(())
}

pub(super) async fn a_result_over_the_stores_limit_runs_and_is_not_stored(stage: Stage) -> Scene {
    let worker = limited(&stage, usize::MAX);
    let long = "x".repeat(stage.store().facts().max_body + 1);
    assert_eq!(text(&worker, "long", &long).await?.value.len(), long.len());
    for worker in [&worker, &stage.worker()] {
        assert_eq!(word(&text(worker, "long", "x").await), "result_not_stored");
    }
    Ok(())
}

pub(super) async fn those_who_wait_hear_that_the_result_was_not_stored(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    let call = worker.hold(&key).await;
    let waits = policy().on_duplicate(OnDuplicate::Wait);
    let waiting = [worker.start(&key, waits.clone(), 9), stage.worker().start(&key, waits, 9)];
    stage.idle().await;
    worker.wire.fail(Ask::Replace, Fault::TooLarge, 1);
    assert_eq!(call.ends(Ok(1)).await?.value, 1);
    for waiting in waiting {
        assert_eq!(word(&stage.play(waiting).await?), "result_not_stored");
    }
    assert_eq!(word(&worker.run(&key, policy(), 2).await), "result_not_stored");
    Ok(())
}

/// Has no JSON form.
#[derive(Debug, PartialEq)]
struct Socket;

impl Serialize for Socket {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(S::Error::custom("a socket cannot be written down"))
    }
}

impl<'de> Deserialize<'de> for Socket {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(D::Error::custom("a socket cannot be read"))
    }
}

pub(super) async fn a_result_without_a_json_form_runs_and_is_not_stored(stage: Stage) -> Scene {
    let worker = stage.worker();
    let ran = worker.once::<Trouble>(key("socket")).run(async |_| Ok(Socket)).await?;
    assert_eq!((ran.value, ran.replayed), (Socket, false));
    let again = worker.once::<Trouble>(key("socket")).run(async |_| Ok(Socket)).await;
    let error = refusal(again);
    assert_eq!(error.code(), "result_not_stored");
    assert!(error.to_string().contains("cannot be written down"), "{error}");

    let pairs = || BTreeMap::from([((1_u8, 2_u8), 3_u8)]);
    let ran = worker.once::<Trouble>(key("pairs")).run(async |_| Ok(pairs())).await?;
    assert_eq!(ran.value, pairs());
    let again = worker.once::<Trouble>(key("pairs")).run(async |_| Ok(pairs())).await;
    assert_eq!(word(&again), "result_not_stored");
    Ok(())
}

pub(super) async fn a_result_of_another_type_is_refused_and_stays(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    worker.run(&key, policy(), 7).await?;
    let before = worker.view(&key).await?.entry;
    let other = worker.once::<Trouble>(key.clone()).run(async |_| Ok(vec!["text".to_owned()])).await;
    let error = refusal(other);
    assert_eq!((error.code(), error.exit_code(), error.is_retryable()), ("result_mismatch", 65, false));
    assert!(error.to_string().contains("invalid type: integer `7`"), "{error}");
    assert_eq!(worker.view(&key).await?.entry, before);
    assert_eq!(worker.run(&key, policy(), 8).await?.value, 7);
    Ok(())
}

pub(super) async fn a_number_that_is_none_is_not_stored_as_something_else(stage: Stage) -> Scene {
    let worker = stage.worker();
    for (id, value) in [("nan", f64::NAN), ("inf", f64::INFINITY)] {
        let call = || worker.once::<Trouble>(key(id)).run(async |_| Ok(Some(value)));
        assert!(call().await?.value.is_some());
        assert_eq!(
            word(&call().await),
            "result_not_stored",
            "JSON has no {value}, and `null` is another value"
        );
    }
    Ok(())
}

//! Any function, made idempotent by what it is given.

use futures_util::future::join_all;
use onlyonce::key::Form;
use onlyonce::{OnDuplicate, Processor};
use serde_json::{Value, json};

use super::*;

pub(super) async fn a_payload_that_comes_again_is_given_back_its_result(stage: Stage) -> Scene {
    let (worker, runs) = (stage.worker(), Tally::default());
    let processor =
        Processor::new(worker.engine.clone(), "intake", async |_: &Value| Ok::<_, Trouble>(runs.add()));
    let first = processor.process(&json!({"company": "Ärzte & Söhne", "turnover": 5000})).await?;
    let again = processor.process(&json!({"turnover": 5000, "company": "Ärzte & Söhne"})).await?;
    assert_eq!((first.value, first.was_replay), (1, false));
    assert_eq!((again.value, again.was_replay, &again.key), (1, true, &first.key));
    let other = processor.process(&json!({"company": "Ärzte & Söhne", "turnover": 5001})).await?;
    assert_eq!((other.value, other.was_replay), (2, false));
    assert!(other.key != first.key);
    Ok(())
}

pub(super) async fn delivery_metadata_is_left_out_of_the_key(stage: Stage) -> Scene {
    let (worker, runs) = (stage.worker(), Tally::default());
    let processor =
        Processor::new(worker.engine.clone(), "intake", async |_: &Value| Ok::<_, Trouble>(runs.add()))
            .exclude(["/received_at", "/delivery/attempt", "/items/*/trace"])?;
    let payload = |at: u64, attempt: u64, trace: &str, id: u64| json!({"id": id, "received_at": at, "delivery": {"attempt": attempt}, "items": [{"n": 1, "trace": trace}]});
    assert!(!processor.process(&payload(1, 1, "x", 7)).await?.was_replay);
    assert!(processor.process(&payload(2, 9, "y", 7)).await?.was_replay);
    assert!(!processor.process(&payload(2, 9, "y", 8)).await?.was_replay);
    assert_eq!(runs.get(), 2);
    let picky =
        Processor::new(worker.engine.clone(), "picky", async |_: &Value| Ok::<_, Trouble>(runs.add()))
            .select(["/id"])?;
    assert!(!picky.process(&payload(1, 1, "x", 7)).await?.was_replay);
    assert!(picky.process(&json!({"id": 7, "all": "else"})).await?.was_replay);
    Ok(())
}

pub(super) async fn ten_concurrent_deliveries_run_once(stage: Stage) -> Scene {
    let (worker, runs) = (stage.worker(), Tally::default());
    let processor = Processor::new(worker.engine.clone(), "intake", async |_: &Value| {
        tokio::task::yield_now().await;
        Ok::<_, Trouble>(runs.add())
    });
    let payload = json!({"id": 7});
    let deliveries = join_all((0..10).map(|_| processor.process(&payload))).await;
    let processed = deliveries.into_iter().collect::<Result<Vec<_>, _>>()?;
    assert!(processed.iter().all(|each| each.value == 1));
    assert_eq!(processed.iter().filter(|each| each.was_replay).count(), 9);
    assert_eq!(runs.get(), 1);
    assert_eq!(processor.replay_rate(), Some(0.9));
    Ok(())
}

pub(super) async fn a_failure_is_not_kept_and_the_next_delivery_runs(stage: Stage) -> Scene {
    let (worker, runs) = (stage.worker(), Tally::default());
    let processor = Processor::new(worker.engine.clone(), "intake", async |_: &Value| match runs.add() {
        1 => Err(Trouble::new("enrichment is down")),
        run => Ok(run),
    });
    assert_eq!(processor.replay_rate(), None);
    let failed = processor.process(&json!({"id": 7})).await;
    assert_eq!(failed.err().and_then(|error| error.body()), Some(Trouble::new("enrichment is down")));
    assert_eq!(processor.replay_rate(), None, "it gave no value");
    assert_eq!(processor.process(&json!({"id": 7})).await?.value, 2);
    assert_eq!(processor.process(&json!({"id": 7})).await?.value, 2);
    assert_eq!((runs.get(), processor.replay_rate()), (2, Some(0.5)));
    Ok(())
}

pub(super) async fn a_delivery_waits_for_one_elsewhere(stage: Stage) -> Scene {
    let (here, elsewhere, runs) = (stage.worker(), stage.worker(), Tally::default());
    let slow = Processor::new(here.engine.clone(), "intake", async |_: &Value| {
        stage.idle().await;
        Ok::<_, Trouble>(runs.add())
    });
    let other =
        Processor::new(elsewhere.engine.clone(), "intake", async |_: &Value| Ok::<_, Trouble>(runs.add()));
    let payload = json!({"id": 7});
    let both = futures_util::future::join(slow.process(&payload), other.process(&payload));
    let (first, second) = stage.play(Box::pin(both)).await;
    let (first, second) = (first?, second?);
    assert_eq!((first.value, second.value, runs.get()), (1, 1, 1));
    assert!(first.was_replay != second.was_replay);
    let raises =
        Processor::new(elsewhere.engine.clone(), "intake", async |_: &Value| Ok::<_, Trouble>(runs.add()))
            .policy(policy().on_duplicate(OnDuplicate::Raise));
    let raised = raises.process(&payload).await;
    assert_eq!(raised.err().and_then(|e| e.guard().map(|e| e.code())), Some("duplicate_execution"));
    Ok(())
}

/// `hashlib.sha256(json.dumps(x, sort_keys=True, default=str).encode()).hexdigest()` of the payload below.
const PYTHONS: &str = "a66052aa3982252aa4263d77dc9853d2cd10c9a508502f434cf9adebe7973acc";

pub(super) async fn keys_can_be_those_of_a_python_predecessor(stage: Stage) -> Scene {
    let (worker, runs) = (stage.worker(), Tally::default());
    let processor =
        Processor::new(worker.engine.clone(), "intake", async |_: &[u8]| Ok::<_, Trouble>(runs.add()))
            .exclude(["/received_at"])?
            .form(Form::Python);
    let payload =
        r#"{"turnover": 1e16, "received_at": 1, "name": "Zoë \ud83d\ude00", "tags": [1.0, null, true]}"#;
    let processed = processor.process_json(payload.as_bytes()).await?;
    assert_eq!(processed.key.id(), PYTHONS);
    Ok(())
}

pub(super) async fn a_payload_no_key_can_be_made_of_runs_nothing(stage: Stage) -> Scene {
    let (worker, runs) = (stage.worker(), Tally::default());
    let processor =
        Processor::new(worker.engine.clone(), "intake", async |_: &[u8]| Ok::<_, Trouble>(runs.add()));
    for bad in [
        "",
        "{",
        "{\"a\":1,\"a\":2}",
        "{\"a\":1,\"\\u0061\":2}",
        "[1,]",
        "NaN",
        "1e400",
        "\"\\ud800\"",
        "{} x",
    ] {
        let error = processor.process_json(bad.as_bytes()).await.err().ok_or("it is broken")?;
        let code = error.guard().map(|error| (error.code(), error.exit_code()));
        assert_eq!(code, Some(("bad_json", 65)), "{bad:?}");
    }
    let bytes = processor.process_json(b"\"\xff\"").await.err().ok_or("it is not UTF-8")?;
    assert_eq!(bytes.guard().map(|error| error.code()), Some("bad_json"));
    assert_eq!((runs.get(), worker.wire.take_asked()), (0, vec![]));
    Ok(())
}

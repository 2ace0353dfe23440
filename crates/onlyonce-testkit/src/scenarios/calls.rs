//! First calls, and what comes back the second time.

use std::collections::BTreeMap;
use std::fmt::Debug;

use onlyonce::{Key, OnDuplicate};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::*;

pub(super) async fn a_first_call_runs_and_says_so(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    let ran = worker.run(&key, policy(), 7).await?;
    assert_eq!((ran.value, ran.replayed, ran.waited, ran.guarded, ran.attempt), (7, false, false, true, 1));
    let again = worker.run(&key, policy(), 8).await?;
    assert_eq!(
        (again.value, again.replayed, again.waited, again.guarded, again.attempt),
        (7, true, false, true, 1)
    );
    Ok(())
}

pub(super) async fn every_worker_replays_what_one_recorded(stage: Stage) -> Scene {
    let key = key("a");
    stage.worker().run(&key, policy(), 7).await?;
    for _ in 0..3 {
        let again = stage.worker().run(&key, policy(), 8).await?;
        assert_eq!((again.value, again.replayed), (7, true));
    }
    Ok(())
}

pub(super) async fn a_first_call_takes_two_trips_and_a_replay_at_most_one(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    worker.run(&key, policy(), 7).await?;
    assert_eq!(worker.wire.take_asked(), [Ask::Create, Ask::Replace]);
    worker.run(&key, policy(), 7).await?;
    let asked = worker.wire.take_asked();
    assert!(
        matches!(asked[..], [] | [Ask::Create]),
        "a glance may do, where the store allows one: {asked:?}"
    );
    Ok(())
}

pub(super) async fn one_id_in_two_namespaces_is_two_keys(stage: Stage) -> Scene {
    let worker = stage.worker();
    let mail = Key::new("mail", "event 1")?;
    let bill = Key::new("bill", "event 1")?;
    let mailing = worker.hold(&mail).await;
    assert_eq!(word(&worker.run(&bill, policy(), 2).await), "ran");
    mailing.ends(Ok(1)).await?;
    assert_eq!(worker.run(&mail, policy(), 0).await?.value, 1);
    assert_eq!(worker.run(&bill, policy(), 0).await?.value, 2);
    Ok(())
}

pub(super) async fn a_body_that_calls_its_own_key_is_told_that_it_runs(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    let again = |on_duplicate| worker.run(&key, policy().on_duplicate(on_duplicate), 1);
    let body = async |_| {
        let words = [again(OnDuplicate::Return).await, again(OnDuplicate::Raise).await];
        Ok::<_, Trouble>(words.iter().map(word).map(str::to_owned).collect::<Vec<_>>())
    };
    let ran = worker.once(key.clone()).run(body).await?;
    assert_eq!(ran.value, ["in_progress", "duplicate_execution"]);
    Ok(())
}

/// Runs once and has it replayed, here and elsewhere.
async fn replays<T>(stage: &Stage, id: &str, value: T) -> Scene
where
    T: Serialize + DeserializeOwned + PartialEq + Debug + Clone,
{
    let here = stage.worker();
    let first = here.once::<Trouble>(key(id)).run(async |_| Ok(value.clone())).await?;
    assert_eq!((&first.value, first.replayed), (&value, false), "{id}");
    for worker in [here, stage.worker()] {
        let again = worker.once::<Trouble>(key(id)).run(async |_| Err(Trouble::new("ran again"))).await?;
        assert_eq!((&again.value, again.replayed), (&value, true), "{id}");
    }
    Ok(())
}

pub(super) async fn every_empty_value_replays_as_itself(stage: Stage) -> Scene {
    replays(&stage, "[]", Vec::<u64>::new()).await?;
    replays(&stage, "0", 0_u64).await?;
    replays(&stage, "-0.0", 0.0_f64).await?;
    replays(&stage, "\"\"", String::new()).await?;
    replays(&stage, "false", false).await?;
    replays(&stage, "unit", ()).await?;
    replays(&stage, "none", None::<u64>).await?;
    replays(&stage, "some", Some(0_u64)).await?;
    replays(&stage, "{}", BTreeMap::<String, u64>::new()).await?;
    replays(&stage, "null", serde_json::Value::Null).await?;
    replays(&stage, "[null]", vec![None::<u64>]).await
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Shape {
    Nothing,
    Side(u64),
    Sides(u64, Option<Box<Shape>>),
    Named { inner: Vec<Shape>, label: Option<String> },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Tagged {
    Paid { receipt: String },
    Refused,
}

pub(super) async fn enums_and_options_replay_as_themselves(stage: Stage) -> Scene {
    let nested = Shape::Named {
        inner: vec![Shape::Nothing, Shape::Side(0), Shape::Sides(1, Some(Box::new(Shape::Sides(2, None))))],
        label: None,
    };
    replays(&stage, "nested", nested).await?;
    replays(&stage, "nothing", Shape::Nothing).await?;
    replays(&stage, "tagged", vec![Tagged::Paid { receipt: String::new() }, Tagged::Refused]).await?;
    replays(&stage, "result", [Ok::<u64, String>(1), Err("no".to_owned())]).await?;
    replays(
        &stage,
        "map",
        BTreeMap::from([(1_u64, Some(())), (u64::MAX, None)]).into_keys().collect::<Vec<_>>(),
    )
    .await
}

pub(super) async fn numbers_replay_to_the_last_digit(stage: Stage) -> Scene {
    replays(&stage, "u64", vec![u64::MAX, 9_007_199_254_740_993, 0]).await?;
    replays(&stage, "i64", vec![i64::MIN, -9_007_199_254_740_993, i64::MAX]).await?;
    replays(&stage, "u128", vec![u128::MAX, u128::from(u64::MAX) + 1]).await?;
    replays(&stage, "i128", vec![i128::MIN, i128::MAX]).await?;
    let floats =
        [0.1, 0.1 + 0.2, 1e300, f64::MAX, f64::MIN_POSITIVE, 5e-324, 1.0 / 3.0, 64_511.224_599_999_996];
    replays(&stage, "f64", floats.to_vec()).await?;
    // Many, because a parser that is nearly right is right for most.
    let odd = |n: u64| f64::from_bits(0x3FF0_0000_0000_0000 | onlyonce::chance::mix(n) >> 12) * 1e10;
    replays(&stage, "odd floats", (0..500).map(odd).collect::<Vec<_>>()).await?;
    replays(&stage, "f32", vec![f32::MAX, f32::MIN_POSITIVE, 16_777_217.0, 0.1]).await
}

pub(super) async fn texts_of_every_plane_replay_as_themselves(stage: Stage) -> Scene {
    let texts = [
        "\0\u{1}\u{1f}\u{7f}\u{80}",
        "\"quoted\" \\ and / 'single' `back`",
        "\r\n\t\u{2028}\u{2029}",
        "e\u{301} is not \u{e9}",
        "\u{feff}\u{fffd}\u{ffff}",
        "\u{1f600} \u{20000} \u{e0001} \u{10ffff}",
        "<script>\u{202e}$(rm -rf)'; DROP TABLE entries;--",
    ];
    replays(&stage, "texts", texts.map(str::to_owned).to_vec()).await?;
    let every_plane =
        (0..=16_u32).filter_map(|plane| char::from_u32(plane << 16 | 0x00A9)).collect::<String>();
    replays(&stage, "planes", every_plane).await?;
    replays(&stage, "long", "\u{10ffff}x".repeat(50_000)).await
}

pub(super) async fn keys_with_any_text_replay_their_own_outcome(stage: Stage) -> Scene {
    let worker = stage.worker();
    let ids =
        ["a", "A", "a ", "a/b", "../a", "a%2Fb", "é", "e\u{301}", "\u{1f600}", "'; --", "*", "a#1", "~a"];
    for (value, id) in (0..).zip(ids) {
        assert_eq!(word(&worker.run(&key(id), policy(), value).await), "ran", "{id:?}");
    }
    for (value, id) in (0..).zip(ids) {
        assert_eq!(stage.worker().run(&key(id), policy(), 99).await?.value, value, "{id:?}");
    }
    Ok(())
}

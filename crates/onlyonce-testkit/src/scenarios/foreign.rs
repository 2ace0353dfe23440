//! Entries that are no records of a call, and records of other versions.

use std::time::Duration;

use bytes::Bytes;
use onlyonce::engine::rules::State;
use onlyonce::store::{Commit, Draft, Entry, Expect, HeaderDraft, Holder, Status, Write};
use onlyonce::{Forget, Key, Lease, OnCrash, OnDuplicate, Verdict};

use super::*;

/// Puts an entry under the key as somebody else would.
async fn put(stage: &Stage, key: &Key, header: HeaderDraft, body: &str) -> Scene {
    let draft = Draft { header, body: Bytes::copy_from_slice(body.as_bytes()) };
    let write = Write::Put { key: key.clone(), expect: Expect::Absent, draft };
    match stage.store().commit(vec![write]).await? {
        Commit::Stored(_) => Ok(()),
        Commit::Conflict(there) => Err(format!("{key} should be free, there is {there:?}").into()),
    }
}

fn header(state: State) -> HeaderDraft {
    HeaderDraft { attempts: 1, keep_for: Some(KEEP), ..HeaderDraft::new(state.status()) }
}

async fn read(stage: &Stage, key: &Key) -> Scene<Option<Entry>> {
    Ok(stage.store().read(std::slice::from_ref(key)).await?.into_iter().next().flatten())
}

/// Every way to meet the key is refused with this code, and the entry stays as it is.
async fn refused(stage: &Stage, key: &Key, code: &str) -> Scene<onlyonce::Error> {
    let (worker, before) = (stage.worker(), read(stage, key).await?);
    for on_duplicate in [OnDuplicate::Return, OnDuplicate::Raise, OnDuplicate::Wait] {
        for on_crash in [OnCrash::Retry, OnCrash::Park] {
            let asks = policy().on_duplicate(on_duplicate).on_crash(on_crash);
            let outcome = worker.run(key, asks, 1).await;
            assert_eq!(word(&outcome), code, "{key} {on_duplicate:?}: {outcome:?}");
        }
    }
    let resolved = worker.resolve(key, Verdict::DidNot, "ann").await;
    assert_eq!(resolved.err().map(|error| error.code()), Some(code), "{key}");
    assert_eq!(read(stage, key).await?, before, "{key}");
    Ok(worker.look(key).await.err().ok_or("it is no record")?)
}

pub(super) async fn a_body_that_is_no_record_is_refused_and_stays(stage: Stage) -> Scene {
    let bodies =
        ["null", "[]", "{}", "7", "\"text\"", "{\"v\":\"one\"}", "{\"v\":-1}", "{\"v\":1,\"fingerprint\":7}"];
    for (n, body) in bodies.into_iter().enumerate() {
        for state in [State::Running, State::Completed, State::Parked] {
            let key = key(format!("{n} {state:?}"));
            put(&stage, &key, header(state), body).await?;
            let error = refused(&stage, &key, "store_corrupt").await?;
            assert!(error.to_string().contains(key.as_str()), "{error}");
        }
    }
    assert_eq!(word(&stage.worker().run(&key("another"), policy(), 1).await), "ran");
    Ok(())
}

pub(super) async fn a_record_that_cannot_be_read_can_be_forgotten(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    put(&stage, &key, header(State::Completed), "[\"no record\"]").await?;
    assert_eq!(word(&worker.run(&key, policy(), 1).await), "store_corrupt");
    worker.forget(&key, Forget::by("ann")).await?;
    assert_eq!(word(&worker.run(&key, policy(), 1).await), "ran");
    Ok(())
}

pub(super) async fn an_entry_of_another_door_is_refused_and_stays(stage: Stage) -> Scene {
    let key = key("a");
    put(&stage, &key, HeaderDraft::new(Status::new("planned")), "{\"v\":1}").await?;
    let error = refused(&stage, &key, "store_misconfigured").await?;
    assert!(error.to_string().contains("planned") && error.to_string().contains("namespace"), "{error}");
    let before = read(&stage, &key).await?;
    let forgotten = stage.worker().forget(&key, Forget::by("ann").even_running()).await;
    assert_eq!(
        forgotten.err().map(|error| error.code()),
        Some("store_misconfigured"),
        "it is not ours to forget"
    );
    assert_eq!(read(&stage, &key).await?, before);
    Ok(())
}

pub(super) async fn what_cannot_be_read_does_not_hide_the_rest(stage: Stage) -> Scene {
    let worker = stage.worker();
    worker.run(&key("good"), policy(), 1).await?;
    put(&stage, &key("broken"), header(State::Completed), "[]").await?;
    put(&stage, &key("foreign"), HeaderDraft::new(Status::new("planned")), "{}").await?;
    let listing = worker.list(onlyonce::store::Scan { limit: 100, ..Default::default() }).await?;
    assert_eq!(listing.views.len(), 1);
    let mut unreadable: Vec<_> =
        listing.unreadable.iter().map(|(key, error)| (key.id(), error.code())).collect();
    unreadable.sort_unstable();
    assert_eq!(unreadable, [("broken", "store_corrupt"), ("foreign", "store_misconfigured")]);
    Ok(())
}

pub(super) async fn a_record_of_a_newer_format_is_refused_and_stays(stage: Stage) -> Scene {
    // Also where the newer format has changed the shape of what this one knows.
    let newer = [
        "{\"v\":2}",
        "{\"v\":2,\"value\":7}",
        "{\"v\":4294967296,\"value\":7}",
        "{\"v\":3,\"fingerprint\":{\"sha512\":\"x\"},\"effects\":{\"charge\":\"done\"},\"audit\":7}",
    ];
    for (n, body) in newer.into_iter().enumerate() {
        for state in State::ALL {
            let key = key(format!("{n} {state:?}"));
            put(&stage, &key, header(state), body).await?;
            let error = refused(&stage, &key, "store_misconfigured").await?;
            assert_eq!(error.exit_code(), 78);
            assert!(error.to_string().contains("newer") && error.to_string().contains("upgrade"), "{error}");
            let forgotten = stage.worker().forget(&key, Forget::by("ann")).await;
            assert_eq!(forgotten.err().map(|error| error.code()), Some("store_misconfigured"));
            assert!(read(&stage, &key).await?.is_some(), "what a newer worker recorded stays");
        }
    }
    Ok(())
}

/// Records as format 1 has written them; they must be read for as long as there is a format 1 anywhere.
mod golden {
    /// The fingerprint of the JSON text `"one"`.
    pub(super) const CLAIM: &str =
        "{\"v\":1,\"fingerprint\":\"49e9fcfb5617aad332d56d58ffd0c7020d29ec1d0d0a03b7d7c47f268820acf3\"}";
    pub(super) const COMPLETED: &str = "{\"v\":1,\"fingerprint\":\"49e9fcfb5617aad332d56d58ffd0c7020d29ec1d0d0a03b7d7c47f268820acf3\",\"value\":\"old\",\"fence\":17}";
    pub(super) const NULL: &str = "{\"v\":1,\"value\":null,\"fence\":17}";
    pub(super) const NOT_STORED: &str = "{\"v\":1,\"not_stored\":\"too large\",\"fence\":17}";
    pub(super) const FAILED: &str =
        "{\"v\":1,\"failure\":{\"message\":\"no funds\",\"error\":\"no funds\"},\"fence\":17}";
    pub(super) const PANICKED: &str =
        "{\"v\":1,\"failure\":{\"message\":\"the body panicked: oh\",\"panicked\":true},\"fence\":17}";
    pub(super) const PARKED: &str = "{\"v\":1,\"parked\":\"attempt 1 by w#1 ended without a word 3 s ago\"}";
    pub(super) const EFFECTS: &str = "{\"v\":1,\"effects\":[{\"name\":\"charge\",\"state\":\"done\",\"value\":41},\
        {\"name\":\"mail\",\"state\":\"undone\",\"undone\":2},{\"name\":\"ship\",\"state\":\"failed\"}],\
        \"audit\":[{\"at\":1767225600000,\"by\":\"ann\",\"what\":\"forgotten while failed\"}]}";
    /// What a later version of format 1 may add.
    pub(super) const ADDED: &str =
        "{\"v\":1,\"value\":\"old\",\"fence\":17,\"colour\":\"blue\",\"list\":[{}]}";
}

pub(super) async fn records_of_format_1_are_read(stage: Stage) -> Scene {
    let worker = stage.worker();
    let text = async |id: &str, input: &str| {
        worker.once::<Trouble>(key(id)).input(input).run(async |_| Ok("new".to_owned())).await
    };
    put(&stage, &key("completed"), header(State::Completed), golden::COMPLETED).await?;
    assert_eq!(text("completed", "one").await?.value, "old");
    assert_eq!(word(&text("completed", "two").await), "input_changed");
    put(&stage, &key("added"), header(State::Completed), golden::ADDED).await?;
    assert_eq!(text("added", "one").await?.value, "old");
    put(&stage, &key("null"), header(State::Completed), golden::NULL).await?;
    let null = worker.once::<Trouble>(key("null")).run(async |_| Ok(Some(1_u64))).await?;
    assert_eq!((null.value, null.replayed), (None, true));
    for (id, state, body, expected) in [
        ("not stored", State::Completed, golden::NOT_STORED, "result_not_stored"),
        ("failed", State::Failed, golden::FAILED, "failed_before"),
        ("panicked", State::Failed, golden::PANICKED, "failed_before"),
        ("released", State::Released, golden::FAILED, "ran"),
        ("parked", State::Parked, golden::PARKED, "parked"),
    ] {
        put(&stage, &key(id), header(state), body).await?;
        assert_eq!(word(&worker.run(&key(id), policy(), 1).await), expected, "{id}");
    }
    Ok(())
}

pub(super) async fn a_lease_of_format_1_is_honoured_and_taken_over(stage: Stage) -> Scene {
    let (worker, key) = (stage.worker(), key("a"));
    let old = HeaderDraft {
        holder: Some(Holder::parse("old-host:1:0badcafe#3")),
        attempts: 1,
        due_in: Some(LEASE),
        ..HeaderDraft::new(State::Running.status())
    };
    put(&stage, &key, old, golden::CLAIM).await?;
    let call = async |input: &str| {
        worker.once::<Trouble>(key.clone()).policy(policy()).input(input).run(async |_| Ok(1_u64)).await
    };
    assert_eq!(word(&call("one").await), "in_progress");
    assert_eq!(word(&call("two").await), "input_changed");
    stage.pass(LEASE).await;
    let ran = call("one").await?;
    assert_eq!((ran.replayed, ran.attempt), (false, 2));
    Ok(())
}

pub(super) async fn effects_and_lines_of_format_1_go_on(stage: Stage) -> Scene {
    let (worker, key, runs) = (stage.worker(), key("a"), Tally::default());
    put(&stage, &key, header(State::Released), golden::EFFECTS).await?;
    let body = async |lease: Lease| {
        let mut values = Vec::new();
        for name in ["charge", "mail", "ship"] {
            values.push(lease.effect(name).run(async |_| Ok::<_, Trouble>(runs.add())).await?);
        }
        assert!(lease.effect("mail").key().await != lease.effect_key("mail"), "it was undone twice");
        Ok::<_, Trouble>(values)
    };
    let ran = worker.once(key.clone()).policy(policy()).run(body).await?;
    assert_eq!((ran.value, ran.attempt), (vec![41, 1, 2], 2));
    let audit = worker.view(&key).await?.record.audit;
    assert_eq!((audit.len(), audit[0].by.as_str()), (1, "ann"));
    Ok(())
}

pub(super) async fn records_are_written_as_format_1_writes_them(stage: Stage) -> Scene {
    let worker = stage.worker();
    let body_of = async |id: &str| -> Scene<String> {
        let entry = read(&stage, &key(id)).await?.ok_or("it is recorded")?;
        let fence = format!("\"fence\":{}", worker.view(&key(id)).await?.record.fence.unwrap_or_default());
        Ok(String::from_utf8(entry.body.to_vec())?.replace(&fence, "\"fence\":17"))
    };
    let text = worker.once::<Trouble>(key("completed")).input("one");
    text.run(async |_| Ok("old".to_owned())).await?;
    assert_eq!(body_of("completed").await?, golden::COMPLETED);
    worker.once::<Trouble>(key("null")).run(async |_| Ok(())).await?;
    assert_eq!(body_of("null").await?, golden::NULL);
    let locks = policy().on_failure(onlyonce::OnFailure::Lock);
    let failed = worker.once(key("failed")).policy(locks);
    let _ = failed.run_keeping_errors(async |_| Err::<u64, _>(Trouble::new("no funds"))).await;
    assert_eq!(body_of("failed").await?, golden::FAILED);
    let claim = worker.once::<Trouble>(key("claim")).input("one").claim::<u64>().await?;
    assert_eq!(body_of("claim").await?, golden::CLAIM);
    drop(claim);
    stage.pass(Duration::from_secs(1)).await;
    Ok(())
}

//! Deliberate bugs of a worker, made at its link: what it sends is not what the engine said.

use std::time::Duration;

use bytes::Bytes;
use onlyonce::store::{Commit, Draft, Expect, StoreError, StoreErrorKind, Version, Write};

use super::link::{Link, Reply, Request};
use super::mutants::Mutant;
use super::server::is_settlement;

/// Sends these writes as a broken worker would.
pub(super) async fn commit(link: &Link, mut writes: Vec<Write>) -> Result<Commit, StoreError> {
    let Some(mutant) = link.world.mutant else { return ask(link, writes).await };
    if let Some(write) = writes.first_mut() {
        if pretends(mutant, write) {
            return Ok(Commit::Stored(vec![expected(write)]));
        }
        bend(mutant, write);
    }
    let sent = writes.clone();
    let answer = ask(link, writes).await;
    match (mutant, &answer, sent.first()) {
        (Mutant::RunsAnyway, Ok(Commit::Conflict(there)), Some(write)) if is_claim(write) => {
            let version =
                there.first().and_then(Option::as_ref).map_or(Version::new(1), |entry| entry.version);
            Ok(Commit::Stored(vec![version]))
        }
        (Mutant::AssumesStored, Err(error), Some(write)) if error.kind() == StoreErrorKind::Uncertain => {
            Ok(Commit::Stored(vec![Version::new(expected(write).get() + 1)]))
        }
        (Mutant::BlindRetry, Ok(Commit::Conflict(there)), Some(write)) if is_settlement(write) => {
            let mut again = write.clone();
            if let Write::Put { expect, .. } = &mut again {
                let there = there.first().and_then(Option::as_ref).map(|entry| entry.version);
                *expect = there.map_or(Expect::Absent, Expect::Version);
            }
            ask(link, vec![again]).await
        }
        _ => answer,
    }
}

async fn ask(link: &Link, writes: Vec<Write>) -> Result<Commit, StoreError> {
    match link.ask(Request::Commit(writes)).await? {
        Reply::Commit(commit) => Ok(commit),
        _ => Err(StoreError::corrupt("the answer to another question")),
    }
}

/// Whether the worker only says that it wrote.
fn pretends(mutant: Mutant, write: &Write) -> bool {
    match (mutant, write) {
        (Mutant::SkipsStarted, Write::Put { draft, .. }) => {
            draft.header.status.as_str() == "running" && has(&draft.body, br#""state":"started""#)
        }
        (Mutant::FakesHeartbeats, Write::Touch { header, .. }) => header.due_in != Some(Duration::ZERO),
        _ => false,
    }
}

fn bend(mutant: Mutant, write: &mut Write) {
    match (mutant, write) {
        (Mutant::FreesOnDrop, Write::Touch { header, .. }) if header.due_in == Some(Duration::ZERO) => {
            header.status = onlyonce::engine::rules::State::Released.status();
            header.due_in = None;
            header.keep_for = Some(Duration::from_secs(3600));
        }
        (Mutant::ForgetsInput, Write::Put { draft, .. }) => *draft = without_input(draft),
        (Mutant::ForgetsEffects, Write::Put { draft, .. }) if draft.header.attempts > 1 => {
            *draft = without_effects(draft);
        }
        _ => {}
    }
}

/// Only what a claim finds: the body of a run that goes on has its own effects in it.
fn without_effects(draft: &Draft) -> Draft {
    let text = String::from_utf8_lossy(&draft.body);
    let only_found = !text.contains("value\":") && !text.contains("failure");
    let body = match text.find(r#","effects":["#) {
        Some(at) if only_found => Bytes::from(format!("{}}}", &text[..at])),
        _ => draft.body.clone(),
    };
    Draft { header: draft.header.clone(), body }
}

fn without_input(draft: &Draft) -> Draft {
    let text = String::from_utf8_lossy(&draft.body);
    let body = match text.find(r#""fingerprint":""#) {
        // The name, the colon, 64 digits in quotes.
        Some(at) => {
            let (before, after) = (&text[..at], &text[at + 14 + 66..]);
            Bytes::from(
                format!(
                    "{}{after}",
                    if after.starts_with(',') { before } else { before.trim_end_matches(',') }
                )
                .replace("{,", "{")
                .replace(",,", ","),
            )
        }
        None => draft.body.clone(),
    };
    Draft { header: draft.header.clone(), body }
}

fn is_claim(write: &Write) -> bool {
    matches!(write, Write::Put { draft, .. } if draft.header.status.as_str() == "running")
}

fn expected(write: &Write) -> Version {
    match write.expect() {
        Expect::Absent => Version::new(1),
        Expect::Version(version) => version,
    }
}

fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

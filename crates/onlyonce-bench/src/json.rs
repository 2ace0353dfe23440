//! Keys of JSON payloads, against parsing, canonicalising and hashing them.

use std::fmt::Write;
use std::hint::black_box;

use onlyonce::Key;
use onlyonce::key::JsonKey;
use sha2::{Digest, Sha256};

use crate::Failed;
use crate::args::Scale;
use crate::page::Row;
use crate::rounds::{Rounds, per_unit, time};

pub(crate) const HOW: &str = "\
An order with nested members, strings, integers and decimals, in the order a program would write them, padded with \
further items to 300 bytes and to 4 KiB. Ours: `JsonKey::new().key(namespace, payload)`. The reference: `serde_json` \
to a value, `serde_json_canonicalizer`, `sha2`, and the same `Key` of the hash's digits. Both give the same key.";

const ROUNDS: usize = 15;

pub(crate) fn keys(scale: Scale) -> Result<Vec<Row>, Failed> {
    let sizes = [(300, "300 B", 20_000), (4096, "4 KiB", 2_000)];
    sizes.into_iter().map(|(bytes, name, each)| row(scale, bytes, name, scale.of(each))).collect()
}

fn row(scale: Scale, bytes: usize, name: &str, each: usize) -> Result<Row, Failed> {
    let payload = payload(bytes);
    let keys = JsonKey::new();
    if keys.key("bench", &payload)? != reference(&payload)? {
        return Err("the two sides give different keys".into());
    }
    let mut ours = || timed(each, || Ok(keys.key("bench", black_box(&payload))?));
    let mut theirs = || timed(each, || reference(black_box(&payload)));
    let rounds = Rounds::run(scale.rounds(ROUNDS), &mut [&mut ours, &mut theirs])?;
    let shown = |side| format!("{:.2} µs", rounds.median(side) / 1e3);
    Ok(Row::new(format!("JSON key of {name}")).sides(shown(0), shown(1)).at_least(rounds.faster(0, 1), 5.0))
}

fn timed(each: usize, mut key: impl FnMut() -> Result<Key, Failed>) -> Result<f64, Failed> {
    let (done, took) = time(|| (0..each).try_for_each(|_| key().map(|key| drop(black_box(key)))));
    done.map(|()| per_unit(took, each))
}

fn reference(payload: &[u8]) -> Result<Key, Failed> {
    let value: serde_json::Value = serde_json::from_slice(payload)?;
    let canonical = serde_json_canonicalizer::to_vec(&value)?;
    let mut id = String::with_capacity(6 + 64);
    id.push_str("exact:");
    for byte in Sha256::digest(&canonical) {
        write!(id, "{byte:02x}")?;
    }
    Ok(Key::new("bench", id)?)
}

/// An order of about so many bytes.
fn payload(bytes: usize) -> Vec<u8> {
    let head = r#"{"order":{"id":"8f14e45f-ea8b","customer":48213,"placed_at":"2026-11-15T09:30:00Z"},"currency":"EUR","total":129.95,"paid":true,"note":"Grüße, bitte klingeln","items":["#;
    let tail = "]}";
    let mut text = head.to_owned();
    for number in 0.. {
        let item = format!(
            r#"{{"sku":"A-{:04}","count":{},"price":{}.50}}"#,
            37 * number,
            number % 7 + 1,
            3 + number
        );
        let comma = if number == 0 { "" } else { "," };
        if text.len() + comma.len() + item.len() + tail.len() > bytes {
            break;
        }
        text.push_str(comma);
        text.push_str(&item);
    }
    let pad = bytes.saturating_sub(text.len() + tail.len());
    text.push_str(tail);
    text.insert_str(text.find(", bitte").unwrap_or(0), &"e".repeat(pad));
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_have_the_size_they_are_named_by() {
        for bytes in [300, 4096] {
            let payload = payload(bytes);
            assert_eq!(payload.len(), bytes);
            assert_eq!(JsonKey::new().key("bench", &payload).unwrap(), reference(&payload).unwrap());
        }
    }
}

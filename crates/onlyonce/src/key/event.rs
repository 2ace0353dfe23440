//! Keys of events: the same fact, however often it was published.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Key;
use super::canonical::write_document;
use super::fingerprint::{Fingerprint, fingerprint_of};
use super::form::Form;
use super::pointer::{Filter, Pointer};
use super::writer::Writer;
use crate::error::Error;

/// The parts of an event's payload that say which event it is.
///
/// A transport's message id knows a redelivery; this knows a republication as well. Read it from a payload,
/// where other members are ignored, or fill it in.
///
/// # Example
/// ```
/// use onlyonce::key::EventIdentity;
///
/// let payload = br#"{"eventId": "evt-1", "service": "billing", "status": "up"}"#;
/// let key = EventIdentity::from_json(payload)?.key("ops_dedupe", "Prod EU")?;
/// assert_eq!(key.map(|key| key.to_string()).as_deref(), Some("ops_dedupe/prod-eu__evt-1"));
/// # Ok::<(), onlyonce::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EventIdentity {
    /// The producer's own id: a text or a 64-bit integer. Where it is there, nothing else counts.
    pub event_id: Value,
    /// Of which version the payload is; `unknown` when it does not say.
    pub schema_version: Value,
    /// What kind of event; `system_event` when it does not say.
    pub event_type: Value,
    /// Whose event.
    pub service: Value,
    /// When it came to be.
    pub produced_at: Value,
    /// When it came to be, where `produced_at` is missing.
    pub timestamp: Value,
    /// Where the service runs.
    pub region: Value,
}

/// What is hashed; a missing member counts like an empty one.
#[derive(Serialize)]
struct Identity<'a> {
    schema: &'a Value,
    #[serde(rename = "type")]
    kind: &'a Value,
    service: &'a Value,
    #[serde(rename = "producedAt")]
    produced_at: &'a Value,
    region: &'a Value,
}

impl EventIdentity {
    /// Reads the identity from an event's payload.
    ///
    /// # Errors
    /// `bad_json`: not JSON, or JSON no key can be made of. `bad_input`: not an object.
    pub fn from_json(payload: &[u8]) -> Result<Self, Error> {
        static PARTS: LazyLock<Filter> = LazyLock::new(|| {
            let names =
                ["eventId", "schemaVersion", "eventType", "service", "producedAt", "timestamp", "region"];
            Filter::new(Form::Exact, &names.map(Pointer::to_member), &[])
        });
        Writer::lend(Form::Exact, |writer| {
            let found = write_document(writer, payload, &PARTS)?;
            if !payload.trim_ascii_start().starts_with(b"{") {
                return Err(Error::BadInput { reason: "an event's payload is a JSON object".to_owned() });
            }
            let parts = if found { &writer.out[..] } else { b"{}" };
            serde_json::from_slice(parts).map_err(|error| Error::BadInput { reason: error.to_string() })
        })
    }

    /// The event's key for one consumer: `normalize(env)__` and the event's id, or else a hash.
    ///
    /// The hash is the base32 form (52 characters, as RFC 4648 has them) of the SHA-256 of the canonical JSON of
    /// schema, type, service, time and region.
    ///
    /// `None`: the payload has neither an id nor, together, a service and a time. All such events would look
    /// like one; tell them apart by the transport's message id alone.
    ///
    /// # Errors
    /// `bad_input`: the event's id is neither a text nor a 64-bit integer. `bad_key`: the id or the namespace cannot be
    /// one.
    pub fn key(&self, namespace: &str, env: &str) -> Result<Option<Key>, Error> {
        let Some(logical) = self.logical_id()? else { return Ok(None) };
        Key::new(namespace, format!("{}__{logical}", normalize(env))).map(Some)
    }

    fn logical_id(&self) -> Result<Option<String>, Error> {
        match &self.event_id {
            missing if is_missing(missing) => self.hashed_id(),
            Value::String(id) => Ok(Some(id.clone())),
            Value::Number(id) if !id.is_f64() => Ok(Some(id.to_string())),
            _ => Err(Error::BadInput { reason: "an eventId is a text or a 64-bit integer".to_owned() }),
        }
    }

    fn hashed_id(&self) -> Result<Option<String>, Error> {
        let produced_at = first_of([&self.produced_at, &self.timestamp]);
        let (Some(service), Some(produced_at)) = (first_of([&self.service]), produced_at) else {
            return Ok(None);
        };
        let (unknown, system_event, nowhere) = ("unknown".into(), "system_event".into(), "".into());
        let identity = Identity {
            schema: first_of([&self.schema_version]).unwrap_or(&unknown),
            kind: first_of([&self.event_type]).unwrap_or(&system_event),
            service,
            produced_at,
            region: first_of([&self.region]).unwrap_or(&nowhere),
        };
        Ok(Some(base32(&fingerprint_of(&identity)?)))
    }
}

fn first_of<const N: usize>(values: [&Value; N]) -> Option<&Value> {
    values.into_iter().find(|value| !is_missing(value))
}

/// As `or` sees it in the languages that write such payloads.
fn is_missing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Bool(true) | Value::Array(_) | Value::Object(_) => false,
    }
}

/// One spelling for the name of an environment, a service or a region.
///
/// Lower case; letters, digits and dots stay, every run of anything else becomes one dash. There is never an
/// underscore in it, so `__` divides the parts of an id without doubt. What has no letter or digit is `unknown`.
pub fn normalize(name: &str) -> String {
    let lower = name.to_lowercase();
    let is_word = |c: char| c.is_alphanumeric() || c == '.';
    let words =
        lower.split(|c| !is_word(c)).map(|word| word.trim_matches('.')).filter(|word| !word.is_empty());
    let normal = words.collect::<Vec<_>>().join("-");
    if normal.is_empty() { "unknown".to_owned() } else { normal }
}

/// The id of a service's own document: environment, service and, where there is one, region.
pub fn service_id(env: &str, service: &str, region: Option<&str>) -> String {
    let parts = [Some(env), Some(service), region];
    parts.into_iter().flatten().map(normalize).collect::<Vec<_>>().join("__")
}

/// 256 bits in 52 characters.
fn base32(fingerprint: &Fingerprint) -> String {
    const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let mut text = String::with_capacity(56);
    for chunk in fingerprint.as_bytes().chunks(5) {
        let mut group = [0; 8];
        group[3..3 + chunk.len()].copy_from_slice(chunk);
        let bits = u64::from_be_bytes(group);
        let digits = (chunk.len() * 8).div_ceil(5);
        text.extend((0..digits).map(|i| char::from(ALPHABET[(bits >> (35 - 5 * i)) as usize & 31])));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(payload: &str) -> Option<String> {
        let key = EventIdentity::from_json(payload.as_bytes()).unwrap().key("n", "prod").unwrap();
        key.map(|key| key.id().to_owned())
    }

    #[test]
    fn a_hashed_id_is_what_python_makes_of_the_same_fields() {
        // base64.b32encode(hashlib.sha256(json.dumps({"schema": 1, "type": "up", "service": "s", "producedAt":
        //   "2026-01-01", "region": ""}, sort_keys=True, separators=(",", ":")).encode()).digest())[:52]
        let payload =
            r#"{"producedAt":"2026-01-01","service":"s","eventType":"up","schemaVersion":1,"cpu":0.5}"#;
        assert_eq!(
            id(payload).as_deref(),
            Some("prod__K3VCIRRED2RQK3YPH72ZEQPF2FCOPBYADA2FXJCNYCUQSPEKRGXA")
        );
    }

    #[test]
    fn a_missing_field_counts_like_an_empty_one() {
        let full = r#"{"eventId":"","schemaVersion":"unknown","eventType":"system_event","service":"s","producedAt":5,"region":""}"#;
        let bare = r#"{"service":"s","timestamp":5}"#;
        let other = r#"{"service":"s","timestamp":5,"region":"eu"}"#;
        assert!(id(full).is_some());
        assert_eq!(id(full), id(bare));
        assert_ne!(id(bare), id(other));
    }

    #[test]
    fn events_that_nothing_tells_apart_have_no_key() {
        for payload in
            ["{}", r#"{"service":"s"}"#, r#"{"timestamp":"2026"}"#, r#"{"eventId":null,"eventType":"x"}"#]
        {
            assert_eq!(id(payload), None, "{payload}");
        }
    }

    #[test]
    fn an_event_id_is_a_text_or_an_integer() {
        assert_eq!(id(r#"{"eventId":"e/1"}"#).as_deref(), Some("prod__e/1"));
        assert_eq!(id(r#"{"eventId":18446744073709551615}"#).as_deref(), Some("prod__18446744073709551615"));
        for payload in [r#"{"eventId":1.5}"#, r#"{"eventId":["a"]}"#, r#"{"eventId":true}"#] {
            let error = EventIdentity::from_json(payload.as_bytes()).unwrap().key("n", "prod").unwrap_err();
            assert_eq!(error.code(), "bad_input");
        }
    }

    #[test]
    fn what_is_no_event_is_refused() {
        for (payload, code) in [
            ("[]", "bad_input"),
            (r#"["evt-1"]"#, "bad_input"),
            ("7", "bad_input"),
            ("", "bad_json"),
            (r#"{"eventId":1,"eventId":2}"#, "bad_json"),
            (r#"{"eventId":"a","x":NaN}"#, "bad_json"),
        ] {
            assert_eq!(EventIdentity::from_json(payload.as_bytes()).unwrap_err().code(), code, "{payload}");
        }
    }

    #[test]
    fn names_have_one_spelling() {
        for (name, normal) in [
            ("prod", "prod"),
            (" Prod_EU ", "prod-eu"),
            ("a__b", "a-b"),
            ("v1.2", "v1.2"),
            ("..", "unknown"),
            ("", "unknown"),
            ("ÄRGER/1", "ärger-1"),
        ] {
            assert_eq!(normalize(name), normal);
        }
        assert_eq!(service_id("Prod", "strategy_engine", None), "prod__strategy-engine");
        assert_eq!(service_id("prod", "s", Some("eu west")), "prod__s__eu-west");
    }
}

//! What the engine writes into an entry's body.
//!
//! Readable JSON with a format version. What is not there is left out, so the common record is short:
//! `{"v":1,"value":{"id":7}}`.

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::rules::{Sight, State, Trace};
use crate::error::Error;
use crate::key::Fingerprint;
use crate::store::{Entry, Holder, StoreError, Version};
use crate::time::Timestamp;

/// The format this build writes, and the newest it reads.
const FORMAT: u32 = 1;
/// The longest message of a failure, in bytes.
const MAX_MESSAGE: usize = 8 * 1024;
/// What is kept of a message in a store with no room even for that, in bytes.
const MIN_MESSAGE: usize = 1024;
/// Audit lines kept per key; the oldest go first.
const MAX_AUDIT: usize = 20;

/// What is remembered of a guarded call, beside the header.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Record {
    v: u32,
    /// The input it was called with, if that was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Fingerprint>,
    /// The value, when the outcome is one. JSON `null` is a value.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub value: Option<Box<RawValue>>,
    /// Why a finished call has no value here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_stored: Option<String>,
    /// The last failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Why it is parked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parked: Option<String>,
    /// The fence of the lease that settled it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<Version>,
    /// What became of each effect, in the order they were first begun.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<EffectRecord>,
    /// Who changed what by hand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub audit: Vec<AuditLine>,
}

/// How a body failed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Failure {
    /// What it said.
    pub message: String,
    /// The error itself, where it could be kept.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub error: Option<Box<RawValue>>,
    /// Whether it panicked.
    #[serde(default, skip_serializing_if = "is_false")]
    pub panicked: bool,
}

impl Failure {
    /// The same, no longer than a record should be: a long message is cut, a large error is left out.
    pub(crate) fn short(mut self, max_error: usize) -> Self {
        if self.message.len() > MAX_MESSAGE {
            let end = (0..=MAX_MESSAGE).rev().find(|at| self.message.is_char_boundary(*at)).unwrap_or(0);
            self.message.truncate(end);
            self.message.push_str(" … (cut)");
        }
        self.error = self.error.filter(|error| error.get().len() <= max_error);
        self
    }

    /// Leaves what fits into any store.
    pub(crate) fn shorten(&mut self) {
        self.error = None;
        if let Some((end, _)) = self.message.char_indices().find(|(at, _)| *at >= MIN_MESSAGE) {
            self.message.truncate(end);
            self.message.push('…');
        }
    }
}

/// What became of one effect.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EffectRecord {
    /// Its name within the key.
    pub name: String,
    /// How far it got.
    pub state: EffectState,
    /// What it gave.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub value: Option<Box<RawValue>>,
    /// How often it was taken back; part of its key, so that a redone effect is a new one outside.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub undone: u32,
}

/// How far an effect got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EffectState {
    /// Begun; no end is known.
    Started,
    /// Done.
    Done,
    /// Ended with an error of its own: it did not happen.
    Failed,
    /// Its undo was begun; no end is known.
    Undoing,
    /// Taken back.
    Undone,
}

impl EffectState {
    /// What it is once somebody has found out that it is not in place.
    pub(crate) fn did_not(self) -> Self {
        match self {
            Self::Started => Self::Failed,
            Self::Undoing => Self::Undone,
            Self::Done | Self::Failed | Self::Undone => self,
        }
    }

    pub(crate) fn trace(self) -> Trace {
        match self {
            Self::Started => Trace::Begun,
            Self::Undoing => Trace::Undoing,
            Self::Done => Trace::Done,
            Self::Failed | Self::Undone => Trace::None,
        }
    }
}

/// One change made by hand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditLine {
    /// When, by the clock of the machine it was made on.
    pub at: Timestamp,
    /// Who.
    pub by: String,
    /// What.
    pub what: String,
}

/// Keeps a field that is there and `null` apart from one that is not there.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(from).map(Some)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Record {
    /// An empty record for this input.
    pub(crate) fn new(fingerprint: Option<Fingerprint>) -> Self {
        Self { v: FORMAT, fingerprint, ..Self::default() }
    }

    /// Clears what was unsure: it did not happen.
    pub(crate) fn clear_unsure(&mut self) {
        for effect in &mut self.effects {
            effect.undone += u32::from(effect.state == EffectState::Undoing);
            effect.state = effect.state.did_not();
        }
    }

    /// Adds a line to the audit trail.
    pub(crate) fn note(&mut self, at: Timestamp, by: &str, what: String) {
        if self.audit.len() >= MAX_AUDIT {
            self.audit.remove(0);
        }
        self.audit.push(AuditLine { at, by: by.to_owned(), what });
    }

    /// The body to store.
    pub(crate) fn encode(&self) -> Result<Bytes, Error> {
        serde_json::to_vec(self).map(Bytes::from).map_err(|e| Error::BadInput { reason: e.to_string() })
    }

    /// The record in this entry.
    ///
    /// # Errors
    /// `store_corrupt` when the body is no record, `store_misconfigured` when a newer version of onlyonce wrote it.
    pub fn decode(entry: &Entry) -> Result<Self, Error> {
        let record: Self = match serde_json::from_slice(&entry.body) {
            Ok(record) => record,
            Err(error) => return Err(unreadable(entry, &error)),
        };
        if record.v > FORMAT {
            return Err(newer(entry, record.v.into()));
        }
        Ok(record)
    }
}

/// Why this body cannot be read: a newer format may have changed the shape of anything but its number.
fn unreadable(entry: &Entry, error: &serde_json::Error) -> Error {
    #[derive(Deserialize)]
    struct Format {
        v: u64,
    }
    match serde_json::from_slice(&entry.body) {
        Ok(Format { v }) if v > FORMAT.into() => newer(entry, v),
        _ => StoreError::corrupt(format!("what is stored under {} is no record of a call ({error}); forget it, or look at it with the store's own tools", entry.key)).into(),
    }
}

fn newer(entry: &Entry, format: u64) -> Error {
    StoreError::misconfigured(format!(
        "{} was written in format {format} by a newer onlyonce, and this one reads up to {FORMAT}; upgrade this worker",
        entry.key
    ))
    .into()
}

/// The body of a first claim, without going through a record.
pub(crate) fn claim_body(fingerprint: Option<Fingerprint>) -> Bytes {
    match fingerprint {
        None => Bytes::from_static(br#"{"v":1}"#),
        Some(fingerprint) => Bytes::from(format!(r#"{{"v":1,"fingerprint":"{fingerprint}"}}"#)),
    }
}

/// The input of a settled record, and what stands where its value does, if it has nothing else.
///
/// As this build writes it; `None` says nothing about the record but that it has to be read the long way. What is
/// given is the value only if it is one whole piece of JSON: a further member would be part of it.
#[inline]
pub(crate) fn plain_value(body: &[u8]) -> Option<(Option<Fingerprint>, &[u8])> {
    let (fingerprint, rest) = after_claim(body)?;
    Some((fingerprint, before_fence(rest.strip_prefix(br#","value":"#)?)?))
}

/// What a record begins with, as [`claim_body`] writes it, and the rest.
#[inline]
fn after_claim(body: &[u8]) -> Option<(Option<Fingerprint>, &[u8])> {
    let rest = body.strip_prefix(br#"{"v":1"#)?;
    let Some(rest) = rest.strip_prefix(br#","fingerprint":""#) else { return Some((None, rest)) };
    let (hex, rest) = rest.split_at_checked(64)?;
    let fingerprint = std::str::from_utf8(hex).ok()?.parse().ok()?;
    Some((Some(fingerprint), rest.strip_prefix(b"\"")?))
}

/// What stands before the fence, which a settled record ends with.
fn before_fence(text: &[u8]) -> Option<&[u8]> {
    let text = text.strip_suffix(b"}")?;
    let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (text, fence) = text.split_at(text.len() - digits);
    text.strip_suffix(br#","fence":"#).filter(|_| !fence.is_empty())
}

/// An entry as a caller sees it.
#[derive(Clone, Debug)]
pub(crate) struct Sighting {
    pub(crate) sight: Sight,
    pub(crate) entry: Entry,
}

/// The few fields a decision needs, borrowed from the body.
#[derive(Deserialize)]
struct Glance<'a> {
    v: u32,
    #[serde(default)]
    fingerprint: Option<Fingerprint>,
    #[serde(default, borrow)]
    effects: Option<&'a RawValue>,
}

impl Sighting {
    /// Reads what a decision needs.
    ///
    /// # Errors
    /// As [`Record::decode`]; also when the status is not one of a guarded call.
    pub(crate) fn of(entry: Entry) -> Result<Self, Error> {
        let state = state_of(&entry)?;
        let glance: Glance<'_> = match serde_json::from_slice(&entry.body) {
            Ok(glance) => glance,
            // The whole record is what its reader knows of.
            Err(error) => {
                return Err(Record::decode(&entry).err().unwrap_or_else(|| unreadable(&entry, &error)));
            }
        };
        if glance.v > FORMAT {
            return Err(newer(&entry, glance.v.into()));
        }
        let sight = Sight {
            state,
            lease_left: lease_left(&entry),
            fingerprint: glance.fingerprint,
            attempts: entry.header.attempts,
            has_effects: glance.effects.is_some(),
        };
        Ok(Self { sight, entry })
    }
}

/// The state of an entry.
///
/// # Errors
/// `store_misconfigured` when its status is not one of a guarded call: it is another door's, and not damaged.
pub(crate) fn state_of(entry: &Entry) -> Result<State, Error> {
    State::from_status(entry.header.status).ok_or_else(|| {
        let (key, status) = (&entry.key, entry.header.status);
        StoreError::misconfigured(format!("{key} is {status:?}, which is no state of a guarded call; another door uses this namespace, so take another one")).into()
    })
}

/// How much of the lease was left when the store read the entry.
pub(crate) fn lease_left(entry: &Entry) -> std::time::Duration {
    entry.header.due_at.map_or(std::time::Duration::ZERO, |due| due.since(entry.read_at))
}

/// State and holder, as the rules ask for them.
pub(crate) fn whose(entry: Option<&Entry>) -> Option<(State, Option<&Holder>)> {
    let entry = entry?;
    Some((State::from_status(entry.header.status)?, entry.header.holder.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_value_is_what_the_whole_record_says() {
        let fingerprint = Fingerprint::of_bytes(b"input");
        for value in ["null", "4711", "-0.5", "[]", r#""a,}\" b""#, r#"{"fence":[1,{"v":2}]}"#] {
            for given in [None, Some(fingerprint)] {
                let mut record = Record::new(given);
                record.value = RawValue::from_string(value.to_owned()).ok();
                record.fence = Some(Version::new(17));
                let body = record.encode().unwrap();
                assert_eq!(plain_value(&body), Some((given, value.as_bytes())));
            }
        }
    }

    #[test]
    fn what_is_not_plain_is_read_the_long_way() {
        let hex = Fingerprint::of_bytes(b"input").to_hex();
        let bodies = [
            r#"{"v":1}"#.to_owned(),
            r#"{"v":2,"value":7,"fence":1}"#.to_owned(),
            r#"{"v":1,"value":7}"#.to_owned(),
            r#"{"v":1,"value":7"#.to_owned(),
            r#"{"v":1,"value":7,"fence":}"#.to_owned(),
            r#"{"v":1,"value":7,"fence":1"#.to_owned(),
            r#"{"v":1,"value":7,"fence":1}}"#.to_owned(),
            r#"{"v":1,"value":7,"fence":1,"audit":[]}"#.to_owned(),
            r#"{"v":1,"value":7,"value":8,"fence":1}"#.to_owned(),
            r#"{"v":1,"value":7,"not_stored":"","fence":1}"#.to_owned(),
            r#"{"v":1,"value":"seven","fence":1}"#.to_owned(),
            r#"{"v":1,"value":7,"fence":1,"fence":2}"#.to_owned(),
            r#"{"v":1,"value":7,"fence":-1}"#.to_owned(),
            r#"{"v":1,"not_stored":"too large"}"#.to_owned(),
            format!(r#"{{"v":1,"fingerprint":"{}","value":7,"fence":1}}"#, &hex.as_str()[1..]),
            format!(r#"{{"v":1,"fingerprint":"{}é","value":7,"fence":1}}"#, &hex.as_str()[1..]),
        ];
        for body in bodies {
            let value =
                plain_value(body.as_bytes()).and_then(|(_, value)| serde_json::from_slice(value).ok());
            assert_eq!(value, None::<u64>, "{body}");
        }
    }
}

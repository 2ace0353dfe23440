//! The hash of an input.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

use super::Key;
use super::form::Form;
use super::serialize::write_value;
use super::writer::Writer;
use crate::error::Error;

/// The hash of an input: same key with another fingerprint is a mistake, not a replay.
///
/// SHA-256, shown and stored as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

/// The fingerprint of any value serde can write.
///
/// # Promise
/// It is the SHA-256 of the value's JSON in the form [`Form::Exact`]: it does not depend on the order of a map,
/// on the process, or on the machine, and it is the same as that of the JSON text `serde_json` writes for
/// the value. It *does* depend on the names of fields and variants.
///
/// # Errors
/// `bad_input`: the value has no JSON form of its own. That is a float that is not finite (`serde_json` would
/// write `null`, and two inputs would look the same), a map whose keys are not strings, characters, integers,
/// booleans or unit variants, two members of one name, nesting deeper than 128, or a `Serialize` that fails.
///
/// # Example
/// ```
/// use std::collections::HashMap;
/// use onlyonce::key::fingerprint_of;
///
/// let one = HashMap::from([("amount", 100), ("user", 7)]);
/// let other = HashMap::from([("user", 7), ("amount", 100)]);
/// assert_eq!(fingerprint_of(&one)?, fingerprint_of(&other)?);
/// assert!(fingerprint_of(&f64::NAN).is_err());
/// # Ok::<(), onlyonce::Error>(())
/// ```
pub fn fingerprint_of<T: Serialize + ?Sized>(value: &T) -> Result<Fingerprint, Error> {
    Writer::lend(Form::Exact, |writer| {
        write_value(writer, value)?;
        Ok(Fingerprint::of_bytes(&writer.out))
    })
}

/// Refuses a value that has no JSON form of its own.
///
/// # Errors
/// As [`fingerprint_of`].
pub(crate) fn check_json_form<T: Serialize + ?Sized>(value: &T) -> Result<(), Error> {
    Writer::lend(Form::Exact, |writer| write_value(writer, value))
}

impl Fingerprint {
    /// The hash of these bytes as they are.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The fingerprint with these bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The key whose id is a prefix, which says what was hashed, and the 64 digits.
    pub(super) fn key(self, namespace: &str, prefix: &str) -> Result<Key, Error> {
        let mut id = String::with_capacity(prefix.len() + 64);
        id.push_str(prefix);
        id.push_str(self.to_hex().as_str());
        Key::new(namespace, id)
    }

    /// Its 64 hexadecimal digits.
    pub fn to_hex(self) -> Hex {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut hex = [0; 64];
        for (pair, byte) in hex.as_chunks_mut().0.iter_mut().zip(self.0) {
            *pair = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 0xf)]];
        }
        Hex(hex)
    }
}

/// The 64 hexadecimal digits of a fingerprint, without an allocation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Hex([u8; 64]);

impl Hex {
    /// The digits, in lower case.
    pub fn as_str(&self) -> &str {
        // Only digits were put in, so this never falls back.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Debug for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.to_hex().as_str())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_hex().as_str())
    }
}

impl FromStr for Fingerprint {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        parse_hex(text.as_bytes()).map(Self).ok_or_else(|| Error::BadInput {
            reason: "a fingerprint is written as 64 hexadecimal digits in lower case".to_owned(),
        })
    }
}

fn parse_hex(text: &[u8]) -> Option<[u8; 32]> {
    let (pairs, []) = text.as_chunks::<2>() else { return None };
    let mut bytes = [0; 32];
    if pairs.len() != bytes.len() {
        return None;
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = hex_digit(*high)? << 4 | hex_digit(*low)?;
    }
    Some(bytes)
}

fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.to_hex().as_str())
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Fingerprint;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("64 hexadecimal digits in lower case")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Fingerprint, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_reads_back_as_it_was_shown() {
        let fingerprint = Fingerprint::of_bytes(b"abc");
        let text = fingerprint.to_string();
        assert_eq!(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(text.parse::<Fingerprint>().unwrap(), fingerprint);
        let json = serde_json::to_string(&fingerprint).unwrap();
        assert_eq!(json, format!("\"{text}\""));
        assert_eq!(serde_json::from_str::<Fingerprint>(&json).unwrap(), fingerprint);
    }

    #[test]
    fn what_is_no_fingerprint_is_refused() {
        let good = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        for bad in ["", "ab", &good[1..], &good.to_uppercase(), &format!("{good}0"), &good.replace('b', "g")]
        {
            assert_eq!(bad.parse::<Fingerprint>().unwrap_err().code(), "bad_input", "{bad:?}");
        }
    }
}

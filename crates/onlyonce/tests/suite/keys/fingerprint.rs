//! Fingerprints of values, and keys of calls.

use std::collections::{BTreeMap, HashMap};

use onlyonce::key::{CallKey, JsonKey, fingerprint_of};
use onlyonce::{Fingerprint, Key};
use proptest::prelude::*;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::documents::{Speller, big_integers, documents, doubles, safe_integers};

/// What the JSON text of a value hashes to.
fn through_text<T: Serialize + ?Sized>(value: &T) -> Fingerprint {
    JsonKey::new().digest(&serde_json::to_vec(value).unwrap()).unwrap()
}

#[track_caller]
fn same_as_text<T: Serialize + ?Sized>(value: &T) {
    assert_eq!(
        fingerprint_of(value).unwrap(),
        through_text(value),
        "{}",
        serde_json::to_string(value).unwrap()
    );
}

#[track_caller]
fn refused<T: Serialize + ?Sized>(value: &T, reason: &str) {
    let error = fingerprint_of(value).unwrap_err();
    assert_eq!(error.code(), "bad_input");
    assert!(error.to_string().contains(reason), "{error}");
}

#[derive(Serialize)]
struct Unit;
#[derive(Serialize)]
struct Wrapper<T>(T);
#[derive(Serialize)]
struct Pair(u8, &'static str);
#[derive(Serialize, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Shape {
    Empty,
    One(u8),
    Two(u8, char),
    Named { z: Option<u8>, a: () },
}
#[derive(Serialize)]
struct Order<'a> {
    zip: &'a str,
    amount: f64,
    #[serde(rename = "é\n\"")]
    odd: [i8; 3],
    #[serde(flatten)]
    more: BTreeMap<String, Shape>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gone: Option<u8>,
}

#[test]
fn a_value_has_the_fingerprint_of_its_json_text() {
    same_as_text(&Unit);
    same_as_text(&Wrapper(Some(Pair(1, "x\u{1}"))));
    same_as_text(&[Shape::Empty, Shape::One(1), Shape::Two(2, '😀'), Shape::Named { z: None, a: () }]);
    same_as_text(&(true, 'c', 1.5_f32, 0.1_f32, f32::MAX, f32::MIN_POSITIVE, -0.0_f64, 1e300));
    same_as_text(&(i8::MIN, i16::MIN, i32::MIN, i64::MIN, i128::MIN, u64::MAX, u128::MAX));
    same_as_text(&BTreeMap::from([(true, 1), (false, 2)]));
    same_as_text(&BTreeMap::from([(-1, 1), (10, 2), (2, 3)]));
    same_as_text(&BTreeMap::from([('é', 1), ('"', 2)]));
    same_as_text(&BTreeMap::from([(Shape::Empty, 1)]));
    same_as_text(&BTreeMap::from([(u128::MAX, 1)]));
    same_as_text(std::str::from_utf8(b"plain").unwrap());
    let more = BTreeMap::from([("a".to_owned(), Shape::One(1)), ("zzz".to_owned(), Shape::Empty)]);
    same_as_text(&Order { zip: "1010", amount: 19.99, odd: [0, -1, 1], more, gone: None });
}

#[test]
fn raw_json_is_the_value_it_holds() {
    let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
    assert_eq!(
        fingerprint_of(&raw(r#"{"b": 1.0, "a": 2}"#)).unwrap(),
        fingerprint_of(&json!({"a": 2, "b": 1})).unwrap()
    );
    assert_eq!(fingerprint_of(&[raw("1e0")]).unwrap(), fingerprint_of(&[1]).unwrap());
    refused(&raw(r#"{"a":1,"a":2}"#), "same name");
}

#[test]
fn what_has_no_json_form_of_its_own_is_refused() {
    for float in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        refused(&float, "not finite");
        refused(&(float as f32), "not finite");
        refused(&json!({"a": [1]}).as_object().map(|_| [Some(float)]), "not finite");
    }
    refused(&BTreeMap::from([((1, 2), 1)]), "a tuple");
    refused(&BTreeMap::from([(vec![1], 1)]), "a sequence");
    refused(&BTreeMap::from([(Shape::One(1), 1)]), "a variant with content");
    refused(&BTreeMap::from([(Shape::Named { z: None, a: () }, 1)]), "a variant with content");
    refused(&BTreeMap::from([((), 1)]), "nothing");
    refused(&BTreeMap::from([(None::<u8>, 1)]), "nothing");
    refused(&BTreeMap::from([(BTreeMap::from([(1, 1)]), 1)]), "a map");
}

#[test]
fn two_members_of_one_name_are_refused() {
    #[derive(Serialize)]
    struct Twice {
        #[serde(rename = "b")]
        one: u8,
        a: u8,
        #[serde(flatten)]
        more: BTreeMap<&'static str, u8>,
    }
    refused(&Twice { one: 1, a: 2, more: BTreeMap::from([("b", 3)]) }, "same name");
}

#[test]
fn nesting_ends_at_128() {
    let nested = |depth| (0..depth).fold(Value::Null, |inner, _| json!([inner]));
    assert!(fingerprint_of(&nested(128)).is_ok());
    refused(&nested(129), "deeper than 128");
    refused(&(0..129).fold(Value::Null, |inner, _| json!({"a": inner})), "deeper than 128");
}

#[test]
fn a_serialize_that_fails_says_so() {
    let locked = std::sync::Mutex::new(1);
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _guard = locked.lock();
        panic!("poisons the lock");
    }));
    refused(&locked, "poison");
}

/// A value whose `serialize` takes a fingerprint itself must not meet the outer one's buffers.
#[test]
fn fingerprints_may_be_taken_within_each_other() {
    struct Inner;
    impl Serialize for Inner {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            fingerprint_of(&["inner"]).unwrap().serialize(serializer)
        }
    }
    let inner = fingerprint_of(&["inner"]).unwrap();
    assert_eq!(fingerprint_of(&("a", Inner, "b")).unwrap(), fingerprint_of(&("a", inner, "b")).unwrap());
}

#[test]
fn the_fingerprint_never_changes() {
    // sha256 of {"amount":19.99,"id":9007199254740993,"tags":["é",null,true]}
    let value = json!({"tags": ["é", null, true], "id": 9_007_199_254_740_993_u64, "amount": 19.99});
    let known = "f06c1ffba7b10dada8d1b672309ccf98c6bf90f1cce92dc1a58506581eea6bc8";
    assert_eq!(fingerprint_of(&value).unwrap().to_string(), known);
}

#[test]
fn in_a_call_names_count_and_order_does_not() {
    let key = |names: [&str; 2]| {
        CallKey::new("m::f").arg(names[0], &1).unwrap().arg(names[1], &2).unwrap().key().unwrap()
    };
    let swapped = CallKey::new("m::f").arg("b", &2).unwrap().arg("a", &1).unwrap().key().unwrap();
    assert_eq!(key(["a", "b"]), swapped);
    assert_ne!(key(["a", "b"]), key(["a", "c"]));
    assert_ne!(key(["a", "b"]), key(["b", "a"]));
    let map = HashMap::from([("b", 2), ("a", 1)]);
    assert_eq!(Key::of_call("m::f", &map).unwrap(), swapped);
    assert_ne!(Key::of_call("m::g", &map).unwrap(), swapped);
    let none = CallKey::new("m::f").key().unwrap();
    assert_eq!(none, Key::of_call("m::f", &json!({})).unwrap());
}

#[test]
fn a_call_that_has_no_key_says_why() {
    let twice = CallKey::new("f").arg("a", &1).unwrap().arg("a", &2).unwrap_err();
    assert_eq!(twice.code(), "bad_input");
    let late = CallKey::new("f").arg("b", &1).unwrap().arg("a", &2).unwrap().arg("b", &2).unwrap();
    assert_eq!(late.key().unwrap_err().code(), "bad_input");
    assert_eq!(CallKey::new("f").arg("a", &f64::NAN).unwrap_err().code(), "bad_input");
    assert_eq!(CallKey::new("no function").key().unwrap_err().code(), "bad_key");
}

proptest! {
    #[test]
    fn any_document_has_one_fingerprint_as_value_and_as_text(
        document in documents(prop_oneof![safe_integers(), big_integers(), doubles()]),
        seed: u64,
    ) {
        let spelt = Speller::new(seed).spell(&document);
        let raw: Box<RawValue> = serde_json::from_str(&spelt).unwrap();
        prop_assert_eq!(fingerprint_of(&raw).unwrap(), JsonKey::new().digest(spelt.as_bytes()).unwrap());
        if let Ok(value) = serde_json::from_str::<Value>(&spelt) {
            prop_assert_eq!(fingerprint_of(&value).unwrap(), through_text(&value));
        }
    }
}

//! Which parts of a payload count.

use onlyonce::Error;
use onlyonce::key::{Form, JsonKey};
use proptest::prelude::*;
use serde_json::{Map, Value};

fn reduced(select: &[&str], exclude: &[&str], document: &str) -> Result<String, Error> {
    let key = JsonKey::new().select(select)?.exclude(exclude)?;
    key.canonical(document.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap())
}

#[test]
fn excluded_members_and_elements_are_gone() {
    for (exclude, document, expected) in [
        (&["/a"][..], r#"{"a":1,"b":2}"#, r#"{"b":2}"#),
        (&["/b"], r#"{"a":1,"b":2}"#, r#"{"a":1}"#),
        (&["/a", "/b"], r#"{"b":1,"a":2}"#, "{}"),
        (&["/meta/ts"], r#"{"meta":{"ts":1,"v":2},"ts":3}"#, r#"{"meta":{"v":2},"ts":3}"#),
        (
            &["/items/*/retry"],
            r#"{"items":[{"retry":1,"x":1},{"x":2},3]}"#,
            r#"{"items":[{"x":1},{"x":2},3]}"#,
        ),
        (&["/*/ts"], r#"{"a":{"ts":1,"x":1},"b":{"ts":2}}"#, r#"{"a":{"x":1},"b":{}}"#),
        (&["/0"], r#"[1,2,3]"#, "[2,3]"),
        (&["/0", "/2"], r#"[1,2,3]"#, "[2]"),
        (&["/*"], r#"[1,2,3]"#, "[]"),
        (&["/0"], r#"{"0":1,"1":2}"#, r#"{"1":2}"#),
        (&["/00", "/-", "/+1", "/1e0", "/-1", "/99999999999999999999999"], r#"[1,2]"#, "[1,2]"),
        (&["/a/b/c", "/x"], r#"{"a":5}"#, r#"{"a":5}"#),
        (&["/"], r#"{"":1,"a":2}"#, r#"{"a":2}"#),
        (&["/a//b"], r#"{"a":{"":{"b":1,"c":2}}}"#, r#"{"a":{"":{"c":2}}}"#),
        (&["/a~1b", "/c~0d", "/~01"], r#"{"a/b":1,"c~d":2,"~1":3,"/":4}"#, r#"{"/":4}"#),
        (&["/\u{e9}", "/\n"], "{\"\\u00e9\":1,\"\\n\":2,\"e\":3}", r#"{"e":3}"#),
        (&["/a", "/a/b"], r#"{"a":{"b":1},"c":2}"#, r#"{"c":2}"#),
        (&["/*/x", "/a/y"], r#"{"a":{"x":1,"y":2,"z":3}}"#, r#"{"a":{"z":3}}"#),
    ] {
        assert_eq!(reduced(&[], exclude, document).unwrap(), expected, "{exclude:?} {document}");
    }
}

#[test]
fn selected_parts_stay_where_they_were() {
    for (select, document, expected) in [
        (&["/a"][..], r#"{"a":1,"b":2}"#, r#"{"a":1}"#),
        (&[""], r#"{"b":1,"a":2}"#, r#"{"a":2,"b":1}"#),
        (&["/a/x", "/c"], r#"{"c":3,"a":{"x":1,"y":2},"b":2}"#, r#"{"a":{"x":1},"c":3}"#),
        (&["/a", "/a/x"], r#"{"a":{"x":1,"y":2}}"#, r#"{"a":{"x":1,"y":2}}"#),
        (&["/items/*/id"], r#"{"items":[{"id":1,"q":2},{"id":3}]}"#, r#"{"items":[{"id":1},{"id":3}]}"#),
        (&["/items/*/id"], r#"{"items":[{"q":2},{"id":3},{"q":1}]}"#, r#"{"items":[null,{"id":3}]}"#),
        (&["/1"], "[1,2,3]", "[null,2]"),
        (&["/a/b", "/c"], r#"{"a":5,"c":1}"#, r#"{"c":1}"#),
        (&["/a"], r#"{"a":null}"#, r#"{"a":null}"#),
        (&["/a"], r#"{"a":{}}"#, r#"{"a":{}}"#),
    ] {
        assert_eq!(reduced(select, &[], document).unwrap(), expected, "{select:?} {document}");
    }
}

#[test]
fn exclusion_takes_from_what_is_selected() {
    let document = r#"{"a":{"ts":1,"x":2},"b":3}"#;
    assert_eq!(reduced(&["/a"], &["/a/ts"], document).unwrap(), r#"{"a":{"x":2}}"#);
    assert_eq!(reduced(&["/a/ts"], &["/a/ts"], document).unwrap(), r#"{"a":{}}"#);
    assert_eq!(reduced(&["/2"], &["/0"], "[1,2,3]").unwrap(), "[null,3]");
}

#[test]
fn a_payload_without_anything_selected_has_no_key() {
    for document in ["{}", "[]", "7", r#"{"b":{"a":1}}"#] {
        let error = reduced(&["/a", "/b/c"], &[], document).unwrap_err();
        assert_eq!(error.code(), "bad_input", "{document}");
    }
}

#[test]
fn a_star_names_every_member_also_one_called_star() {
    assert_eq!(reduced(&[], &["/*"], r#"{"*":1,"a":2}"#).unwrap(), "{}");
    assert_eq!(reduced(&[], &["/**", "/a*"], r#"{"**":1,"a*":2,"ab":3}"#).unwrap(), r#"{"ab":3}"#);
}

#[test]
fn a_malformed_pointer_is_an_error() {
    for pointer in ["a", "a/b", " /a", "/a~", "/a~2", "/~", "/~~0", "#/a", "*"] {
        assert_eq!(JsonKey::new().exclude([pointer]).unwrap_err().code(), "bad_pointer", "{pointer}");
        assert_eq!(JsonKey::new().select([pointer]).unwrap_err().code(), "bad_pointer", "{pointer}");
    }
    assert_eq!(JsonKey::new().exclude([""]).unwrap_err().code(), "bad_pointer");
}

#[test]
fn what_is_left_out_is_checked_all_the_same() {
    for (document, offset) in [
        (r#"{"a":{"x":1,"x":2},"b":1}"#, 12),
        (r#"{"a":1,"a":2,"b":1}"#, 7),
        (r#"{"a":1,"b":1,"a":2}"#, 13),
        (r#"{"a":1e400,"b":1}"#, 5),
        (r#"{"a":"\ud800","b":1}"#, 6),
    ] {
        for (select, exclude) in [(&[][..], &["/a"][..]), (&["/b"], &[])] {
            match reduced(select, exclude, document) {
                Err(Error::BadJson { offset: at, .. }) => assert_eq!(at, offset, "{document}"),
                other => panic!("{document}: {other:?}"),
            }
        }
    }
}

#[test]
fn every_form_finds_names_outside_ascii() {
    for form in [Form::Exact, Form::Jcs, Form::Python] {
        for key in [
            JsonKey::new().form(form).exclude(["/é"]),
            JsonKey::new().exclude(["/é"]).map(|key| key.form(form)),
        ] {
            assert_eq!(key.unwrap().canonical("{\"é\":1}".as_bytes()).unwrap(), b"{}", "{form}");
        }
    }
}

/// The same meaning, written as simply as can be: over values, one path at a time.
mod simple {
    use super::{Map, Value};

    pub(super) fn steps(pointer: &str) -> Vec<String> {
        let unescape =
            |step: &str| if step == "*" { step.into() } else { step.replace("~1", "/").replace("~0", "~") };
        pointer.split('/').skip(1).map(unescape).collect()
    }

    fn names(pointers: &[Vec<String>], path: &[String]) -> bool {
        let matches = |step: &String, at: &String| step == "*" || step == at;
        pointers
            .iter()
            .any(|steps| steps.len() == path.len() && steps.iter().zip(path).all(|(s, p)| matches(s, p)))
    }

    fn inside(path: &[String], step: &impl ToString) -> Vec<String> {
        [path, &[step.to_string()]].concat()
    }

    pub(super) fn select(value: &Value, pointers: &[Vec<String>], path: &[String]) -> Option<Value> {
        if names(pointers, path) {
            return Some(value.clone());
        }
        match value {
            Value::Object(members) => {
                let kept: Map<_, _> = members
                    .iter()
                    .filter_map(|(name, value)| {
                        Some((name.clone(), select(value, pointers, &inside(path, name))?))
                    })
                    .collect();
                (!kept.is_empty()).then_some(Value::Object(kept))
            }
            Value::Array(elements) => {
                let mut kept: Vec<_> = elements
                    .iter()
                    .enumerate()
                    .map(|(i, value)| select(value, pointers, &inside(path, &i)))
                    .collect();
                kept.truncate(kept.iter().rposition(Option::is_some)? + 1);
                Some(kept.into_iter().map(Option::unwrap_or_default).collect())
            }
            _ => None,
        }
    }

    pub(super) fn exclude(value: &Value, pointers: &[Vec<String>], path: &[String]) -> Option<Value> {
        if names(pointers, path) {
            return None;
        }
        Some(match value {
            Value::Object(members) => members
                .iter()
                .filter_map(|(name, value)| {
                    Some((name.clone(), exclude(value, pointers, &inside(path, name))?))
                })
                .collect(),
            Value::Array(elements) => elements
                .iter()
                .enumerate()
                .filter_map(|(i, value)| exclude(value, pointers, &inside(path, &i)))
                .collect(),
            scalar => scalar.clone(),
        })
    }
}

fn names() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "0", "1", "2", "*", "", "é", "😀", "~", "/", "\n"])
        .prop_map(str::to_owned)
}

fn values() -> impl Strategy<Value = Value> {
    let leaves = prop_oneof![Just(Value::Null), (0..9_u8).prop_map(Value::from), Just(Value::from("x"))];
    leaves.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::hash_map(names(), inner, 0..5)
                .prop_map(|members| members.into_iter().collect()),
        ]
    })
}

fn pointers() -> impl Strategy<Value = Vec<String>> {
    let step = names().prop_map(|name| name.replace('~', "~0").replace('/', "~1"));
    let pointer = prop::collection::vec(prop_oneof![2 => step, 1 => Just("*".to_owned())], 1..4)
        .prop_map(|steps| steps.iter().map(|step| format!("/{step}")).collect());
    prop::collection::vec(pointer, 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]

    #[test]
    fn pointers_mean_what_the_simple_reading_says(value in values(), select in pointers(), exclude in pointers()) {
        let steps = |pointers: &[String]| pointers.iter().map(|pointer| simple::steps(pointer)).collect::<Vec<_>>();
        let selected = if select.is_empty() { Some(value.clone()) } else { simple::select(&value, &steps(&select), &[]) };
        let expected = selected.and_then(|value| simple::exclude(&value, &steps(&exclude), &[]));
        let document = serde_json::to_vec(&value).unwrap();
        for form in [Form::Exact, Form::Python] {
            let whole = JsonKey::new().form(form);
            let key = whole.clone().select(&select).unwrap().exclude(&exclude).unwrap();
            match &expected {
                Some(expected) => prop_assert_eq!(
                    String::from_utf8(key.canonical(&document).unwrap()),
                    String::from_utf8(whole.canonical(&serde_json::to_vec(expected).unwrap()).unwrap())
                ),
                None => prop_assert_eq!(key.canonical(&document).unwrap_err().code(), "bad_input"),
            }
            prop_assert_eq!(key.digest(&document).ok(), key.digest_of(&value).ok());
        }
    }
}

//! What is the same key, what is another one, and what is none.

use onlyonce::Error;
use onlyonce::key::{Form, JsonKey};

const FORMS: [Form; 3] = [Form::Exact, Form::Jcs, Form::Python];

fn canonical(form: Form, document: &str) -> Result<String, Error> {
    JsonKey::new().form(form).canonical(document.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap())
}

fn same(a: &str, b: &str) -> bool {
    JsonKey::new().digest(a.as_bytes()).unwrap() == JsonKey::new().digest(b.as_bytes()).unwrap()
}

/// The reason and the offset.
fn flaw(form: Form, document: &[u8]) -> (String, usize) {
    match JsonKey::new().form(form).canonical(document) {
        Err(Error::BadJson { reason, offset }) => (reason, offset),
        other => panic!("{:?}: {other:?}", String::from_utf8_lossy(document)),
    }
}

#[test]
fn two_ids_that_share_a_double_have_two_keys() {
    assert!(!same("9007199254740993", "9007199254740992"));
    assert!(!same("18446744073709551615", "18446744073709551616"));
    assert_eq!(canonical(Form::Exact, "-9223372036854775808").unwrap(), "-9223372036854775808");
}

#[test]
fn one_number_has_one_key_however_it_is_spelt() {
    for one in ["1", "1.0", "1e0", "1E+0", "10e-1", "0.1e1"] {
        assert_eq!(canonical(Form::Exact, one).unwrap(), "1");
    }
    assert!(same("-0", "0") && same("-0.0", "0") && same("0e7", "0"));
    assert!(same("1e20", "100000000000000000000"));
    assert!(!same("1e21", "1000000000000000000000"), "an integer literal keeps all its digits");
}

#[test]
fn strict_jcs_refuses_integers_no_double_can_hold() {
    assert_eq!(canonical(Form::Jcs, "9007199254740992").unwrap(), "9007199254740992");
    assert_eq!(canonical(Form::Jcs, "295147905179352830000").unwrap(), "295147905179352830000");
    assert_eq!(canonical(Form::Jcs, "-9223372036854775808").unwrap(), "-9223372036854776000");
    assert_eq!(canonical(Form::Jcs, "-9223372036854776000").unwrap(), "-9223372036854776000");
    let (reason, offset) = flaw(Form::Jcs, b"[1, 9007199254740993]");
    assert!(reason.contains("no double can hold"), "{reason}");
    assert_eq!(offset, 4);
}

#[test]
fn nothing_is_normalised() {
    assert!(!same("\"\u{e9}\"", "\"e\u{301}\""));
}

#[test]
fn members_are_sorted_by_utf16_units_or_code_points() {
    let document = "{\"\u{fb33}\": 1, \"\u{1f600}\": 2}";
    assert_eq!(canonical(Form::Exact, document).unwrap(), "{\"\u{1f600}\":2,\"\u{fb33}\":1}");
    assert_eq!(canonical(Form::Python, document).unwrap(), r#"{"\ufb33": 1, "\ud83d\ude00": 2}"#);
}

#[test]
fn what_is_escaped_or_spaced_otherwise_is_the_same() {
    let loose = " {\r\n\t\"b\" : [ 1 , \"\\u00e9\\/\\ud83d\\ude00\" ] , \"a\\u0000\" : { } }\n";
    assert_eq!(canonical(Form::Exact, loose).unwrap(), "{\"a\\u0000\":{},\"b\":[1,\"é/😀\"]}");
    assert_eq!(
        canonical(Form::Python, loose).unwrap(),
        r#"{"a\u0000": {}, "b": [1, "\u00e9/\ud83d\ude00"]}"#
    );
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    for (document, reason, offset) in [
        (&br#"{"a":1,"a":2}"#[..], "same name", 7),
        (br#"{"a":1,"\u0061":2}"#, "same name", 7),
        (br#"{"b":1,"c":1,"a":2,"c":3,"b":4}"#, "same name", 19),
        (br#"[{"x":{"a":1,"b":2,"a":3}}]"#, "same name", 19),
        (b"1e400", "larger than any double", 0),
        (b"[0, -1e400]", "larger than any double", 4),
        (br#""\ud800""#, "surrogate", 1),
        (br#""ab\udc00""#, "surrogate", 3),
        (br#""\ud800\u0041""#, "surrogate", 1),
        (br#""\ud83dx""#, "surrogate", 1),
        (b"\xef\xbb\xbf1", "byte order mark", 0),
        (b"1 2", "after the end", 2),
        (b"{} x", "after the end", 3),
        (b"[1,\"\xff\"]", "UTF-8", 4),
        (b"\"\xed\xa0\x80\"", "UTF-8", 1),
        (b"NaN", "NaN", 0),
        (b"[-Infinity]", "NaN", 2),
        (b"Infinity", "NaN", 0),
        (b"", "ends where a value", 0),
        (b"  ", "ends where a value", 2),
        (b"[1,]", "no value", 3),
        (b"[1", "comma or `]`", 2),
        (b"[1 2]", "comma or `]`", 3),
        (br#"{"a" 1}"#, "colon", 5),
        (br#"{"a":1"#, "comma or `}`", 6),
        (br#"{"a":1,}"#, "name", 7),
        (b"{a:1}", "name", 1),
        (b"01", "needless zero", 1),
        (b"-", "digit", 1),
        (b"1.", "digit", 2),
        (b"1.e3", "digit", 2),
        (b".5", "no value", 0),
        (b"+1", "no value", 0),
        (b"1e", "digit", 2),
        (b"1e+", "digit", 3),
        (b"tru", "no value", 0),
        (b"[nul]", "no value", 1),
        (b"\"a\nb\"", "control character", 2),
        (b"\"a\0b\"", "control character", 2),
        (b"[\"abc]", "without an end", 1),
        (br#""a\x""#, "backslash", 2),
        (br#""a\"#, "backslash", 2),
        (br#""\u12g4""#, "hexadecimal", 1),
        (br#""\u12"#, "hexadecimal", 1),
        (br#""\u+123""#, "hexadecimal", 1),
        (b"'a'", "no value", 0),
        (b"[1]//", "after the end", 3),
        (b"\x0b1", "no value", 0),
    ] {
        for form in FORMS {
            let (told, at) = flaw(form, document);
            assert!(told.contains(reason), "{document:?}: {told}");
            assert_eq!(at, offset, "{:?}: {told}", String::from_utf8_lossy(document));
        }
    }
}

#[test]
fn nesting_ends_at_128() {
    let nested = |open: &str, close: &str, depth: usize| open.repeat(depth) + "1" + &close.repeat(depth);
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        for form in FORMS {
            assert!(canonical(form, &nested(open, close, 128)).is_ok());
            let (reason, offset) = flaw(form, nested(open, close, 129).as_bytes());
            assert!(reason.contains("deeper than 128"), "{reason}");
            assert_eq!(offset, open.len() * 128);
            flaw(form, open.repeat(1_000_000).as_bytes());
        }
    }
}

#[test]
fn each_form_has_ids_of_its_own() {
    let hex = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855".len();
    let id = |form| JsonKey::new().form(form).key("n", b"[1]").unwrap().id().to_owned();
    assert_eq!(id(Form::Exact).strip_prefix("exact:").map(str::len), Some(hex));
    assert_eq!(id(Form::Jcs).strip_prefix("jcs:").map(str::len), Some(hex));
    assert_eq!(id(Form::Python).len(), hex);
}

//! What holds for every document.

use onlyonce::Error;
use onlyonce::key::{Form, JsonKey};
use proptest::prelude::*;

use super::documents::{Speller, big_integers, documents, doubles, safe_integers};

const FORMS: [Form; 3] = [Form::Exact, Form::Jcs, Form::Python];

const SAMPLES: [&str; 5] = [
    r#"{"id":"evt_1","amount":1999,"items":[{"sku":"a\"b","qty":1.50},{"sku":"\u00e9\ud83d\ude00","qty":-0}],"ok":true}"#,
    " [ 1e5 , -0.0 , 123456789012345678901234567890 , null , \"\\b\\f\\n\\r\\t\\/\\\\\" , false , { } , [ ] ] ",
    "{\"é\":1,\"\u{fb33}\":2,\"😀\":3,\"\\n\":4,\"a\":5,\"\":6,\"zz\":{\"b\":[],\"a\":{}}}",
    "\"\u{7f}\u{80}\u{7ff}\u{800}\u{ffff}\u{10000}\u{10ffff}\"",
    "-12.5e-3",
];

fn canonical(form: Form, document: &[u8]) -> Result<Vec<u8>, Error> {
    JsonKey::new().form(form).canonical(document)
}

/// Nothing panics; what is refused is refused with a place in the document; what is taken is JSON.
fn check_any(document: &[u8]) {
    for form in FORMS {
        match canonical(form, document) {
            Ok(taken) => {
                assert_eq!(
                    canonical(form, &taken).unwrap(),
                    taken,
                    "{:?}",
                    String::from_utf8_lossy(document)
                );
                let read = serde_json::from_slice::<serde::de::IgnoredAny>(document);
                assert!(read.is_ok(), "{form} took {:?}", String::from_utf8_lossy(document));
            }
            Err(Error::BadJson { offset, .. }) => assert!(offset <= document.len()),
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn no_change_of_one_byte_and_no_truncation_panics() {
    for sample in SAMPLES {
        for at in 0..sample.len() {
            check_any(&sample.as_bytes()[..at]);
            let mut mutant = sample.as_bytes().to_vec();
            for byte in 0..=u8::MAX {
                mutant[at] = byte;
                check_any(&mutant);
            }
            mutant.remove(at);
            check_any(&mutant);
        }
    }
}

/// Where `serde_json` reads a document and we do not, it is for one of the reasons we give.
#[test]
fn only_what_has_no_safe_key_is_refused() {
    let known = ["same name", "larger than any double", "no double can hold"];
    for sample in SAMPLES {
        for at in 0..sample.len() {
            let mut mutant = sample.as_bytes().to_vec();
            for byte in 0..=u8::MAX {
                mutant[at] = byte;
                let read = serde_json::from_slice::<serde_json::Value>(&mutant).is_ok();
                if let (true, Err(Error::BadJson { reason, .. })) = (read, canonical(Form::Jcs, &mutant)) {
                    assert!(known.iter().any(|known| reason.contains(known)), "{reason}");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn however_a_document_is_spelt_it_has_one_canonical_form(
        document in documents(prop_oneof![safe_integers(), big_integers(), doubles()]),
        one: u64,
        other: u64,
    ) {
        for form in [Form::Exact, Form::Python] {
            let spell = |seed| {
                let mut speller = Speller::new(seed);
                speller.doubles_may_look_like_integers = form == Form::Exact;
                speller.spell(&document)
            };
            let first = canonical(form, spell(one).as_bytes()).unwrap();
            prop_assert_eq!(&canonical(form, spell(other).as_bytes()).unwrap(), &first);
            prop_assert_eq!(&canonical(form, &first).unwrap(), &first);
        }
    }

    #[test]
    fn what_jcs_writes_it_reads_and_leaves_as_it_is(
        document in documents(prop_oneof![safe_integers(), big_integers(), doubles()]),
        seed: u64,
    ) {
        let spelt = Speller::new(seed).spell(&document);
        if let Ok(strict) = canonical(Form::Jcs, spelt.as_bytes()) {
            prop_assert_eq!(canonical(Form::Jcs, &strict).unwrap(), strict);
        }
    }

    #[test]
    fn what_jcs_takes_of_small_numbers_exact_writes_with_the_same_bytes(
        document in documents(prop_oneof![safe_integers(), doubles()]),
        seed: u64,
    ) {
        let spelt = Speller::new(seed).spell(&document);
        let strict = canonical(Form::Jcs, spelt.as_bytes()).unwrap();
        prop_assert_eq!(canonical(Form::Exact, spelt.as_bytes()).unwrap(), strict);
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        check_any(&bytes);
    }

    #[test]
    fn nothing_that_looks_like_json_panics(text in r#"[\[\]{}:,"\\u0-9a-fdDeE+.\- tn]{0,64}"#) {
        check_any(text.as_bytes());
    }

    #[test]
    fn two_integers_share_a_key_only_if_they_are_equal(a in "-?[1-9][0-9]{0,40}", b in "-?[1-9][0-9]{0,40}") {
        let same = canonical(Form::Exact, a.as_bytes()).unwrap() == canonical(Form::Exact, b.as_bytes()).unwrap();
        prop_assert_eq!(same, a == b);
    }
}

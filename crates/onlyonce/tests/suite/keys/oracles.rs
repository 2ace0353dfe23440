//! Our canonical form against the published vectors and another implementation.

use std::fs;
use std::path::Path;

use onlyonce::key::{Form, JsonKey};
use proptest::prelude::*;

use super::documents::{Speller, documents, doubles, safe_integers};

/// In place beside the workspace, where the project's shared files are.
const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/vectors/jcs");

#[test]
#[ignore = "needs vectors"]
fn rfc_8785_needs_vectors() {
    let inputs = fs::read_dir(Path::new(VECTORS).join("input")).unwrap();
    let mut count = 0;
    for input in inputs.map(|entry| entry.unwrap()) {
        let document = fs::read(input.path()).unwrap();
        let expected = fs::read(Path::new(VECTORS).join("output").join(input.file_name())).unwrap();
        for form in [Form::Exact, Form::Jcs] {
            let canonical = JsonKey::new().form(form).canonical(&document).unwrap();
            assert_eq!(
                String::from_utf8_lossy(&canonical),
                String::from_utf8_lossy(expected.trim_ascii_end()),
                "{form} {:?}",
                input.file_name()
            );
        }
        count += 1;
    }
    assert!(count >= 6, "only {count} vectors");
}

/// The oracle reads integers as doubles and takes the last of two members, so it is asked only where neither
/// happens.
fn oracle(document: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(document).unwrap();
    serde_json_canonicalizer::to_string(&value).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn another_implementation_agrees(
        document in documents(prop_oneof![safe_integers(), doubles()]),
        seed: u64,
    ) {
        let spelt = Speller::new(seed).spell(&document);
        let expected = oracle(&spelt);
        for form in [Form::Exact, Form::Jcs] {
            let canonical = JsonKey::new().form(form).canonical(spelt.as_bytes()).unwrap();
            prop_assert_eq!(std::str::from_utf8(&canonical).unwrap(), &expected);
        }
    }
}

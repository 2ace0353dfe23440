//! The form `python` against Python itself.

use std::fs;
use std::process::Command;

use onlyonce::key::{Form, JsonKey};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::documents::{Json, Speller, big_integers, documents, doubles, safe_integers};

/// Reads documents in hexadecimal, one per line, and writes what `json.dumps` makes of them.
const SCRIPT: &str = "
import json, sys
for line in sys.stdin:
    document = bytes.fromhex(line).decode()
    print(json.dumps(json.loads(document), sort_keys=True, default=str))
";

fn in_hex(document: &str) -> String {
    document.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn ask_python(documents: &[String]) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let input = directory.path().join("documents");
    fs::write(&input, documents.iter().map(|document| in_hex(document) + "\n").collect::<String>()).unwrap();
    let input = fs::File::open(input).unwrap();
    let output = Command::new("python3").args(["-c", SCRIPT]).stdin(input).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

fn by_chance(count: usize) -> Vec<String> {
    let mut runner = TestRunner::deterministic();
    let deep = (1..120_usize)
        .prop_map(|depth| (0..depth).fold(Json::Word("null"), |inner, _| Json::Array(vec![inner])));
    let all = prop_oneof![
        8 => documents(prop_oneof![safe_integers(), big_integers(), doubles()]),
        4 => doubles(),
        1 => deep,
    ];
    let mut documents = Vec::new();
    for seed in 0..count as u64 {
        let document = all.new_tree(&mut runner).unwrap().current();
        documents.push(Speller::new(seed).spell(&document));
    }
    documents
}

/// Every power of two and of ten is at the edge of some double's shortest decimal.
fn edges() -> impl Iterator<Item = String> {
    let powers = (-1074..1024).map(|power| 2_f64.powi(power));
    let tens = (-323..309).map(|power| format!("1e{power}").parse().unwrap());
    powers.chain(tens).flat_map(|edge: f64| {
        [edge.next_down(), edge, edge.next_up(), -edge].map(|double| format!("{double:e}"))
    })
}

#[test]
#[ignore = "needs python3"]
fn the_form_python_is_python_needs_python3() {
    let mut documents = by_chance(20_000);
    documents.extend(edges());
    let literals = ["-0", "-0.0", "0e5", "1E4", "1.0", "1e0", "1e16", "1e-5", "12345678901234567890.0"];
    documents.extend(literals.map(str::to_owned));
    let expected = ask_python(&documents);
    assert_eq!(expected.len(), documents.len());
    let python = JsonKey::new().form(Form::Python);
    for (document, expected) in documents.iter().zip(expected) {
        let canonical = python.canonical(document.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(canonical).unwrap(), expected, "{document}");
    }
}

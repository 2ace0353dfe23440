//! The forms against the languages they come from.

use std::fs;
use std::process::Command;

use onlyonce::key::{Form, JsonKey};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::documents::{Json, Speller, big_integers, documents, doubles, safe_integers};

/// Reads documents in hexadecimal, one per line, and writes what `json.dumps` makes of them.
const PYTHON: &str = "
import json, sys
for line in sys.stdin:
    document = bytes.fromhex(line).decode()
    print(json.dumps(json.loads(document), sort_keys=True, default=str))
";

/// The same for RFC 8785, which is what `JSON.stringify` writes, with sorted members.
const NODE: &str = "
const canonical = (value) =>
    Array.isArray(value) ? `[${value.map(canonical).join(',')}]`
    : value === null || typeof value !== 'object' ? JSON.stringify(value)
    : `{${Object.keys(value).sort().map((name) => JSON.stringify(name) + ':' + canonical(value[name])).join(',')}}`;
const lines = require('fs').readFileSync(0, 'utf8').trim().split('\\n');
const documents = lines.map((line) => JSON.parse(Buffer.from(line, 'hex').toString()));
process.stdout.write(documents.map((document) => canonical(document) + '\\n').join(''));
";

fn in_hex(document: &str) -> String {
    document.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// What a script answers to each of the documents, all in one process.
fn ask(command: &[&str], documents: &[String]) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let input = directory.path().join("documents");
    fs::write(&input, documents.iter().map(|document| in_hex(document) + "\n").collect::<String>()).unwrap();
    let input = fs::File::open(input).unwrap();
    let output = Command::new(command[0]).args(&command[1..]).stdin(input).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().split_terminator('\n').map(str::to_owned).collect()
}

/// So many documents with these numbers, and every literal at the edge of some double's shortest decimal.
fn by_chance(count: u64, integers: impl Strategy<Value = Json> + 'static) -> Vec<String> {
    let mut runner = TestRunner::deterministic();
    let nest = |depth| (0..depth).fold(Json::Word("null"), |inner, _| Json::Array(vec![inner]));
    let all = prop_oneof![
        8 => documents(prop_oneof![integers, doubles()]),
        4 => doubles(),
        1 => (1..120).prop_map(nest),
    ];
    let spell = |seed| Speller::new(seed).spell(&all.new_tree(&mut runner).unwrap().current());
    let literals = ["-0", "-0.0", "0e5", "1E4", "1.0", "1e0", "1e16", "1e-5", "12345678901234567890.0"];
    (0..count).map(spell).chain(edges()).chain(literals.map(str::to_owned)).collect()
}

/// Every power of two and of ten, with its neighbours.
fn edges() -> impl Iterator<Item = String> {
    let twos = (-1074..1024).map(|power| 2_f64.powi(power));
    let tens = (-323..309).map(|power| format!("1e{power}").parse().unwrap());
    twos.chain(tens).flat_map(|edge: f64| {
        [edge.next_down(), edge, edge.next_up(), -edge].map(|double| format!("{double:e}"))
    })
}

fn check(form: Form, documents: &[String], expected: &[String]) {
    assert_eq!(expected.len(), documents.len());
    let key = JsonKey::new().form(form);
    for (document, expected) in documents.iter().zip(expected) {
        let canonical = key.canonical(document.as_bytes()).unwrap();
        assert_eq!(std::str::from_utf8(&canonical).unwrap(), expected, "{document}");
    }
}

#[test]
#[ignore = "needs python3"]
fn the_form_python_is_python_needs_python3() {
    let documents = by_chance(5_000, prop_oneof![safe_integers(), big_integers()]);
    check(Form::Python, &documents, &ask(&["python3", "-c", PYTHON], &documents));
}

#[test]
#[ignore = "needs node"]
fn the_forms_exact_and_jcs_are_ecmascript_needs_node() {
    let documents = by_chance(5_000, safe_integers());
    let expected = ask(&["node", "--eval", NODE], &documents);
    check(Form::Jcs, &documents, &expected);
    check(Form::Exact, &documents, &expected);
}

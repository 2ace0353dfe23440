//! JSON documents by chance, and all the ways to spell one.

use onlyonce::chance::mix;
use proptest::prelude::*;

/// A document: what it says, apart from how it is spelt.
#[derive(Clone, Debug)]
pub(super) enum Json {
    /// `null`, `true`, `false`
    Word(&'static str),
    /// A literal that is spelt in one way only.
    Integer(String),
    Double(f64),
    Text(String),
    Array(Vec<Json>),
    /// No name is there twice.
    Object(Vec<(String, Json)>),
}

pub(super) fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{0,12}",
        // Every plane, with those at the edges that are sorted or escaped in their own way.
        prop::collection::vec(any::<char>(), 0..8).prop_map(String::from_iter),
        prop::collection::vec(
            prop::sample::select(vec![
                '\0',
                '\u{8}',
                '\t',
                '\n',
                '\u{c}',
                '\r',
                '\u{1f}',
                ' ',
                '"',
                '/',
                '\\',
                'a',
                '~',
                '\u{7f}',
                'é',
                '\u{d7ff}',
                '\u{e000}',
                '\u{fb33}',
                '\u{ffff}',
                '\u{10000}',
                '😀',
                '\u{10ffff}',
            ]),
            0..5
        )
        .prop_map(String::from_iter),
    ]
}

/// Integers every double can hold.
pub(super) fn safe_integers() -> impl Strategy<Value = Json> {
    prop_oneof![-100..100_i64, -(1_i64 << 53)..=1 << 53].prop_map(|n| Json::Integer(n.to_string()))
}

pub(super) fn big_integers() -> impl Strategy<Value = Json> {
    prop_oneof![
        any::<i64>().prop_map(|n| n.to_string()),
        any::<u64>().prop_map(|n| n.to_string()),
        "-?[1-9][0-9]{15,60}",
        "-?[1-9]0{15,60}",
        "-?[1-9][0-9]{300,1200}",
    ]
    .prop_map(Json::Integer)
}

pub(super) fn doubles() -> impl Strategy<Value = Json> {
    prop_oneof![
        any::<u64>().prop_map(f64::from_bits),
        (-1_000_000..1_000_000_i64, 1..10_000_u32).prop_map(|(a, b)| a as f64 / f64::from(b)),
        (-99_999_i64..99_999, 0..12).prop_map(|(a, e)| a as f64 / 10_f64.powi(e)),
        (-99_999_i64..99_999, -330..310_i32).prop_map(|(a, e)| format!("{a}e{e}").parse().unwrap()),
    ]
    .prop_filter("finite", |double| double.is_finite())
    .prop_map(Json::Double)
}

/// Documents with these numbers.
pub(super) fn documents(numbers: impl Strategy<Value = Json> + 'static) -> impl Strategy<Value = Json> {
    let words = prop::sample::select(vec!["null", "true", "false"]).prop_map(Json::Word);
    let leaves = prop_oneof![words, numbers, texts().prop_map(Json::Text)];
    leaves.prop_recursive(6, 48, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Json::Array),
            prop::collection::hash_map(texts(), inner, 0..8)
                .prop_map(|members| Json::Object(members.into_iter().collect())),
        ]
    })
}

/// Spells a document in some way: order, white space, escapes and numbers by chance.
pub(super) struct Speller {
    state: u64,
    /// Whether `1.0` may be spelt `1`.
    pub(super) doubles_may_look_like_integers: bool,
}

impl Speller {
    pub(super) fn new(seed: u64) -> Self {
        Self { state: seed, doubles_may_look_like_integers: true }
    }

    fn below(&mut self, limit: usize) -> usize {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        (mix(self.state) % limit as u64) as usize
    }

    pub(super) fn spell(&mut self, document: &Json) -> String {
        let mut out = String::new();
        self.value(&mut out, document);
        out
    }

    fn value(&mut self, out: &mut String, value: &Json) {
        self.space(out);
        match value {
            Json::Word(word) => out.push_str(word),
            Json::Integer(literal) => out.push_str(literal),
            Json::Double(double) => out.push_str(&self.double(*double)),
            Json::Text(text) => self.text(out, text),
            Json::Array(elements) => {
                self.list(out, ['[', ']'], elements, |me, out, element| me.value(out, element));
            }
            Json::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                for i in (1..members.len()).rev() {
                    members.swap(i, self.below(i + 1));
                }
                self.list(out, ['{', '}'], &members, |me, out, (name, value)| {
                    me.space(out);
                    me.text(out, name);
                    me.space(out);
                    out.push(':');
                    me.value(out, value);
                });
            }
        }
        self.space(out);
    }

    fn list<T>(
        &mut self,
        out: &mut String,
        around: [char; 2],
        items: &[T],
        item: fn(&mut Self, &mut String, &T),
    ) {
        out.push(around[0]);
        for (i, each) in items.iter().enumerate() {
            if i > 0 {
                out.push(',');
            }
            item(self, out, each);
        }
        if items.is_empty() {
            self.space(out);
        }
        out.push(around[1]);
    }

    fn space(&mut self, out: &mut String) {
        for _ in 0..self.below(6).saturating_sub(3) {
            out.push([' ', '\n', '\r', '\t'][self.below(4)]);
        }
    }

    fn double(&mut self, double: f64) -> String {
        let is_whole = double.fract() == 0.0 && double.abs() < 1e15;
        let shortest = format!("{double:?}");
        match self.below(5) {
            0 => format!("{double:e}"),
            1 if double.abs() >= 1.0 => format!("{double:E}").replace('E', "E+0"),
            2 if is_whole && self.doubles_may_look_like_integers => format!("{double:.0}"),
            3 if !shortest.contains('e') => shortest + "00",
            _ => shortest,
        }
    }

    fn text(&mut self, out: &mut String, text: &str) {
        out.push('"');
        for c in text.chars() {
            let must = c < ' ' || c == '"' || c == '\\';
            match (self.below(4), c) {
                (0, '"' | '\\' | '/') => out.extend(['\\', c]),
                (1, '\n') => out.push_str("\\n"),
                (1, '\t') => out.push_str("\\t"),
                (1, '\r') => out.push_str("\\r"),
                (1, '\u{8}') => out.push_str("\\b"),
                (1, '\u{c}') => out.push_str("\\f"),
                (0, _) => c
                    .encode_utf16(&mut [0; 2])
                    .iter()
                    .for_each(|unit| out.push_str(&format!("\\u{unit:04X}"))),
                (2, _) if must => c
                    .encode_utf16(&mut [0; 2])
                    .iter()
                    .for_each(|unit| out.push_str(&format!("\\u{unit:04x}"))),
                _ if must => out.push_str(&format!("\\u{:04x}", c as u32)),
                _ => out.push(c),
            }
        }
        out.push('"');
    }
}

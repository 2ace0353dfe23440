//! Strings: the one way to write each, and the order of names.

use std::char;
use std::cmp::Ordering;
use std::ops::Range;
use std::str::Chars;

use super::form::Form;
use super::scan::plain_run;

/// Appends `text` as a JSON string; says whether anything had to be escaped.
pub(super) fn write_string(out: &mut Vec<u8>, text: &str, form: Form) -> bool {
    let mut rest = text;
    let mut escaped = false;
    out.push(b'"');
    loop {
        let (run, after) = rest.split_at(plain_run(rest.as_bytes(), form.is_ascii()));
        out.extend_from_slice(run.as_bytes());
        let mut chars = after.chars();
        match chars.next() {
            Some(c) => write_char(out, c, form),
            None => break,
        }
        escaped = true;
        rest = chars.as_str();
    }
    out.push(b'"');
    escaped
}

/// Appends one character as it stands inside a JSON string.
pub(super) fn write_char(out: &mut Vec<u8>, c: char, form: Form) {
    match c {
        '"' => out.extend_from_slice(b"\\\""),
        '\\' => out.extend_from_slice(b"\\\\"),
        '\u{8}' => out.extend_from_slice(b"\\b"),
        '\t' => out.extend_from_slice(b"\\t"),
        '\n' => out.extend_from_slice(b"\\n"),
        '\u{c}' => out.extend_from_slice(b"\\f"),
        '\r' => out.extend_from_slice(b"\\r"),
        '\0'..' ' => write_units(out, c),
        '\u{7f}'.. if form.is_ascii() => write_units(out, c),
        _ => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

fn write_units(out: &mut Vec<u8>, c: char) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    for unit in c.encode_utf16(&mut [0; 2]) {
        out.extend_from_slice(b"\\u");
        out.extend([12, 8, 4, 0].map(|shift| HEX[usize::from(*unit >> shift & 0xf)]));
    }
}

/// A member's name as it was written, without its quotes.
#[derive(Clone, Copy)]
pub(super) struct Name<'a> {
    pub(super) written: &'a [u8],
    pub(super) escaped: bool,
}

impl Name<'_> {
    /// Which of two names comes first in this form.
    pub(super) fn compare(self, other: Self, form: Form) -> Ordering {
        if !self.escaped && !other.escaped {
            return compare_plain(self.written, other.written);
        }
        let (a, b) = (Units::of(self.written), Units::of(other.written));
        if form.is_ascii() { a.code_points().cmp(b.code_points()) } else { a.cmp(b) }
    }
}

/// The first eight bytes of a name as a number: where two of them differ, the names are in the same order.
///
/// 0 where they do not tell: in a name with an escape or with other than ASCII at its start.
pub(super) fn glance(out: &[u8], name: Range<usize>, escaped: bool) -> u64 {
    let bytes = if name.len() >= 8 {
        out[name.start..].first_chunk().map(|first| u64::from_be_bytes(*first))
    } else {
        // Reads what is before a short name too, and shifts it out.
        let last = out[..name.end].last_chunk().map(|last| u64::from_be_bytes(*last));
        last.and_then(|bytes| bytes.checked_shl(64 - 8 * name.len() as u32))
    };
    bytes.filter(|bytes| !escaped && bytes & NOT_ASCII == 0).unwrap_or(0)
}

const NOT_ASCII: u64 = 0x8080_8080_8080_8080;

/// Compares UTF-8 in the order of UTF-16 units, which is the order of bytes but for one thing: the characters
/// from U+E000 to U+FFFF (first bytes EE and EF) come after the pairs of surrogates (first bytes F0 to F4).
fn compare_plain(a: &[u8], b: &[u8]) -> Ordering {
    match a.iter().zip(b).find(|(x, y)| x != y) {
        Some((x, y)) if *x >= 0xee && *y >= 0xee => rank_first_byte(*x).cmp(&rank_first_byte(*y)),
        Some((x, y)) => x.cmp(y),
        None => a.len().cmp(&b.len()),
    }
}

fn rank_first_byte(byte: u8) -> u8 {
    if byte < 0xf0 { byte + 0x10 } else { byte }
}

/// The UTF-16 units of a string that this module wrote.
struct Units<'a> {
    chars: Chars<'a>,
    /// The second unit of a pair.
    low: Option<u16>,
}

impl<'a> Units<'a> {
    fn of(written: &'a [u8]) -> Self {
        // Only UTF-8 was written, so this never falls back.
        Self { chars: std::str::from_utf8(written).unwrap_or_default().chars(), low: None }
    }

    fn code_points(self) -> impl Iterator<Item = char> {
        char::decode_utf16(self).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn escape(&mut self) -> Option<u16> {
        Some(match self.chars.next()? {
            'b' => 0x8,
            't' => 0x9,
            'n' => 0xa,
            'f' => 0xc,
            'r' => 0xd,
            'u' => {
                let (digits, rest) = self.chars.as_str().split_at_checked(4)?;
                self.chars = rest.chars();
                u16::from_str_radix(digits, 16).ok()?
            }
            quote_or_backslash => quote_or_backslash as u16,
        })
    }
}

impl Iterator for Units<'_> {
    type Item = u16;

    fn next(&mut self) -> Option<u16> {
        if let Some(low) = self.low.take() {
            return Some(low);
        }
        match self.chars.next()? {
            '\\' => self.escape(),
            c => {
                let mut pair = [0; 2];
                self.low = c.encode_utf16(&mut pair).get(1).copied();
                Some(pair[0])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str, form: Form) -> (Vec<u8>, bool) {
        let mut out = Vec::new();
        let escaped = write_string(&mut out, text, form);
        (out, escaped)
    }

    fn compare(a: &str, b: &str, form: Form) -> Ordering {
        let ((a, a_escaped), (b, b_escaped)) = (written(a, form), written(b, form));
        let name = |out: &'static [u8], escaped| Name { written: &out[1..out.len() - 1], escaped };
        name(a.leak(), a_escaped).compare(name(b.leak(), b_escaped), form)
    }

    #[test]
    fn names_are_in_the_order_of_their_form() {
        let names = [
            "",
            "\0",
            "\t",
            "\n",
            " ",
            "\"",
            "A",
            "A\0",
            "AA",
            "\\",
            "a",
            "\u{7f}",
            "é",
            "ö",
            "\u{d7ff}",
            "\u{e000}",
            "\u{fb33}",
            "\u{ffff}",
            "\u{10000}",
            "😀",
            "😀a",
            "\u{10ffff}",
        ];
        for a in names {
            for b in names {
                let [glance_a, glance_b] = [a, b].map(|text| {
                    let (out, escaped) = written(text, Form::Exact);
                    let before = b"{\"name\":1,";
                    glance(
                        &[before, &out[..]].concat(),
                        before.len() + 1..before.len() + out.len() - 1,
                        escaped,
                    )
                });
                let units = a.encode_utf16().cmp(b.encode_utf16());
                assert_eq!(compare(a, b, Form::Exact), units, "{a:?} {b:?}");
                if glance_a != 0 && glance_b != 0 && glance_a != glance_b {
                    assert_eq!(glance_a.cmp(&glance_b), units, "{a:?} {b:?}");
                }
                assert_eq!(compare(a, b, Form::Python), a.chars().cmp(b.chars()), "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn each_character_is_written_in_one_way() {
        let text = "\0\u{8}\t\n\u{b}\u{c}\r\u{1f}\"\\/\u{7f}é\u{2028}😀";
        let (exact, _) = written(text, Form::Exact);
        let expected = r#""\u0000\b\t\n\u000b\f\r\u001f\"\\/"#.to_owned() + "\u{7f}é\u{2028}😀\"";
        assert_eq!(String::from_utf8(exact).unwrap(), expected);
        let (python, _) = written(text, Form::Python);
        let expected = r#""\u0000\b\t\n\u000b\f\r\u001f\"\\/\u007f\u00e9\u2028\ud83d\ude00""#;
        assert_eq!(String::from_utf8(python).unwrap(), expected);
    }
}

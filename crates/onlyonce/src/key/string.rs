//! Copies a JSON string, in the one way its form writes it.

use super::cursor::{Cursor, Flaw};
use super::form::Form;
use super::scan::plain_run;
use super::text::write_char;

/// Copies the string that begins here; says whether what was written may hold an escape.
pub(super) fn copy_string(from: &mut Cursor<'_>, out: &mut Vec<u8>, form: Form) -> Result<bool, Flaw> {
    let rest = from.rest();
    let end = 1 + plain_run(&rest[1..], form.is_ascii());
    if rest.get(end) == Some(&b'"') {
        out.extend_from_slice(&rest[..=end]);
        from.at += end + 1;
        return Ok(false);
    }
    copy_piecewise(from, out, form)?;
    Ok(true)
}

fn copy_piecewise(from: &mut Cursor<'_>, out: &mut Vec<u8>, form: Form) -> Result<(), Flaw> {
    let opening = from.at;
    out.push(b'"');
    from.at += 1;
    loop {
        let rest = from.rest();
        let run = plain_run(rest, form.is_ascii());
        out.extend_from_slice(&rest[..run]);
        from.at += run;
        let c = match from.peek() {
            Some(b'"') => break,
            Some(b'\\') => escape(from)?,
            Some(..b' ') => return from.flaw("a control character in a string must be escaped"),
            _ => from.take_char().ok_or(Flaw { reason: "a string without an end", at: opening })?,
        };
        write_char(out, c, form);
    }
    out.push(b'"');
    from.at += 1;
    Ok(())
}

/// The character that the escape here stands for.
fn escape(from: &mut Cursor<'_>) -> Result<char, Flaw> {
    let c = match from.rest().get(1) {
        Some(b'u') => return escaped_unit(from),
        Some(b'b') => '\u{8}',
        Some(b't') => '\t',
        Some(b'n') => '\n',
        Some(b'f') => '\u{c}',
        Some(b'r') => '\r',
        Some(c @ (b'"' | b'\\' | b'/')) => char::from(*c),
        _ => return from.flaw("a backslash that begins no escape"),
    };
    from.at += 2;
    Ok(c)
}

fn escaped_unit(from: &mut Cursor<'_>) -> Result<char, Flaw> {
    let start = from.at;
    let lone = Flaw { reason: "half of a surrogate pair, which is no character", at: start };
    let high = unit(from)?;
    if !matches!(high, 0xd800..0xdc00) {
        return char::from_u32(high).ok_or(lone);
    }
    if !from.rest().starts_with(b"\\u") {
        return Err(lone);
    }
    match unit(from)? {
        low @ 0xdc00..0xe000 => {
            char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00)).ok_or(lone)
        }
        _ => Err(lone),
    }
}

/// Reads `\uXXXX`.
fn unit(from: &mut Cursor<'_>) -> Result<u32, Flaw> {
    let digits = from.rest().get(2..6).unwrap_or_default();
    if digits.len() != 4 {
        return from.flaw("four hexadecimal digits must follow `\\u`");
    }
    let mut unit = 0;
    for digit in digits {
        match char::from(*digit).to_digit(16) {
            Some(digit) => unit = unit << 4 | digit,
            None => return from.flaw("four hexadecimal digits must follow `\\u`"),
        }
    }
    from.at += 6;
    Ok(unit)
}

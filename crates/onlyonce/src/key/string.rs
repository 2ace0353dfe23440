//! Copies a JSON string, in the one way its form writes it.

use super::cursor::{Cursor, Flaw, Wrong};
use super::form::Form;
use super::scan::plain_run;
use super::text::write_char;

/// Copies the string whose opening quote is next; says whether what was written may hold an escape.
pub(super) fn copy_string(from: &mut Cursor<'_>, out: &mut Vec<u8>, form: Form) -> Result<bool, Flaw> {
    let closing = 1 + plain_run(&from.rest[1..], form.is_ascii());
    if from.rest.get(closing) == Some(&b'"') {
        out.extend_from_slice(from.take_bytes(closing + 1));
        return Ok(false);
    }
    copy_piecewise(from, out, form)?;
    Ok(true)
}

fn copy_piecewise(from: &mut Cursor<'_>, out: &mut Vec<u8>, form: Form) -> Result<(), Flaw> {
    let unfinished = Flaw { wrong: Wrong::NoClosingQuote, at: from.at() };
    out.extend_from_slice(from.take_bytes(1));
    loop {
        let run = plain_run(from.rest, form.is_ascii());
        out.extend_from_slice(from.take_bytes(run));
        let c = match from.peek() {
            Some(b'"') => break,
            Some(b'\\') => escaped(from)?,
            Some(..b' ') => return from.flaw(Wrong::ControlCharacter),
            _ => from.take_char().ok_or(unfinished)?,
        };
        write_char(out, c, form);
    }
    out.extend_from_slice(from.take_bytes(1));
    Ok(())
}

/// The character that the escape here stands for.
fn escaped(from: &mut Cursor<'_>) -> Result<char, Flaw> {
    let c = match from.rest.get(1) {
        Some(b'u') => return escaped_unit(from),
        Some(b'b') => '\u{8}',
        Some(b't') => '\t',
        Some(b'n') => '\n',
        Some(b'f') => '\u{c}',
        Some(b'r') => '\r',
        Some(c @ (b'"' | b'\\' | b'/')) => char::from(*c),
        _ => return from.flaw(Wrong::NoEscape),
    };
    from.take_bytes(2);
    Ok(c)
}

fn escaped_unit(from: &mut Cursor<'_>) -> Result<char, Flaw> {
    let lone = Flaw { wrong: Wrong::LoneSurrogate, at: from.at() };
    let high = unit(from)?;
    if !matches!(high, 0xd800..0xdc00) {
        return char::from_u32(high).ok_or(lone);
    }
    if !from.rest.starts_with(b"\\u") {
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
    let digits = from.rest.get(2..6).and_then(|digits| {
        digits.iter().try_fold(0, |unit, digit| Some(unit << 4 | char::from(*digit).to_digit(16)?))
    });
    match digits {
        Some(unit) => {
            from.take_bytes(6);
            Ok(unit)
        }
        None => from.flaw(Wrong::NoHexDigits),
    }
}

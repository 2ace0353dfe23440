//! Numbers: the one way to write each.

use super::cursor::{Cursor, Flaw, Wrong};
use super::form::Form;

/// The most digits of which every number is a double of its own, and its own shortest decimal.
const SAFE_DIGITS: usize = 15;

/// How a number is spelt.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spelling {
    Integer,
    Fraction,
    Exponent,
}

/// Copies the number that begins here.
pub(super) fn copy_number(from: &mut Cursor<'_>, out: &mut Vec<u8>, form: Form) -> Result<(), Flaw> {
    let start = from.at();
    let spelling = pass_number(from)?;
    let literal = from.since(start);
    if spelling == Spelling::Fraction
        && let Some(short) = without_needless_zeros(literal, form)
    {
        out.extend_from_slice(short.as_bytes());
        return Ok(());
    }
    let write = if spelling == Spelling::Integer { write_integer } else { write_decimal };
    write(out, literal, form).map_err(|wrong| Flaw { wrong, at: start })
}

/// Steps over a number.
fn pass_number(from: &mut Cursor<'_>) -> Result<Spelling, Flaw> {
    let mut spelling = Spelling::Integer;
    from.take(b'-');
    if !from.take(b'0') {
        pass_digits(from)?;
    } else if let Some(b'0'..=b'9') = from.peek() {
        return from.flaw(Wrong::NeedlessZero);
    }
    if from.take(b'.') {
        spelling = Spelling::Fraction;
        pass_digits(from)?;
    }
    if from.take(b'e') || from.take(b'E') {
        spelling = Spelling::Exponent;
        let _ = from.take(b'+') || from.take(b'-');
        pass_digits(from)?;
    }
    Ok(spelling)
}

fn pass_digits(from: &mut Cursor<'_>) -> Result<(), Flaw> {
    match from.peek() {
        Some(b'0'..=b'9') => {}
        Some(b'I' | b'N') => return from.flaw(Wrong::NotFinite),
        _ => return from.flaw(Wrong::NoDigit),
    }
    while let [b'0'..=b'9', rest @ ..] = from.rest {
        from.rest = rest;
    }
    Ok(())
}

/// Appends an integer literal: an optional minus, then digits.
pub(super) fn write_integer(out: &mut Vec<u8>, literal: &str, form: Form) -> Result<(), Wrong> {
    let digits = literal.strip_prefix('-').unwrap_or(literal);
    let kept = match form {
        _ if digits == "0" => digits,
        _ if digits.len() <= SAFE_DIGITS => literal,
        Form::Python | Form::Exact => literal,
        Form::Jcs => return write_as_double(out, literal),
    };
    out.extend_from_slice(kept.as_bytes());
    Ok(())
}

/// Appends a long integer as the double it is, which is all that RFC 8785 knows.
///
/// Taken are the integers a double holds, and the digits ECMAScript writes such a double with, so that what this
/// form wrote it also reads. Any other integer would become a neighbour's.
fn write_as_double(out: &mut Vec<u8>, literal: &str) -> Result<(), Wrong> {
    let double: f64 = literal.parse().unwrap_or(f64::INFINITY);
    let mut buffer = ryu_js::Buffer::new();
    let shortest = buffer.format(double);
    if shortest != literal && format!("{double:.0}") != literal {
        return Err(Wrong::NoDouble);
    }
    out.extend_from_slice(shortest.as_bytes());
    Ok(())
}

/// How a literal with a fraction and no exponent is written, where that can be told without reading it.
///
/// No two decimals of so few digits are the same double, so it is its double's shortest already, but for needless
/// zeros at its end; unless it is so small that its form gives it an exponent.
fn without_needless_zeros(literal: &str, form: Form) -> Option<&str> {
    let unsigned = literal.strip_prefix('-').unwrap_or(literal);
    let tiny = if form == Form::Python { "0.0000" } else { "0.000000" };
    if unsigned.len() > SAFE_DIGITS + 1 || unsigned.starts_with(tiny) {
        return None;
    }
    let short = literal.trim_end_matches('0');
    match short.strip_suffix('.') {
        None => Some(short),
        Some(_) if form == Form::Python => literal.get(..=short.len()),
        Some("-0") => Some("0"),
        Some(whole) => Some(whole),
    }
}

/// Appends a literal that has a fraction or an exponent.
fn write_decimal(out: &mut Vec<u8>, literal: &str, form: Form) -> Result<(), Wrong> {
    let double: f64 = literal.parse().map_err(|_| Wrong::NoDigit)?;
    if double.is_infinite() {
        return Err(Wrong::TooLarge);
    }
    write_double(out, double, form);
    Ok(())
}

/// Appends a finite double.
pub(super) fn write_double(out: &mut Vec<u8>, double: f64, form: Form) {
    match form {
        Form::Exact | Form::Jcs => {
            out.extend_from_slice(ryu_js::Buffer::new().format_finite(double).as_bytes());
        }
        Form::Python => write_repr(out, double),
    }
}

/// Appends a double as Python's `repr` does: the same digits as ECMAScript's, an exponent for more numbers.
fn write_repr(out: &mut Vec<u8>, double: f64) {
    let mut buffer = ryu_js::Buffer::new();
    let shortest = buffer.format_finite(double.abs());
    if double.is_sign_negative() {
        out.push(b'-');
    }
    match shortest.split_once('e') {
        Some((mantissa, exponent)) => write_exponent(out, mantissa, exponent.parse().unwrap_or(0)),
        None if double.abs() >= 1e16 => {
            let digits = shortest.trim_end_matches('0');
            write_exponent(out, &with_point(digits), shortest.len() as i32 - 1);
        }
        None if double != 0.0 && double.abs() < 1e-4 => {
            let digits = shortest.trim_start_matches(['0', '.']);
            write_exponent(out, &with_point(digits), digits.len() as i32 - (shortest.len() as i32 - 1));
        }
        None => {
            out.extend_from_slice(shortest.as_bytes());
            if !shortest.contains('.') {
                out.extend_from_slice(b".0");
            }
        }
    }
}

fn with_point(digits: &str) -> String {
    match digits.split_at(1) {
        (first, "") => first.to_owned(),
        (first, rest) => format!("{first}.{rest}"),
    }
}

fn write_exponent(out: &mut Vec<u8>, mantissa: &str, exponent: i32) {
    out.extend_from_slice(format!("{mantissa}e{exponent:+03}").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(literal: &str, form: Form) -> Result<String, Flaw> {
        let mut out = Vec::new();
        copy_number(&mut Cursor::new(literal.as_bytes())?, &mut out, form)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn each_form_writes_numbers_in_its_own_way() {
        let refused = "";
        for (literal, exact, jcs, python) in [
            ("0", "0", "0", "0"),
            ("-0", "0", "0", "0"),
            ("-0.0", "0", "0", "-0.0"),
            ("1", "1", "1", "1"),
            ("1.0", "1", "1", "1.0"),
            ("1e0", "1", "1", "1.0"),
            ("100.000", "100", "100", "100.0"),
            ("0.0", "0", "0", "0.0"),
            ("0.0000000", "0", "0", "0.0"),
            ("-0.00", "0", "0", "-0.0"),
            ("-12.50", "-12.5", "-12.5", "-12.5"),
            ("9007199254740992", "9007199254740992", "9007199254740992", "9007199254740992"),
            ("9007199254740993", "9007199254740993", refused, "9007199254740993"),
            ("-9223372036854775808", "-9223372036854775808", "-9223372036854776000", "-9223372036854775808"),
            ("-9223372036854775807", "-9223372036854775807", refused, "-9223372036854775807"),
            ("18446744073709551615", "18446744073709551615", refused, "18446744073709551615"),
            ("18446744073709551616", "18446744073709551616", "18446744073709552000", "18446744073709551616"),
            (
                "100000000000000000000",
                "100000000000000000000",
                "100000000000000000000",
                "100000000000000000000",
            ),
            ("1e20", "100000000000000000000", "100000000000000000000", "1e+20"),
            ("1000000000000000000000", "1000000000000000000000", "1e+21", "1000000000000000000000"),
            ("-1000000000000000000001", "-1000000000000000000001", refused, "-1000000000000000000001"),
            ("18446744073709552000", "18446744073709552000", "18446744073709552000", "18446744073709552000"),
            ("-12345678900000000000000", "-12345678900000000000000", refused, "-12345678900000000000000"),
            ("1e21", "1e+21", "1e+21", "1e+21"),
            ("1e16", "10000000000000000", "10000000000000000", "1e+16"),
            ("1e15", "1000000000000000", "1000000000000000", "1000000000000000.0"),
            ("0.0001", "0.0001", "0.0001", "0.0001"),
            ("0.00001", "0.00001", "0.00001", "1e-05"),
            ("0.000001", "0.000001", "0.000001", "1e-06"),
            ("-0.000123", "-0.000123", "-0.000123", "-0.000123"),
            ("0.000099", "0.000099", "0.000099", "9.9e-05"),
            ("0.1234567890123456", "0.1234567890123456", "0.1234567890123456", "0.1234567890123456"),
            ("0.12345678901234567", "0.12345678901234566", "0.12345678901234566", "0.12345678901234566"),
            ("0.0000001", "1e-7", "1e-7", "1e-07"),
            ("1e-400", "0", "0", "0.0"),
            ("5e-324", "5e-324", "5e-324", "5e-324"),
            ("1e400", refused, refused, refused),
        ] {
            for (form, expected) in [(Form::Exact, exact), (Form::Jcs, jcs), (Form::Python, python)] {
                assert_eq!(written(literal, form).unwrap_or_default(), expected, "{literal} {form}");
            }
        }
    }

    #[test]
    fn doubles_are_written_as_rfc_8785_shows_them() {
        for (bits, expected) in [
            (0x0000_0000_0000_0000, "0"),
            (0x8000_0000_0000_0000, "0"),
            (0x0000_0000_0000_0001, "5e-324"),
            (0x8000_0000_0000_0001, "-5e-324"),
            (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
            (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
            (0x4340_0000_0000_0000, "9007199254740992"),
            (0x4430_0000_0000_0000, "295147905179352830000"),
            (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
            (0x44b5_2d02_c7e1_4af6, "1e+23"),
            (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
            (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
            (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
            (0x444b_1ae4_d6e2_ef50, "1e+21"),
            (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
            (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
            (0x41b3_de43_5555_5553, "333333333.3333332"),
            (0x41b3_de43_5555_5554, "333333333.33333325"),
            (0x41b3_de43_5555_5557, "333333333.33333343"),
            (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
            (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
        ] {
            let mut out = Vec::new();
            write_double(&mut out, f64::from_bits(bits), Form::Jcs);
            assert_eq!(String::from_utf8(out).unwrap(), expected, "{bits:x}");
        }
    }
}

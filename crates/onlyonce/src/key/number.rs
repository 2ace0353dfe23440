//! Numbers: the one way to write each.

use std::io::Write as _;

use super::cursor::{Cursor, Flaw};
use super::form::Form;

/// The most digits of which every number is a double of its own, and its own shortest decimal.
const SAFE_DIGITS: usize = 15;
/// The most digits an integer has before ECMAScript turns to an exponent.
const PLAIN_DIGITS: usize = 21;

/// Why a literal has no canonical form.
pub(super) type Refusal = &'static str;

/// Copies the number that begins here.
pub(super) fn copy_number(from: &mut Cursor<'_>, out: &mut Vec<u8>, form: Form) -> Result<(), Flaw> {
    let start = from.at;
    let write = if pass_number(from)? { write_integer } else { write_decimal };
    write(out, from.since(start), form).map_err(|reason| Flaw { reason, at: start })
}

/// Steps over a number; says whether it is an integer, with neither fraction nor exponent.
fn pass_number(from: &mut Cursor<'_>) -> Result<bool, Flaw> {
    from.take(b'-');
    if from.take(b'0') {
        if let Some(b'0'..=b'9') = from.peek() {
            return from.flaw("a number does not begin with a needless zero");
        }
    } else {
        pass_digits(from)?;
    }
    let has_fraction = from.take(b'.');
    if has_fraction {
        pass_digits(from)?;
    }
    let has_exponent = from.take(b'e') || from.take(b'E');
    if has_exponent {
        let _ = from.take(b'+') || from.take(b'-');
        pass_digits(from)?;
    }
    Ok(!has_fraction && !has_exponent)
}

fn pass_digits(from: &mut Cursor<'_>) -> Result<(), Flaw> {
    match from.rest().iter().take_while(|byte| byte.is_ascii_digit()).count() {
        0 if from.peek() == Some(b'I') => from.flaw("NaN and infinities are not JSON"),
        0 => from.flaw("a digit is missing"),
        count => {
            from.at += count;
            Ok(())
        }
    }
}

/// Appends an integer literal: an optional minus, then digits.
pub(super) fn write_integer(out: &mut Vec<u8>, literal: &str, form: Form) -> Result<(), Refusal> {
    let digits = literal.strip_prefix('-').unwrap_or(literal);
    match form {
        _ if digits == "0" => out.push(b'0'),
        _ if digits.len() <= SAFE_DIGITS => out.extend_from_slice(literal.as_bytes()),
        Form::Exact if digits.len() > PLAIN_DIGITS => write_with_exponent(out, literal, digits),
        Form::Exact | Form::Python => out.extend_from_slice(literal.as_bytes()),
        Form::Jcs => write_double(out, exact_double(literal)?, form),
    }
    Ok(())
}

/// Appends a long integer in ECMAScript's exponent notation, with all its digits.
fn write_with_exponent(out: &mut Vec<u8>, literal: &str, digits: &str) {
    let exponent = digits.len() - 1;
    let (first, rest) = digits.trim_end_matches('0').split_at(1);
    if literal.len() > digits.len() {
        out.push(b'-');
    }
    out.extend_from_slice(first.as_bytes());
    if !rest.is_empty() {
        out.push(b'.');
        out.extend_from_slice(rest.as_bytes());
    }
    out.extend_from_slice(b"e+");
    out.extend_from_slice(itoa::Buffer::new().format(exponent).as_bytes());
}

/// The double that is exactly this integer.
fn exact_double(literal: &str) -> Result<f64, Refusal> {
    let double: f64 = literal.parse().map_err(|_| "not a number")?;
    // Without an exponent, the standard library prints all the digits of a double.
    if format!("{double:.0}") == literal {
        Ok(double)
    } else {
        Err("an integer that no double can hold (the form `exact` keeps all digits)")
    }
}

/// Appends a literal that has a fraction or an exponent.
fn write_decimal(out: &mut Vec<u8>, literal: &str, form: Form) -> Result<(), Refusal> {
    let double: f64 = literal.parse().map_err(|_| "not a number")?;
    if double.is_infinite() {
        return Err("a number larger than any double");
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

/// Appends a double as Python's `repr` does.
fn write_repr(out: &mut Vec<u8>, double: f64) {
    let shortest = format!("{double:e}");
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        // Never an exponent, always a fraction.
        let _ = write!(out, "{double:?}");
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "{mantissa}e{sign}{:02}", exponent.unsigned_abs());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(literal: &str, form: Form) -> Result<String, Refusal> {
        let mut out = Vec::new();
        let is_integer = !literal.contains(['.', 'e', 'E']);
        if is_integer {
            write_integer(&mut out, literal, form)?;
        } else {
            write_decimal(&mut out, literal, form)?;
        }
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
            ("-12.50", "-12.5", "-12.5", "-12.5"),
            ("9007199254740992", "9007199254740992", "9007199254740992", "9007199254740992"),
            ("9007199254740993", "9007199254740993", refused, "9007199254740993"),
            ("-9223372036854775808", "-9223372036854775808", "-9223372036854776000", "-9223372036854775808"),
            ("18446744073709551615", "18446744073709551615", refused, "18446744073709551615"),
            ("18446744073709551616", "18446744073709551616", "18446744073709552000", "18446744073709551616"),
            (
                "100000000000000000000",
                "100000000000000000000",
                "100000000000000000000",
                "100000000000000000000",
            ),
            ("1e20", "100000000000000000000", "100000000000000000000", "1e+20"),
            ("1000000000000000000000", "1e+21", "1e+21", "1000000000000000000000"),
            ("-1000000000000000000001", "-1.000000000000000000001e+21", refused, "-1000000000000000000001"),
            ("1e21", "1e+21", "1e+21", "1e+21"),
            ("1e16", "10000000000000000", "10000000000000000", "1e+16"),
            ("1e15", "1000000000000000", "1000000000000000", "1000000000000000.0"),
            ("0.0001", "0.0001", "0.0001", "0.0001"),
            ("0.00001", "0.00001", "0.00001", "1e-05"),
            ("0.000001", "0.000001", "0.000001", "1e-06"),
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
}

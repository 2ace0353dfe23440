//! The three ways to write the same JSON.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// Which canonical form a JSON key is made of.
///
/// All forms sort the members of every object, write every string in one way, and refuse what could make two
/// different payloads share a key or one payload have two: duplicate member names, lone surrogates, numbers
/// no double can reach, nesting deeper than 128.
///
/// | | `Exact` | `Jcs` | `Python` |
/// | --- | --- | --- | --- |
/// | written like | RFC 8785 | RFC 8785 | `json.dumps(x, sort_keys=True)` |
/// | members sorted by | UTF-16 unit | UTF-16 unit | code point |
/// | `1`, `1.0`, `1e0` | all `1` | all `1` | `1`, `1.0`, `1.0` |
/// | `9007199254740993` | kept | refused | kept |
/// | `1e21` | `1e+21` | `1e+21` | `1e+21` |
/// | `1000000000000000000000` | kept | `1e+21` | kept |
/// | `18446744073709551616` (2⁶⁴) | kept | `18446744073709552000` | kept |
/// | `1000000000000000000001` | kept | refused | kept |
/// | `-0`, `-0.0` | `0`, `0` | `0`, `0` | `0`, `-0.0` |
/// | `é` | `é` | `é` | `\u00e9` |
/// | a key's id | `exact:<64 hex>` | `jcs:<64 hex>` | `<64 hex>` |
///
/// The three have different ids, so that a change of form never meets keys of another form by chance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Form {
    /// RFC 8785 in everything, except that an integer literal keeps all its digits.
    ///
    /// Two 64-bit ids never share a key. A literal with a fraction or an exponent is a double, and stands for
    /// the shortest decimal that reads back as that double, as in ECMAScript; an integer literal stands for
    /// itself, however long. So `1e20` and `100000000000000000000` are equal; from 22 digits on ECMAScript
    /// writes a double with an exponent, and the integer literal is another key.
    #[default]
    Exact,
    /// RFC 8785 to the letter; an integer literal no double can hold is refused.
    ///
    /// RFC 8785 knows doubles only, so it would write `9007199254740993` as `9007199254740992`, and two ids
    /// would become one. 2⁶⁴ is a double, and written as ECMAScript writes it.
    Jcs,
    /// Byte for byte what CPython's `json.dumps(json.loads(text), sort_keys=True, default=str)` writes.
    ///
    /// For those who have keys from Python already. What Python would let pass (`NaN`, infinities, two
    /// members of one name, lone surrogates) is refused here as well.
    Python,
}

impl Form {
    /// Its name: `exact`, `jcs` or `python`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Jcs => "jcs",
            Self::Python => "python",
        }
    }

    /// Whether everything outside ASCII is escaped.
    pub(super) const fn is_ascii(self) -> bool {
        matches!(self, Self::Python)
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Form {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        [Self::Exact, Self::Jcs, Self::Python].into_iter().find(|form| form.name() == name).ok_or_else(|| {
            Error::BadInput { reason: format!("the forms are exact, jcs and python, and {name:?} is none") }
        })
    }
}

//! Keys of function calls.

use serde::Serialize;

use super::Key;
use super::fingerprint::{Fingerprint, fingerprint_of};
use super::form::Form;
use super::serialize::write_member;
use super::writer::{Object, Writer};
use crate::error::Error;

impl Key {
    /// The key of a call: the function's path and its arguments.
    ///
    /// The namespace is the path, the id `args:<64 hex>` the [`fingerprint_of`] the arguments, which are best
    /// given as a struct or a map: then their names count and their order does not.
    ///
    /// # Errors
    /// `bad_input`: the arguments have no JSON form. `bad_key`: the path cannot be a namespace.
    ///
    /// # Example
    /// ```
    /// use onlyonce::Key;
    ///
    /// #[derive(serde::Serialize)]
    /// struct Arguments { user_id: u64, amount: u64 }
    ///
    /// let key = Key::of_call("billing::create_invoice", &Arguments { user_id: 123, amount: 100 })?;
    /// assert_eq!(key.namespace(), "billing::create_invoice");
    /// # Ok::<(), onlyonce::Error>(())
    /// ```
    pub fn of_call<T: Serialize + ?Sized>(function: &str, arguments: &T) -> Result<Self, Error> {
        fingerprint_of(arguments)?.key(function, "args:")
    }
}

/// Makes the key of a call from one argument after the other, for calls that have no struct for them.
///
/// # Promise
/// The key is the one [`Key::of_call`] gives for a struct or map of the same names and values, in any order.
///
/// # Example
/// ```
/// use onlyonce::key::CallKey;
///
/// let key = CallKey::new("billing::create_invoice").arg("user_id", &123)?.arg("amount", &100)?.key()?;
/// let same = CallKey::new("billing::create_invoice").arg("amount", &100)?.arg("user_id", &123)?.key()?;
/// assert_eq!(key, same);
/// # Ok::<(), onlyonce::Error>(())
/// ```
#[derive(Debug)]
pub struct CallKey<'f> {
    function: &'f str,
    writer: Writer,
    arguments: Object,
}

impl<'f> CallKey<'f> {
    /// A call of the function with this path, without arguments so far.
    pub fn new(function: &'f str) -> Self {
        let mut writer = Writer::take(Form::Exact);
        let arguments = writer.open_root_object();
        Self { function, writer, arguments }
    }

    /// Adds an argument.
    ///
    /// # Errors
    /// `bad_input`: the value has no JSON form, or there is an argument of this name already.
    pub fn arg<T: Serialize + ?Sized>(mut self, name: &str, value: &T) -> Result<Self, Error> {
        write_member(&mut self.writer, &mut self.arguments, name, value)?;
        Ok(self)
    }

    /// The key.
    ///
    /// # Errors
    /// `bad_input`: two arguments have one name. `bad_key`: the path cannot be a namespace.
    pub fn key(mut self) -> Result<Key, Error> {
        self.writer
            .close_object(&self.arguments)
            .map_err(|fault| Error::BadInput { reason: fault.wrong().reason().to_owned() })?;
        let arguments = Fingerprint::of_bytes(&self.writer.out);
        self.writer.give_back();
        arguments.key(self.function, "args:")
    }
}

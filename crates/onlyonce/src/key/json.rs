//! Keys of JSON payloads.

use serde::Serialize;

use super::Key;
use super::canonical::write_document;
use super::fingerprint::Fingerprint;
use super::form::Form;
use super::pointer::{Filter, Pointer};
use super::serialize::write_value;
use super::writer::Writer;
use crate::error::Error;

/// Makes keys of JSON payloads: the same content gives the same key, however it is written.
///
/// The order of members, white space, escapes and the spelling of numbers do not count; delivery details (a
/// timestamp, a retry count) are left out with [`exclude`](Self::exclude), or only what matters is taken with
/// [`select`](Self::select).
///
/// # Promise
/// Two payloads get the same key exactly when they are the same in the chosen [`Form`], after the pointers have
/// taken their part. What cannot be told apart safely is refused, never guessed: see [`Form`]. The parts that
/// are left out must be good JSON as well.
///
/// # Example
/// ```
/// use onlyonce::key::{Form, JsonKey};
///
/// let orders = JsonKey::new().exclude(["/meta/ts", "/items/*/retry"])?;
/// let first = br#"{"id": 7, "items": [{"sku": "a", "retry": 0}], "meta": {"ts": 1}}"#;
/// let again = br#"{"meta":{"ts":2},"items":[{"retry":1,"sku":"\u0061"}],"id":7.0}"#;
/// assert_eq!(orders.key("orders", first)?, orders.key("orders", again)?);
/// assert_eq!(orders.canonical(again)?, br#"{"id":7,"items":[{"sku":"a"}],"meta":{}}"#);
///
/// let python = JsonKey::new().form(Form::Python);
/// let key = python.key("orders", b"{\"b\": 1.50, \"a\": \"\xc3\xa9\"}")?;
/// // hashlib.sha256(json.dumps({"b": 1.5, "a": "é"}, sort_keys=True).encode()).hexdigest()
/// assert_eq!(key.id(), "6b210bd37119d65a02b9ab135907113de8905e61fd02344427cd9c43a1d249f4");
/// # Ok::<(), onlyonce::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct JsonKey {
    form: Form,
    select: Vec<Pointer>,
    exclude: Vec<Pointer>,
    filter: Filter,
}

impl JsonKey {
    /// Of the whole payload, in the form [`Form::Exact`].
    pub fn new() -> Self {
        Self::default()
    }

    /// In another form.
    #[must_use]
    pub fn form(mut self, form: Form) -> Self {
        self.form = form;
        self.with_filter()
    }

    /// Without what these JSON pointers (RFC 6901) name.
    ///
    /// `*` stands for every member or element, so a member that is really called `*` can only be named
    /// together with its siblings. A pointer that matches nothing is fine. An excluded element is taken out,
    /// and those after it move up; pointers always count in the payload as it came.
    ///
    /// # Errors
    /// `bad_pointer`: not a pointer, or the empty one, which would leave nothing.
    pub fn exclude<P: AsRef<str>>(mut self, pointers: impl IntoIterator<Item = P>) -> Result<Self, Error> {
        for text in pointers {
            let pointer = Pointer::parse(text.as_ref())?;
            if pointer.is_root() {
                let reason = "the empty pointer names the whole payload, and nothing would be left";
                return Err(Error::BadPointer { pointer: String::new(), reason });
            }
            self.exclude.push(pointer);
        }
        Ok(self.with_filter())
    }

    /// Only what these JSON pointers name.
    ///
    /// The payload is reduced to the parts they name, each where it was: the members around it stay, the
    /// elements before it become `null`, the rest goes. Pointers may overlap; the empty one names everything.
    /// Then comes [`exclude`](Self::exclude), and takes its part out of what is left.
    ///
    /// A pointer that matches nothing is fine, but a payload in which *no* pointer matches anything gets no
    /// key: it would share it with every other such payload.
    ///
    /// # Errors
    /// `bad_pointer`: not a pointer.
    pub fn select<P: AsRef<str>>(mut self, pointers: impl IntoIterator<Item = P>) -> Result<Self, Error> {
        for text in pointers {
            self.select.push(Pointer::parse(text.as_ref())?);
        }
        Ok(self.with_filter())
    }

    fn with_filter(mut self) -> Self {
        self.filter = Filter::new(self.form, &self.select, &self.exclude);
        self
    }

    /// The key of a payload: the hash of its canonical form, as an id of this [`Form`]'s shape.
    ///
    /// # Errors
    /// `bad_json`: not JSON, or JSON no key can be made of, with the offset of the byte that is wrong.
    /// `bad_input`: nothing of what is selected is there. `bad_key`: the namespace cannot be one.
    pub fn key(&self, namespace: &str, payload: &[u8]) -> Result<Key, Error> {
        self.key_with(namespace, self.digest(payload)?)
    }

    /// The key of any value serde can write.
    ///
    /// # Errors
    /// `bad_input`: the value has no JSON form, as for [`fingerprint_of`](super::fingerprint_of), or nothing of
    /// what is selected is there. `bad_key`: the namespace cannot be one.
    pub fn key_of<T: Serialize + ?Sized>(&self, namespace: &str, value: &T) -> Result<Key, Error> {
        self.key_with(namespace, self.digest_of(value)?)
    }

    fn key_with(&self, namespace: &str, digest: Fingerprint) -> Result<Key, Error> {
        let prefix = match self.form {
            Form::Exact => "exact:",
            Form::Jcs => "jcs:",
            Form::Python => "",
        };
        digest.key(namespace, prefix)
    }

    /// The SHA-256 of the canonical form.
    ///
    /// # Errors
    /// As for [`key`](Self::key).
    pub fn digest(&self, payload: &[u8]) -> Result<Fingerprint, Error> {
        self.with_canonical(payload, Fingerprint::of_bytes)
    }

    /// The SHA-256 of the canonical form of any value serde can write.
    ///
    /// # Errors
    /// As for [`key_of`](Self::key_of).
    pub fn digest_of<T: Serialize + ?Sized>(&self, value: &T) -> Result<Fingerprint, Error> {
        Writer::lend(self.form, |writer| {
            write_value(writer, value)?;
            if self.filter.is_empty() {
                Ok(Fingerprint::of_bytes(&writer.out))
            } else {
                self.digest(&writer.out)
            }
        })
    }

    /// The canonical form itself.
    ///
    /// # Errors
    /// As for [`key`](Self::key).
    pub fn canonical(&self, payload: &[u8]) -> Result<Vec<u8>, Error> {
        self.with_canonical(payload, <[u8]>::to_vec)
    }

    fn with_canonical<T>(&self, payload: &[u8], then: impl FnOnce(&[u8]) -> T) -> Result<T, Error> {
        Writer::lend(self.form, |writer| {
            if write_document(writer, payload, &self.filter)? {
                Ok(then(&writer.out))
            } else {
                Err(Error::BadInput {
                    reason: "nothing of what is selected is there, so all such payloads would share one key"
                        .into(),
                })
            }
        })
    }
}

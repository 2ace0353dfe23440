//! What makes two calls the same.
//!
//! | of | made with | its id |
//! | --- | --- | --- |
//! | anything you name yourself | [`Key::new`] | as you say |
//! | a content | [`ContentId`] | `sha256:<64 hex>` |
//! | a JSON payload | [`JsonKey`] | `exact:<64 hex>`, `jcs:<64 hex>`, or `<64 hex>` as from Python |
//! | a call | [`Key::of_call`], [`CallKey`] | `args:<64 hex>`, in the function's namespace |
//! | an event | [`EventIdentity`] | `env__id`, or `env__<52 base32>` |
//! | a job, an effect of it | [`job_key`], [`op_key`] | `job:<64 hex>`, `op:<64 hex>` |
//!
//! A [`Fingerprint`] is no key: it tells whether two calls with the same key had the same input.

mod call;
mod canonical;
mod content;
mod cursor;
mod event;
mod fingerprint;
mod form;
mod job;
mod json;
mod number;
mod pointer;
mod scan;
mod serialize;
mod serialize_text;
mod string;
mod text;
mod writer;

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

use crate::error::Error;

pub use call::CallKey;
pub use content::{ContentHasher, ContentId};
pub use event::{EventIdentity, normalize, service_id};
pub(crate) use fingerprint::check_json_form;
pub use fingerprint::{Fingerprint, Hex, fingerprint_of};
pub use form::Form;
pub use job::{job_key, op_key};
pub use json::JsonKey;

/// The longest id, in bytes.
pub const MAX_ID: usize = 1024;
/// The longest namespace, in bytes.
pub const MAX_NAMESPACE: usize = 128;

/// What makes two calls the same: a namespace and an id, shown as `namespace/id`.
///
/// The namespace is the consumer: two consumers of one event have two namespaces and never block each other.
/// Cloning is cheap.
///
/// # Example
/// ```
/// use onlyonce::Key;
/// let key = Key::new("orders.charge", "order 4711")?;
/// assert_eq!(key.to_string(), "orders.charge/order 4711");
/// assert_eq!(Key::parse("orders.charge/a/b")?.id(), "a/b");
/// # Ok::<(), onlyonce::Error>(())
/// ```
#[derive(Clone)]
pub struct Key {
    text: Arc<str>,
    namespace_len: u8,
    /// Of the whole text, keyed per process: nobody outside can choose ids that collide.
    hash: u64,
}

impl Key {
    /// The key of this namespace and id.
    ///
    /// # Errors
    /// `bad_key`: the namespace is not 1 to 128 printable ASCII characters without space and `/`; the id is
    /// not 1 to 1024 bytes, or has a control character in it.
    pub fn new(namespace: &str, id: impl AsRef<str>) -> Result<Self, Error> {
        let id = id.as_ref();
        check_namespace(namespace)?;
        check_id(id)?;
        let mut text = String::with_capacity(namespace.len() + 1 + id.len());
        text.push_str(namespace);
        text.push('/');
        text.push_str(id);
        let hash = process_hash(&text);
        #[expect(clippy::cast_possible_truncation, reason = "checked: at most 128")]
        Ok(Self { text: text.into(), namespace_len: namespace.len() as u8, hash })
    }

    /// Reads `namespace/id`; the first slash divides.
    ///
    /// # Errors
    /// `bad_key`, as for [`Key::new`], or when there is no slash.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (namespace, id) = text
            .split_once('/')
            .ok_or_else(|| bad(format!("a key is written `namespace/id`, and {text:?} has no slash")))?;
        Self::new(namespace, id)
    }

    /// Whose key it is.
    pub fn namespace(&self) -> &str {
        &self.text[..usize::from(self.namespace_len)]
    }

    /// What it is, within the namespace.
    pub fn id(&self) -> &str {
        &self.text[usize::from(self.namespace_len) + 1..]
    }

    /// `namespace/id`.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The hash computed when the key was made; differs from process to process.
    pub(crate) fn hash64(&self) -> u64 {
        self.hash
    }
}

fn process_hash(text: &str) -> u64 {
    static STATE: OnceLock<RandomState> = OnceLock::new();
    STATE.get_or_init(RandomState::new).hash_one(text)
}

fn bad(reason: String) -> Error {
    Error::BadKey { reason }
}

fn check_namespace(namespace: &str) -> Result<(), Error> {
    if namespace.is_empty() || namespace.len() > MAX_NAMESPACE {
        return Err(bad(format!(
            "a namespace has 1 to {MAX_NAMESPACE} bytes, this one has {}",
            namespace.len()
        )));
    }
    match namespace.chars().find(|c| !c.is_ascii_graphic() || *c == '/') {
        Some(c) => Err(bad(format!(
            "a namespace is printable ASCII without space and `/`, and {namespace:?} has {c:?}"
        ))),
        None => Ok(()),
    }
}

fn check_id(id: &str) -> Result<(), Error> {
    if id.is_empty() || id.len() > MAX_ID {
        let len = id.len();
        return Err(bad(format!("an id has 1 to {MAX_ID} bytes, this one has {len}; hash what is longer")));
    }
    // Most ids are ASCII, and that is settled many bytes at a time.
    if id.is_ascii() && !id.bytes().any(|byte| byte.is_ascii_control()) {
        return Ok(());
    }
    match id.chars().find(|c| c.is_control()) {
        Some(c) => Err(bad(format!("an id has no control characters, and this one has {c:?}"))),
        None => Ok(()),
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.text == other.text
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.text.cmp(&other.text)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.text, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_reads_back_as_it_was_written() {
        let key = Key::new("n", "a/b c\u{1F600}").unwrap();
        assert_eq!((key.namespace(), key.id()), ("n", "a/b c\u{1F600}"));
        assert_eq!(Key::parse(key.as_str()).unwrap(), key);
    }

    #[test]
    fn what_cannot_be_a_key_says_why() {
        let long = "x".repeat(MAX_ID + 1);
        for (namespace, id) in [
            ("", "a"),
            ("n", ""),
            ("n/m", "a"),
            ("n m", "a"),
            ("é", "a"),
            ("n", "a\nb"),
            ("n", "\0"),
            ("n", &long),
        ] {
            let error = Key::new(namespace, id).unwrap_err();
            assert_eq!(error.code(), "bad_key", "{namespace:?} {id:?}");
            assert_eq!(error.exit_code(), 65);
        }
        assert_eq!(Key::parse("no slash").unwrap_err().code(), "bad_key");
        assert!(Key::new("n", "x".repeat(MAX_ID)).is_ok());
    }
}

//! Opens a store by its URL.
//!
//! | URL | store |
//! | --- | --- |
//! | `memory:` | this process's memory |
//!
//! Paths are taken as they stand, relative to the working directory, with spaces and all, except that `%` and
//! two hex digits mean one byte (`%25` is a percent sign, `%3F` a question mark: a bare `?` begins the options).
//! `~` is not expanded: a shell does that only at the start of a word, so a path that begins with it is
//! refused instead of making a directory of that name. `scheme:///a/b` is the absolute path `/a/b`; there are
//! no host names.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use onlyonce::Error;
use onlyonce::store::{MemoryStore, Store};
use onlyonce::time::{Clock, SystemClock};

const FORMS: &str = "write sqlite:PATH, file:DIR or memory:";

/// The store at `url`, on the system's clock.
///
/// # Errors
/// `bad_store_url` when the URL means nothing, with what to write instead; a `store_…` error when the place
/// it names cannot be used.
///
/// # Example
/// ```
/// let store = onlyonce_stores::open("memory:")?;
/// assert_eq!(store.facts().name, "memory");
/// # Ok::<(), onlyonce::Error>(())
/// ```
pub fn open(url: &str) -> Result<Arc<dyn Store>, Error> {
    open_with(url, Arc::new(SystemClock::new()))
}

/// The store at `url`, on a clock of the caller's.
///
/// # Errors
/// As for [`open`].
pub fn open_with(url: &str, clock: Arc<dyn Clock>) -> Result<Arc<dyn Store>, Error> {
    let parts = Parts::of(url)?;
    match parts.scheme.as_str() {
        "memory" => open_memory(&parts, clock),
        "redis" | "rediss" | "postgres" | "postgresql" | "firestore" => {
            Err(parts.bad(format!("this build has no {} store yet; {FORMS}", parts.scheme)))
        }
        _ => Err(parts.unknown()),
    }
}

/// Where the command line keeps its store unless told otherwise.
///
/// `sqlite:$XDG_DATA_HOME/onlyonce/onlyonce.db`; `$HOME/.local/share` stands in where `XDG_DATA_HOME` is unset
/// or, against its specification, not an absolute path.
///
/// # Errors
/// `bad_store_url` when `HOME` is not set either.
pub fn default_url() -> Result<String, Error> {
    default_url_from(std::env::var_os("XDG_DATA_HOME"), std::env::var_os("HOME"))
}

fn default_url_from(data_home: Option<OsString>, home: Option<OsString>) -> Result<String, Error> {
    let absolute = |path: Option<OsString>| path.map(PathBuf::from).filter(|p| p.is_absolute());
    let data =
        absolute(data_home).or_else(|| absolute(home).map(|h| h.join(".local/share"))).ok_or_else(|| {
            Error::BadStoreUrl {
                url: String::new(),
                reason:
                    "no store was named, and neither XDG_DATA_HOME nor HOME says where the default one is; \
                         name one, as sqlite:PATH or file:DIR"
                        .to_owned(),
            }
        })?;
    Ok(format!("sqlite:{}", encode(data.join("onlyonce/onlyonce.db").as_os_str().as_encoded_bytes())))
}

fn open_memory(parts: &Parts<'_>, clock: Arc<dyn Clock>) -> Result<Arc<dyn Store>, Error> {
    if parts.rest.is_empty() {
        return Ok(Arc::new(MemoryStore::with_clock(clock)));
    }
    Err(parts.bad("the memory store has no path and no options; write memory: and nothing after it"))
}

/// A URL, cut at its joints.
struct Parts<'a> {
    url: &'a str,
    /// In lower case.
    scheme: String,
    /// All that follows the first colon.
    rest: &'a str,
}

impl<'a> Parts<'a> {
    fn of(url: &'a str) -> Result<Self, Error> {
        let whole = Self { url, scheme: String::new(), rest: url };
        if url.trim().is_empty() {
            return Err(whole.bad(format!("it is empty; {FORMS}")));
        }
        let Some((scheme, rest)) = url.split_once(':').filter(|(scheme, _)| is_scheme(scheme)) else {
            return Err(whole.bad(format!("it does not begin with a kind of store; {FORMS}")));
        };
        Ok(Self { url, scheme: scheme.to_ascii_lowercase(), rest })
    }

    fn bad(&self, reason: impl Into<String>) -> Error {
        Error::BadStoreUrl { url: self.shown(), reason: reason.into() }
    }

    fn unknown(&self) -> Error {
        let meant = match self.scheme.as_str() {
            "sqlite3" => "; for SQLite, write sqlite:PATH",
            "mem" | "ram" => "; for a store in memory, write memory:",
            "dir" | "directory" | "path" => "; for a directory, write file:DIR",
            _ => "",
        };
        self.bad(format!("there is no {:?} store{meant}; {FORMS}", self.scheme))
    }

    /// The URL as it may be printed: what can be a password is not in it.
    fn shown(&self) -> String {
        if ["memory", "file", "sqlite"].contains(&self.scheme.as_str()) {
            return self.url.to_owned();
        }
        let (head, rest) = self.url.split_at(self.url.len() - self.rest.len());
        // A password may hold `/`, `?` and `@` by mistake: everything before the last `@` is taken for one.
        let rest = match rest.rsplit_once('@') {
            Some((secret, host)) => format!("{}***@{host}", name_before_password(secret)),
            None => rest.to_owned(),
        };
        format!("{head}{}", without_values(&rest))
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

/// `//user:` of `//user:password`; of anything without that shape, only its slashes.
fn name_before_password(secret: &str) -> String {
    let (slashes, name) = secret.strip_prefix("//").map_or(("", secret), |name| ("//", name));
    match name.split_once(':') {
        Some((name, _)) if !slashes.is_empty() => format!("{slashes}{name}:"),
        _ => slashes.to_owned(),
    }
}

fn without_values(rest: &str) -> String {
    let Some((path, query)) = rest.split_once('?') else { return rest.to_owned() };
    let words: Vec<String> = query
        .split('&')
        .map(|word| word.split_once('=').map_or_else(|| word.to_owned(), |(name, _)| format!("{name}=***")))
        .collect();
    format!("{path}?{}", words.join("&"))
}

/// What a path needs to come back out of a URL as it was.
fn encode(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    for chunk in path.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '%' => text.push_str("%25"),
                '?' => text.push_str("%3F"),
                c => text.push(c),
            }
        }
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("%{byte:02X}")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_under_the_data_home() {
        let url = |data: &str, home: &str| {
            let set = |text: &str| (!text.is_empty()).then(|| OsString::from(text));
            default_url_from(set(data), set(home))
        };
        assert_eq!(url("/data", "/home/a").unwrap(), "sqlite:/data/onlyonce/onlyonce.db");
        assert_eq!(url("", "/home/a").unwrap(), "sqlite:/home/a/.local/share/onlyonce/onlyonce.db");
        assert_eq!(url("not/absolute", "/home/a").unwrap(), url("", "/home/a").unwrap());
        assert_eq!(url("/100%?", "").unwrap(), "sqlite:/100%25%3F/onlyonce/onlyonce.db");
        assert_eq!(url("", "").unwrap_err().code(), "bad_store_url");
    }
}

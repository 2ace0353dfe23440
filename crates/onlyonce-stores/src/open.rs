//! Opens a store by its URL.
//!
//! | URL | store |
//! | --- | --- |
//! | `memory:` | this process's memory |
//! | `file:DIR` | the files of a directory |
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
        "file" => open_file(&parts, clock),
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

#[cfg(all(feature = "file", unix))]
fn open_file(parts: &Parts<'_>, clock: Arc<dyn Clock>) -> Result<Arc<dyn Store>, Error> {
    if let Some((word, _)) = parts.options().first() {
        return Err(parts.bad(format!(
            "the file store has no options, and {word:?} is one; for a `?` in the path, write %3F"
        )));
    }
    Ok(Arc::new(crate::file::FileStore::with_clock(parts.path()?, clock)?))
}

#[cfg(not(all(feature = "file", unix)))]
fn open_file(parts: &Parts<'_>, _: Arc<dyn Clock>) -> Result<Arc<dyn Store>, Error> {
    Err(parts.bad(format!("this build has no file store; {FORMS}")))
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

    /// The path after the scheme, and before the options.
    fn path(&self) -> Result<PathBuf, Error> {
        let form = format!("{}:path/to/it or {0}:/path/to/it", self.scheme);
        let text = self.rest.split_once('?').map_or(self.rest, |(path, _)| path);
        let text = match text.strip_prefix("//") {
            Some(absolute) if absolute.starts_with('/') || absolute.is_empty() => absolute,
            Some(_) => {
                return Err(
                    self.bad(format!("what follows `//` is a host, and a path has none; write {form}"))
                );
            }
            None => text,
        };
        if text.is_empty() {
            return Err(self.bad(format!("it has no path; write {form}")));
        }
        if text == "~" || text.starts_with("~/") {
            return Err(self.bad(format!(
                "`~` is not expanded here; write {}:$HOME/… for your home, or {0}:./~ for a file of that name",
                self.scheme
            )));
        }
        decode(text).map(PathBuf::from).map_err(|reason| self.bad(reason))
    }

    /// The words after the `?`, with their values.
    fn options(&self) -> Vec<(&'a str, &'a str)> {
        let query = self.rest.split_once('?').map_or("", |(_, query)| query);
        let words = query.split('&').filter(|word| !word.is_empty());
        words.map(|word| word.split_once('=').unwrap_or((word, ""))).collect()
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

/// A path out of a URL: `%` and two hex digits are one byte, all else is as it stands.
fn decode(text: &str) -> Result<OsString, &'static str> {
    let mut pieces = text.split('%');
    let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        let byte = piece.get(..2).filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
        let byte = byte.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(byte.ok_or("a `%` stands before two hex digits; for a percent sign, write %25")?);
        bytes.extend_from_slice(&piece.as_bytes()[2..]);
    }
    if bytes.contains(&0) {
        return Err("no path has a zero byte in it; write it without");
    }
    os_string(bytes)
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "on other systems not every byte can be in a path")]
fn os_string(bytes: Vec<u8>) -> Result<OsString, &'static str> {
    Ok(std::os::unix::ffi::OsStringExt::from_vec(bytes))
}

#[cfg(not(unix))]
fn os_string(bytes: Vec<u8>) -> Result<OsString, &'static str> {
    String::from_utf8(bytes).map(OsString::from).map_err(|_| "a path is UTF-8 here; write it as such")
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

    fn path(url: &str) -> Result<PathBuf, Error> {
        Parts::of(url)?.path()
    }

    #[test]
    fn paths_come_out_as_they_stand() {
        for (url, wanted) in [
            ("file:a", "a"),
            ("file:./a b/../c", "./a b/../c"),
            ("file:/a", "/a"),
            ("file:///a", "/a"),
            ("sqlite:/a/b.db?synchronous=normal", "/a/b.db"),
            ("file:a%20b%25%3fc", "a b%?c"),
            ("file:\u{1F600}#x@y:z", "\u{1F600}#x@y:z"),
            ("file:a/~/b", "a/~/b"),
            ("file:./~", "./~"),
        ] {
            assert_eq!(path(url).unwrap(), PathBuf::from(wanted), "{url}");
        }
    }

    #[test]
    fn paths_that_mean_nothing_are_told_what_to_write() {
        for url in [
            "file:",
            "file:?",
            "file://",
            "sqlite:",
            "file://host/a",
            "file:~",
            "file:~/a",
            "file:%",
            "file:a%2",
            "file:a%zzb",
            "file:%00",
            "file:%é",
            "file:%+1",
        ] {
            let error = path(url).unwrap_err();
            assert_eq!(error.code(), "bad_store_url");
            assert!(error.to_string().contains("write "), "{error}");
        }
    }

    #[test]
    fn a_path_survives_the_way_through_a_url() {
        for bytes in [&b"/a b"[..], b"/100%?", b"/\xff\xfe/%41", "/é\u{1F600}".as_bytes()] {
            assert_eq!(decode(&encode(bytes)).unwrap().as_encoded_bytes(), bytes);
        }
    }

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

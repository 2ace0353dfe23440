//! The parts of a store's URL, and how it may be shown.

use std::ffi::OsString;
use std::path::PathBuf;

use onlyonce::Error;

use super::FORMS;

/// A URL, cut at its joints.
pub(super) struct Parts<'a> {
    url: &'a str,
    /// In lower case.
    pub(super) scheme: String,
    /// All that follows the first colon.
    pub(super) rest: &'a str,
}

impl<'a> Parts<'a> {
    pub(super) fn of(url: &'a str) -> Result<Self, Error> {
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
    pub(super) fn path(&self) -> Result<PathBuf, Error> {
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
    pub(super) fn options(&self) -> Result<Vec<(&'a str, &'a str)>, Error> {
        let query = self.rest.split_once('?').map_or("", |(_, query)| query);
        let words = query.split('&').filter(|word| !word.is_empty());
        let options: Vec<_> = words.map(|word| word.split_once('=').unwrap_or((word, ""))).collect();
        match options.iter().enumerate().find(|(n, (word, _))| options[..*n].iter().any(|(w, _)| w == word)) {
            Some((_, (word, _))) => Err(self.bad(format!("it says {word:?} twice; write it once"))),
            None => Ok(options),
        }
    }

    pub(super) fn bad(&self, reason: impl Into<String>) -> Error {
        Error::BadStoreUrl { url: self.shown(), reason: reason.into() }
    }

    pub(super) fn unknown(&self) -> Error {
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
pub(super) fn encode(path: &[u8]) -> String {
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
}

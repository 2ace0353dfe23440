//! Opens a store by its URL.
//!
//! | URL | store |
//! | --- | --- |
//! | `memory:` | this process's memory |
//! | `file:DIR` | the files of a directory |
//! | `sqlite:PATH` | a SQLite database; `?synchronous=full` (the default) or `normal`, `&busy_timeout=5s` |
//!
//! Paths are taken as they stand, relative to the working directory, with spaces and all, except that `%` and
//! two hex digits mean one byte (`%25` is a percent sign, `%3F` a question mark: a bare `?` begins the options).
//! `~` is not expanded: a shell does that only at the start of a word, so a path that begins with it is
//! refused instead of making a directory of that name. `scheme:///a/b` is the absolute path `/a/b`; there are
//! no host names. The directory above must be there: a misspelt path must not become a new, empty store.

mod url;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use onlyonce::Error;
use onlyonce::store::{MemoryStore, Store};
use onlyonce::time::{Clock, SystemClock};

use url::Parts;

/// What can be written.
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
        "sqlite" => open_sqlite(&parts, clock),
        "redis" | "rediss" | "postgres" | "postgresql" | "firestore" => {
            Err(parts.bad(format!("this build has no {} store yet; {FORMS}", parts.scheme)))
        }
        _ => Err(parts.unknown()),
    }
}

/// Where the command line keeps its store unless told otherwise.
///
/// `sqlite:$XDG_DATA_HOME/onlyonce/onlyonce.db`; `$HOME/.local/share` stands in where `XDG_DATA_HOME` is unset
/// or, against its specification, not an absolute path. Opening it makes the directories above it, for this
/// user alone.
///
/// # Errors
/// `bad_store_url` when `HOME` is not set either.
pub fn default_url() -> Result<String, Error> {
    default_url_from(std::env::var_os("XDG_DATA_HOME"), std::env::var_os("HOME"))
}

fn default_url_from(data_home: Option<OsString>, home: Option<OsString>) -> Result<String, Error> {
    let path = default_path_from(data_home, home).ok_or_else(|| Error::BadStoreUrl {
        url: String::new(),
        reason:
            "no store was named, and neither XDG_DATA_HOME nor HOME says where the default one is; write \
                 sqlite:PATH or file:DIR"
                .to_owned(),
    })?;
    Ok(format!("sqlite:{}", url::encode(path.as_os_str().as_encoded_bytes())))
}

fn default_path_from(data_home: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let absolute = |path: Option<OsString>| path.map(PathBuf::from).filter(|p| p.is_absolute());
    let data = absolute(data_home).or_else(|| absolute(home).map(|h| h.join(".local/share")))?;
    Some(data.join("onlyonce/onlyonce.db"))
}

fn open_memory(parts: &Parts<'_>, clock: Arc<dyn Clock>) -> Result<Arc<dyn Store>, Error> {
    if parts.rest.is_empty() {
        return Ok(Arc::new(MemoryStore::with_clock(clock)));
    }
    Err(parts.bad("the memory store has no path and no options; write memory: and nothing after it"))
}

#[cfg(all(feature = "file", unix))]
fn open_file(parts: &Parts<'_>, clock: Arc<dyn Clock>) -> Result<Arc<dyn Store>, Error> {
    if let Some((word, _)) = parts.options()?.first() {
        return Err(parts.bad(format!(
            "the file store has no options, and {word:?} is one; for a `?` in the path, write %3F"
        )));
    }
    Ok(Arc::new(crate::file::FileStore::with_clock(parts.path()?, clock)?))
}

#[cfg(not(all(feature = "file", unix)))]
fn open_file(parts: &Parts<'_>, _: Arc<dyn Clock>) -> Result<Arc<dyn Store>, Error> {
    missing(parts)
}

#[cfg(feature = "sqlite")]
fn open_sqlite(parts: &Parts<'_>, clock: Arc<dyn Clock>) -> Result<Arc<dyn Store>, Error> {
    let mut options = crate::sqlite::SqliteOptions::new().clock(clock);
    for (word, value) in parts.options()? {
        options = match word {
            "synchronous" => {
                options.synchronous(crate::sqlite::Synchronous::parse(value).ok_or_else(|| {
                    parts.bad(format!("synchronous is not {value:?}; write full or normal"))
                })?)
            }
            "busy_timeout" => options.busy_timeout(onlyonce::time::parse_duration(value)?),
            _ => {
                return Err(
                    parts.bad(format!("{word:?} is no option; write synchronous=… or busy_timeout=…"))
                );
            }
        };
    }
    let path = parts.path()?;
    if path.as_os_str() == ":memory:" {
        return Err(
            parts.bad("SQLite's own memory is nobody's to share; for a store in memory, write memory:")
        );
    }
    if default_path_from(std::env::var_os("XDG_DATA_HOME"), std::env::var_os("HOME")).as_ref() == Some(&path)
    {
        make_dir_above(&path)?;
    }
    Ok(Arc::new(options.open(path)?))
}

#[cfg(not(feature = "sqlite"))]
fn open_sqlite(parts: &Parts<'_>, _: Arc<dyn Clock>) -> Result<Arc<dyn Store>, Error> {
    missing(parts)
}

#[cfg(not(all(feature = "file", feature = "sqlite", unix)))]
fn missing(parts: &Parts<'_>) -> Result<Arc<dyn Store>, Error> {
    // What would be wrong in any build is told first.
    parts.path()?;
    parts.options()?;
    Err(parts.bad(format!("this build was made without the {} store; {FORMS}", parts.scheme)))
}

/// Makes the directories above the default database, as the XDG specification asks: mode 0700.
#[cfg(feature = "sqlite")]
fn make_dir_above(path: &std::path::Path) -> Result<(), Error> {
    let Some(dir) = path.parent() else { return Ok(()) };
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir).map_err(|error| {
        let dir = dir.display();
        onlyonce::store::StoreError::misconfigured(format!(
            "cannot make the directory {dir} of the default store; make it, or name another store"
        ))
        .because(error)
        .into()
    })
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

//! The store's own directory: is it ours, and where in it does a key live.
//!
//! ```text
//! DIR/store.json                what this directory is, and in which format
//! DIR/a/b/lock                  one writer at a time in this shard
//! DIR/a/b/ab12…                 an entry; its name is the SHA-256 of the whole key
//! DIR/a/b/floor                 what removed entries leave behind: a version none of them was above
//! DIR/a/b/temp                  the next file, until it takes its name
//! ```
//!
//! 16 × 16 shards, made when first needed: each costs a few waits for the disk once, so more of them would
//! make a small store slow, and at a million entries a shard still holds only some thousand names.

use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use onlyonce::Key;
use onlyonce::store::StoreErrorKind::{Corrupt, Misconfigured};
use serde::{Deserialize, Serialize};

use super::dir::Dir;
use super::format::sha256;
use super::trouble::Trouble;

const MARK: &str = "store.json";
const MARK_TEMP: &str = "store.json.temp";
const FORMAT: &str = "onlyonce-file";
const FORMAT_VERSION: u64 = 1;

/// How many shards there are.
pub(super) const SHARDS: usize = 256;

/// The first file of a store: says what the directory is.
#[derive(Debug, Serialize, Deserialize)]
struct Mark {
    format: String,
    version: u64,
}

#[derive(Debug)]
pub(super) struct Root {
    pub(super) dir: Dir,
    pub(super) path: PathBuf,
}

impl Root {
    /// The store in this directory, made if there is nothing yet.
    pub(super) fn open(path: &Path) -> Result<Self, Trouble> {
        make(path)?;
        let dir = Dir::open(path).map_err(|e| Trouble::io("open the directory", path, &e))?;
        let root = Self { dir, path: path.to_owned() };
        if !root.is_ours()? {
            root.begin()?;
        }
        Ok(root)
    }

    fn is_ours(&self) -> Result<bool, Trouble> {
        let path = self.path.join(MARK);
        let trouble = |e: &io::Error| Trouble::io("read", &path, e);
        let Some(file) = self.dir.file(MARK).map_err(|e| trouble(&e))? else { return Ok(false) };
        let mut text = Vec::new();
        file.take(4096).read_to_end(&mut text).map_err(|e| trouble(&e))?;
        check_mark(&path, &text).map(|()| true)
    }

    /// Makes an empty directory a store; only one of those who come at the same time does.
    fn begin(&self) -> Result<(), Trouble> {
        let cannot = |e: io::Error| Trouble::io("begin a store in", &self.path, &e);
        // On a handle of its own, so that closing it frees the lock.
        let guard = Dir::open(&self.path).map_err(cannot)?;
        guard.lock().map_err(cannot)?;
        if self.is_ours()? {
            return Ok(());
        }
        if let Some(other) = self.dir.names().map_err(cannot)?.iter().find(|name| *name != MARK_TEMP) {
            return Err(self.not_ours(other));
        }
        self.write_mark().map_err(cannot)
    }

    fn write_mark(&self) -> io::Result<()> {
        let mark = Mark { format: FORMAT.to_owned(), version: FORMAT_VERSION };
        let mut text = serde_json::to_vec(&mark)?;
        text.push(b'\n');
        let mut file = self.dir.fresh(MARK_TEMP)?;
        file.write_all(&text)?;
        file.sync_all()?;
        self.dir.rename(MARK_TEMP, MARK)?;
        self.dir.sync()?;
        sync_parent(&self.path)
    }

    fn not_ours(&self, other: &str) -> Trouble {
        let path = self.path.display();
        Trouble::new(
            Misconfigured,
            format!(
                "{path} is no store: it has no {MARK}, and it is not empty ({other:?} is in it); nothing was \
                 changed: name an empty or a new directory"
            ),
        )
    }
}

fn check_mark(path: &Path, text: &[u8]) -> Result<(), Trouble> {
    let shown = path.display();
    let mark: Mark = serde_json::from_slice(text).map_err(|e| {
        Trouble::new(Corrupt, format!("{shown} does not say what the directory is: {e}; nothing was changed"))
    })?;
    if mark.format != FORMAT {
        let message = format!("{shown} is of another program ({:?}); name another directory", mark.format);
        return Err(Trouble::new(Misconfigured, message));
    }
    if mark.version != FORMAT_VERSION {
        let message = format!(
            "{shown} says format {}, and this onlyonce knows format {FORMAT_VERSION} only; use the onlyonce that \
             wrote it (a higher format is of a newer one), or another directory",
            mark.version
        );
        return Err(Trouble::new(Misconfigured, message));
    }
    Ok(())
}

/// Makes the store's own directory, but none above it.
///
/// A path that was misspelt must not become a new and empty store, in which everything would run once more.
fn make(path: &Path) -> Result<(), Trouble> {
    if path.is_dir() {
        return Ok(());
    }
    let wrong = |message: String| Err(Trouble::new(Misconfigured, message));
    if path.exists() {
        return wrong(format!("{} is a file, and a store is a directory; name another", path.display()));
    }
    let above = parent(path);
    if !above.is_dir() {
        return wrong(format!("there is no directory {}; make it first, or name another", above.display()));
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if !path.is_dir() => Err(Trouble::io("make the directory", path, &error)),
        _ => Ok(()),
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn sync_parent(path: &Path) -> io::Result<()> {
    match File::open(parent(path)) {
        // A directory one may pass but not list, as `/home` can be; the system's own sync has to do.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        opened => opened?.sync_all(),
    }
}

/// The name of the file a key lives in.
///
/// A hash, so that no key can name a place outside, two keys never differ by letter case alone, and a
/// directory stays small whatever the keys are. The whole key is in the file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name(String);

impl Name {
    pub(super) fn of(key: &Key) -> Self {
        Self(sha256(key.as_str().as_bytes()))
    }

    /// The name as listed in a shard or handed out as a cursor; `None` if it cannot be one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (text.len() == 64 && text.bytes().all(hex)).then(|| Self(text.to_owned()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn shard(&self) -> Shard {
        Shard(usize::from_str_radix(&self.0[..2], 16).unwrap_or_default())
    }
}

/// One of the [`SHARDS`] directories entries are spread over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Shard(usize);

impl Shard {
    /// This shard and those after it, in the order of the names in them.
    pub(super) fn onward(self) -> impl Iterator<Item = Self> {
        (self.0..SHARDS).map(Self)
    }

    pub(super) const FIRST: Self = Self(0);

    pub(super) fn index(self) -> usize {
        self.0
    }

    /// The first number above `last` that is this shard's to give: no two shards give the same.
    pub(super) fn number_above(self, last: u64) -> Option<u64> {
        let (shards, own) = (SHARDS as u64, self.0 as u64 + 1);
        // `own` is 1 to 256, so that no shard gives 0.
        let steps = last.checked_sub(own).map_or(0, |past| past / shards + 1);
        steps.checked_mul(shards)?.checked_add(own)
    }

    /// The names of the directory and of the one in it.
    pub(super) fn names(self) -> [&'static str; 2] {
        const DIGITS: &str = "0123456789abcdef";
        [self.0 / 16, self.0 % 16].map(|digit| &DIGITS[digit..=digit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_begins_with_the_names_of_its_directories() {
        let name = Name::of(&Key::new("n", "../../etc/passwd").unwrap());
        assert_eq!(name.shard().names().concat(), name.as_str()[..2]);
        assert_eq!(Name::parse(name.as_str()), Some(name));
        for not in ["", "lock", "floor", "../x", &"A".repeat(64), &"a".repeat(65), &"é".repeat(32)] {
            assert_eq!(Name::parse(not), None, "{not:?}");
        }
        assert_eq!(Shard::FIRST.onward().count(), SHARDS);
    }

    #[test]
    fn shards_give_numbers_that_rise_and_never_meet() {
        let mut seen = std::collections::BTreeSet::new();
        for shard in Shard::FIRST.onward() {
            let mut last = 0;
            for _ in 0..5 {
                let next = shard.number_above(last).unwrap();
                assert!(next > last && next - last <= SHARDS as u64 && seen.insert(next), "{shard:?} {last}");
                last = next;
            }
            assert_eq!(shard.number_above(last - 1), Some(last));
            assert_eq!(shard.number_above(u64::MAX), None);
        }
    }
}

//! One shard, read without a lock.
//!
//! A reader takes no lock and waits for no writer, and still shows only what is on disk. The lock file says
//! `settled` or `writing`: a writer changes it to `writing` before its first change of a name, and back after it
//! has waited for the directory. A reader that finds `settled` *after* it has read has seen nothing that could
//! be lost; one that finds anything else waits for the directory itself.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use onlyonce::Key;
use onlyonce::store::StoreErrorKind::Corrupt;

use super::MAX_BODY;
use super::dir::{self, Dir};
use super::format::{Head, Kept, Record};
use super::root::{Name, Root, Shard};
use super::trouble::{Trouble, is_not_followed};
use super::word::Word;

pub(super) const LOCK: &str = "lock";
pub(super) const TEMP: &str = "temp";
pub(super) const FLOOR: &str = "floor";

/// Most heads are shorter; a longer one is found by reading on.
const HEAD_BYTES: usize = 2048;
/// No file of ours is longer: a body, and a head with room for any key and holder.
pub(super) const MAX_FILE: u64 = MAX_BODY as u64 + 64 * 1024;

/// A shard's directory, and those it is in.
#[derive(Debug)]
pub(super) struct ShardDir<'a> {
    root: &'a Root,
    pub(super) shard: Shard,
    outer: Dir,
    pub(super) dir: Dir,
}

impl<'a> ShardDir<'a> {
    /// The directory of `shard`, or `None` when nothing was ever put there.
    pub(super) fn open(root: &'a Root, shard: Shard) -> Result<Option<Self>, Trouble> {
        let [outer, inner] = shard.names();
        let entered = root.dir.enter(outer).and_then(|outer| Ok((outer.enter(inner)?, outer)));
        match entered {
            Ok((dir, outer)) => Ok(Some(Self { root, shard, outer, dir })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Trouble::io("open the directory", &path(root, shard), &error)),
        }
    }

    /// The directory of `shard`, made if need be.
    pub(super) fn make(root: &'a Root, shard: Shard) -> Result<Self, Trouble> {
        if let Some(there) = Self::open(root, shard)? {
            return Ok(there);
        }
        let [outer, inner] = shard.names();
        let make = || {
            root.dir.make(outer)?;
            let outer = root.dir.enter(outer)?;
            outer.make(inner)?;
            Ok((outer.enter(inner)?, outer))
        };
        let (dir, outer) =
            make().map_err(|e: io::Error| Trouble::io("make the directory", &path(root, shard), &e))?;
        Ok(Self { root, shard, outer, dir })
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        path(self.root, self.shard).join(name)
    }

    pub(super) fn trouble(&self, what: &str, name: &str, error: &io::Error) -> Trouble {
        Trouble::io(what, &self.path(name), error)
    }

    pub(super) fn damaged(&self, name: &str, reason: &str) -> Trouble {
        Trouble::damaged(&self.path(name), reason)
    }

    /// What is kept under this key, expired or not.
    pub(super) fn read(&self, name: &Name, key: &Key) -> Result<Option<Kept>, Trouble> {
        let kept = self.read_file(name.as_str())?;
        match kept.as_ref().and_then(Kept::record) {
            Some(record) if record.key != *key => Err(self.stranger(name)),
            _ => Ok(kept),
        }
    }

    /// What is kept in the file of this name.
    pub(super) fn read_named(&self, name: &Name) -> Result<Option<Kept>, Trouble> {
        let kept = self.read_file(name.as_str())?;
        match kept.as_ref().and_then(Kept::record) {
            Some(record) if Name::of(&record.key) != *name => Err(self.stranger(name)),
            _ => Ok(kept),
        }
    }

    fn read_file(&self, name: &str) -> Result<Option<Kept>, Trouble> {
        twice(|| self.read_file_once(name))
    }

    fn read_file_once(&self, name: &str) -> Result<Option<Kept>, Trouble> {
        let Some(file) = self.plain_file(name)? else { return Ok(None) };
        let mut bytes = Vec::with_capacity(HEAD_BYTES);
        file.take(MAX_FILE).read_to_end(&mut bytes).map_err(|e| self.trouble("read", name, &e))?;
        Kept::decode(&bytes).map(Some).map_err(|reason| self.damaged(name, &reason))
    }

    /// The entry of this name without its body: enough to see whether anybody wants it.
    pub(super) fn read_head(&self, name: &Name) -> Result<Option<Record>, Trouble> {
        let Some(head) = self.head(name.as_str())? else { return Ok(None) };
        match head.record().map_err(|reason| self.damaged(name.as_str(), &reason))? {
            Some(record) if Name::of(&record.key) != *name => Err(self.stranger(name)),
            record => Ok(record),
        }
    }

    fn head(&self, name: &str) -> Result<Option<Head>, Trouble> {
        twice(|| match self.sealed(name)? {
            Some((head, len)) if head.file_len() != len => {
                Err(self.damaged(name, &format!("it has {len} bytes instead of {}", head.file_len())))
            }
            sealed => Ok(sealed.map(|(head, _)| head)),
        })
    }

    /// The head of this file, whatever became of its body, and how long the file is.
    pub(super) fn sealed(&self, name: &str) -> Result<Option<(Head, u64)>, Trouble> {
        let Some(mut file) = self.plain_file(name)? else { return Ok(None) };
        let (start, len) = start_of(&mut file).map_err(|e| self.trouble("read", name, &e))?;
        let head =
            Head::decode(&start).and_then(|head| head.ok_or("it ends within its first two lines".into()));
        head.map(|head| Some((head, len))).map_err(|reason| self.damaged(name, &reason))
    }

    fn plain_file(&self, name: &str) -> Result<Option<File>, Trouble> {
        match self.dir.file(name) {
            Ok(None) => Ok(None),
            Ok(Some(file)) if file.metadata().is_ok_and(|m| m.is_file()) => Ok(Some(file)),
            Ok(Some(_)) => Err(self.damaged(name, "it is not a plain file")),
            Err(error) if is_not_followed(&error) => {
                Err(self.damaged(name, "it is a symlink, and a store follows none"))
            }
            Err(error) => Err(self.trouble("read", name, &error)),
        }
    }

    fn stranger(&self, name: &Name) -> Trouble {
        self.damaged(name.as_str(), "it holds another key than its name says")
    }

    /// The names of the entries in it, in order.
    pub(super) fn entry_names(&self) -> Result<Vec<Name>, Trouble> {
        let names = self.dir.names().map_err(|e| Trouble::io("list", &path(self.root, self.shard), &e))?;
        let mut names: Vec<Name> = names
            .iter()
            .filter_map(|name| Name::parse(name))
            .filter(|name| name.shard() == self.shard)
            .collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Waits until what was read here before is on disk; mostly it is.
    pub(super) fn make_sure(&self) -> Result<(), Trouble> {
        let word = match self.dir.file(LOCK).and_then(|lock| lock.as_ref().map(Word::read).transpose()) {
            Ok(word) => word.unwrap_or(Word::New),
            Err(error) => return Err(self.trouble("read", LOCK, &error)),
        };
        if matches!(word, Word::Settled(_)) {
            return Ok(());
        }
        // A lock that is free: whoever wrote last is gone.
        match self.dir.file_or_new(LOCK).ok().filter(|lock| lock.try_lock().is_ok()) {
            Some(lock) => self.recover(&lock).map(drop),
            None => self.sync(word),
        }
    }

    /// Finishes what a writer left that is gone, and says the highest version given in this shard.
    ///
    /// Whoever calls this has the lock.
    pub(super) fn recover(&self, lock: &File) -> Result<u64, Trouble> {
        let word = Word::read(lock).map_err(|e| self.trouble("read", LOCK, &e))?;
        let number = match word {
            Word::Settled(number) => return Ok(number),
            Word::Writing(number) => number,
            Word::New => 0,
        };
        match self.dir.remove(TEMP) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(self.trouble("remove", TEMP, &error));
            }
            _ => {}
        }
        let highest = self.highest_version()?.max(number);
        self.sync(word)?;
        // If this fails, the next one does once more than it has to.
        let _ = Word::Settled(highest).write(lock);
        Ok(highest)
    }

    /// The highest version in any file here; a file that cannot be read counts for nothing.
    fn highest_version(&self) -> Result<u64, Trouble> {
        let entries = self.entry_names()?;
        let heads = entries.iter().map(|name| name.as_str()).chain([FLOOR]).map(|name| self.sealed(name));
        Ok(heads.filter_map(|head| Some(head.ok()??.0.version().get())).max().unwrap_or_default())
    }

    /// Waits until every change of a name here is on disk.
    pub(super) fn sync(&self, word: Word) -> Result<(), Trouble> {
        // Before `writing` was ever said here, nothing but the lock file can be in the directory.
        let dirs: &[&Dir] = if word == Word::New { &[&self.outer, &self.root.dir] } else { &[&self.dir] };
        let synced = dirs.iter().try_for_each(|dir| dir.sync());
        synced.map_err(|e| Trouble::io("wait for the disk under", &path(self.root, self.shard), &e))
    }

    /// The lock file, locked; waits for whoever has it.
    pub(super) fn lock(&self) -> Result<File, Trouble> {
        let locked = || loop {
            let lock = self.dir.file_or_new(LOCK)?;
            dir::lock(&lock)?;
            // People remove files named `lock`; one that has lost its name keeps nobody out.
            if self.dir.is_named(LOCK, &lock)? {
                return Ok(lock);
            }
        };
        locked().map_err(|e| self.trouble("lock", LOCK, &e))
    }
}

fn path(root: &Root, shard: Shard) -> PathBuf {
    let [outer, inner] = shard.names();
    root.path.join(outer).join(inner)
}

/// Reads again what seems damaged: a file that is being removed from a full disk may lose its body under a
/// reader's eyes, and then has another name.
fn twice<T>(read: impl Fn() -> Result<T, Trouble>) -> Result<T, Trouble> {
    match read() {
        Err(trouble) if trouble.kind() == Corrupt => read(),
        done => done,
    }
}

/// As much of a file as its head takes, and how long the whole is.
fn start_of(file: &mut File) -> io::Result<(Vec<u8>, u64)> {
    let mut start = Vec::with_capacity(HEAD_BYTES);
    file.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut start)?;
    if start.len() == HEAD_BYTES && matches!(Head::decode(&start), Ok(None)) {
        file.take(MAX_FILE).read_to_end(&mut start)?;
    }
    Ok((start, file.metadata()?.len()))
}

//! One shard, locked: the only place that changes anything.
//!
//! A write goes into `temp`, waits for the disk, and takes its name in one step; what had the name before is
//! there until that step and gone after it. The lock is the kernel's, so a killed writer has freed it, and
//! `temp` under the lock is always somebody's leftover.
//!
//! # Versions
//!
//! They rise per key for ever, also across a delete and a power cut, and no counter is synced for it:
//!
//! - over an entry, the next version is above the entry's own;
//! - where there is no entry, it is above the shard's `floor`;
//! - a removed entry raises the floor to its own version, if it was above. It does so by *becoming* the floor:
//!   a small file with just the version takes the entry's name, then the floor's name. Each step is one rename
//!   of one file that is already on disk, so wherever a crash falls, the version is under one name or the other.
//!
//! So every version a key ever had is at most that of its entry, or else at most the floor. A damaged file that
//! a person gives up (by renaming it to `….corrupt`) had an unknown version; the next one is then far above.
//!
//! No two keys share a version either: each shard gives every 256th number, and the lock file knows the
//! highest. Only a power cut can take that knowledge back a little, and then two keys may share one.

use std::fs::File;
use std::io::{self, Write as _};

use onlyonce::store::StoreErrorKind::TooLarge;
use onlyonce::store::{Commit, Entry, Header, TakeDue, Version, Write};
use onlyonce::time::Timestamp;

use super::format::{Kept, Record, encode_removed};
use super::root::{Name, Root, Shard};
use super::shard::{FLOOR, LOCK, MAX_FILE, ShardDir, TEMP};
use super::trouble::{Trouble, is_full};
use super::word::Word;

/// More versions than a key whose file was given up can have had.
const UNKNOWN_VERSIONS: u64 = 1 << 40;

/// A shard that nobody else writes to while this lives.
#[derive(Debug)]
pub(super) struct Locked<'a> {
    shard: ShardDir<'a>,
    lock: File,
    /// What the lock file says.
    word: Word,
    /// The highest version given here.
    highest: u64,
    /// A name has changed, and the disk was not waited for.
    unsettled: bool,
    /// The floor is one of those names.
    floor_unsettled: bool,
}

/// An answer, and whether anything was changed for it.
#[derive(Debug)]
pub(super) struct Done<T> {
    pub(super) answer: T,
    pub(super) wrote: bool,
}

impl<T> Done<T> {
    fn looked(answer: T) -> Self {
        Self { answer, wrote: false }
    }

    fn wrote(answer: T) -> Self {
        Self { answer, wrote: true }
    }
}

impl<'a> Locked<'a> {
    /// Waits for the lock, and finishes what a killed writer left.
    pub(super) fn new(root: &'a Root, shard: Shard) -> Result<Self, Trouble> {
        let shard = ShardDir::make(root, shard)?;
        let lock = shard.lock()?;
        let highest = shard.recover(&lock)?;
        let word = Word::Settled(highest);
        Ok(Self { shard, lock, word, highest, unsettled: false, floor_unsettled: false })
    }

    /// Applies `write` if what it expects is there.
    pub(super) fn commit(&mut self, write: Write, now: Timestamp) -> Result<Done<Commit>, Trouble> {
        let name = Name::of(write.key());
        let kept = self.shard.read(&name, write.key())?;
        let last = kept.as_ref().map(Kept::version);
        let there = kept.and_then(Kept::into_record);
        let holds = write.holds(there.as_ref().map(|r| (r.version, &r.header)), now);
        let live = there.filter(|r| !r.header.is_expired(now));
        let created_at = live.as_ref().map_or(now, |r| r.header.created_at);
        let version = match (write, live) {
            (Write::Put { key, draft, .. }, _) if holds => {
                let version = self.next_version(&name, last)?;
                let header = draft.header.at(now, created_at);
                self.put(&name, &Record { key, version, header, body: draft.body })?
            }
            (Write::Touch { key, header, .. }, Some(old)) if holds => {
                let version = self.next_version(&name, last)?;
                let header = header.at(now, created_at);
                self.put(&name, &Record { key, version, header, body: old.body })?
            }
            (Write::Delete { expect, .. }, _) if holds => self.remove(&name, expect)?,
            (Write::Check { .. }, live) if holds => {
                let seen = live.map_or_else(Version::default, |r| r.version);
                return Ok(Done::looked(Commit::Stored(vec![seen])));
            }
            (_, live) => {
                return Ok(Done::looked(Commit::Conflict(vec![live.map(|r| r.into_entry(now))])));
            }
        };
        Ok(Done::wrote(Commit::Stored(vec![version])))
    }

    /// Hands the entry of this name to the taker, if it is still one that was asked for.
    pub(super) fn take(
        &mut self,
        name: &Name,
        take: &TakeDue,
        now: Timestamp,
    ) -> Result<Done<Option<Entry>>, Trouble> {
        let there = self.shard.read_named(name)?.and_then(Kept::into_record);
        let Some(mut record) = there.filter(|r| r.is_due_for(take, now)) else {
            return Ok(Done::looked(None));
        };
        record.header = Header {
            holder: Some(take.holder.clone()),
            attempts: record.header.attempts.saturating_add(1),
            due_at: Some(now.plus(take.lease)),
            updated_at: now,
            ..record.header
        };
        record.version = self.next_version(name, Some(record.version))?;
        self.put(name, &record)?;
        Ok(Done::wrote(Some(record.into_entry(now))))
    }

    /// Waits until all that was changed is on disk.
    pub(super) fn settle(&mut self) -> Result<(), Trouble> {
        if self.unsettled {
            self.shard.sync(self.word)?;
            self.unsettled = false;
            self.floor_unsettled = false;
        }
        let settled = Word::Settled(self.highest);
        // Left as it is, the next one does once more than it has to.
        if self.word != settled && settled.write(&self.lock).is_ok() {
            self.word = settled;
        }
        Ok(())
    }

    /// A version above all that this key, and this shard, ever had; `last` is that of its file.
    fn next_version(&mut self, name: &Name, last: Option<Version>) -> Result<Version, Trouble> {
        let last = match last {
            Some(version) => version.get(),
            None => self.floor()?.get().saturating_add(self.given_up(name.as_str())?),
        };
        let next = self.shard.shard.number_above(last.max(self.highest));
        self.highest =
            next.ok_or_else(|| self.shard.damaged(name.as_str(), "its version is the last one there is"))?;
        Ok(Version::new(self.highest))
    }

    /// No removed entry of this shard had a version above this one.
    fn floor(&mut self) -> Result<Version, Trouble> {
        let Some((head, _)) = self.shard.sealed(FLOOR)? else {
            return self.given_up(FLOOR).map(Version::new);
        };
        if !head.is_removed() {
            // An entry became the floor on a full disk; if there is room now, only its version stays.
            let small = encode_removed(head.version());
            if self.begin().is_ok() && self.fill_temp(&small).is_ok() {
                let _ = self.name_temp(FLOOR);
            }
        }
        Ok(head.version())
    }

    /// How many versions a file of this name may have had before somebody gave it up.
    fn given_up(&self, name: &str) -> Result<u64, Trouble> {
        let name = format!("{name}.corrupt");
        let there = self.shard.dir.has(&name).map_err(|e| self.shard.trouble("look for", &name, &e))?;
        Ok(if there { UNKNOWN_VERSIONS } else { 0 })
    }

    fn put(&mut self, name: &Name, record: &Record) -> Result<Version, Trouble> {
        let bytes = record.encode();
        if bytes.len() as u64 > MAX_FILE {
            let message =
                format!("the header of {} is longer than any holder's name should make it", record.key);
            return Err(Trouble::new(TooLarge, message));
        }
        self.begin()?;
        self.fill_temp(&bytes).map_err(|e| self.shard.trouble("write", TEMP, &e))?;
        self.name_temp(name.as_str())?;
        Ok(record.version)
    }

    fn remove(&mut self, name: &Name, version: Version) -> Result<Version, Trouble> {
        if version > self.floor()? {
            self.raise_floor(name, version)?;
            return Ok(version);
        }
        if self.floor_unsettled {
            // The entry's version may be nowhere but in a floor that is not on disk yet.
            self.settle()?;
        }
        self.begin()?;
        self.shard.dir.remove(name.as_str()).map_err(|e| self.shard.trouble("remove", name.as_str(), &e))?;
        self.unsettled = true;
        Ok(version)
    }

    /// Makes the entry of this name the floor.
    fn raise_floor(&mut self, name: &Name, version: Version) -> Result<(), Trouble> {
        self.begin()?;
        match self.fill_temp(&encode_removed(version)) {
            Ok(()) => self.name_temp(name.as_str())?,
            // A full disk must not keep anybody from making room.
            Err(error) if is_full(&error) => return self.raise_floor_without_room(name),
            Err(error) => return Err(self.shard.trouble("write", TEMP, &error)),
        }
        // If this fails, the version stays under the entry's name, which is as good.
        self.floor_unsettled |= self.shard.dir.rename(name.as_str(), FLOOR).is_ok();
        Ok(())
    }

    /// Makes the whole entry the floor, then cuts its body off: its head says the version.
    fn raise_floor_without_room(&mut self, name: &Name) -> Result<(), Trouble> {
        self.shard
            .dir
            .rename(name.as_str(), FLOOR)
            .map_err(|e| self.shard.trouble("remove", name.as_str(), &e))?;
        (self.unsettled, self.floor_unsettled) = (true, true);
        // The new name must be on disk before the body goes, or a power cut could leave an entry without one.
        self.settle().map_err(Trouble::or_not)?;
        if let Ok(Some((head, _))) = self.shard.sealed(FLOOR) {
            let _ = self.shard.dir.cut(FLOOR, head.len());
        }
        Ok(())
    }

    /// Makes a temp file of these bytes, on disk; or none.
    fn fill_temp(&self, bytes: &[u8]) -> io::Result<()> {
        let fill = || {
            let mut temp = self.shard.dir.fresh(TEMP)?;
            temp.write_all(bytes)?;
            temp.sync_all()
        };
        let filled = fill();
        if filled.is_err() {
            let _ = self.shard.dir.remove(TEMP);
        }
        filled
    }

    /// Gives the temp file this name, in the place of what has it now.
    fn name_temp(&mut self, name: &str) -> Result<(), Trouble> {
        let Err(error) = self.shard.dir.rename(TEMP, name) else {
            self.unsettled = true;
            return Ok(());
        };
        let trouble = self.shard.trouble("write", name, &error);
        // A temp file that is still there to be removed did not take the name.
        if self.shard.dir.remove(TEMP).is_ok() {
            return Err(trouble);
        }
        self.unsettled = true;
        Err(trouble.or_not())
    }

    /// Says that names are about to change.
    fn begin(&mut self) -> Result<(), Trouble> {
        if matches!(self.word, Word::Settled(_)) {
            let writing = Word::Writing(self.highest);
            writing.write(&self.lock).map_err(|e| self.shard.trouble("write", LOCK, &e))?;
            self.word = writing;
        }
        Ok(())
    }
}

//! A directory held open: every name is looked up inside it, and no symlink is followed.
//!
//! A path is walked one name at a time from a handle, so whoever swaps a directory for a symlink in between
//! gets an error, never a write somewhere else.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, fstat, mkdirat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

/// What is made for this user alone.
const PRIVATE_DIR: Mode = Mode::RWXU;
const PRIVATE_FILE: Mode = Mode::RUSR.union(Mode::WUSR);

#[derive(Debug)]
pub(super) struct Dir {
    handle: File,
}

impl Dir {
    /// The directory at a path the owner chose; this one may be a symlink.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let handle = File::open(path)?;
        if handle.metadata()?.is_dir() { Ok(Self { handle }) } else { Err(Errno::NOTDIR.into()) }
    }

    /// The directory of this name.
    pub(super) fn enter(&self, name: &str) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY;
        Ok(Self { handle: self.at(name, flags, Mode::empty())? })
    }

    /// Makes the directory of this name; one that is there already will do.
    pub(super) fn make(&self, name: &str) -> io::Result<()> {
        match mkdirat(&self.handle, name, PRIVATE_DIR) {
            Err(Errno::EXIST) => Ok(()),
            made => Ok(made?),
        }
    }

    /// The file of this name, to read, or `None`.
    pub(super) fn file(&self, name: &str) -> io::Result<Option<File>> {
        // Without NONBLOCK, a FIFO somebody left here would hold the thread until a writer came.
        match self.at(name, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The file of this name, to read and write, made if need be.
    pub(super) fn file_or_new(&self, name: &str) -> io::Result<File> {
        self.at(name, OFlags::RDWR | OFlags::CREATE | OFlags::NONBLOCK, PRIVATE_FILE)
    }

    /// A new file of this name, to write; what was there under it is removed.
    pub(super) fn fresh(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        match self.at(name, flags, PRIVATE_FILE) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.remove(name)?;
                self.at(name, flags, PRIVATE_FILE)
            }
            opened => opened,
        }
    }

    fn at(&self, name: &str, flags: OFlags, mode: Mode) -> io::Result<File> {
        let opened = openat(&self.handle, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, mode)?;
        Ok(File::from(opened))
    }

    /// Forgets all of a file but its first bytes; needs no room on the disk.
    pub(super) fn cut(&self, name: &str, len: u64) -> io::Result<()> {
        self.at(name, OFlags::WRONLY | OFlags::NONBLOCK, Mode::empty())?.set_len(len)
    }

    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat(&self.handle, from, &self.handle, to)?)
    }

    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.handle, name, AtFlags::empty())?)
    }

    /// Whether anything has this name.
    pub(super) fn has(&self, name: &str) -> io::Result<bool> {
        match statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether `file` has this name, still.
    pub(super) fn is_named(&self, name: &str, file: &File) -> io::Result<bool> {
        let open = fstat(file)?;
        match statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(named) => Ok((named.st_dev, named.st_ino) == (open.st_dev, open.st_ino)),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Every name in it but `.` and `..`; one that is not UTF-8 is shown as well as it can be.
    pub(super) fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.handle)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.retain(|name| !matches!(name.as_str(), "." | ".."));
        Ok(names)
    }

    /// Waits until every change of a name in it is on disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.handle.sync_all()
    }

    /// Waits for the lock on the directory itself; it is free again when the handle is closed.
    pub(super) fn lock(&self) -> io::Result<()> {
        lock(&self.handle)
    }
}

/// Waits for the lock on `file`, whatever signals come.
pub(super) fn lock(file: &File) -> io::Result<()> {
    loop {
        match file.lock() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

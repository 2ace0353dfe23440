//! The nearest peer, in a process of its own; see `bench/peer`.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::Failed;
use crate::rounds::{per_unit, time};

/// What the peer, or ours, is to do.
#[derive(Debug)]
pub(crate) struct Order {
    /// `first` or `replay`.
    pub(crate) what: &'static str,
    pub(crate) tasks: usize,
    pub(crate) calls: usize,
}

impl Order {
    pub(crate) fn is_replay(&self) -> bool {
        self.what == "replay"
    }

    pub(crate) fn title(&self) -> &'static str {
        if self.is_replay() { "replay" } else { "first calls" }
    }
}

/// The peer's process; ends when dropped.
#[derive(Debug)]
pub(crate) struct Peer {
    child: Child,
    talk: RefCell<Option<(ChildStdin, BufReader<ChildStdout>)>>,
}

impl Peer {
    /// Builds and starts it, or says why that cannot be.
    pub(crate) fn build() -> Result<Self, String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/peer");
        let target = target_directory();
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["build", "--release", "--locked", "--quiet", "--ignore-rust-version", "--target-dir"]);
        let built = cargo.arg(&target).current_dir(root).stdout(Stdio::null()).status();
        if !built.is_ok_and(|status| status.success()) {
            return Err("the peer could not be built; its packages must be fetched once".to_owned());
        }
        Self::start(&target.join("release/onlyonce-peer"))
    }

    fn start(program: &Path) -> Result<Self, String> {
        let child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| format!("the peer could not be started: {error}"))?;
        let talk = child.stdin.take().zip(child.stdout.take().map(BufReader::new));
        Ok(Self { child, talk: RefCell::new(talk) })
    }

    /// Nanoseconds per call of the peer.
    pub(crate) fn time(&self, order: &Order, threads: usize) -> Result<f64, Failed> {
        let mut talk = self.talk.borrow_mut();
        let (to, from) = talk.as_mut().ok_or("the peer has ended")?;
        writeln!(to, "{} {} {} {threads}", order.what, order.tasks, order.calls)?;
        expect(from, "ready")?;
        let (done, took) = time(|| {
            writeln!(to, "go")?;
            expect(from, "done")
        });
        done.map(|()| per_unit(took, order.calls))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Its input is at an end now, and so is the peer.
        self.talk.get_mut().take();
        let _ = self.child.wait();
    }
}

fn expect(from: &mut impl BufRead, word: &str) -> Result<(), Failed> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    if line.trim_end() == word { Ok(()) } else { Err(format!("the peer said {line:?}, not {word}").into()) }
}

/// Beside our own target directory's profiles: the program that runs is in one of them.
fn target_directory() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    let target = program.parent().and_then(Path::parent).unwrap_or(Path::new("target"));
    target.join("peer")
}

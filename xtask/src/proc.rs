//! Child processes: the workspace's cargo, and what it printed.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The workspace's root directory.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// A `cargo` to be run in the workspace's root; the one that runs us, so that the toolchain is the same.
pub(crate) fn cargo<'a>(args: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root());
    command
}

/// Whether `cargo <subcommand>` is installed.
pub(crate) fn has_cargo(subcommand: &str) -> bool {
    succeeds_quietly(&mut cargo([subcommand, "--version"]))
}

/// Whether the command can be run and ends well; what it prints is dropped.
pub(crate) fn succeeds_quietly(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// Runs the command in the foreground.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| cannot_start(command, &error))?;
    if status.success() { Ok(()) } else { Err(format!("{} ended with {status}", shown(command))) }
}

/// Runs the command and gives what it wrote to standard output; errors pass on to the terminal.
pub(crate) fn stdout_of(command: &mut Command) -> Result<String, String> {
    let output = command.stderr(Stdio::inherit()).output().map_err(|error| cannot_start(command, &error))?;
    if !output.status.success() {
        return Err(format!("{} ended with {}", shown(command), output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("{} printed what is not UTF-8", shown(command)))
}

/// What a command printed while we passed it on, and how it ended.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) status: ExitStatus,
    /// Standard output, then standard error.
    pub(crate) text: String,
}

/// Runs the command in the foreground, and listens.
pub(crate) fn tee(command: &mut Command) -> Result<Heard, String> {
    let spawned = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = spawned.map_err(|error| cannot_start(command, &error))?;
    let out = child.stdout.take().map(|pipe| thread::spawn(|| pass_on(pipe, io::stdout())));
    let err = child.stderr.take().map(|pipe| thread::spawn(|| pass_on(pipe, io::stderr())));
    let status = child.wait().map_err(|error| cannot_start(command, &error))?;
    let heard = [out, err].into_iter().flatten().map(|ear| ear.join().unwrap_or_default());
    Ok(Heard { status, text: heard.collect() })
}

/// Copies lines as they come; a byte that is no UTF-8 is heard as `?` and passed on as it is.
fn pass_on(pipe: impl Read, mut to: impl Write) -> String {
    let mut heard = String::new();
    let mut line = Vec::new();
    let mut pipe = BufReader::new(pipe);
    while pipe.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        // A closed terminal is no reason to stop the tests.
        let _ = to.write_all(&line).and_then(|()| to.flush());
        heard.push_str(&String::from_utf8_lossy(&line));
        line.clear();
    }
    heard
}

fn cannot_start(command: &Command, error: &io::Error) -> String {
    format!("cannot run {}: {error}", shown(command))
}

/// The command as one would type it, without the directories of this machine.
fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let mut text = program.to_string_lossy().into_owned();
    for arg in command.get_args() {
        text.push(' ');
        text.push_str(&arg.to_string_lossy());
    }
    text
}

/// Does the work and says how long it took.
#[expect(clippy::disallowed_methods, reason = "a stopwatch for people; nothing is decided by it")]
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let done = work();
    (done, start.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_teed_command_is_heard_on_both_streams() {
        let heard = tee(Command::new("sh").args(["-c", "echo out; echo err >&2; exit 3"])).unwrap();
        assert_eq!(heard.text, "out\nerr\n");
        assert_eq!(heard.status.code(), Some(3));
    }

    #[test]
    fn a_failed_command_is_named_without_its_directory() {
        let message = run(Command::new("/bin/sh").args(["-c", "exit 2"])).unwrap_err();
        assert!(message.starts_with("sh -c exit 2 ended with"), "{message}");
        assert!(run(&mut Command::new("no-such-program-anywhere")).unwrap_err().starts_with("cannot run"));
    }
}

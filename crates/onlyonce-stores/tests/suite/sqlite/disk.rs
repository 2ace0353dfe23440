//! A kill and a failing disk at every system call of a writer.
//!
//! Each test runs itself again under strace as the writer, which does its steps one after the other, notes every
//! answer, and aborts at the first failure, so that nothing is tidied up. Then the test looks at what is left:
//! what was answered is there, what was said not to have happened is not, and versions go on rising.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use onlyonce::store::{Commit, Expect, Store, Version, Write};
use onlyonce_stores::SqliteStore;

use super::{claim, key, open, place, put, read, store_one};

const DIR: &str = "ONLYONCE_TEST_WRITER";
/// Claim, complete, and remove, one key after the other.
const STEPS: usize = 6;

/// The writer.
async fn write(dir: &Path) {
    let mut notes = OpenOptions::new().create(true).append(true).open(dir.join("notes")).unwrap();
    let mut note = |text: String| notes.write_all(format!("{text}\n").as_bytes()).unwrap();
    let store = match SqliteStore::open(dir.join("store.db")) {
        Ok(store) => store,
        Err(error) => return note(format!("{:?}", error.kind())),
    };
    // A second connection, as any store in use has: closing the first does not tidy the log away.
    let _ = store.read(&[key("0")]).await;
    let mut last = Version::default();
    for step in 0..STEPS {
        match store.commit(vec![nth_write(step, last)]).await {
            Ok(Commit::Stored(versions)) => {
                last = versions[0];
                note(last.to_string());
            }
            Ok(Commit::Conflict(there)) => panic!("step {step}: there is {there:?}"),
            Err(error) => {
                note(format!("{:?}", error.kind()));
                std::process::abort();
            }
        }
    }
}

fn nth_write(step: usize, last: Version) -> Write {
    let id = (step / 3).to_string();
    match step % 3 {
        0 => claim(&id),
        1 => put(&id, Expect::Version(last), "\"done\""),
        _ => Write::Delete { key: key(&id), expect: last },
    }
}

/// What is there after so many steps: claimed, completed or nothing, per key.
fn after(steps: usize) -> [Option<&'static str>; 2] {
    let there = |key: usize| match steps.saturating_sub(key * 3) {
        1 => Some("null"),
        2 => Some("\"done\""),
        _ => None,
    };
    [there(0), there(1)]
}

/// Runs the test of this name again, as the writer, under strace; gives its notes, and whether all was done.
fn run_writer(test: &str, dir: &Path, inject: &str) -> (Vec<String>, bool) {
    let ran = Command::new("strace")
        .args(["-f", "-qq", "-o"])
        .arg(dir.join("trace"))
        .args(["-e", inject])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &format!("sqlite::disk::{test}"), "--include-ignored", "--nocapture"])
        .env(DIR, dir)
        .output()
        .unwrap();
    let notes = fs::read_to_string(dir.join("notes")).unwrap_or_default();
    (notes.lines().map(str::to_owned).collect(), ran.status.success())
}

/// Looks at what is left, and goes on with it.
async fn all_is_well(path: &Path, notes: &[String], why: &str) {
    let versions: Vec<u64> = notes.iter().map_while(|note| note.parse().ok()).collect();
    let failure = notes.get(versions.len()).map(String::as_str);
    assert!(
        matches!(failure, None | Some("Unavailable" | "Uncertain" | "Misconfigured")),
        "{why}: {notes:?}"
    );
    let store = open(path);
    let mut seen = [None, None];
    for (n, seen) in seen.iter_mut().enumerate() {
        *seen =
            read(&store, &n.to_string()).await.map(|entry| String::from_utf8(entry.body.to_vec()).unwrap());
    }
    let seen = seen.each_ref().map(Option::as_deref);
    let done = versions.len();
    let may_have_happened = matches!(failure, None | Some("Uncertain")) && seen == after(done + 1);
    assert!(seen == after(done) || may_have_happened, "{why}: {seen:?} after {notes:?}");
    let next = store_one(&store, claim("next")).await;
    assert!(versions.iter().all(|version| next.get() > *version), "{why}: {next} after {notes:?}");
}

fn was_injected(dir: &Path) -> bool {
    fs::read_to_string(dir.join("trace")).unwrap().contains("INJECTED")
}

#[tokio::test]
#[ignore = "needs strace"]
async fn a_kill_at_every_system_call_needs_strace() {
    if let Some(dir) = std::env::var_os(DIR) {
        return write(Path::new(&dir)).await;
    }
    let mut kills = 0;
    for call in ["fsync", "fdatasync", "pwrite64", "unlink", "ftruncate"] {
        for nth in 1.. {
            let (dir, path) = place();
            let inject = format!("inject={call}:signal=SIGKILL:when={nth}");
            let (notes, whole) = run_writer("a_kill_at_every_system_call_needs_strace", dir.path(), &inject);
            all_is_well(&path, &notes, &inject).await;
            if whole {
                assert_eq!(notes.len(), STEPS, "{inject}");
                break;
            }
            kills += 1;
        }
    }
    assert!(kills > 20, "only {kills} kills");
}

#[tokio::test]
#[ignore = "needs strace"]
async fn an_error_at_every_system_call_needs_strace() {
    if let Some(dir) = std::env::var_os(DIR) {
        return write(Path::new(&dir)).await;
    }
    let mut answers = Vec::new();
    // Once: the disk recovers, and the failed commit is settled. From then on: it is not.
    let calls = [("fsync", "EIO"), ("fdatasync", "EIO"), ("pwrite64", "ENOSPC"), ("pwrite64", "EIO")];
    for (call, error) in calls {
        for how in ["", "+"] {
            for nth in 1.. {
                let (dir, path) = place();
                let inject = format!("inject={call}:error={error}:when={nth}{how}");
                let (notes, _) =
                    run_writer("an_error_at_every_system_call_needs_strace", dir.path(), &inject);
                all_is_well(&path, &notes, &inject).await;
                answers.extend(notes.last().filter(|note| note.parse::<u64>().is_err()).cloned());
                if !was_injected(dir.path()) {
                    break;
                }
            }
        }
    }
    for kind in ["Unavailable", "Uncertain"] {
        assert!(answers.iter().any(|answer| answer == kind), "never {kind}: {answers:?}");
    }
}

#[tokio::test]
#[ignore = "needs strace"]
async fn a_commit_waits_for_the_disk_once_needs_strace() {
    if let Some(dir) = std::env::var_os(DIR) {
        return write(Path::new(&dir)).await;
    }
    let (dir, _) = place();
    let (notes, _) = run_writer(
        "a_commit_waits_for_the_disk_once_needs_strace",
        dir.path(),
        "trace=fsync,fdatasync,write",
    );
    assert_eq!(notes.len(), STEPS);
    let trace = fs::read_to_string(dir.path().join("trace")).unwrap();
    let noted =
        |line: &&str| line.contains(" write(") && notes.iter().any(|n| line.contains(&format!("\"{n}\\n\"")));
    let lines: Vec<&str> = trace.lines().filter(|line| line.contains("sync(") || noted(line)).collect();
    let steps: Vec<&[&str]> = lines.split(|line| noted(line)).collect();
    for (n, syncs) in steps.iter().enumerate().skip(1).take(STEPS - 1) {
        assert_eq!(syncs.len(), 1, "step {n} of\n{trace}");
    }
}

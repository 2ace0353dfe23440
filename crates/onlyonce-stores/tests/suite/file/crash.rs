//! A kill and a failing disk at every system call of a writer.
//!
//! Each test runs itself again under strace as the writer, which does the [`STEPS`] one after the other and notes
//! every answer. Then the test looks at what is left: what was answered is there, the step in flight happened or
//! did not, nothing is half done, and versions go on rising.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::process::{Command, ExitStatus};

use onlyonce::store::Store as _;

use super::*;

const DIR: &str = "ONLYONCE_TEST_WRITER";

/// What the writer does, on two keys of one shard.
const STEPS: [(Step, usize); 11] = [
    (Step::Create, 0),
    (Step::Touch, 0),
    (Step::Replace, 0),
    (Step::Delete, 0), // raises the floor
    (Step::Create, 0),
    (Step::Create, 1),
    (Step::Delete, 1), // raises the floor
    (Step::Delete, 0), // is below the floor
    (Step::Create, 1),
    (Step::Create, 0),
    (Step::Replace, 1),
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Create,
    Replace,
    Touch,
    Delete,
}

/// What is there after so many steps: the step that wrote each key last.
fn after(steps: usize) -> [Option<usize>; 2] {
    let mut there = [None; 2];
    for (n, (step, key)) in STEPS.iter().enumerate().take(steps) {
        there[*key] = (*step != Step::Delete).then_some(n);
    }
    there
}

/// One answer the writer noted.
#[derive(Debug)]
enum Noted {
    Version(u64),
    Failed(String),
}

/// The writer: ends at the first failure.
async fn write(dir: &Path) {
    let mut notes = OpenOptions::new().create(true).append(true).open(dir.join("notes")).unwrap();
    let store = match FileStore::open(dir.join("store")) {
        Ok(store) => store,
        Err(error) => return note(&mut notes, &format!("{:?}", error.kind())),
    };
    let keys = neighbours(2);
    let mut versions = [Version::default(); 2];
    for (n, (step, at)) in STEPS.into_iter().enumerate() {
        let (key, expect) = (&keys[at], versions[at]);
        let header = HeaderDraft { attempts: u32::try_from(n).unwrap(), ..HeaderDraft::new(PLAIN) };
        let draft = Draft { header: header.clone(), body: "1".into() };
        let write = match step {
            Step::Create => Write::Put { key: key.clone(), expect: Expect::Absent, draft },
            Step::Replace => Write::Put { key: key.clone(), expect: Expect::Version(expect), draft },
            Step::Touch => Write::Touch { key: key.clone(), expect, header },
            Step::Delete => delete(key, expect),
        };
        match store.commit(vec![write]).await {
            Ok(Commit::Stored(given)) => {
                versions[at] = given[0];
                note(&mut notes, &given[0].to_string());
            }
            Ok(Commit::Conflict(there)) => panic!("step {n}: there is {there:?}"),
            Err(error) => return note(&mut notes, &format!("{:?}", error.kind())),
        }
    }
}

fn note(notes: &mut fs::File, text: &str) {
    notes.write_all(format!("{text}\n").as_bytes()).unwrap();
}

/// Runs the test of this name again, as the writer, under strace; gives its notes, and how it ended.
fn run_writer(test: &str, place: &Place, strace: &[&str]) -> (Vec<Noted>, ExitStatus) {
    let ran = Command::new("strace")
        .args(["-f", "-qq", "-y", "-o"])
        .arg(place.above.path().join("trace"))
        .args(strace)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &format!("file::crash::{test}"), "--include-ignored", "--nocapture"])
        .env(DIR, place.above.path())
        .output()
        .unwrap();
    let notes = fs::read_to_string(place.above.path().join("notes")).unwrap_or_default();
    let noted = |line: &str| line.parse().map_or_else(|_| Noted::Failed(line.to_owned()), Noted::Version);
    (notes.lines().map(noted).collect(), ran.status)
}

/// Looks at what is left, and goes on with it.
async fn all_is_well(place: &Place, notes: &[Noted], why: &str) {
    let (mut given, mut answered, mut sure) = ([0; 2], 0, false);
    for noted in notes {
        match noted {
            Noted::Version(version) => {
                let (step, key) = STEPS[answered];
                assert!(*version > given[key] || step == Step::Delete, "{why}: {notes:?}");
                given[key] = *version;
                answered += 1;
            }
            Noted::Failed(kind) => {
                assert!(["Unavailable", "Uncertain"].contains(&kind.as_str()), "{why}: {kind}");
                sure = kind == "Unavailable";
            }
        }
    }
    let store = place.open();
    let keys = neighbours(2);
    let found = [read(&store, &keys[0]).await.unwrap(), read(&store, &keys[1]).await.unwrap()];
    let seen = found.each_ref().map(|entry| entry.as_ref().map(|e| e.header.attempts as usize));
    let in_flight = !sure && seen == after(answered + 1);
    assert!(seen == after(answered) || in_flight, "{why}: {seen:?} after {notes:?}");
    for (key, (entry, given)) in keys.iter().zip(found.into_iter().zip(given)) {
        let last = entry.as_ref().map_or(given, |e| e.version.get().max(given));
        let expect = entry.map_or(Expect::Absent, |e| Expect::Version(e.version));
        let next = stored(&store, put(key, expect, "2")).await;
        assert!(next.get() > last, "{why}: {next} after {last}");
    }
    let left = tree(&place.shard(&keys[0]));
    assert!(!left.iter().any(|path| path.ends_with("temp")), "{why}: {left:?}");
}

#[tokio::test]
#[ignore = "needs strace"]
async fn a_kill_at_every_system_call_needs_strace() {
    if let Some(dir) = std::env::var_os(DIR) {
        return write(Path::new(&dir)).await;
    }
    let mut kills = 0;
    for call in ["fsync", "renameat", "unlinkat", "pwrite64", "mkdirat", "flock", "openat", "write"] {
        for nth in 1.. {
            let place = Place::new();
            let inject = format!("inject={call}:signal=SIGKILL:when={nth}");
            let (notes, ended) =
                run_writer("a_kill_at_every_system_call_needs_strace", &place, &["-e", &inject]);
            all_is_well(&place, &notes, &inject).await;
            if ended.success() {
                assert_eq!(notes.len(), STEPS.len(), "{inject}");
                break;
            }
            kills += 1;
        }
    }
    assert!(kills > 80, "only {kills} kills");
}

#[tokio::test]
#[ignore = "needs strace"]
async fn an_error_at_every_system_call_needs_strace() {
    if let Some(dir) = std::env::var_os(DIR) {
        return write(Path::new(&dir)).await;
    }
    let mut failures = 0;
    for (call, error) in [
        ("fsync", "EIO"),
        ("renameat", "EIO"),
        ("unlinkat", "EIO"),
        ("pwrite64", "ENOSPC"),
        ("mkdirat", "ENOSPC"),
        ("flock", "ENOLCK"),
    ] {
        for nth in 1.. {
            let place = Place::new();
            let inject = format!("inject={call}:error={error}:when={nth}");
            let (notes, ended) =
                run_writer("an_error_at_every_system_call_needs_strace", &place, &["-e", &inject]);
            assert!(ended.success(), "{inject}: the writer must not panic");
            all_is_well(&place, &notes, &inject).await;
            failures += usize::from(matches!(notes.last(), Some(Noted::Failed(_))));
            if !fs::read_to_string(place.above.path().join("trace")).unwrap().contains("(INJECTED)") {
                break;
            }
        }
    }
    assert!(failures > 20, "only {failures} failures");
}

#[tokio::test]
#[ignore = "needs strace"]
async fn a_full_disk_at_every_write_needs_strace() {
    if let Some(dir) = std::env::var_os(DIR) {
        return write(Path::new(&dir)).await;
    }
    let mut stopped_at = Vec::new();
    for nth in 1.. {
        let place = Place::new();
        let shard = place.shard(&neighbours(1)[0]);
        // From here on, every write.
        let inject = format!("inject=write:error=ENOSPC:when={nth}+");
        let temp = shard.join("temp");
        let strace = ["-P", temp.to_str().unwrap(), "-e", "trace=write", "-e", &inject];
        let (notes, ended) = run_writer("a_full_disk_at_every_write_needs_strace", &place, &strace);
        assert!(ended.success(), "{inject}: the writer must not panic");
        let floor = || fs::read_to_string(shard.join("floor")).unwrap_or_default();
        assert!(floor().lines().count() <= 2, "{inject}: no body is left: {}", floor());
        all_is_well(&place, &notes, &inject).await;
        assert!(!floor().contains("body"), "{inject}: nor the key, once there is room: {}", floor());
        match notes.last() {
            Some(Noted::Failed(kind)) => assert_eq!(kind, "Unavailable", "{inject}: it did not happen"),
            _ => break,
        }
        stopped_at.push(notes.len() - 1);
    }
    // A delete makes room, so it needs none: the disk that is full from a delete on stops the step after it.
    assert_eq!(stopped_at, [0, 1, 2, 4, 4, 5, 8, 8, 9, 10]);
}

/// What a step asked of the disk, in order, between two notes.
fn calls_per_step(trace: &str) -> Vec<Vec<&'static str>> {
    let mut steps = vec![Vec::new()];
    for line in trace.lines().filter(|line| !line.contains("ENOENT")) {
        let call = match line {
            _ if line.contains("write(") && line.contains("/notes>") => {
                steps.push(Vec::new());
                continue;
            }
            _ if line.contains("fsync(") && line.contains("temp>") => "sync file",
            _ if line.contains("fsync(") => "sync directory",
            _ if line.contains("renameat(") && line.contains("\"floor\"") => "raise floor",
            _ if line.contains("renameat(") => "rename",
            _ if line.contains("unlinkat(") => "remove",
            _ if line.contains("pwrite64(") && line.contains("\"writing") => "writing",
            _ if line.contains("pwrite64(") && line.contains("\"settled") => "settled",
            _ => continue,
        };
        steps.last_mut().unwrap().push(call);
    }
    steps
}

#[tokio::test]
#[ignore = "needs strace"]
async fn a_write_waits_for_the_disk_twice_and_in_order_needs_strace() {
    if let Some(dir) = std::env::var_os(DIR) {
        return write(Path::new(&dir)).await;
    }
    let place = Place::new();
    let calls = ["-e", "trace=fsync,fdatasync,renameat,renameat2,rename,unlinkat,pwrite64,write"];
    let (notes, _) = run_writer("a_write_waits_for_the_disk_twice_and_in_order_needs_strace", &place, &calls);
    assert_eq!(notes.len(), STEPS.len());
    let trace = fs::read_to_string(place.above.path().join("trace")).unwrap();
    let steps = calls_per_step(&trace);
    for (n, (step, calls)) in STEPS.iter().zip(&steps).enumerate().skip(1) {
        let wanted: &[&str] = match (n, step.0) {
            (7, _) => &["writing", "remove", "sync directory", "settled"],
            (_, Step::Delete) => {
                &["writing", "sync file", "rename", "raise floor", "sync directory", "settled"]
            }
            _ => &["writing", "sync file", "rename", "sync directory", "settled"],
        };
        assert_eq!(calls, wanted, "step {n} {step:?} of\n{trace}");
    }
    let store = ["sync file", "rename", "sync directory", "sync directory"];
    let shard = ["sync directory", "sync directory", "settled"];
    let first =
        [&store[..], &shard, &["writing", "sync file", "rename", "sync directory", "settled"]].concat();
    assert_eq!(steps[0], first, "the first one makes the store and the shard before it");
}

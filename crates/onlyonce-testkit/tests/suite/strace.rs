//! A kill, an I/O error and a full disk at every write, sync and rename of claim → run → complete.
//!
//! `strace` injects the fault into an unmodified worker; a second worker, left in peace, then shows what is
//! there. Whatever the first one reported is still true, and the effect is in the world once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::processes::{Place, Worker};

const KEYS: usize = 3;
const CALLS: &str =
    "write,pwrite64,fsync,fdatasync,rename,renameat,renameat2,ftruncate,unlink,unlinkat,mkdir";

fn orders() -> [String; 4] {
    [format!("keys={KEYS}"), format!("deliveries={KEYS}"), "in-order".into(), "lease-ms=100".into()]
}

fn strace(place: &Place, log: &Path, inject: Option<&str>) -> Command {
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o"]).arg(log);
    match inject {
        Some(fault) => command.arg(format!("-einject={CALLS}:{fault}")),
        None => command.arg(format!("-etrace={CALLS}")),
    };
    command.arg(env!("CARGO_BIN_EXE_onlyonce-worker")).args(place.words(&orders()));
    command.stderr(Stdio::null());
    command
}

/// The most calls of one kind by one thread: `strace` counts each apart.
fn most_calls(store: &'static str) -> usize {
    let place = Place::new(store, "retry", true);
    let log = place.path().join("strace");
    Worker::start(&mut strace(&place, &log, None)).rest();
    let text = std::fs::read_to_string(&log).unwrap();
    let mut counts = BTreeMap::<&str, usize>::new();
    for call in text.lines().filter_map(|line| line.split_once('(')) {
        *counts.entry(call.0).or_default() += 1;
    }
    counts.into_values().max().unwrap()
}

/// The outcomes a worker reported, by key.
fn outcomes(lines: &[String]) -> BTreeMap<&str, &str> {
    let said =
        lines.iter().filter_map(|line| line.strip_prefix("ran ").or_else(|| line.strip_prefix("replayed ")));
    said.filter_map(|outcome| outcome.split_once(' ')).collect()
}

fn every_call_fails_once(store: &'static str, fault: &str) {
    let most = most_calls(store);
    assert!(most > 5, "a worker that makes {most} calls does not write");
    for nth in 1..=most {
        let place = Place::new(store, "retry", true);
        let log = place.path().join("strace");
        let mut faulty = strace(&place, &log, Some(&format!("{fault}:when={nth}")));
        let (first, status) = Worker::start(&mut faulty).rest_and_status();
        assert_ne!(status.code(), Some(101), "call {nth}, {fault}: the worker panicked");
        let second = place.worker(&orders()).rest();
        let (told, now) = (outcomes(&first), outcomes(&second));
        assert_eq!(now.len(), KEYS, "call {nth}, {fault}: {second:?}");
        for (id, value) in told {
            assert_eq!(value, now[id], "call {nth}, {fault}: the outcome of {id} changed");
        }
        let effects: BTreeSet<String> = place.keyed_effects().into_iter().collect();
        let values: BTreeSet<String> = now.into_values().map(str::to_owned).collect();
        assert_eq!(effects, values, "call {nth}, {fault}: what is in the world is what is recorded, once");
    }
}

macro_rules! faults {
    ($($store:ident)*) => {$(
        mod $store {
            #[test]
            #[ignore = "needs strace"]
            fn needs_strace_killed_at_every_call() {
                super::every_call_fails_once(stringify!($store), "signal=SIGKILL");
            }

            #[test]
            #[ignore = "needs strace"]
            fn needs_strace_io_error_at_every_call() {
                super::every_call_fails_once(stringify!($store), "error=EIO");
            }

            #[test]
            #[ignore = "needs strace"]
            fn needs_strace_full_disk_at_every_call() {
                super::every_call_fails_once(stringify!($store), "error=ENOSPC");
            }
        }
    )*};
}

faults!(sqlite file);

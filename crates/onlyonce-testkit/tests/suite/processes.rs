//! Real processes, killed with SIGKILL at random moments, stopped past their lease, and counted.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use onlyonce::chance::Chance;
use onlyonce_testkit::chance::SeededChance;
use onlyonce_testkit::worker::Sink;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// How many kills per test; `ONLYONCE_KILLS` asks for more.
fn kills() -> usize {
    std::env::var("ONLYONCE_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(60)
}

/// A store and a sink in a directory of their own.
pub(crate) struct Place {
    dir: TempDir,
    store: &'static str,
    keyed: bool,
    on_crash: &'static str,
}

impl Place {
    pub(crate) fn new(store: &'static str, on_crash: &'static str, keyed: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("sink")).unwrap();
        Self { dir, store, keyed, on_crash }
    }

    pub(crate) fn words(&self, more: &[String]) -> Vec<String> {
        let path = self.dir.path().display();
        let store = match self.store {
            "sqlite" => format!("store=sqlite:{path}/store.db"),
            _ => format!("store=file:{path}/store"),
        };
        let mut words = vec![store, format!("sink={path}/sink"), format!("on-crash={}", self.on_crash)];
        words.push(format!("keyed={}", self.keyed));
        words.extend_from_slice(more);
        words
    }

    pub(crate) fn worker(&self, more: &[String]) -> Worker {
        Worker::start(Command::new(env!("CARGO_BIN_EXE_onlyonce-worker")).args(self.words(more)))
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The value of every effect in a keyed sink.
    pub(crate) fn keyed_effects(&self) -> Vec<String> {
        let files = std::fs::read_dir(self.dir.path().join("sink")).unwrap().map(Result::unwrap);
        let effects = files.filter(|file| {
            let name = file.file_name().into_string().unwrap();
            name.starts_with("once_") && !name.contains('.')
        });
        effects.map(|file| std::fs::read_to_string(file.path()).unwrap()).collect()
    }

    fn sink(&self) -> Sink {
        Sink::new(&self.dir.path().join("sink"), self.keyed)
    }

    fn effects_per_key(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for (id, _) in self.sink().effects().unwrap() {
            *counts.entry(id).or_default() += 1;
        }
        counts
    }
}

pub(crate) struct Worker {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Worker {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, stdin, lines }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// The next line, or `None` when the worker is gone.
    fn line(&mut self) -> Option<String> {
        self.lines.next().map(Result::unwrap)
    }

    fn wait_for(&mut self, start: &str) -> String {
        loop {
            let line = self.line().unwrap_or_else(|| panic!("the worker ended before it said {start:?}"));
            if line.starts_with(start) {
                return line;
            }
        }
    }

    fn open_gate(&mut self) {
        self.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    }

    /// Everything it still says; then it is gone.
    pub(crate) fn rest(self) -> Vec<String> {
        self.rest_and_status().0
    }

    /// The same, and how it ended.
    pub(crate) fn rest_and_status(mut self) -> (Vec<String>, ExitStatus) {
        let lines = self.lines.by_ref().map(Result::unwrap).collect();
        (lines, self.child.wait().unwrap())
    }

    fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.rest()
    }
}

/// Every value any worker reported, per key.
#[derive(Default)]
struct Reported {
    values: BTreeMap<String, Vec<String>>,
    parked: usize,
}

impl Reported {
    fn add(&mut self, lines: &[String]) {
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["ran" | "replayed", id, value] => {
                    self.values.entry(id.into()).or_default().push(value.into());
                }
                ["parked", _] => self.parked += 1,
                ["claimed", _, _]
                | ["effect" | "lease_lost" | "not_recorded" | "store_unavailable", _]
                | ["end"] => {}
                _ => panic!("a worker said {line:?}"),
            }
        }
    }

    /// One outcome: whoever was told a value for a key was told the same.
    fn check_one_outcome(&self) {
        for (id, values) in &self.values {
            assert!(values.iter().all(|v| *v == values[0]), "{id} had several outcomes: {values:?}");
        }
    }
}

fn storm(place: &Place) -> Reported {
    const KEYS: u64 = 30;
    let chance = SeededChance::new(7);
    let orders = |seed: u64| vec![format!("keys={KEYS}"), "deliveries=90".into(), format!("seed={seed}")];
    let mut reported = Reported::default();
    let mut workers: Vec<Worker> = (0..4).map(|seed| place.worker(&orders(seed))).collect();
    for kill in 0..kills() {
        let at = usize::try_from(chance.next() % 4).unwrap();
        let mut seen = Vec::new();
        for _ in 0..chance.next() % 12 {
            seen.extend(workers[at].line());
        }
        let next = place.worker(&orders(100 + kill as u64));
        let victim = std::mem::replace(&mut workers[at], next);
        seen.extend(victim.kill());
        reported.add(&seen);
    }
    for worker in workers {
        reported.add(&worker.rest());
    }
    // Every key is delivered once more, to workers that live.
    let last = [format!("keys={KEYS}"), format!("deliveries={KEYS}"), "in-order".into()];
    let lines = place.worker(&last).rest();
    reported.parked = 0;
    reported.add(&lines);
    reported.check_one_outcome();
    assert_eq!(reported.values.len() + reported.parked, usize::try_from(KEYS).unwrap(), "{lines:?}");
    reported
}

/// Retry, and an outside that honours effect keys: every effect once, none lost.
fn keyed_effects_happen_exactly_once(store: &'static str) {
    let place = Place::new(store, "retry", true);
    storm(&place);
    let effects = place.effects_per_key();
    assert_eq!(effects.len(), 30);
    assert!(effects.values().all(|n| *n == 1), "{effects:?}");
}

/// Park, and an outside that honours nothing: no effect twice, and whatever is unsure says so.
fn parked_keys_never_run_twice(store: &'static str) {
    let place = Place::new(store, "park", false);
    let reported = storm(&place);
    let effects = place.effects_per_key();
    assert!(effects.values().all(|n| *n == 1), "{effects:?}");
    for id in reported.values.keys() {
        assert!(effects.contains_key(id), "{id} is completed, and its effect is lost");
    }
}

/// Probe, and an outside that can be asked: every effect once, none lost.
fn probed_effects_happen_exactly_once(store: &'static str) {
    let place = Place::new(store, "probe", false);
    storm(&place);
    let effects = place.effects_per_key();
    assert_eq!(effects.len(), 30);
    assert!(effects.values().all(|n| *n == 1), "{effects:?}");
}

/// Stopped past its lease and woken: it learns that it lost, and changes nothing.
fn a_woken_zombie_changes_nothing(store: &'static str) {
    let place = Place::new(store, "retry", true);
    let mut zombie = place.worker(&["gate".into()]);
    zombie.wait_for("claimed");
    zombie.signal(Signal::STOP);
    let second = place.worker(&[]).rest();
    let ran = second.iter().find(|line| line.starts_with("ran ")).expect("the second takes over and runs");
    zombie.signal(Signal::CONT);
    zombie.open_gate();
    let woken = zombie.rest();
    assert!(woken.contains(&"lease_lost k0".to_owned()), "{woken:?}");
    let third = place.worker(&[]).rest();
    assert_eq!(third[0], ran.replace("ran", "replayed"), "the outcome is the second's");
    assert_eq!(place.effects_per_key()["k0"], 1);
}

/// Killed at each step of a call: the next worker ends it by the policy.
fn killed_at_every_step(store: &'static str) {
    for step in ["claimed", "effect", "ran"] {
        let place = Place::new(store, "retry", true);
        let mut first = place.worker(&["gate".into()]);
        first.wait_for("claimed");
        if step != "claimed" {
            first.open_gate();
            first.wait_for(step);
        }
        first.kill();
        let second = place.worker(&[]).rest();
        let ended = second.iter().any(|line| line.starts_with("ran k0") || line.starts_with("replayed k0"));
        assert!(ended, "killed at {step}: {second:?}");
        assert_eq!(place.effects_per_key()["k0"], 1, "killed at {step}");
    }
}

macro_rules! processes {
    ($($store:ident)*) => {$(
        mod $store {
            const STORE: &str = stringify!($store);

            #[test]
            fn keyed_effects_happen_exactly_once() {
                super::keyed_effects_happen_exactly_once(STORE);
            }

            #[test]
            fn parked_keys_never_run_twice() {
                super::parked_keys_never_run_twice(STORE);
            }

            #[test]
            fn probed_effects_happen_exactly_once() {
                super::probed_effects_happen_exactly_once(STORE);
            }

            #[test]
            fn a_woken_zombie_changes_nothing() {
                super::a_woken_zombie_changes_nothing(STORE);
            }

            #[test]
            fn killed_at_every_step() {
                super::killed_at_every_step(STORE);
            }
        }
    )*};
}

processes!(sqlite file);

//! What happened, for people to read, and one number that stands for it.

use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use onlyonce::chance::mix;

use super::world::lock;

/// The story of one schedule; its text is only written when somebody wants to read it.
#[derive(Debug)]
pub(super) struct Trace {
    text: Option<Mutex<String>>,
    hash: AtomicU64,
}

impl Trace {
    pub(super) fn new(wanted: bool) -> Self {
        Self { text: wanted.then(Mutex::default), hash: AtomicU64::new(0) }
    }

    pub(super) fn say(&self, now_us: u64, line: impl FnOnce() -> String) {
        if let Some(text) = &self.text {
            let line = line();
            // Writing to a string cannot fail.
            let _ = writeln!(lock(text), "{:>10.3} ms  {line}", micros_as_millis(now_us));
        }
    }

    /// Two schedules that went the same way have the same marks in the same order.
    pub(super) fn mark(&self, what: u64) {
        self.hash.store(mix(self.hash.load(Ordering::Relaxed) ^ what), Ordering::Relaxed);
    }

    pub(super) fn hash(&self) -> u64 {
        self.hash.load(Ordering::Relaxed)
    }

    pub(super) fn take_text(&self) -> String {
        self.text.as_ref().map(|text| std::mem::take(&mut *lock(text))).unwrap_or_default()
    }
}

#[expect(clippy::cast_precision_loss, reason = "for people to read")]
fn micros_as_millis(us: u64) -> f64 {
    us as f64 / 1000.0
}

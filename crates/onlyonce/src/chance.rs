//! Chance comes in through one door, so that a test can close it.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Where random numbers come from: holder names and the jitter of retries.
///
/// Nothing that must be right depends on it; two equal holder names are the only thing it has to avoid.
pub trait Chance: fmt::Debug + Send + Sync + 'static {
    /// Any 64 bits.
    fn next(&self) -> u64;
}

/// `base`, moved by up to a quarter in either direction, so that many retries do not march in step.
pub fn jitter(chance: &dyn Chance, base: Duration) -> Duration {
    let thousandths = 750 + u32::try_from(chance.next() % 501).unwrap_or(250);
    base.saturating_mul(thousandths) / 1000
}

/// Randomness seeded by the operating system.
#[derive(Debug)]
pub struct SystemChance {
    state: AtomicU64,
}

impl SystemChance {
    /// A new source, seeded through the standard library's keyed hasher.
    pub fn new() -> Self {
        let (a, b) = (RandomState::new(), RandomState::new());
        Self { state: AtomicU64::new(a.hash_one(std::process::id()) ^ b.hash_one(0).rotate_left(32)) }
    }
}

impl Default for SystemChance {
    fn default() -> Self {
        Self::new()
    }
}

impl Chance for SystemChance {
    fn next(&self) -> u64 {
        let weyl = self.state.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        mix(weyl)
    }
}

/// SplitMix64's finaliser: every input bit reaches every output bit.
pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

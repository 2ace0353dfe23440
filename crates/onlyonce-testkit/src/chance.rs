//! Chance that can be had twice: the same seed gives the same numbers.

use std::sync::atomic::{AtomicU64, Ordering};

use onlyonce::chance::{Chance, mix};

/// Numbers that look random and depend on the seed alone.
///
/// Shared between threads, each number is given out once; who gets which is for the threads to race for.
#[derive(Debug)]
pub struct SeededChance {
    seed: u64,
    state: AtomicU64,
}

impl SeededChance {
    /// The numbers of this seed.
    pub fn new(seed: u64) -> Self {
        Self { seed, state: AtomicU64::new(mix(seed ^ 0x6A09_E667_F3BC_C909)) }
    }

    /// The seed, for the message of a failed test.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Another source that shares nothing with this one, for the part of a test with this number.
    #[must_use]
    pub fn fork(&self, part: u64) -> Self {
        Self::new(mix(self.seed).wrapping_add(mix(part.wrapping_add(1))))
    }

    /// A number below `bound`; 0 when there is none.
    pub fn below(&self, bound: u64) -> u64 {
        // The high half of the product: no bias worth naming, and no division.
        let wide = u128::from(self.next()) * u128::from(bound);
        u64::try_from(wide >> 64).unwrap_or(0)
    }

    /// True in `per_mille` of a thousand times.
    pub fn happens(&self, per_mille: u32) -> bool {
        self.below(1000) < u64::from(per_mille)
    }

    /// One of these; `None` when there are none.
    pub fn pick<'a, T>(&self, from: &'a [T]) -> Option<&'a T> {
        let index = usize::try_from(self.below(from.len() as u64)).unwrap_or(0);
        from.get(index)
    }

    /// Puts these in another order.
    pub fn shuffle<T>(&self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = usize::try_from(self.below(last as u64 + 1)).unwrap_or(0);
            items.swap(last, other);
        }
    }
}

impl Chance for SeededChance {
    fn next(&self) -> u64 {
        mix(self.state.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ten(chance: &SeededChance) -> Vec<u64> {
        (0..10).map(|_| chance.next()).collect()
    }

    #[test]
    fn one_seed_gives_one_sequence() {
        assert_eq!(ten(&SeededChance::new(7)), ten(&SeededChance::new(7)));
        assert_ne!(ten(&SeededChance::new(7)), ten(&SeededChance::new(8)));
    }

    #[test]
    fn forks_share_nothing_with_each_other_or_their_root() {
        let root = SeededChance::new(7);
        let (a, b) = (ten(&root.fork(0)), ten(&root.fork(1)));
        assert_ne!(a, b);
        assert_ne!(a, ten(&root));
        assert_eq!(
            a,
            ten(&SeededChance::new(7).fork(0)),
            "a fork depends on the seed, not on what was drawn"
        );
    }

    #[test]
    fn below_reaches_every_number_and_no_other() {
        let chance = SeededChance::new(1);
        let mut seen = [0_u32; 6];
        for _ in 0..6000 {
            seen[usize::try_from(chance.below(6)).unwrap()] += 1;
        }
        assert!(seen.iter().all(|&n| (800..1200).contains(&n)), "{seen:?}");
        assert_eq!(chance.below(0), 0);
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..50).collect();
        SeededChance::new(3).shuffle(&mut items);
        assert_ne!(items, (0..50).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..50).collect::<Vec<_>>());
    }
}

//! Two or more sides that do the same work in turn.

use std::time::Duration;

use onlyonce::time::{Clock, SystemClock};

use crate::Failed;

/// How long the work took.
pub(crate) fn time<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let clock = SystemClock::new();
    let done = work();
    (done, clock.monotonic())
}

/// One side: does its work once, and says how many nanoseconds one unit of it took.
pub(crate) type Side<'a> = &'a mut dyn FnMut() -> Result<f64, Failed>;

/// Nanoseconds per unit.
#[expect(clippy::cast_precision_loss, reason = "counts and nanoseconds of one round are far below 2^53")]
pub(crate) fn per_unit(took: Duration, units: usize) -> f64 {
    took.as_nanos() as f64 / units as f64
}

/// What the rounds gave: per side, one figure per round.
#[derive(Debug)]
pub(crate) struct Rounds {
    sides: Vec<Vec<f64>>,
}

impl Rounds {
    /// Lets each side work in turn, so often; a round before the first warms up and does not count.
    pub(crate) fn run(rounds: usize, sides: &mut [Side<'_>]) -> Result<Self, Failed> {
        let mut took = vec![Vec::with_capacity(rounds); sides.len()];
        for round in 0..=rounds {
            for (side, took) in sides.iter_mut().zip(&mut took) {
                let figure = side()?;
                if round > 0 {
                    took.push(figure);
                }
            }
        }
        Ok(Self { sides: took })
    }

    /// The median figure of a side, in nanoseconds per unit.
    pub(crate) fn median(&self, side: usize) -> f64 {
        median(self.sides[side].clone())
    }

    /// How many times faster `side` is than `other`: the median over the rounds.
    pub(crate) fn faster(&self, side: usize, other: usize) -> f64 {
        median(self.sides[side].iter().zip(&self.sides[other]).map(|(side, other)| other / side).collect())
    }

    /// The one of these sides with the smallest median.
    pub(crate) fn best(&self, sides: &[usize]) -> usize {
        let best = sides.iter().copied().min_by(|&a, &b| self.median(a).total_cmp(&self.median(b)));
        best.unwrap_or_default()
    }
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_take_turns_and_the_first_round_does_not_count() {
        let mut order = Vec::new();
        let order_cell = std::cell::RefCell::new(&mut order);
        let mut a = [900.0, 1.0, 2.0, 40.0].into_iter();
        let mut b = [900.0, 4.0, 4.0, 40.0].into_iter();
        let mut first = || {
            order_cell.borrow_mut().push('a');
            Ok(a.next().unwrap())
        };
        let mut second = || {
            order_cell.borrow_mut().push('b');
            Ok(b.next().unwrap())
        };
        let rounds = Rounds::run(3, &mut [&mut first, &mut second]).unwrap();
        assert_eq!((rounds.median(0), rounds.median(1)), (2.0, 4.0));
        assert_eq!(rounds.faster(0, 1), 2.0);
        assert_eq!(rounds.best(&[0, 1]), 0);
        assert_eq!(order.iter().collect::<String>(), "abababab");
    }
}

//! A clock that stands still until it is told to move.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use onlyonce::time::{BoxFuture, Clock, Timestamp};
use tokio::sync::watch;

/// Where the wall clock of a new [`ManualClock`] stands: 2026-01-01T00:00:00Z.
pub const START: Timestamp = Timestamp::from_millis(1_767_225_600_000);

/// Virtual time: a wall clock and a monotonic clock that move only when told.
///
/// Clones are hands of one clock. Sleepers are woken by whoever moves it; there is no thread behind it.
#[derive(Clone, Debug)]
pub struct ManualClock {
    state: Arc<Mutex<State>>,
    sleeping: watch::Sender<usize>,
}

#[derive(Debug)]
struct State {
    wall_nanos: i128,
    /// How fast the wall clock runs while the monotonic clock runs at 1.
    rate: f64,
    monotonic: Duration,
    sleepers: BTreeMap<(Duration, u64), Waker>,
    next_sleeper: u64,
}

impl ManualClock {
    /// A clock that stands at [`START`], with no time passed.
    pub fn new() -> Self {
        Self::starting_at(START)
    }

    /// A clock whose wall clock stands at `now`, with no time passed.
    pub fn starting_at(now: Timestamp) -> Self {
        let state = State {
            wall_nanos: i128::from(now.as_millis()) * 1_000_000,
            rate: 1.0,
            monotonic: Duration::ZERO,
            sleepers: BTreeMap::new(),
            next_sleeper: 0,
        };
        Self { state: Arc::new(Mutex::new(state)), sleeping: watch::Sender::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets time pass on both clocks, and wakes the sleepers it reaches.
    pub fn advance(&self, by: Duration) {
        self.move_on(|_| by);
    }

    /// Lets time pass up to the next sleeper, but no further than `at_most`; says how much has passed.
    ///
    /// A test that wants every sleeper to see its own moment calls this until nothing is left of the time it
    /// wants to pass, and lets its tasks run in between.
    pub fn advance_to_next(&self, at_most: Duration) -> Duration {
        self.move_on(|state| match state.next_wake() {
            Some(until) => until.saturating_sub(state.monotonic).min(at_most),
            None => at_most,
        })
    }

    fn move_on(&self, by: impl FnOnce(&State) -> Duration) -> Duration {
        let mut state = self.lock();
        let by = by(&state);
        let woken = state.pass(by);
        self.sleeping.send_replace(state.sleepers.len());
        drop(state);
        woken.into_values().for_each(Waker::wake);
        by
    }

    /// Sets the wall clock forward, as an administrator or a bad time server does; no time passes.
    pub fn jump_forward(&self, by: Duration) {
        let mut state = self.lock();
        state.wall_nanos = state.wall_nanos.saturating_add(nanos(by));
    }

    /// Sets the wall clock back; no time passes.
    pub fn jump_back(&self, by: Duration) {
        let mut state = self.lock();
        state.wall_nanos = state.wall_nanos.saturating_sub(nanos(by));
    }

    /// From now on the wall clock runs at `rate` times the monotonic one; 1.0 is a good clock, 0.0 a stuck one.
    pub fn drift(&self, rate: f64) {
        self.lock().rate = rate;
    }

    /// How many are asleep.
    pub fn sleepers(&self) -> usize {
        self.lock().sleepers.len()
    }

    /// When the next sleeper wants to wake, on the monotonic clock.
    pub fn next_wake(&self) -> Option<Duration> {
        self.lock().next_wake()
    }

    /// Resolves once at least so many are asleep: the signal to wait for before moving the clock.
    pub async fn until_asleep(&self, sleepers: usize) {
        let mut sleeping = self.sleeping.subscribe();
        // The sender lives in `self`, so this cannot fail.
        let _ = sleeping.wait_for(|now| *now >= sleepers).await;
    }
}

fn nanos(duration: Duration) -> i128 {
    i128::try_from(duration.as_nanos()).unwrap_or(i128::MAX)
}

impl State {
    /// Moves both clocks, and takes out the sleepers whose time has come.
    fn pass(&mut self, by: Duration) -> BTreeMap<(Duration, u64), Waker> {
        self.monotonic = self.monotonic.saturating_add(by);
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            reason = "a drifting clock is no precise thing"
        )]
        let wall = if self.rate == 1.0 { nanos(by) } else { (nanos(by) as f64 * self.rate) as i128 };
        self.wall_nanos = self.wall_nanos.saturating_add(wall);
        let later = self.sleepers.split_off(&(self.monotonic, u64::MAX));
        std::mem::replace(&mut self.sleepers, later)
    }

    fn next_wake(&self) -> Option<Duration> {
        self.sleepers.keys().next().map(|(until, _)| *until)
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        let millis = self.lock().wall_nanos.div_euclid(1_000_000);
        let end = if millis < 0 { i64::MIN } else { i64::MAX };
        Timestamp::from_millis(i64::try_from(millis).unwrap_or(end))
    }

    fn monotonic(&self) -> Duration {
        self.lock().monotonic
    }

    fn sleep_until(&self, until: Duration) -> BoxFuture<'static, ()> {
        Box::pin(Sleep { clock: self.clone(), until, place: None })
    }
}

/// Asleep from its first poll until its time has come or it is dropped.
#[derive(Debug)]
struct Sleep {
    clock: ManualClock,
    until: Duration,
    place: Option<(Duration, u64)>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let (clock, until) = (self.clock.clone(), self.until);
        let mut state = clock.lock();
        if state.monotonic >= until {
            return Poll::Ready(());
        }
        let place = *self.place.get_or_insert_with(|| {
            state.next_sleeper += 1;
            (until, state.next_sleeper)
        });
        state.sleepers.insert(place, context.waker().clone());
        clock.sleeping.send_replace(state.sleepers.len());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            let mut state = self.clock.lock();
            state.sleepers.remove(&place);
            self.clock.sleeping.send_replace(state.sleepers.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn it_stands_still_until_told() {
        let clock = ManualClock::new();
        assert_eq!((clock.now(), clock.monotonic()), (START, Duration::ZERO));
        clock.advance(SECOND);
        assert_eq!((clock.now(), clock.monotonic()), (START.plus(SECOND), SECOND));
    }

    #[test]
    fn the_wall_clock_jumps_and_drifts_apart_from_the_monotonic() {
        let clock = ManualClock::new();
        clock.jump_forward(10 * SECOND);
        assert_eq!((clock.now(), clock.monotonic()), (START.plus(10 * SECOND), Duration::ZERO));
        clock.jump_back(20 * SECOND);
        assert_eq!(clock.now().plus(10 * SECOND), START);
        clock.drift(0.5);
        clock.advance(20 * SECOND);
        assert_eq!((clock.now(), clock.monotonic()), (START, 20 * SECOND));
    }

    #[test]
    fn sleepers_wake_when_the_monotonic_clock_reaches_them() {
        let clock = ManualClock::new();
        let (mut early, mut late) = (clock.sleep_until(SECOND), clock.sleep_until(2 * SECOND));
        assert_eq!((early.as_mut().now_or_never(), late.as_mut().now_or_never()), (None, None));
        clock.jump_forward(60 * SECOND);
        assert_eq!((clock.sleepers(), clock.next_wake()), (2, Some(SECOND)));
        clock.advance(SECOND);
        assert_eq!((early.as_mut().now_or_never(), late.as_mut().now_or_never()), (Some(()), None));
        drop(late);
        assert_eq!(clock.sleepers(), 0);
    }

    #[test]
    fn a_sleeper_is_woken_and_not_only_found_ready() {
        let clock = ManualClock::new();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let sleeper = tokio::spawn(clock.sleep_until(SECOND));
            clock.until_asleep(1).await;
            clock.advance(SECOND);
            sleeper.await.unwrap();
        });
    }

    #[test]
    fn steps_stop_at_each_sleeper() {
        let clock = ManualClock::new();
        let mut sleeps = [3, 1].map(|n| clock.sleep_until(n * SECOND));
        for sleep in &mut sleeps {
            assert_eq!(sleep.as_mut().now_or_never(), None);
        }
        assert_eq!(clock.advance_to_next(10 * SECOND), SECOND);
        assert_eq!(clock.advance_to_next(SECOND), SECOND);
        assert_eq!(clock.advance_to_next(10 * SECOND), SECOND);
        assert_eq!(clock.advance_to_next(10 * SECOND), 10 * SECOND);
    }

    #[test]
    fn the_end_of_time_does_not_wrap() {
        let clock = ManualClock::new();
        clock.advance(Duration::MAX);
        clock.advance(Duration::MAX);
        assert_eq!(clock.monotonic(), Duration::MAX);
        assert!(clock.now() > START);
    }
}

//! How time passes for a store: by hand, or as it does for everybody.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use onlyonce::time::{Clock, SystemClock};

use crate::clock::ManualClock;

/// Lets time pass for the store under test.
#[async_trait]
pub trait Passage: fmt::Debug + Send + Sync + 'static {
    /// Returns once at least `span` has passed on the store's clock.
    async fn pass(&self, span: Duration);

    /// A span that is short to wait for, and long enough to be told from nothing.
    fn moment(&self) -> Duration;

    /// Sets the store's clock back, if that can be done; says whether it was.
    fn turn_back(&self, span: Duration) -> bool;

    /// Whether exactly the asked time passes, and none otherwise.
    fn is_exact(&self) -> bool;
}

/// For a store that was given this clock: time stands still but for what is asked.
#[async_trait]
impl Passage for ManualClock {
    async fn pass(&self, span: Duration) {
        self.advance(span);
    }

    fn moment(&self) -> Duration {
        Duration::from_secs(60)
    }

    fn turn_back(&self, span: Duration) -> bool {
        self.jump_back(span);
        true
    }

    fn is_exact(&self) -> bool {
        true
    }
}

/// For a store with a clock of its own: really waits, and a little longer than asked.
#[derive(Debug, Default)]
pub struct RealTime {
    clock: SystemClock,
}

impl RealTime {
    /// Two clocks on one network agree about how long a wait was to better than this.
    const MARGIN: Duration = Duration::from_millis(50);
}

#[async_trait]
impl Passage for RealTime {
    async fn pass(&self, span: Duration) {
        self.clock.sleep_until(self.clock.monotonic() + span + Self::MARGIN).await;
    }

    fn moment(&self) -> Duration {
        Duration::from_millis(300)
    }

    fn turn_back(&self, _: Duration) -> bool {
        false
    }

    fn is_exact(&self) -> bool {
        false
    }
}

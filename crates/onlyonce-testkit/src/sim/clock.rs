//! Clocks of hosts and of the server, all driven by the one virtual time.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use onlyonce::time::{BoxFuture, Clock, Timestamp};

use super::world::World;
use crate::clock::START;

/// A wall clock: how far it is off, and how fast it runs.
#[derive(Debug, Default)]
pub(super) struct Wall {
    off_ms: AtomicI64,
    /// Parts per million it runs too fast.
    fast_ppm: AtomicI64,
}

impl Wall {
    pub(super) fn new(off_ms: i64, fast_ppm: i64) -> Self {
        Self { off_ms: AtomicI64::new(off_ms), fast_ppm: AtomicI64::new(fast_ppm) }
    }

    pub(super) fn jump(&self, ms: i64) {
        self.off_ms.fetch_add(ms, Ordering::Relaxed);
    }

    fn at(&self, now_us: u64) -> Timestamp {
        let us = i64::try_from(now_us).unwrap_or(i64::MAX);
        let drift_us = us / 1000 * self.fast_ppm.load(Ordering::Relaxed) / 1000;
        let ms = (us + drift_us).div_euclid(1000) + self.off_ms.load(Ordering::Relaxed);
        Timestamp::from_millis(START.as_millis() + ms)
    }
}

/// The server's clock.
#[derive(Clone, Debug)]
pub(super) struct ServerClock {
    now_us: Arc<AtomicU64>,
    wall: Arc<Wall>,
}

impl ServerClock {
    pub(super) fn new(now_us: Arc<AtomicU64>, wall: Wall) -> Self {
        Self { now_us, wall: Arc::new(wall) }
    }

    pub(super) fn jump(&self, ms: i64) {
        self.wall.jump(ms);
    }
}

impl Clock for ServerClock {
    fn now(&self) -> Timestamp {
        self.wall.at(self.now_us.load(Ordering::Relaxed))
    }

    fn monotonic(&self) -> Duration {
        Duration::from_micros(self.now_us.load(Ordering::Relaxed))
    }

    /// Nothing on the server sleeps.
    fn sleep_until(&self, _: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

/// The clocks of one host.
pub(super) struct HostClock {
    pub(super) world: Arc<World>,
    pub(super) wall: Arc<Wall>,
    /// How much the monotonic clock is behind: it stood still while the host was paused. Only a broken one is.
    pub(super) behind_us: Arc<AtomicU64>,
}

impl fmt::Debug for HostClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostClock").finish_non_exhaustive()
    }
}

impl Clock for HostClock {
    fn now(&self) -> Timestamp {
        self.wall.at(self.world.now_us())
    }

    fn monotonic(&self) -> Duration {
        Duration::from_micros(self.world.now_us().saturating_sub(self.behind_us.load(Ordering::Relaxed)))
    }

    fn sleep_until(&self, until: Duration) -> BoxFuture<'static, ()> {
        let until_us = u64::try_from(until.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX / 2);
        let until_us = until_us.saturating_add(self.behind_us.load(Ordering::Relaxed));
        Box::pin(Sleep { world: self.world.clone(), until_us, timer: None })
    }
}

/// Resolves at a moment of the virtual time.
pub(super) struct Sleep {
    world: Arc<World>,
    until_us: u64,
    timer: Option<(u32, u32)>,
}

impl Sleep {
    pub(super) fn for_us(world: &Arc<World>, us: u64) -> Self {
        Self { world: world.clone(), until_us: world.now_us() + us, timer: None }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.world.now_us() >= self.until_us {
            return Poll::Ready(());
        }
        match self.timer {
            Some(timer) => self.world.renew_timer(timer, cx.waker()),
            None => self.timer = Some(self.world.timer(self.until_us, cx.waker().clone())),
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(timer) = self.timer {
            self.world.cancel_timer(timer);
        }
    }
}

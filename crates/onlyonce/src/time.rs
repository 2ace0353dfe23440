//! Time comes in through one door, so that a test can close it.
//!
//! Nothing else in the workspace asks the system for the time or sleeps (`clippy.toml` bans it). The
//! [`Clock`] has two faces: the wall clock, for moments that are shown to people and shared between
//! machines, and a monotonic one, for leases: a wall clock that jumps must never lengthen a lease.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::background::Background;

/// A future in a box, as the object-safe traits hand it out.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A moment, in milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The moment so many milliseconds after the Unix epoch.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// The moment `duration` later; stops at the end of time instead of wrapping.
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(millis(duration)))
    }

    /// How long after `earlier` this moment is; zero when it is not after.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// Whole milliseconds, in 64-bit steps: this is asked for on every read and write.
fn millis(duration: Duration) -> i64 {
    let seconds = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    seconds.saturating_mul(1000).saturating_add(i64::from(duration.subsec_millis()))
}

/// RFC 3339 in UTC, with milliseconds: `2026-11-15T09:30:00.250Z`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, ms) = (self.0.div_euclid(86_400_000), self.0.rem_euclid(86_400_000));
        let (year, month, day) = civil(days);
        let (s, ms) = (ms / 1000, ms % 1000);
        write!(f, "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{ms:03}Z", s / 3600, s / 60 % 60, s % 60)
    }
}

/// Days since 1970-01-01 as year, month, day (Howard Hinnant's `civil_from_days`).
fn civil(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (yoe + era * 400 + i64::from(month <= 2), month, doy - (153 * mp + 2) / 5 + 1)
}

/// Where the time comes from, and how to wait for it.
///
/// # Promise
/// [`monotonic`](Clock::monotonic) never goes backwards and is not moved by changes of the wall clock.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The wall clock.
    fn now(&self) -> Timestamp;
    /// Time passed since some fixed moment of this process.
    fn monotonic(&self) -> Duration;
    /// Resolves once [`monotonic`](Clock::monotonic) has reached `until`.
    fn sleep_until(&self, until: Duration) -> BoxFuture<'static, ()>;
}

/// Later than this is never: no process lives for a century, and an `Instant` cannot hold every duration.
const FAR: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// The system's clocks.
///
/// Sleeping uses a timer thread of our own, so it works on any executor and on none.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// A clock that starts now.
    #[expect(clippy::disallowed_methods, reason = "this is the door time comes through")]
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the door time comes through")]
    fn now(&self) -> Timestamp {
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(after) => Timestamp(millis(after)),
            Err(before) => Timestamp(-millis(before.duration())),
        }
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }

    fn sleep_until(&self, until: Duration) -> BoxFuture<'static, ()> {
        if until > FAR {
            return Box::pin(std::future::pending());
        }
        Background::get().sleep_until(self.start + until)
    }
}

/// Reads a duration as people type it: `90s`, `10m`, `24h`, `7d`, `250ms`, `1h30m`.
///
/// # Errors
/// Anything else, with the accepted forms in the message. Zero is read as zero; whether zero makes sense
/// is for the caller to say.
pub fn parse_duration(text: &str) -> Result<Duration, crate::Error> {
    let wrong = || crate::Error::BadDuration { text: text.to_owned() };
    let mut total = Duration::ZERO;
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number: u64 = rest[..digits].parse().map_err(|_| wrong())?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let unit_ms: u64 = match &rest[..letters] {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(wrong()),
        };
        rest = &rest[letters..];
        let part = number.checked_mul(unit_ms).map(Duration::from_millis).ok_or_else(wrong)?;
        total = total.checked_add(part).ok_or_else(wrong)?;
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_read_as_rfc_3339() {
        assert_eq!(Timestamp::from_millis(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Timestamp::from_millis(1_709_210_096_250).to_string(), "2024-02-29T12:34:56.250Z");
        assert_eq!(Timestamp::from_millis(-1).to_string(), "1969-12-31T23:59:59.999Z");
    }

    #[test]
    fn durations_as_people_type_them() {
        assert_eq!(parse_duration("90s").unwrap(), Duration::from_secs(90));
        assert_eq!(parse_duration("1h30m").unwrap(), Duration::from_secs(5400));
        assert_eq!(parse_duration("250ms").unwrap(), Duration::from_millis(250));
        assert_eq!(parse_duration("7d").unwrap(), Duration::from_secs(604_800));
        for bad in ["", "10", "m", "-5s", "5 s", "1.5h", "5w", "99999999999999999999s", "é"] {
            assert!(parse_duration(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_moment_never_wraps() {
        let late = Timestamp::from_millis(i64::MAX - 1);
        assert_eq!(late.plus(Duration::MAX), Timestamp::from_millis(i64::MAX));
        assert_eq!(Timestamp::from_millis(5).since(late), Duration::ZERO);
    }
}

//! One list of named scenarios of what the engine does, played on every store.
//!
//! A scenario knows the public API only. Several engines on one store stand for several processes; each has a
//! [`Wire`] to the store that can be cut, and a clock that moves when told. [`scenarios!`](crate::scenarios!)
//! makes a `#[test]` of each scenario for a store.

mod acts;
mod list;
mod stage;
mod wire;

mod batches;
mod calls;
mod counting;
mod crashes;
mod duplicates;
mod effects;
mod failures;
mod fencing;
mod flights;
mod foreign;
mod heartbeats;
mod inputs;
mod keeping;
mod open_closed;
mod processing;
mod results;
mod transactions;
mod undoing;
mod unsure;
mod verdicts;

use std::time::Duration;

use futures_util::future::{Either, LocalBoxFuture, select};
use onlyonce::time::{Clock, SystemClock};
use tokio::runtime::Builder;

pub use acts::{Oracle, Outcome, Scene, Tally, Trouble, Underway, happened, refusal, word};
pub use list::scenarios;
pub use stage::{KEEP, LEASE, OpenStore, Stage, Worker, key, policy};
pub use wire::{Ask, Fault, Wire};

/// Longer than any scenario takes on a slow disk; a hang is reported instead of waited for.
const LIMIT: Duration = Duration::from_secs(150);

/// One thing the engine does.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// What it does, as the name of a test.
    pub name: &'static str,
    /// Plays it.
    pub run: fn(Stage) -> LocalBoxFuture<'static, Scene>,
}

/// Makes a module with one `#[test]` per scenario for a store.
///
/// The expression gives a fresh [`Stage`]; it is evaluated for every test.
///
/// # Example
/// ```
/// use std::sync::Arc;
/// use onlyonce::store::MemoryStore;
/// use onlyonce_testkit::{clock::ManualClock, scenarios::Stage};
///
/// fn memory() -> Stage {
///     let clock = ManualClock::new();
///     let store = Arc::new(MemoryStore::with_clock(Arc::new(clock.clone())));
///     Stage::new(clock, move || store.clone())
/// }
/// onlyonce_testkit::scenarios!(memory, memory());
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! scenarios {
    ($name:ident, $factory:expr) => {
        mod $name {
            use super::*;

            fn __fresh_stage() -> $crate::scenarios::Stage {
                $factory
            }

            $crate::each_scenario!([$crate::__stamp_scenario]);
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __stamp_scenario {
    ($($module:ident: [$($name:ident),+ $(,)?];)+) => {
        $($(
            #[test]
            fn $name() {
                $crate::scenarios::run_test(stringify!($name), __fresh_stage());
            }
        )+)+
    };
}

/// Plays one scenario as a test.
///
/// # Panics
/// When the scenario fails, or hangs.
#[doc(hidden)]
#[expect(clippy::panic, reason = "a test fails by panicking")]
pub fn run_test(name: &str, stage: Stage) {
    let Some(scenario) = scenarios().iter().find(|scenario| scenario.name == name) else {
        panic!("there is no scenario named {name}")
    };
    play((scenario.run)(stage)).unwrap_or_else(|error| panic!("{name}: {error}"));
}

/// Plays a scenario of one's own.
///
/// # Errors
/// The scenario's.
///
/// # Panics
/// When it hangs, or there is no runtime to be had.
#[expect(clippy::panic, reason = "a test fails by panicking")]
pub fn play(scene: impl Future<Output = Scene>) -> Scene {
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => panic!("no runtime: {error}"),
    };
    runtime.block_on(async {
        match select(Box::pin(scene), SystemClock::new().sleep_until(LIMIT)).await {
            Either::Left((ended, _)) => ended,
            Either::Right(_) => panic!("it has not come to its end within {LIMIT:?}"),
        }
    })
}

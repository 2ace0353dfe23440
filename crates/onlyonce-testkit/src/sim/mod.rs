//! The simulator: one seed, one thread, virtual time, and everything that can go wrong.
//!
//! Runs the real engine over the real memory store. Between them is a network that delays, loses and reorders,
//! around them are hosts that crash at any await, pause past their leases and wake again, clocks that jump,
//! and people who sweep, forget and resolve. After every step a judge that shares no code with the engine
//! looks whether a promise was broken. The same seed goes the same way, on every machine.
//!
//! ```text
//!   hosts.rs      engine ── link.rs ──▶ server.rs (the memory store) ──▶ oracle/records.rs
//!   body.rs         │ bodies, effects, undos, probes ─────────────────▶ oracle/bodies.rs
//!   run.rs          │ answers ────────────────────────────────────────▶ oracle/calls.rs
//!   tasks.rs      who runs next; world.rs: what happens next; scenario.rs: what the seed stands for
//! ```
//!
//! A judge that never finds anything proves nothing: [`Mutant`]s are deliberate bugs that must be caught, and
//! [`Sometimes`] counts what must have been seen.

mod bend;
mod body;
mod clock;
mod finale;
mod hosts;
mod link;
mod mutants;
mod oracle;
mod run;
mod scenario;
mod server;
mod sometimes;
mod tasks;
mod trace;
mod world;

pub use mutants::Mutant;
pub use oracle::{Rule, Violation};
pub use sometimes::{Counts, Sometimes};

/// How to run a schedule.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// With this bug.
    pub mutant: Option<Mutant>,
    /// With its story in words.
    pub trace: bool,
}

impl Options {
    /// With this bug.
    #[must_use]
    pub fn mutant(mut self, mutant: Mutant) -> Self {
        self.mutant = Some(mutant);
        self
    }

    /// With its story in words.
    #[must_use]
    pub fn trace(mut self) -> Self {
        self.trace = true;
        self
    }
}

/// What a schedule came to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// Its seed.
    pub seed: u64,
    /// The first broken rule.
    pub violation: Option<Violation>,
    /// How many polls and events there were.
    pub steps: u64,
    /// Stands for the way it went.
    pub hash: u64,
    /// What was seen.
    pub counts: Counts,
    /// Its story; empty unless it was asked for.
    pub trace: String,
}

/// Runs schedules, one after the other.
#[derive(Debug)]
pub struct Simulator {
    wakers: tasks::Wakers,
}

impl Simulator {
    /// A simulator.
    pub fn new() -> Self {
        Self { wakers: tasks::Wakers::new() }
    }

    /// Runs the schedule of this seed.
    pub fn run(&self, seed: u64, options: &Options) -> Report {
        run::Run::new(&self.wakers, seed, options).report(seed)
    }
}

impl Default for Simulator {
    fn default() -> Self {
        Self::new()
    }
}

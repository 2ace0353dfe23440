//! The judge: watches what the store takes, what bodies do and what calls are told.
//!
//! It shares no code with the engine's rules. What it knows of a key it has from the commits the store took, in
//! the order in which they took effect; what it knows of the outside world it has from the outside world.

mod bodies;
mod calls;
mod leases;
mod records;
mod sink;

use onlyonce::engine::Lease;
use onlyonce::engine::rules::State;
use onlyonce::store::Holder;
use onlyonce::time::Timestamp;
use onlyonce::{Fingerprint, engine::EffectState};

pub(super) use bodies::{Begins, Running};
pub(super) use calls::{Answer, CallFacts, CrashPlan};
pub(super) use sink::Refused;

use super::link::Fate;
use super::sometimes::{Counts, Sometimes};
use super::world::{World, lock};
use bodies::Run;
use calls::Call;
use sink::Sink;

/// How long a host that is awake may take to notice that a lease is over.
const NOTICE_US: u64 = 2_000;

/// What must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// At any moment at most one live lease exists for a key.
    OneWinner,
    /// Nobody completes, fails, extends or releases what another one holds.
    Fencing,
    /// A later lease has a higher fence.
    FenceRises,
    /// Once recorded, an outcome stays, and everybody sees the same.
    OneOutcome,
    /// What becomes of a crash is what the policy says.
    OnCrash,
    /// A key whose worker died says so.
    NeverSilent,
    /// What was acknowledged stays.
    NothingLost,
    /// An effect happens once, where the outside takes its key; what failed is taken back.
    EffectsOnce,
    /// A holder knows that its lease is over before somebody else has it.
    ToldInTime,
    /// Everything comes to an end.
    Ends,
    /// The engine does not panic.
    NoPanic,
}

impl Rule {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OneWinner => "one-winner",
            Self::Fencing => "fencing",
            Self::FenceRises => "fence-rises",
            Self::OneOutcome => "one-outcome",
            Self::OnCrash => "on-crash",
            Self::NeverSilent => "never-silent",
            Self::NothingLost => "nothing-lost",
            Self::EffectsOnce => "effects-once",
            Self::ToldInTime => "told-in-time",
            Self::Ends => "ends",
            Self::NoPanic => "no-panic",
        }
    }
}

/// A rule that was broken, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// Which rule.
    pub rule: Rule,
    /// What happened.
    pub what: String,
}

/// A request that takes effect.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived {
    pub(super) now_us: u64,
    pub(super) at: Timestamp,
    pub(super) host: usize,
    pub(super) actor: u32,
    pub(super) fate: Fate,
}

/// What is recorded under a key, as far as the commits say.
#[derive(Clone, Debug)]
struct Known {
    version: u64,
    state: State,
    holder: Option<Holder>,
    attempts: u32,
    due: Option<Timestamp>,
    expires: Option<Timestamp>,
    fingerprint: Option<Fingerprint>,
    effects: Vec<Trace>,
}

/// What a record says of one effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Trace {
    name: u8,
    state: EffectState,
    value: Option<u64>,
    undone: u32,
}

/// One lease of a key.
#[derive(Clone, Debug)]
struct Grant {
    fence: u64,
    holder: Holder,
    actor: u32,
    /// The reply to the claim was lost.
    unanswered: bool,
    must_probe: bool,
    probed: Option<Found>,
    begun: bool,
    beat_failed: bool,
    /// Of the key, when the lease was given.
    generation: u32,
    /// Effects whose end was unknown already when the lease was given.
    unsure: Vec<u8>,
}

/// What a probe said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Happened,
    DidNot,
    CannotTell,
}

/// What was recorded, for as long as it was there.
#[derive(Clone, Debug)]
struct Span {
    /// The run whose outcome it is, if it is one with a value.
    run: Option<u64>,
    state: State,
    to_us: u64,
    expires: Option<Timestamp>,
    fingerprint: Option<Fingerprint>,
    unanswered: bool,
    host: usize,
}

/// What is known of one key.
#[derive(Debug, Default)]
struct KeyLog {
    there: Option<Known>,
    grants: Vec<Grant>,
    /// What was there, one after the other.
    spans: Vec<Span>,
    highest_fence: u64,
    /// Rises when the key begins anew: forgotten, expired, or swept.
    generation: u32,
    deleted: bool,
}

/// The judge of one schedule.
#[derive(Debug)]
pub(super) struct Oracle {
    keys: Vec<KeyLog>,
    pub(super) calls: Vec<Call>,
    pub(super) runs: Vec<Run>,
    sink: Sink,
    /// The key of each effect: which key, which effect, how often taken back.
    effect_keys: Vec<((usize, u8, u32), String)>,
    latest: Timestamp,
    /// The server's clock was set: leases may be shorter than their holders think.
    pub(super) clock_was_set: bool,
    pub(super) clock_went_back: bool,
    pub(super) counts: Counts,
    pub(super) violation: Option<Violation>,
}

impl Oracle {
    pub(super) fn new(keys: usize, sink_takes_keys: bool, sink_takes_fences: bool) -> Self {
        Self {
            keys: (0..keys).map(|_| KeyLog::default()).collect(),
            calls: Vec::new(),
            runs: Vec::new(),
            sink: Sink::new(sink_takes_keys, sink_takes_fences),
            effect_keys: Vec::new(),
            latest: Timestamp::default(),
            clock_was_set: false,
            clock_went_back: false,
            counts: Counts::default(),
            violation: None,
        }
    }

    /// The first broken rule counts; what follows from it does not.
    pub(super) fn broken(&mut self, rule: Rule, what: impl FnOnce() -> String) {
        if self.violation.is_none() {
            self.violation = Some(Violation { rule, what: what() });
        }
    }

    /// The server has seen this moment: what was due by then is over, wherever its clock goes afterwards.
    pub(super) fn seen(&mut self, at: Timestamp) {
        self.latest = self.latest.max(at);
    }

    pub(super) fn sometimes(&mut self, what: Sometimes) {
        self.counts.count(what);
    }

    /// Lets go of the leases it watches: they hold their engines, and those hold the world.
    pub(super) fn let_go(&mut self) -> Vec<Lease> {
        self.runs.iter_mut().filter_map(|run| run.lease.take()).collect()
    }
}

impl World {
    pub(super) fn sometimes(&self, what: Sometimes) {
        lock(&self.oracle).sometimes(what);
    }

    pub(super) fn broken(&self, rule: Rule, what: impl FnOnce() -> String) {
        lock(&self.oracle).broken(rule, what);
    }
}

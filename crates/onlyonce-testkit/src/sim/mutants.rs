//! Deliberate bugs: each must be caught, or the checkers are not worth much.

/// A deliberate bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mutant {
    /// The store gives versions anew from 1 after a delete.
    VersionsRepeat,
    /// The store gives milliseconds of its wall clock as versions.
    ClockVersions,
    /// The store takes a settlement whatever it expects.
    BlindSettle,
    /// The store checks, and writes a little later.
    CheckThenWrite,
    /// The store acknowledges a write now and then, and loses it.
    LosesWrites,
    /// The store acknowledges heartbeats and does not store them.
    LosesHeartbeats,
    /// The store's conflicts do not show what is there.
    HidesConflicts,
    /// The store forgets outcomes before their time.
    ExpiresEarly,
    /// The store gives outcomes back after their time.
    ExpiresLate,
    /// The store says that leases end earlier than they do.
    DueEarly,
    /// A worker whose settlement is refused tries again over what is there.
    BlindRetry,
    /// A worker does not record that an effect begins.
    SkipsStarted,
    /// A worker that loses the race for a key runs all the same.
    RunsAnyway,
    /// A worker takes a lost reply for a yes.
    AssumesStored,
    /// A worker believes its heartbeats without sending them.
    FakesHeartbeats,
    /// A worker's monotonic clock stands still while it is paused.
    ClockStops,
    /// A sweep deletes whatever is there by then.
    SweepsBlindly,
    /// A dropped body frees its key.
    FreesOnDrop,
    /// Records do not keep the fingerprint of their input.
    ForgetsInput,
    /// A claim drops the trace of effects that it finds.
    ForgetsEffects,
}

impl Mutant {
    /// Every one there is.
    pub const ALL: [Self; 20] = [
        Self::VersionsRepeat,
        Self::ClockVersions,
        Self::BlindSettle,
        Self::CheckThenWrite,
        Self::LosesWrites,
        Self::LosesHeartbeats,
        Self::HidesConflicts,
        Self::ExpiresEarly,
        Self::ExpiresLate,
        Self::DueEarly,
        Self::BlindRetry,
        Self::SkipsStarted,
        Self::RunsAnyway,
        Self::AssumesStored,
        Self::FakesHeartbeats,
        Self::ClockStops,
        Self::SweepsBlindly,
        Self::FreesOnDrop,
        Self::ForgetsInput,
        Self::ForgetsEffects,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::VersionsRepeat => "versions-repeat",
            Self::ClockVersions => "clock-versions",
            Self::BlindSettle => "blind-settle",
            Self::CheckThenWrite => "check-then-write",
            Self::LosesWrites => "loses-writes",
            Self::LosesHeartbeats => "loses-heartbeats",
            Self::HidesConflicts => "hides-conflicts",
            Self::ExpiresEarly => "expires-early",
            Self::ExpiresLate => "expires-late",
            Self::DueEarly => "due-early",
            Self::BlindRetry => "blind-retry",
            Self::SkipsStarted => "skips-started",
            Self::RunsAnyway => "runs-anyway",
            Self::AssumesStored => "assumes-stored",
            Self::FakesHeartbeats => "fakes-heartbeats",
            Self::ClockStops => "clock-stops",
            Self::SweepsBlindly => "sweeps-blindly",
            Self::FreesOnDrop => "frees-on-drop",
            Self::ForgetsInput => "forgets-input",
            Self::ForgetsEffects => "forgets-effects",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mutant| mutant.name() == name)
    }
}

//! What must have happened sometimes: a run that never saw a takeover proves nothing about takeovers.

macro_rules! sometimes {
    ($($(#[doc = $text:literal])* $name:ident,)*) => {
        /// Something that must have happened at least once in a long run.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Sometimes {
            $(#[doc = $($text)*] $name,)*
        }

        impl Sometimes {
            /// Every one there is.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// What it is, in words.
            pub const fn text(self) -> &'static str {
                match self { $(Self::$name => concat!($($text)*),)* }
            }
        }
    };
}

sometimes! {
    /// a claim over a lease that ran out
    Takeover,
    /// a settlement by a worker that had lost its key, refused
    LateSettlementRefused,
    /// a heartbeat of a worker that had lost its key, refused
    LateHeartbeatRefused,
    /// a body that ran on a claim whose reply was lost
    ClaimRecognised,
    /// a value given by a call whose completion's reply was lost
    CompletionRecognised,
    /// a write that arrived twice
    AppliedTwice,
    /// a write that arrived late, over a later lease, refused
    LateWriteRefused,
    /// a write that arrived late, and was taken
    LateWriteTaken,
    /// a claim that arrived late, when nobody waited for it any more
    GhostClaim,
    /// a claim given back, because nobody waited for it any more
    GivenBack,
    /// a wait that ended with another host's value
    WaitedForValue,
    /// a wait that ended with a takeover
    WaitedThenTookOver,
    /// a value shared by calls of one host
    SharedFlight,
    /// a key parked by a call that found a crash
    Parked,
    /// a key parked by the holder of its lease
    ParkedByHolder,
    /// a probe that said: it happened
    ProbeHappened,
    /// a probe that said: it did not
    ProbeDidNot,
    /// a probe that said: cannot tell
    ProbeCannotTell,
    /// an undo that took an effect back
    UndoRan,
    /// an undo that failed
    UndoFailed,
    /// an effect given back from the record
    EffectReplayed,
    /// a retry that found an effect begun
    EffectBegunAgain,
    /// an effect that the outside knew by its key
    EffectKeyKnown,
    /// an effect refused because of its fence
    FenceRefused,
    /// a call refused because its input had changed
    InputChanged,
    /// an entry that a sweep deleted
    Swept,
    /// a key forgotten while a body ran
    ForgottenWhileRunning,
    /// a key resolved by hand
    Resolved,
    /// a heartbeat that a deaf line swallowed
    HeartbeatLost,
    /// a lease extended after a heartbeat had failed
    HeartbeatRecovered,
    /// a body cancelled because its lease was lost
    BodyCancelled,
    /// a body told that its lease was lost
    BodyTold,
    /// a higher fence after the entry had been deleted
    FenceRoseOverDelete,
    /// a dropped body that ended its lease early
    DroppedBody,
    /// a body that failed
    BodyFailed,
    /// a body that panicked
    BodyPanicked,
    /// a failure given back as the outcome
    FailureReplayed,
    /// a body that ran again after a failure
    RanAfterFailure,
    /// a crash while a body ran
    CrashInBody,
    /// a crash while an effect ran
    CrashInEffect,
    /// a pause longer than the lease
    PausedPastLease,
    /// an outcome that expired, and the key ran again
    RanAfterExpiry,
    /// an outcome that could not be recorded
    NotRecorded,
    /// a call that ran unguarded
    FailedOpen,
    /// a key that had run out of attempts
    OutOfAttempts,
    /// a completion written by the body itself
    OwnTransaction,
    /// a lease that had run out of its total time
    LeaseSpent,
}

/// How often each of them happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts([u64; Sometimes::ALL.len()]);

impl Default for Counts {
    fn default() -> Self {
        Self([0; Sometimes::ALL.len()])
    }
}

impl Counts {
    pub(super) fn count(&mut self, what: Sometimes) {
        self.0[what as usize] += 1;
    }

    /// How often this happened.
    pub fn of(&self, what: Sometimes) -> u64 {
        self.0[what as usize]
    }

    /// Adds those of another run.
    pub fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine += theirs);
    }

    /// What never happened.
    pub fn missing(&self) -> Vec<Sometimes> {
        Sometimes::ALL.iter().copied().filter(|what| self.of(*what) == 0).collect()
    }
}

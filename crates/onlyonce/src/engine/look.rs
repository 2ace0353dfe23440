//! A look before the claim, where a look costs next to nothing.
//!
//! Most calls for a settled key want its value and nothing else. Where the store is in this very process, a glance
//! comes first, and a value that stands there is given back at once: no holder, no flight, no claim. Whatever
//! else is there goes the long way, which decides anew.

use super::lease::crash_of;
use super::record::plain_value;
use super::rules::{self, Arrival, Ask, Sight, State};
use crate::key::Fingerprint;
use crate::policy::Policy;
use crate::store::Glimpse;

/// The JSON of the value that is seen, if it is to be given back and there is nothing else to it.
#[inline]
pub(crate) fn value_to_replay<'a>(
    seen: &'a Glimpse,
    fingerprint: Option<Fingerprint>,
    policy: &Policy,
) -> Option<&'a [u8]> {
    let (recorded, value) = plain_value(&seen.body)?;
    if seen.status != State::Completed.status() {
        return None;
    }
    let sight = Sight {
        state: State::Completed,
        lease_left: std::time::Duration::ZERO,
        fingerprint: recorded,
        attempts: seen.attempts,
        has_effects: false,
    };
    let ask = Ask {
        fingerprint,
        on_duplicate: policy.on_duplicate,
        on_crash: crash_of(&policy.on_crash),
        max_attempts: policy.max_attempts,
    };
    (rules::arrive(Some(&sight), &ask) == Arrival::Replay).then_some(value)
}

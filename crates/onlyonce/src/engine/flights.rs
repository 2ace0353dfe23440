//! One flight per key in this process: concurrent calls meet here before they reach the store.
//!
//! The first call for a key leads; later ones follow, and share what the leader sees and what becomes of it,
//! without a trip to the store of their own. Calls for other keys never meet.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::record::Sighting;
use super::rules::Sight;
use crate::key::Key;
use crate::store::Holder;

const STRIPES: usize = 256;

/// What followers are told.
#[derive(Clone, Debug)]
pub(crate) enum Phase {
    /// The leader is asking the store.
    Asking,
    /// The leader runs the body.
    Running(Arc<(Sight, Holder)>),
    /// The leader sees this, and waits.
    Seen(Arc<Sighting>),
    /// The flight is over; this is what it left behind, if that is known.
    Ended(Option<Arc<Sighting>>),
}

/// The flights under way.
#[derive(Debug)]
pub(crate) struct Flights {
    stripes: Box<[Mutex<Vec<Flight>>]>,
}

#[derive(Debug)]
struct Flight {
    key: Key,
    phase: Phase,
    /// Only there once somebody follows.
    followers: Option<watch::Sender<Phase>>,
}

/// How a call takes part in a flight.
pub(crate) enum Join<'a> {
    /// It is the first.
    Lead(Lead<'a>),
    /// Another one leads.
    Follow(watch::Receiver<Phase>),
}

impl Flights {
    pub(crate) fn new() -> Self {
        Self { stripes: (0..STRIPES).map(|_| Mutex::default()).collect() }
    }

    fn stripe(&self, key: &Key) -> MutexGuard<'_, Vec<Flight>> {
        #[expect(clippy::cast_possible_truncation, reason = "masked to 256")]
        let index = key.hash64() as usize % STRIPES;
        self.stripes[index].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leads a new flight, or follows the one under way.
    pub(crate) fn join(&self, key: &Key) -> Join<'_> {
        let mut stripe = self.stripe(key);
        match stripe.iter_mut().find(|flight| flight.key == *key) {
            Some(flight) => {
                let followers =
                    flight.followers.get_or_insert_with(|| watch::Sender::new(flight.phase.clone()));
                Join::Follow(followers.subscribe())
            }
            None => {
                stripe.push(Flight { key: key.clone(), phase: Phase::Asking, followers: None });
                Join::Lead(Lead { flights: self, key: key.clone(), over: false })
            }
        }
    }

    fn publish(&self, key: &Key, phase: Phase) {
        let mut stripe = self.stripe(key);
        if let Some(flight) = stripe.iter_mut().find(|flight| flight.key == *key) {
            if let Some(followers) = &flight.followers {
                followers.send_replace(phase.clone());
            }
            flight.phase = phase;
        }
    }

    fn end(&self, key: &Key, left: impl FnOnce() -> Option<Sighting>) {
        let mut stripe = self.stripe(key);
        if let Some(at) = stripe.iter().position(|flight| flight.key == *key) {
            let flight = stripe.swap_remove(at);
            drop(stripe);
            if let Some(followers) = flight.followers {
                followers.send_replace(Phase::Ended(left().map(Arc::new)));
            }
        }
    }

    /// Tells followers that the body runs.
    pub(crate) fn running(&self, key: &Key, sight: Sight, holder: Holder) {
        self.publish(key, Phase::Running(Arc::new((sight, holder))));
    }

    /// Ends a flight whose lead was given away with [`Lead::keep_open`].
    pub(crate) fn close(&self, key: &Key, left: impl FnOnce() -> Option<Sighting>) {
        self.end(key, left);
    }
}

/// The lead of one flight; ends it when dropped.
pub(crate) struct Lead<'a> {
    flights: &'a Flights,
    key: Key,
    over: bool,
}

impl Lead<'_> {
    /// Tells followers what the leader sees while it waits.
    pub(crate) fn see(&self, sighting: &Sighting) {
        self.flights.publish(&self.key, Phase::Seen(Arc::new(sighting.clone())));
    }

    /// Ends the flight and leaves this behind.
    pub(crate) fn end(mut self, left: &Sighting) {
        self.over = true;
        self.flights.end(&self.key, || Some(left.clone()));
    }

    /// Leaves the flight under way: whoever holds the lease ends it.
    pub(crate) fn keep_open(mut self) {
        self.over = true;
    }
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        if !self.over {
            self.flights.end(&self.key, || None);
        }
    }
}

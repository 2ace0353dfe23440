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
    stripes: Box<[Mutex<Stripe>]>,
}

#[derive(Debug, Default)]
struct Stripe {
    flights: Vec<Flight>,
    next: u64,
}

/// Which of a key's flights: one that is over must never end its successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number(u64);

#[derive(Debug)]
struct Flight {
    key: Key,
    number: Number,
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

    fn stripe(&self, key: &Key) -> MutexGuard<'_, Stripe> {
        #[expect(clippy::cast_possible_truncation, reason = "masked to 256")]
        let index = key.hash64() as usize % STRIPES;
        self.stripes[index].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leads a new flight, or follows the one under way.
    pub(crate) fn join(&self, key: &Key) -> Join<'_> {
        let mut stripe = self.stripe(key);
        match stripe.flights.iter_mut().find(|flight| flight.key == *key) {
            Some(flight) => {
                let followers =
                    flight.followers.get_or_insert_with(|| watch::Sender::new(flight.phase.clone()));
                Join::Follow(followers.subscribe())
            }
            None => {
                stripe.next += 1;
                let number = Number(stripe.next);
                let flight = Flight { key: key.clone(), number, phase: Phase::Asking, followers: None };
                stripe.flights.push(flight);
                Join::Lead(Lead { flights: self, key: key.clone(), number, over: false })
            }
        }
    }

    fn publish(&self, key: &Key, number: Number, phase: Phase) {
        let mut stripe = self.stripe(key);
        if let Some(flight) = stripe.flights.iter_mut().find(|flight| flight.is(key, number)) {
            if let Some(followers) = &flight.followers {
                followers.send_replace(phase.clone());
            }
            flight.phase = phase;
        }
    }

    /// Ends a flight and leaves this behind; nothing happens when it is over.
    pub(crate) fn end(&self, key: &Key, number: Number, left: impl FnOnce() -> Option<Sighting>) {
        let mut stripe = self.stripe(key);
        if let Some(at) = stripe.flights.iter().position(|flight| flight.is(key, number)) {
            let flight = stripe.flights.swap_remove(at);
            drop(stripe);
            if let Some(followers) = flight.followers {
                followers.send_replace(Phase::Ended(left().map(Arc::new)));
            }
        }
    }
}

impl Flight {
    fn is(&self, key: &Key, number: Number) -> bool {
        self.number == number && self.key == *key
    }
}

/// The lead of one flight; ends it when dropped.
pub(crate) struct Lead<'a> {
    flights: &'a Flights,
    key: Key,
    number: Number,
    over: bool,
}

impl Lead<'_> {
    /// Tells followers what the leader sees while it waits.
    pub(crate) fn see(&self, sighting: &Sighting) {
        self.flights.publish(&self.key, self.number, Phase::Seen(Arc::new(sighting.clone())));
    }

    /// Ends the flight and leaves this behind.
    pub(crate) fn end(mut self, left: &Sighting) {
        self.over = true;
        self.flights.end(&self.key, self.number, || Some(left.clone()));
    }

    /// Tells followers that the body runs, and leaves the flight under way: whoever holds the lease ends it.
    pub(crate) fn running(mut self, sight: Sight, holder: Holder) -> Number {
        self.over = true;
        self.flights.publish(&self.key, self.number, Phase::Running(Arc::new((sight, holder))));
        self.number
    }
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        if !self.over {
            self.flights.end(&self.key, self.number, || None);
        }
    }
}

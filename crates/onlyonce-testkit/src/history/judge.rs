//! Looks for an order that explains a history.

use std::collections::HashSet;
use std::fmt;

use super::Event;
use super::model::{Operation, Reader, State};

/// A search that has looked at so many states gives up; none of ours comes near.
const MOST_STATES: usize = 3_000_000;

/// What is to be said of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// There is an order that explains it: these events, by their numbers; uncertain ones that never happened
    /// are left out.
    Linearizable(Vec<usize>),
    /// There is none.
    Impossible(Report),
    /// The search was too long.
    Undecided,
}

/// How far an explanation got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The longest row of operations that explains itself.
    pub explained: Vec<Event>,
    /// Those that may come next, none of which fits.
    pub stuck: Vec<Event>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.explained.len().saturating_sub(8);
        writeln!(f, "after {} operations that explain themselves, the last being", self.explained.len())?;
        for event in &self.explained[shown..] {
            writeln!(f, "  {event:?}")?;
        }
        writeln!(f, "none of these can be next:")?;
        for event in &self.stuck {
            writeln!(f, "  {event:?}")?;
        }
        Ok(())
    }
}

/// Says whether a history is linearizable.
pub fn judge(events: &[Event]) -> Judgement {
    let (operations, state) = Reader::read(events);
    let mut search = Search::new(&operations);
    match search.run(state) {
        Some(true) => Judgement::Linearizable(search.order.iter().map(|&n| operations[n].event).collect()),
        Some(false) => Judgement::Impossible(search.report(events)),
        None => Judgement::Undecided,
    }
}

/// Which operations have their place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Placed(Box<[u64]>);

impl Placed {
    fn none(of: usize) -> Self {
        Self(vec![0; of.div_ceil(64)].into())
    }

    fn has(&self, n: usize) -> bool {
        self.0[n / 64] & (1 << (n % 64)) != 0
    }

    fn toggle(&mut self, n: usize) {
        self.0[n / 64] ^= 1 << (n % 64);
    }
}

/// A place where another operation could have come next.
struct Fork {
    state: State,
    candidates: Vec<usize>,
    tried: usize,
}

struct Search<'a> {
    operations: &'a [Operation],
    placed: Placed,
    order: Vec<usize>,
    longest: Vec<usize>,
    stuck: Vec<usize>,
    /// Those placed and the state they lead to: where this was seen before, it led nowhere.
    seen: HashSet<(Placed, State)>,
}

impl<'a> Search<'a> {
    fn new(operations: &'a [Operation]) -> Self {
        Self {
            operations,
            placed: Placed::none(operations.len()),
            order: Vec::new(),
            longest: Vec::new(),
            stuck: Vec::new(),
            seen: HashSet::new(),
        }
    }

    /// Those that may be next: called before any of the others was answered.
    fn candidates(&self) -> Vec<usize> {
        let open = || (0..self.operations.len()).filter(|&n| !self.placed.has(n));
        let first_answer = open().map(|n| self.operations[n].answered).min().unwrap_or(u64::MAX);
        open().filter(|&n| self.operations[n].called < first_answer).collect()
    }

    fn is_explained(&self) -> bool {
        (0..self.operations.len()).all(|n| self.placed.has(n) || self.operations[n].is_uncertain())
    }

    /// `None` when it gives up.
    fn run(&mut self, first: State) -> Option<bool> {
        let mut forks = vec![Fork { state: first, candidates: self.candidates(), tried: 0 }];
        while let Some(fork) = forks.last_mut() {
            if self.is_explained() {
                return Some(true);
            }
            if self.seen.len() > MOST_STATES {
                return None;
            }
            let Some(&next) = fork.candidates.get(fork.tried) else {
                self.remember_longest(&fork.candidates.clone());
                forks.pop();
                if let Some(last) = self.order.pop() {
                    self.placed.toggle(last);
                }
                continue;
            };
            fork.tried += 1;
            let Some(state) = fork.state.after(&self.operations[next]) else { continue };
            self.placed.toggle(next);
            if self.seen.insert((self.placed.clone(), state.clone())) {
                self.order.push(next);
                forks.push(Fork { state, candidates: self.candidates(), tried: 0 });
            } else {
                self.placed.toggle(next);
            }
        }
        Some(false)
    }

    fn remember_longest(&mut self, candidates: &[usize]) {
        if self.longest.len() < self.order.len() || self.stuck.is_empty() {
            self.longest.clone_from(&self.order);
            self.stuck = candidates.to_vec();
        }
    }

    fn report(&self, events: &[Event]) -> Report {
        let of =
            |numbers: &[usize]| numbers.iter().map(|&n| events[self.operations[n].event].clone()).collect();
        Report { explained: of(&self.longest), stuck: of(&self.stuck) }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use onlyonce::Key;
    use onlyonce::store::{Commit, Draft, Expect, HeaderDraft, MemoryStore, Status, Store, Version, Write};

    use super::super::{Action, Answer};
    use super::*;
    use crate::chance::SeededChance;

    /// Tries every order there is, and remembers nothing.
    fn explains(operations: &[Operation], placed: &mut Placed, state: &State) -> bool {
        let open: Vec<_> = (0..operations.len()).filter(|&n| !placed.has(n)).collect();
        if open.iter().all(|&n| operations[n].is_uncertain()) {
            return true;
        }
        open.iter().any(|&next| {
            let too_late = open.iter().any(|&n| operations[n].answered <= operations[next].called);
            let Some(state) = state.after(&operations[next]).filter(|_| !too_late) else { return false };
            placed.toggle(next);
            let explained = explains(operations, placed, &state);
            placed.toggle(next);
            explained
        })
    }

    fn random_write(chance: &SeededChance, key: Key, seen: Option<Version>, turn: usize) -> Write {
        let header = HeaderDraft::new(Status::new("s"));
        let draft = Draft { header: header.clone(), body: turn.to_string().into() };
        match (seen, chance.below(5)) {
            (None, 0) => Write::Check { key, expect: Expect::Absent },
            (None, _) => Write::Put { key, expect: Expect::Absent, draft },
            (Some(expect), 0) => Write::Delete { key, expect },
            (Some(expect), 1) => Write::Touch { key, expect, header },
            (Some(seen), 2) => Write::Check { key, expect: Expect::Version(seen) },
            (Some(seen), _) => Write::Put { key, expect: Expect::Version(seen), draft },
        }
    }

    /// A history that happened, one by one, but whose calls and answers overlap.
    fn random_history(chance: &SeededChance) -> Vec<Event> {
        let store = MemoryStore::new();
        let keys = ["a", "b"].map(|id| Key::new("n", id).unwrap());
        let mut events = Vec::new();
        for turn in 0..6 {
            let key = chance.pick(&keys).unwrap().clone();
            let there = store.read(std::slice::from_ref(&key)).now_or_never().unwrap().unwrap().remove(0);
            let (action, answer) = if chance.happens(400) {
                (Action::Read(key), Answer::Read(there))
            } else {
                let seen = there.map(|e| e.version).filter(|_| chance.happens(800));
                let writes = vec![random_write(chance, key, seen, turn)];
                let answer = match store.commit(writes.clone()).now_or_never().unwrap().unwrap() {
                    _ if chance.happens(150) => Answer::Unknown,
                    Commit::Stored(versions) => Answer::Stored(versions),
                    Commit::Conflict(there) => Answer::Conflict(there),
                };
                (Action::Commit(writes), answer)
            };
            let moment = 100 + 10 * turn as u64;
            let answered = if answer == Answer::Unknown { u64::MAX } else { moment + 1 + chance.below(25) };
            events.push(Event { action, answer, called: moment - chance.below(25), answered });
        }
        events
    }

    /// Lets two operations have happened at each other's time, or one have been answered before it was called.
    fn distort(chance: &SeededChance, events: &mut [Event]) {
        let pick = || usize::try_from(chance.below(6)).unwrap();
        let (a, b) = (pick(), pick());
        let (times, others) =
            ((events[a].called, events[a].answered), (events[b].called, events[b].answered));
        (events[a].called, events[a].answered) = others;
        (events[b].called, events[b].answered) = times;
        for event in [a, b] {
            if events[event].answer == Answer::Unknown {
                events[event].answered = u64::MAX;
            } else if events[event].answered == u64::MAX {
                events[event].answered = events[event].called + 1;
            }
        }
    }

    #[test]
    fn the_search_agrees_with_one_that_tries_every_order() {
        let (mut good, mut bad) = (0, 0);
        for seed in 0..3000 {
            let chance = SeededChance::new(seed);
            let mut events = random_history(&chance);
            let distorted = chance.happens(700);
            if distorted {
                distort(&chance, &mut events);
            }
            let (operations, state) = Reader::read(&events);
            let wanted = explains(&operations, &mut Placed::none(operations.len()), &state);
            let found = matches!(judge(&events), Judgement::Linearizable(_));
            assert_eq!(found, wanted, "seed {seed}: {events:#?}");
            assert!(wanted || distorted, "seed {seed}: what happened one by one can be explained");
            *(if wanted { &mut good } else { &mut bad }) += 1;
        }
        assert!(good > 400 && bad > 400, "{good} histories with an explanation, {bad} without");
    }
}

//! What a store is, seen from outside: versioned registers that are compared and swapped.
//!
//! Keys, bodies, holders and statuses become small numbers first, so that a state is cheap to copy, to compare
//! and to remember.

use std::collections::HashMap;

use bytes::Bytes;
use onlyonce::Key;
use onlyonce::store::{Entry, Expect, HeaderDraft, Holder, Status, Write};

use super::{Action, Answer, Event};

/// The part of a header that does not depend on a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Head {
    status: Status,
    holder: u32,
    attempts: u32,
}

/// An entry as somebody saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    version: u64,
    head: Head,
    body: u32,
}

/// What is under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Value {
    /// `None` until somebody sees it: it was written by an operation whose answer was lost.
    version: Option<u64>,
    head: Head,
    body: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Register {
    value: Option<Value>,
    /// The highest version known to have been given.
    last: u64,
}

/// What is under every key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State(Box<[Register]>);

#[derive(Clone, Copy, Debug)]
enum Change {
    Put(Head, u32),
    Touch(Head),
    Check,
    Delete,
}

#[derive(Clone, Copy, Debug)]
struct OneWrite {
    key: usize,
    /// `None`: nothing is expected.
    expect: Option<u64>,
    change: Change,
}

#[derive(Clone, Debug)]
enum Step {
    Saw(usize, Option<Seen>),
    Stored(Vec<(OneWrite, u64)>),
    Conflicted(Vec<(OneWrite, Option<Seen>)>),
    /// Of a take, one entry: each is taken in a step of its own.
    Took {
        holder: u32,
        key: usize,
        seen: Seen,
    },
    MayHaveStored(Vec<OneWrite>),
    /// Of a take nobody heard of, for one key: it may have been among those taken.
    MayHaveTaken {
        holder: u32,
        status: Status,
        key: usize,
    },
}

/// One operation as the judge sees it.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    pub(super) called: u64,
    pub(super) answered: u64,
    /// Which event of the history it is.
    pub(super) event: usize,
    step: Step,
}

impl Operation {
    /// Whether it may be left out.
    pub(super) fn is_uncertain(&self) -> bool {
        matches!(self.step, Step::MayHaveStored(_) | Step::MayHaveTaken { .. })
    }
}

/// Turns a history into operations on small numbers.
#[derive(Debug, Default)]
pub(super) struct Reader {
    keys: HashMap<Key, usize>,
    bodies: HashMap<Bytes, u32>,
    holders: HashMap<Option<Holder>, u32>,
}

fn number<T: std::hash::Hash + Eq>(of: T, known: &mut HashMap<T, u32>) -> u32 {
    let next = u32::try_from(known.len()).unwrap_or(u32::MAX);
    *known.entry(of).or_insert(next)
}

impl Reader {
    pub(super) fn read(events: &[Event]) -> (Vec<Operation>, State) {
        let mut reader = Self::default();
        // All keys first: a take nobody heard of may be about any of them.
        for event in events {
            reader.meet(event);
        }
        let operations =
            events.iter().enumerate().flat_map(|(n, event)| reader.operations(n, event)).collect();
        (operations, State(vec![Register::default(); reader.keys.len()].into()))
    }

    fn meet(&mut self, event: &Event) {
        let keys: Vec<&Key> = match (&event.action, &event.answer) {
            (Action::Read(key), _) => vec![key],
            (Action::Commit(writes), _) => writes.iter().map(Write::key).collect(),
            (Action::Take(_), Answer::Taken(taken)) => taken.iter().map(|e| &e.key).collect(),
            (Action::Take(_), _) => Vec::new(),
        };
        for key in keys {
            self.key(key);
        }
    }

    fn key(&mut self, key: &Key) -> usize {
        let next = self.keys.len();
        *self.keys.entry(key.clone()).or_insert(next)
    }

    fn holder(&mut self, holder: Option<&Holder>) -> u32 {
        number(holder.cloned(), &mut self.holders)
    }

    fn head(&mut self, draft: &HeaderDraft) -> Head {
        Head { status: draft.status, holder: self.holder(draft.holder.as_ref()), attempts: draft.attempts }
    }

    fn seen(&mut self, entry: &Entry) -> Seen {
        let header = &entry.header;
        Seen {
            version: entry.version.get(),
            head: Head {
                status: header.status,
                holder: self.holder(header.holder.as_ref()),
                attempts: header.attempts,
            },
            body: number(entry.body.clone(), &mut self.bodies),
        }
    }

    fn write(&mut self, write: &Write) -> OneWrite {
        let change = match write {
            Write::Put { draft, .. } => {
                Change::Put(self.head(&draft.header), number(draft.body.clone(), &mut self.bodies))
            }
            Write::Touch { header, .. } => Change::Touch(self.head(header)),
            Write::Check { .. } => Change::Check,
            Write::Delete { .. } => Change::Delete,
        };
        let expect = match write.expect() {
            Expect::Absent => None,
            Expect::Version(version) => Some(version.get()),
        };
        OneWrite { key: self.key(write.key()), expect, change }
    }

    fn operations(&mut self, number: usize, event: &Event) -> Vec<Operation> {
        let steps = match (&event.action, &event.answer) {
            (Action::Read(key), Answer::Read(found)) => {
                vec![Step::Saw(self.key(key), found.as_ref().map(|e| self.seen(e)))]
            }
            (Action::Commit(writes), answer) => {
                let writes: Vec<_> = writes.iter().map(|w| self.write(w)).collect();
                self.commit(writes, answer).into_iter().collect()
            }
            (Action::Take(take), answer) => {
                let holder = self.holder(Some(&take.holder));
                match answer {
                    Answer::Taken(taken) => {
                        let took =
                            |e: &Entry| Step::Took { holder, key: self.key(&e.key), seen: self.seen(e) };
                        taken.iter().map(took).collect()
                    }
                    Answer::Unknown => self.may_have_taken(holder, &take.statuses, &take.namespace),
                    _ => Vec::new(),
                }
            }
            (Action::Read(_), _) => Vec::new(),
        };
        let (called, answered) = (event.called, event.answered);
        steps.into_iter().map(|step| Operation { called, answered, event: number, step }).collect()
    }

    fn commit(&mut self, writes: Vec<OneWrite>, answer: &Answer) -> Option<Step> {
        match answer {
            Answer::Stored(versions) => {
                let versions = versions.iter().map(|v| v.get()).chain(std::iter::repeat(0));
                Some(Step::Stored(writes.into_iter().zip(versions).collect()))
            }
            Answer::Conflict(there) => {
                let seen: Vec<_> = there.iter().map(|e| e.as_ref().map(|e| self.seen(e))).collect();
                let seen = seen.into_iter().chain(std::iter::repeat(None));
                Some(Step::Conflicted(writes.into_iter().zip(seen).collect()))
            }
            Answer::Unknown => Some(Step::MayHaveStored(writes)),
            Answer::NotDone | Answer::Read(_) | Answer::Taken(_) => None,
        }
    }

    fn may_have_taken(&self, holder: u32, statuses: &[Status], namespace: &str) -> Vec<Step> {
        let here = self.keys.iter().filter(|(key, _)| key.namespace() == namespace);
        here.flat_map(|(_, &key)| {
            statuses.iter().map(move |&status| Step::MayHaveTaken { holder, status, key })
        })
        .collect()
    }
}

impl State {
    /// What the state is after the operation, if it would have answered as it did.
    pub(super) fn after(&self, operation: &Operation) -> Option<Self> {
        let mut next = self.clone();
        next.apply(&operation.step).then_some(next)
    }

    fn apply(&mut self, step: &Step) -> bool {
        match step {
            Step::Saw(key, seen) => self.0[*key].sees(*seen),
            Step::Stored(writes) => {
                writes.iter().all(|(write, version)| self.0[write.key].stores(write, Some(*version)))
            }
            Step::MayHaveStored(writes) => writes.iter().all(|write| self.0[write.key].stores(write, None)),
            // Seen first: it settles versions that nobody knew.
            Step::Conflicted(writes) => {
                writes.iter().all(|(write, seen)| self.0[write.key].sees(*seen))
                    && !writes.iter().all(|(write, _)| self.0[write.key].clone().holds(write.expect))
            }
            Step::Took { holder, key, seen } => self.0[*key].is_taken(*holder, Some(*seen)),
            Step::MayHaveTaken { holder, status, key } => {
                let register = &mut self.0[*key];
                register.value.is_some_and(|value| value.head.status == *status)
                    && register.is_taken(*holder, None)
            }
        }
    }
}

impl Register {
    /// Whether this is what is there; a version nobody knew is known from now on.
    fn sees(&mut self, seen: Option<Seen>) -> bool {
        match (&mut self.value, seen) {
            (None, None) => true,
            (Some(value), Some(seen)) if (value.head, value.body) == (seen.head, seen.body) => {
                Self::is_version(value, &mut self.last, seen.version)
            }
            _ => false,
        }
    }

    fn is_version(value: &mut Value, last: &mut u64, version: u64) -> bool {
        match value.version {
            Some(known) => known == version,
            None if version > *last => {
                value.version = Some(version);
                *last = version;
                true
            }
            None => false,
        }
    }

    fn holds(&mut self, expect: Option<u64>) -> bool {
        match (&mut self.value, expect) {
            (None, None) => true,
            (Some(value), Some(expect)) => Self::is_version(value, &mut self.last, expect),
            _ => false,
        }
    }

    /// Whether it takes this write and answers with this version; `None`: nobody heard the answer.
    fn stores(&mut self, write: &OneWrite, answered: Option<u64>) -> bool {
        if !self.holds(write.expect) {
            return false;
        }
        match (write.change, &mut self.value) {
            (Change::Put(head, body), _) => self.becomes(head, body, answered),
            (Change::Touch(head), Some(value)) => {
                let body = value.body;
                self.becomes(head, body, answered)
            }
            (Change::Touch(_), None) => false,
            (Change::Check, _) => answered.is_none_or(|version| version == write.expect.unwrap_or(0)),
            (Change::Delete, _) => {
                self.value = None;
                answered.is_none_or(|version| Some(version) == write.expect)
            }
        }
    }

    /// Takes a new value; its version must be higher than all before it.
    fn becomes(&mut self, head: Head, body: u32, version: Option<u64>) -> bool {
        self.value = Some(Value { version, head, body });
        let rises = version.is_none_or(|version| version > self.last);
        self.last = version.unwrap_or(self.last);
        rises
    }

    fn is_taken(&mut self, holder: u32, seen: Option<Seen>) -> bool {
        let Some(value) = self.value else { return false };
        let head = Head { holder, attempts: value.head.attempts.saturating_add(1), ..value.head };
        let as_seen = seen.is_none_or(|seen| (seen.head, seen.body) == (head, value.body));
        as_seen && self.becomes(head, value.body, seen.map(|seen| seen.version))
    }
}

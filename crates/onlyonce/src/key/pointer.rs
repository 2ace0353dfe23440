//! Which parts of a document count: JSON pointers, with `*` for every member or element.

use std::collections::BTreeMap;

use super::form::Form;
use super::text::write_string;
use crate::error::Error;

/// A JSON pointer (RFC 6901), in which `*` stands for every member or element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pointer {
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Every,
    Named(String),
}

impl Pointer {
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let bad = |reason| Error::BadPointer { pointer: text.to_owned(), reason };
        match text.strip_prefix('/') {
            Some(steps) => {
                Ok(Self { steps: steps.split('/').map(Step::parse).collect::<Result<_, _>>().map_err(bad)? })
            }
            None if text.is_empty() => Ok(Self { steps: Vec::new() }),
            None => Err(bad("it begins with a slash, as in /items/*/retry")),
        }
    }

    /// To the member of this name in the outermost object.
    pub(super) fn to_member(name: &str) -> Self {
        Self { steps: vec![Step::Named(name.to_owned())] }
    }

    /// Whether it names the whole document.
    pub(super) fn is_root(&self) -> bool {
        self.steps.is_empty()
    }
}

impl Step {
    fn parse(text: &str) -> Result<Self, &'static str> {
        if text == "*" {
            return Ok(Self::Every);
        }
        let mut pieces = text.split('~');
        let mut name = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            match piece.as_bytes().first() {
                Some(b'0') => name.push('~'),
                Some(b'1') => name.push('/'),
                _ => return Err("a tilde is written ~0, and a slash within a name ~1"),
            }
            name.push_str(&piece[1..]);
        }
        Ok(Self::Named(name))
    }
}

/// An element's index as RFC 6901 writes it: no sign, no needless zero.
fn as_index(name: &str) -> Option<usize> {
    let is_canonical = name == "0" || name.starts_with(|c: char| matches!(c, '1'..='9'));
    if is_canonical { name.parse().ok() } else { None }
}

/// All pointers of one key, as a tree: what begins alike is walked once.
#[derive(Clone, Debug, Default)]
pub(super) struct Filter {
    /// The root is first; none at all when there is no pointer.
    nodes: Vec<Node>,
    selects: bool,
}

#[derive(Clone, Debug, Default)]
struct Node {
    every: Option<usize>,
    /// By the name as it is written, quotes and all.
    members: BTreeMap<Vec<u8>, usize>,
    elements: BTreeMap<usize, usize>,
    selected: bool,
    excluded: bool,
}

impl Filter {
    /// Keeps what `select` names (everything, when it names nothing), without what `exclude` names.
    pub(super) fn new(form: Form, select: &[Pointer], exclude: &[Pointer]) -> Self {
        let mut filter = Self { nodes: Vec::new(), selects: !select.is_empty() };
        for pointer in select {
            filter.node(form, pointer).selected = true;
        }
        for pointer in exclude {
            filter.node(form, pointer).excluded = true;
        }
        filter
    }

    /// Whether it keeps every document whole.
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    fn node(&mut self, form: Form, pointer: &Pointer) -> &mut Node {
        if self.nodes.is_empty() {
            self.nodes.push(Node::default());
        }
        let end = pointer.steps.iter().fold(0, |node, step| self.step(form, node, step));
        &mut self.nodes[end]
    }

    fn step(&mut self, form: Form, node: usize, step: &Step) -> usize {
        let next = self.nodes.len();
        let Node { every, members, elements, .. } = &mut self.nodes[node];
        let child = match step {
            Step::Every => *every.get_or_insert(next),
            Step::Named(name) => {
                let mut written = Vec::new();
                write_string(&mut written, name, form);
                let child = *members.entry(written).or_insert(next);
                elements.extend(as_index(name).map(|index| (index, child)));
                child
            }
        };
        if child == next {
            self.nodes.push(Node::default());
        }
        child
    }
}

/// Says at every place of a document whether it counts.
pub(super) trait Guide {
    /// What is known about one place.
    type Place: Place;

    fn root(&mut self) -> Self::Place;
    /// Steps into a member, by its name as it is written, quotes and all.
    fn member(&mut self, around: Self::Place, written: &[u8]) -> Self::Place;
    /// Steps into an element.
    fn element(&mut self, around: Self::Place, index: usize) -> Self::Place;
    /// Steps back out.
    fn leave(&mut self, place: Self::Place);
}

/// What is known about one place of a document.
pub(super) trait Place: Copy {
    /// Selected, or within what is selected.
    fn is_selected(self) -> bool;
    /// Left out in the end, whatever is selected.
    fn is_excluded(self) -> bool;
}

/// The guide where there is no pointer: everything counts.
#[derive(Debug)]
pub(super) struct Everything;

impl Guide for Everything {
    type Place = ();

    fn root(&mut self) {}

    fn member(&mut self, (): (), _written: &[u8]) {}

    fn element(&mut self, (): (), _index: usize) {}

    fn leave(&mut self, (): ()) {}
}

impl Place for () {
    fn is_selected(self) -> bool {
        true
    }

    fn is_excluded(self) -> bool {
        false
    }
}

/// The guide that walks along all pointers at once.
#[derive(Debug)]
pub(super) struct Walk<'f> {
    filter: &'f Filter,
    /// The nodes reached, of every place on the way from the root to here.
    reached: Vec<usize>,
}

/// A place on the walk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stop {
    selected: bool,
    excluded: bool,
    /// The nodes reached here, within [`Walk::reached`].
    first: usize,
    end: usize,
}

impl<'f> Walk<'f> {
    pub(super) fn new(filter: &'f Filter) -> Self {
        Self { filter, reached: Vec::new() }
    }

    fn step(&mut self, around: Stop, named: impl Fn(&Node) -> Option<&usize>) -> Stop {
        if around.first == around.end {
            return Stop { excluded: false, ..around };
        }
        let first = self.reached.len();
        for i in around.first..around.end {
            let node = &self.filter.nodes[self.reached[i]];
            self.reached.extend(node.every);
            self.reached.extend(named(node));
        }
        self.stop(around.selected, first)
    }

    fn stop(&self, within_selected: bool, first: usize) -> Stop {
        let mut stop = Stop { selected: within_selected, excluded: false, first, end: self.reached.len() };
        for node in &self.reached[first..] {
            stop.selected |= self.filter.nodes[*node].selected;
            stop.excluded |= self.filter.nodes[*node].excluded;
        }
        stop
    }
}

impl Guide for Walk<'_> {
    type Place = Stop;

    fn root(&mut self) -> Stop {
        self.reached.push(0);
        self.stop(!self.filter.selects, 0)
    }

    fn member(&mut self, around: Stop, written: &[u8]) -> Stop {
        self.step(around, |node| node.members.get(written))
    }

    fn element(&mut self, around: Stop, index: usize) -> Stop {
        self.step(around, |node| node.elements.get(&index))
    }

    fn leave(&mut self, stop: Stop) {
        self.reached.truncate(stop.first);
    }
}

impl Place for Stop {
    fn is_selected(self) -> bool {
        self.selected
    }

    fn is_excluded(self) -> bool {
        self.excluded
    }
}

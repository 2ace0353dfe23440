//! Writes canonical JSON whose members come in any order.
//!
//! Everything is written once, where it will most likely stay. Each open object remembers where its members
//! are; when it is closed and they did not come in order (or some were dropped), they are put in order in one
//! sweep. Members that came in order are never touched again.

use std::cell::Cell;
use std::cmp::Ordering;
use std::fmt;

use super::cursor::Wrong;
use super::form::Form;
use super::number;
use super::text::{self, Name};

/// How deep arrays and objects may be nested.
pub(super) const MAX_DEPTH: usize = 128;
/// A thread keeps its buffers for the next key, unless one payload made them larger than this.
const KEEP_BYTES: usize = 1 << 20;

/// What a writer finds wrong with a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// Arrays and objects within each other, too many.
    TooDeep,
    /// Two members of one object have one name.
    SameName {
        /// Where the second one was read.
        at: usize,
    },
}

impl Fault {
    pub(super) const fn wrong(self) -> Wrong {
        match self {
            Self::TooDeep => Wrong::TooDeep,
            Self::SameName { .. } => Wrong::SameName,
        }
    }
}

/// Canonical JSON in the making.
#[derive(Default)]
pub(super) struct Writer {
    pub(super) form: Form,
    pub(super) out: Vec<u8>,
    /// Of all open objects, the innermost last.
    members: Vec<Member>,
    spare: Vec<u8>,
    depth: usize,
}

/// Where one member of an open object is in the output.
#[derive(Debug, Clone, Copy)]
struct Member {
    start: usize,
    name_end: usize,
    end: usize,
    /// Where its name was read.
    at: usize,
    /// What settles the order of most names without looking at them.
    glance: u64,
    escaped: bool,
    dropped: bool,
}

/// An object that is being written.
#[derive(Debug)]
pub(super) struct Object {
    first_member: usize,
    content: usize,
    in_order: bool,
}

thread_local! {
    static SPARE: Cell<Writer> = Cell::default();
}

impl Writer {
    /// Runs `write` with this thread's writer, empty.
    ///
    /// A call within the call gets a fresh one.
    pub(super) fn lend<T>(form: Form, write: impl FnOnce(&mut Self) -> T) -> T {
        let mut writer = Self::take(form);
        let answer = write(&mut writer);
        writer.give_back();
        answer
    }

    /// This thread's writer, empty.
    pub(super) fn take(form: Form) -> Self {
        let mut writer = SPARE.try_with(Cell::take).unwrap_or_default();
        writer.reset(form);
        writer
    }

    /// Keeps the buffers for the next key of this thread.
    pub(super) fn give_back(self) {
        let members = self.members.capacity() * size_of::<Member>();
        if self.out.capacity() + self.spare.capacity() + members <= KEEP_BYTES {
            // A thread that is ending has nowhere to keep them, and does not need them.
            let _ = SPARE.try_with(|spare| spare.set(self));
        }
    }

    fn reset(&mut self, form: Form) {
        self.form = form;
        self.out.clear();
        self.members.clear();
        self.depth = 0;
    }

    /// Appends bytes that are canonical already.
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    pub(super) fn string(&mut self, text: &str) -> bool {
        text::write_string(&mut self.out, text, self.form)
    }

    pub(super) fn double(&mut self, double: f64) {
        number::write_double(&mut self.out, double, self.form);
    }

    pub(super) fn integer(&mut self, literal: &str) -> Result<(), Wrong> {
        number::write_integer(&mut self.out, literal, self.form)
    }

    /// Opens an array; gives the place of its first element.
    pub(super) fn open_array(&mut self) -> Result<usize, Fault> {
        self.descend()?;
        self.out.push(b'[');
        Ok(self.out.len())
    }

    /// Makes room for the next element of an array whose first element is at `content`.
    pub(super) fn begin_element(&mut self, content: usize) {
        if self.out.len() > content {
            divide(&mut self.out, b',', self.form);
        }
    }

    pub(super) fn close_array(&mut self) {
        self.out.push(b']');
        self.depth -= 1;
    }

    pub(super) fn open_object(&mut self) -> Result<Object, Fault> {
        self.descend()?;
        Ok(self.begin_object())
    }

    /// Opens an object that is the whole document, so it cannot be too deep.
    pub(super) fn open_root_object(&mut self) -> Object {
        self.depth = 1;
        self.begin_object()
    }

    fn begin_object(&mut self) -> Object {
        self.out.push(b'{');
        Object { first_member: self.members.len(), content: self.out.len(), in_order: true }
    }

    fn descend(&mut self) -> Result<(), Fault> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(Fault::TooDeep) } else { Ok(()) }
    }

    /// Makes room for the next member; gives the place of its name.
    pub(super) fn begin_member(&mut self, object: &Object) -> usize {
        if self.members.len() > object.first_member {
            divide(&mut self.out, b',', self.form);
        }
        self.out.len()
    }

    /// Takes what was written from `start` on as a member's name, read at `at`.
    pub(super) fn end_name(
        &mut self,
        object: &mut Object,
        start: usize,
        escaped: bool,
        at: usize,
    ) -> Result<(), Fault> {
        let name_end = self.out.len();
        let glance = text::glance(&self.out, start + 1..name_end - 1, escaped);
        let member = Member { start, name_end, end: name_end, at, glance, escaped, dropped: false };
        if object.in_order
            && let Some(last) = self.members[object.first_member..].last()
        {
            match member.compare(last, &self.out, self.form) {
                Ordering::Greater => {}
                Ordering::Equal => return Err(Fault::SameName { at }),
                Ordering::Less => object.in_order = false,
            }
        }
        self.members.push(member);
        divide(&mut self.out, b':', self.form);
        Ok(())
    }

    /// Ends the member whose value was written last.
    pub(super) fn end_member(&mut self) {
        if let Some(member) = self.members.last_mut() {
            member.end = self.out.len();
        }
    }

    /// Ends the member whose value was written last, and leaves it out; its name still counts as taken.
    pub(super) fn drop_member(&mut self, object: &mut Object) {
        object.in_order = false;
        if let Some(member) = self.members.last_mut() {
            member.dropped = true;
            self.out.truncate(member.name_end);
        }
    }

    pub(super) fn close_object(&mut self, object: &Object) -> Result<(), Fault> {
        if !object.in_order {
            self.put_in_order(object)?;
        }
        self.members.truncate(object.first_member);
        self.out.push(b'}');
        self.depth -= 1;
        Ok(())
    }

    fn put_in_order(&mut self, object: &Object) -> Result<(), Fault> {
        let Self { form, out, members, spare, .. } = self;
        let members = &mut members[object.first_member..];
        members.sort_unstable_by(|a, b| a.compare(b, out, *form).then(a.at.cmp(&b.at)));
        if let Some(at) = first_repeated(members, out) {
            return Err(Fault::SameName { at });
        }
        spare.clear();
        spare.extend_from_slice(&out[object.content..]);
        out.truncate(object.content);
        for member in members.iter().filter(|member| !member.dropped) {
            if out.len() > object.content {
                divide(out, b',', *form);
            }
            out.extend_from_slice(&spare[member.start - object.content..member.end - object.content]);
        }
        Ok(())
    }
}

/// Appends what stands between two members or elements, or between a name and its value.
fn divide(out: &mut Vec<u8>, sign: u8, form: Form) {
    out.push(sign);
    if form == Form::Python {
        out.push(b' ');
    }
}

/// Without what was written: that is a payload, and none appears in a log.
impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("form", &self.form)
            .field("written", &self.out.len())
            .finish_non_exhaustive()
    }
}

/// Where the first name was read that is there twice; the members are sorted.
fn first_repeated(members: &[Member], out: &[u8]) -> Option<usize> {
    let same = |pair: &&[Member]| pair[0].name(out).written == pair[1].name(out).written;
    members.windows(2).filter(same).map(|pair| pair[1].at).min()
}

impl Member {
    fn name<'o>(&self, out: &'o [u8]) -> Name<'o> {
        Name { written: &out[self.start + 1..self.name_end - 1], escaped: self.escaped }
    }

    fn compare(&self, other: &Self, out: &[u8], form: Form) -> Ordering {
        if self.glance != other.glance && self.glance != 0 && other.glance != 0 {
            return self.glance.cmp(&other.glance);
        }
        self.name(out).compare(other.name(out), form)
    }
}

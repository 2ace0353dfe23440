//! Reads JSON and writes its canonical form, in one pass and without a tree of values.
//!
//! Every byte of the document is checked, also in the parts that are left out. What needs no change is copied
//! as it is; only what came in another order or spelling is written anew.
//!
//! Reading descends as the document does, and the writer refuses to go deeper than 128, so no document can
//! exhaust the stack.

use super::cursor::{Cursor, Flaw};
use super::number::copy_number;
use super::pointer::{Filter, Place, Walk};
use super::string::copy_string;
use super::writer::{Fault, Object, Writer};

/// Appends the canonical form of `document`, reduced to what `filter` keeps; says whether that is anything.
pub(super) fn write_document(writer: &mut Writer, document: &[u8], filter: &Filter) -> Result<bool, Flaw> {
    Reader { from: Cursor::new(document)?, walk: Walk::new(filter), to: writer }.document()
}

struct Reader<'a> {
    from: Cursor<'a>,
    walk: Walk<'a>,
    to: &'a mut Writer,
}

/// Whether anything of a value is kept.
type Kept = Result<bool, Flaw>;

impl Reader<'_> {
    fn document(&mut self) -> Kept {
        let root = self.walk.root();
        self.from.skip_space();
        let kept = self.value(root)?;
        self.from.skip_space();
        match self.from.peek() {
            None => Ok(kept),
            Some(_) => self.from.flaw("something after the end of the document"),
        }
    }

    fn value(&mut self, place: Place) -> Kept {
        match self.from.peek() {
            Some(b'{') => return self.object(place),
            Some(b'[') => return self.array(place),
            Some(b'"') => _ = copy_string(&mut self.from, &mut self.to.out, self.to.form)?,
            Some(b'-' | b'0'..=b'9') => copy_number(&mut self.from, &mut self.to.out, self.to.form)?,
            Some(b't') => self.word(b"true")?,
            Some(b'f') => self.word(b"false")?,
            Some(b'n') => self.word(b"null")?,
            Some(b'N' | b'I') => return self.from.flaw("NaN and infinities are not JSON"),
            Some(_) => return self.from.flaw("no value begins like this"),
            None => return self.from.flaw("the document ends where a value should be"),
        }
        Ok(place.whole)
    }

    fn word(&mut self, word: &'static [u8]) -> Result<(), Flaw> {
        if !self.from.rest().starts_with(word) {
            return self.from.flaw("no value begins like this");
        }
        self.to.raw(word);
        self.from.at += word.len();
        Ok(())
    }

    fn object(&mut self, place: Place) -> Kept {
        let mut object = self.to.open_object().map_err(|fault| self.flaw(fault))?;
        let mut kept = place.whole;
        self.from.at += 1;
        self.from.skip_space();
        if !self.from.take(b'}') {
            loop {
                kept |= self.member(&mut object, place)?;
                if !self.goes_on(b'}', "a comma or `}` must follow a member")? {
                    break;
                }
            }
        }
        self.to.close_object(&object).map_err(|fault| self.flaw(fault))?;
        Ok(kept)
    }

    fn member(&mut self, object: &mut Object, around: Place) -> Kept {
        let (start, at) = (self.to.begin_member(object), self.from.at);
        if self.from.peek() != Some(b'"') {
            return self.from.flaw("a member begins with its name, a string");
        }
        let escaped = copy_string(&mut self.from, &mut self.to.out, self.to.form)?;
        let place = self.walk.member(around, &self.to.out[start..]);
        self.to.end_name(object, start, escaped, at).map_err(|fault| self.flaw(fault))?;
        self.from.skip_space();
        if !self.from.take(b':') {
            return self.from.flaw("a colon must follow a member's name");
        }
        self.from.skip_space();
        let kept = self.value(place)?;
        self.walk.leave(place);
        if kept && !place.excluded {
            self.to.end_member();
        } else {
            self.to.drop_member(object);
        }
        Ok(kept)
    }

    fn array(&mut self, place: Place) -> Kept {
        let content = self.to.open_array().map_err(|fault| self.flaw(fault))?;
        let mut kept = place.whole;
        let mut kept_end = content;
        self.from.at += 1;
        self.from.skip_space();
        if !self.from.take(b']') {
            for index in 0.. {
                if self.element(content, place, index)? {
                    kept = true;
                    kept_end = self.to.out.len();
                }
                if !self.goes_on(b']', "a comma or `]` must follow an element")? {
                    break;
                }
            }
        }
        self.to.out.truncate(kept_end);
        self.to.close_array();
        Ok(kept)
    }

    fn element(&mut self, content: usize, around: Place, index: usize) -> Kept {
        let before = self.to.out.len();
        self.to.begin_element(content);
        let start = self.to.out.len();
        let place = self.walk.element(around, index);
        let kept = self.value(place)?;
        self.walk.leave(place);
        if place.excluded {
            self.to.out.truncate(before);
        } else if !kept {
            // Stands for an element that is not selected, so that those after it keep their index.
            self.to.out.truncate(start);
            self.to.raw(b"null");
        }
        Ok(kept)
    }

    /// After a member or an element: whether another one follows.
    fn goes_on(&mut self, close: u8, otherwise: &'static str) -> Result<bool, Flaw> {
        self.from.skip_space();
        if self.from.take(b',') {
            self.from.skip_space();
            return Ok(true);
        }
        if self.from.take(close) { Ok(false) } else { self.from.flaw(otherwise) }
    }

    fn flaw(&self, fault: Fault) -> Flaw {
        let at = match fault {
            Fault::TooDeep => self.from.at,
            Fault::SameName { at } => at,
        };
        Flaw { reason: fault.reason(), at }
    }
}

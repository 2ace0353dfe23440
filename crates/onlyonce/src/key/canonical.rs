//! Reads JSON and writes its canonical form, in one pass and without a tree of values.
//!
//! Every byte of the document is checked, also in the parts that are left out. What needs no change is copied
//! as it is; only what came in another order or spelling is written anew.
//!
//! Reading descends as the document does, and the writer refuses to go deeper than 128, so no document can
//! exhaust the stack.

use super::cursor::{Cursor, Flaw, Wrong};
use super::number::copy_number;
use super::pointer::{Everything, Filter, Guide, Place, Walk};
use super::string::copy_string;
use super::writer::{Fault, Object, Writer};

/// Appends the canonical form of `document`, reduced to what `filter` keeps; says whether that is anything.
pub(super) fn write_document(writer: &mut Writer, document: &[u8], filter: &Filter) -> Result<bool, Flaw> {
    let from = Cursor::new(document)?;
    if filter.is_empty() {
        Reader { from, guide: Everything, to: writer }.document()
    } else {
        Reader { from, guide: Walk::new(filter), to: writer }.document()
    }
}

struct Reader<'a, G> {
    from: Cursor<'a>,
    guide: G,
    to: &'a mut Writer,
}

/// Whether anything of a value is kept.
type Kept = Result<bool, Flaw>;

impl<G: Guide> Reader<'_, G> {
    fn document(&mut self) -> Kept {
        let root = self.guide.root();
        self.from.skip_space();
        let kept = self.value(root)?;
        self.from.skip_space();
        match self.from.peek() {
            None => Ok(kept),
            Some(_) => self.from.flaw(Wrong::AfterEnd),
        }
    }

    fn value(&mut self, place: G::Place) -> Kept {
        match self.from.peek() {
            Some(b'{') => return self.object(place),
            Some(b'[') => return self.array(place),
            Some(b'"') => _ = copy_string(&mut self.from, &mut self.to.out, self.to.form)?,
            Some(b'-' | b'0'..=b'9') => copy_number(&mut self.from, &mut self.to.out, self.to.form)?,
            Some(b't') => self.word(b"true")?,
            Some(b'f') => self.word(b"false")?,
            Some(b'n') => self.word(b"null")?,
            Some(b'N' | b'I') => return self.from.flaw(Wrong::NotFinite),
            Some(_) => return self.from.flaw(Wrong::NoValue),
            None => return self.from.flaw(Wrong::NoValueButEnd),
        }
        Ok(place.is_selected())
    }

    fn word<const N: usize>(&mut self, word: &[u8; N]) -> Result<(), Flaw> {
        if !self.from.rest.starts_with(word) {
            return self.from.flaw(Wrong::NoValue);
        }
        self.to.raw(word);
        self.from.take_bytes(N);
        Ok(())
    }

    fn object(&mut self, place: G::Place) -> Kept {
        let mut object = self.to.open_object().map_err(|fault| self.flaw(fault))?;
        let mut kept = place.is_selected();
        self.from.take(b'{');
        self.from.skip_space();
        if !self.from.take(b'}') {
            loop {
                kept |= self.member(&mut object, place)?;
                if !self.goes_on(b'}', Wrong::NoCommaInObject)? {
                    break;
                }
            }
        }
        self.to.close_object(&object).map_err(|fault| self.flaw(fault))?;
        Ok(kept)
    }

    fn member(&mut self, object: &mut Object, around: G::Place) -> Kept {
        let (start, at) = (self.to.begin_member(object), self.from.at());
        if self.from.peek() != Some(b'"') {
            return self.from.flaw(Wrong::NoName);
        }
        let escaped = copy_string(&mut self.from, &mut self.to.out, self.to.form)?;
        let place = self.guide.member(around, &self.to.out[start..]);
        self.to.end_name(object, start, escaped, at).map_err(|fault| self.flaw(fault))?;
        self.from.skip_space();
        if !self.from.take(b':') {
            return self.from.flaw(Wrong::NoColon);
        }
        self.from.skip_space();
        let kept = self.value(place)?;
        self.guide.leave(place);
        if kept && !place.is_excluded() {
            self.to.end_member();
        } else {
            self.to.drop_member(object);
        }
        Ok(kept)
    }

    fn array(&mut self, place: G::Place) -> Kept {
        let content = self.to.open_array().map_err(|fault| self.flaw(fault))?;
        let mut kept = place.is_selected();
        let mut kept_end = content;
        self.from.take(b'[');
        self.from.skip_space();
        if !self.from.take(b']') {
            for index in 0.. {
                if self.element(content, place, index)? {
                    kept = true;
                    kept_end = self.to.out.len();
                }
                if !self.goes_on(b']', Wrong::NoCommaInArray)? {
                    break;
                }
            }
        }
        self.to.out.truncate(kept_end);
        self.to.close_array();
        Ok(kept)
    }

    fn element(&mut self, content: usize, around: G::Place, index: usize) -> Kept {
        let before = self.to.out.len();
        self.to.begin_element(content);
        let start = self.to.out.len();
        let place = self.guide.element(around, index);
        let kept = self.value(place)?;
        self.guide.leave(place);
        if place.is_excluded() {
            self.to.out.truncate(before);
        } else if !kept {
            // Stands for an element that is not selected, so that those after it keep their index.
            self.to.out.truncate(start);
            self.to.raw(b"null");
        }
        Ok(kept)
    }

    /// After a member or an element: whether another one follows.
    fn goes_on(&mut self, close: u8, otherwise: Wrong) -> Result<bool, Flaw> {
        self.from.skip_space();
        if self.from.take(b',') {
            self.from.skip_space();
            return Ok(true);
        }
        if self.from.take(close) { Ok(false) } else { self.from.flaw(otherwise) }
    }

    #[cold]
    fn flaw(&self, fault: Fault) -> Flaw {
        let at = match fault {
            Fault::TooDeep => self.from.at(),
            Fault::SameName { at } => at,
        };
        Flaw { wrong: fault.wrong(), at }
    }
}

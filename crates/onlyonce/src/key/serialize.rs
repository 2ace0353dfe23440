//! Any serde value as canonical JSON, without a detour over text or a tree of values.
//!
//! The mapping is that of `serde_json`, with one difference: what `serde_json` would silently change (a float
//! that is not finite becomes `null`) is refused.

use std::fmt;

use serde::Serialize;
use serde::ser::{
    SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

use super::serialize_text::{Role, Texts, is_json_as_text};
use super::writer::{Fault, Object, Writer};
use crate::error::Error;

/// Appends a value.
pub(super) fn write_value<T: Serialize + ?Sized>(writer: &mut Writer, value: &T) -> Result<(), Error> {
    value.serialize(writer).map_err(|refused| Error::BadInput { reason: refused.0 })
}

/// Appends a member to an open object.
pub(super) fn write_member<T: Serialize + ?Sized>(
    writer: &mut Writer,
    object: &mut Object,
    name: &str,
    value: &T,
) -> Result<(), Error> {
    writer.member(object, name, value).map_err(|refused| Error::BadInput { reason: refused.0 })
}

/// Why a value has no canonical form.
#[derive(Debug)]
pub(super) struct Refused(pub(super) String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

impl serde::ser::Error for Refused {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Self {
        Self(fault.wrong().reason().to_owned())
    }
}

type Written = Result<(), Refused>;

/// An array that is being written.
#[derive(Debug)]
pub(super) struct Elements<'w> {
    writer: &'w mut Writer,
    content: usize,
    around: Option<Object>,
}

/// An object that is being written.
#[derive(Debug)]
pub(super) struct Members<'w> {
    writer: &'w mut Writer,
    object: Object,
    around: Option<Object>,
}

/// A struct that is being written.
#[derive(Debug)]
pub(super) enum Fields<'w> {
    Members(Members<'w>),
    /// Not a struct at all, but JSON in the form of a text.
    Json(&'w mut Writer),
}

impl Writer {
    fn number(&mut self, number: impl itoa::Integer) -> Written {
        self.integer(itoa::Buffer::new().format(number)).map_err(|wrong| Refused(wrong.reason().to_owned()))
    }

    fn member<T: Serialize + ?Sized>(&mut self, object: &mut Object, name: &str, value: &T) -> Written {
        self.name(object, name)?;
        value.serialize(&mut *self)?;
        self.end_member();
        Ok(())
    }

    fn name(&mut self, object: &mut Object, name: &str) -> Written {
        let start = self.begin_member(object);
        let escaped = self.string(name);
        Ok(self.end_name(object, start, escaped, start)?)
    }

    /// An enum's variant with content is an object with one member.
    fn open_variant(&mut self, variant: &'static str) -> Result<Object, Refused> {
        let mut around = self.open_object()?;
        self.name(&mut around, variant)?;
        Ok(around)
    }

    fn close_variant(&mut self, around: Option<&Object>) -> Written {
        if let Some(around) = around {
            self.end_member();
            self.close_object(around)?;
        }
        Ok(())
    }

    fn elements(&mut self, around: Option<Object>) -> Result<Elements<'_>, Refused> {
        let content = self.open_array()?;
        Ok(Elements { writer: self, content, around })
    }

    fn members(&mut self, around: Option<Object>) -> Result<Members<'_>, Refused> {
        let object = self.open_object()?;
        Ok(Members { writer: self, object, around })
    }
}

fn not_finite() -> Refused {
    Refused("a float that is not finite (NaN or infinity) has no JSON form".to_owned())
}

impl<'w> Serializer for &'w mut Writer {
    type Ok = ();
    type Error = Refused;
    type SerializeSeq = Elements<'w>;
    type SerializeTuple = Elements<'w>;
    type SerializeTupleStruct = Elements<'w>;
    type SerializeTupleVariant = Elements<'w>;
    type SerializeMap = Members<'w>;
    type SerializeStruct = Fields<'w>;
    type SerializeStructVariant = Members<'w>;

    fn serialize_bool(self, value: bool) -> Written {
        self.raw(if value { b"true" } else { b"false" });
        Ok(())
    }

    fn serialize_i8(self, value: i8) -> Written {
        self.number(value)
    }

    fn serialize_i16(self, value: i16) -> Written {
        self.number(value)
    }

    fn serialize_i32(self, value: i32) -> Written {
        self.number(value)
    }

    fn serialize_i64(self, value: i64) -> Written {
        self.number(value)
    }

    fn serialize_i128(self, value: i128) -> Written {
        self.number(value)
    }

    fn serialize_u8(self, value: u8) -> Written {
        self.number(value)
    }

    fn serialize_u16(self, value: u16) -> Written {
        self.number(value)
    }

    fn serialize_u32(self, value: u32) -> Written {
        self.number(value)
    }

    fn serialize_u64(self, value: u64) -> Written {
        self.number(value)
    }

    fn serialize_u128(self, value: u128) -> Written {
        self.number(value)
    }

    /// As the decimal a person would write: `0.1_f32` is `0.1`, not the double next to it.
    fn serialize_f32(self, value: f32) -> Written {
        if !value.is_finite() {
            return Err(not_finite());
        }
        let double = ryu_js::Buffer::new().format_finite(value).parse().map_err(|_| not_finite())?;
        self.double(double);
        Ok(())
    }

    fn serialize_f64(self, value: f64) -> Written {
        if !value.is_finite() {
            return Err(not_finite());
        }
        self.double(value);
        Ok(())
    }

    fn serialize_char(self, value: char) -> Written {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Written {
        self.string(value);
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Written {
        self.collect_seq(value)
    }

    fn serialize_none(self) -> Written {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Written {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Written {
        self.raw(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Written {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _name: &'static str, _index: u32, variant: &'static str) -> Written {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _name: &'static str, value: &T) -> Written {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Written {
        let around = self.open_variant(variant)?;
        value.serialize(&mut *self)?;
        self.close_variant(Some(&around))
    }

    fn serialize_seq(self, _len: Option<usize>) -> Result<Elements<'w>, Refused> {
        self.elements(None)
    }

    fn serialize_tuple(self, _len: usize) -> Result<Elements<'w>, Refused> {
        self.elements(None)
    }

    fn serialize_tuple_struct(self, _name: &'static str, _len: usize) -> Result<Elements<'w>, Refused> {
        self.elements(None)
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Elements<'w>, Refused> {
        let around = self.open_variant(variant)?;
        self.elements(Some(around))
    }

    fn serialize_map(self, _len: Option<usize>) -> Result<Members<'w>, Refused> {
        self.members(None)
    }

    fn serialize_struct(self, name: &'static str, _len: usize) -> Result<Fields<'w>, Refused> {
        if is_json_as_text(name) { Ok(Fields::Json(self)) } else { self.members(None).map(Fields::Members) }
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Members<'w>, Refused> {
        let around = self.open_variant(variant)?;
        self.members(Some(around))
    }
}

impl Elements<'_> {
    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Written {
        self.writer.begin_element(self.content);
        value.serialize(&mut *self.writer)
    }

    fn close(self) -> Written {
        self.writer.close_array();
        self.writer.close_variant(self.around.as_ref())
    }
}

impl Members<'_> {
    fn close(self) -> Written {
        self.writer.close_object(&self.object)?;
        self.writer.close_variant(self.around.as_ref())
    }
}

macro_rules! elements {
    ($trait:ident, $method:ident) => {
        impl $trait for Elements<'_> {
            type Ok = ();
            type Error = Refused;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Written {
                self.element(value)
            }

            fn end(self) -> Written {
                self.close()
            }
        }
    };
}

elements!(SerializeSeq, serialize_element);
elements!(SerializeTuple, serialize_element);
elements!(SerializeTupleStruct, serialize_field);
elements!(SerializeTupleVariant, serialize_field);

impl SerializeMap for Members<'_> {
    type Ok = ();
    type Error = Refused;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Written {
        let start = self.writer.begin_member(&self.object);
        let escaped = key.serialize(Texts { writer: self.writer, role: Role::Name })?;
        Ok(self.writer.end_name(&mut self.object, start, escaped, start)?)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Written {
        value.serialize(&mut *self.writer)?;
        self.writer.end_member();
        Ok(())
    }

    fn end(self) -> Written {
        self.close()
    }
}

impl SerializeStructVariant for Members<'_> {
    type Ok = ();
    type Error = Refused;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Written {
        self.writer.member(&mut self.object, name, value)
    }

    fn end(self) -> Written {
        self.close()
    }
}

impl SerializeStruct for Fields<'_> {
    type Ok = ();
    type Error = Refused;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Written {
        match self {
            Self::Members(members) => members.writer.member(&mut members.object, name, value),
            Self::Json(writer) => value.serialize(Texts { writer, role: Role::Json }).map(|_| ()),
        }
    }

    fn end(self) -> Written {
        match self {
            Self::Members(members) => members.close(),
            Self::Json(_) => Ok(()),
        }
    }
}

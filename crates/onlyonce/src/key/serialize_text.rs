//! What must be a text: the key of a map, or JSON that is kept as text.

use serde::Serialize;
use serde::ser::{Impossible, Serializer};

use super::canonical::write_document;
use super::pointer::Filter;
use super::serialize::Refused;
use super::writer::Writer;

/// Writes a text, and refuses what is none; answers whether it was escaped.
#[derive(Debug)]
pub(super) struct Texts<'w> {
    pub(super) writer: &'w mut Writer,
    pub(super) role: Role,
}

/// What the text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The name of a member.
    Name,
    /// JSON, to be written as the value it is.
    Json,
}

/// How `serde_json` hands out a `RawValue`, or a `Number` that keeps its literal: a struct of one text.
pub(super) fn is_json_as_text(struct_name: &str) -> bool {
    matches!(struct_name, "$serde_json::private::RawValue" | "$serde_json::private::Number")
}

type Escaped = Result<bool, Refused>;
type No = Impossible<bool, Refused>;

fn not_a_name<T>(kind: &str) -> Result<T, Refused> {
    Err(Refused(format!(
        "a map's key is {kind}; only strings, characters, integers, booleans and unit variants can be names"
    )))
}

macro_rules! integers {
    ($($method:ident($type:ty)),* $(,)?) => {
        $(fn $method(self, value: $type) -> Escaped {
            Ok(self.writer.string(itoa::Buffer::new().format(value)))
        })*
    };
}

impl Serializer for Texts<'_> {
    type Ok = bool;
    type Error = Refused;
    type SerializeSeq = No;
    type SerializeTuple = No;
    type SerializeTupleStruct = No;
    type SerializeTupleVariant = No;
    type SerializeMap = No;
    type SerializeStruct = No;
    type SerializeStructVariant = No;

    integers! {
        serialize_i8(i8), serialize_i16(i16), serialize_i32(i32), serialize_i64(i64), serialize_i128(i128),
        serialize_u8(u8), serialize_u16(u16), serialize_u32(u32), serialize_u64(u64), serialize_u128(u128),
    }

    fn serialize_bool(self, value: bool) -> Escaped {
        Ok(self.writer.string(if value { "true" } else { "false" }))
    }

    fn serialize_char(self, value: char) -> Escaped {
        Ok(self.writer.string(value.encode_utf8(&mut [0; 4])))
    }

    fn serialize_str(self, value: &str) -> Escaped {
        match self.role {
            Role::Name => Ok(self.writer.string(value)),
            Role::Json => write_document(self.writer, value.as_bytes(), &Filter::default()).map_err(|flaw| {
                Refused(format!("a raw JSON value: {} at its byte {}", flaw.wrong.reason(), flaw.at))
            }),
        }
    }

    fn serialize_unit_variant(self, _name: &'static str, _index: u32, variant: &'static str) -> Escaped {
        Ok(self.writer.string(variant))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _name: &'static str, value: &T) -> Escaped {
        value.serialize(self)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Escaped {
        value.serialize(self)
    }

    fn serialize_f32(self, _value: f32) -> Escaped {
        not_a_name("a float")
    }

    fn serialize_f64(self, _value: f64) -> Escaped {
        not_a_name("a float")
    }

    fn serialize_bytes(self, _value: &[u8]) -> Escaped {
        not_a_name("bytes")
    }

    fn serialize_none(self) -> Escaped {
        not_a_name("nothing")
    }

    fn serialize_unit(self) -> Escaped {
        not_a_name("nothing")
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Escaped {
        not_a_name("nothing")
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _value: &T,
    ) -> Escaped {
        not_a_name("a variant with content")
    }

    fn serialize_seq(self, _len: Option<usize>) -> Result<No, Refused> {
        not_a_name("a sequence")
    }

    fn serialize_tuple(self, _len: usize) -> Result<No, Refused> {
        not_a_name("a tuple")
    }

    fn serialize_tuple_struct(self, _name: &'static str, _len: usize) -> Result<No, Refused> {
        not_a_name("a tuple")
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _len: usize,
    ) -> Result<No, Refused> {
        not_a_name("a variant with content")
    }

    fn serialize_map(self, _len: Option<usize>) -> Result<No, Refused> {
        not_a_name("a map")
    }

    fn serialize_struct(self, _name: &'static str, _len: usize) -> Result<No, Refused> {
        not_a_name("a struct")
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _len: usize,
    ) -> Result<No, Refused> {
        not_a_name("a variant with content")
    }
}

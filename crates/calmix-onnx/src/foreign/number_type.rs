//! The types of numbers of foreign models.

use std::fmt;

use calmix_io::protobuf::{Field, ProtobufError};

/// A type of numbers of a foreign model, with its number in `TensorProto.DataType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the standard, in Rust's form")]
pub enum NumberType {
    F32 = 1,
    U8 = 2,
    I8 = 3,
    U16 = 4,
    I16 = 5,
    I32 = 6,
    I64 = 7,
    Bool = 9,
    F16 = 10,
    F64 = 11,
    U32 = 12,
    U64 = 13,
    Bf16 = 16,
}

/// The fields of a `TensorProto` with numbers of one type each.
pub(super) const TYPED: [u32; 5] = [4, 5, 7, 10, 11];

/// Where the numbers of a type are if they are not in `raw_data`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TypedField {
    Float,
    /// Integers from the first to the second.
    Int32(i64, i64),
    Int64,
    Double,
    /// Integers up to this one.
    Uint64(u64),
}

impl TypedField {
    pub(super) fn number(self) -> u32 {
        match self {
            Self::Float => 4,
            Self::Int32(..) => 5,
            Self::Int64 => 7,
            Self::Double => 10,
            Self::Uint64(_) => 11,
        }
    }

    /// The bits of the numbers of a field.
    pub(super) fn bits_of<'a>(
        self,
        field: &Field<'a>,
    ) -> Result<Box<dyn Iterator<Item = Result<u64, ProtobufError>> + 'a>, ProtobufError> {
        Ok(match self {
            Self::Float => Box::new(field.fixed32s()?.map(|bits| bits.map(u64::from))),
            Self::Double => Box::new(field.fixed64s()?),
            Self::Int32(..) | Self::Int64 | Self::Uint64(_) => Box::new(field.varints()?),
        })
    }

    /// Whether the type of the tensor has the number of these bits.
    pub(super) fn holds(self, bits: u64) -> bool {
        match self {
            Self::Float | Self::Double | Self::Int64 => true,
            Self::Int32(least, most) => (least..=most).contains(&bits.cast_signed()),
            Self::Uint64(most) => bits <= most,
        }
    }
}

impl NumberType {
    const ALL: [Self; 13] = [
        Self::F32,
        Self::U8,
        Self::I8,
        Self::U16,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::Bool,
        Self::F16,
        Self::F64,
        Self::U32,
        Self::U64,
        Self::Bf16,
    ];

    /// The type with this number of the standard; `None` for strings, complex numbers and numbers of 8 bits or fewer.
    pub fn from_standard(number: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|&element| element as i64 == number)
    }

    /// The bytes of a number.
    pub fn bytes(self) -> usize {
        match self {
            Self::U8 | Self::I8 | Self::Bool => 1,
            Self::U16 | Self::I16 | Self::F16 | Self::Bf16 => 2,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::I64 | Self::F64 | Self::U64 => 8,
        }
    }

    /// Whether features can have this type.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F16 | Self::F64 | Self::Bf16)
    }

    pub(super) fn typed_field(self) -> TypedField {
        match self {
            Self::F32 => TypedField::Float,
            Self::F64 => TypedField::Double,
            Self::I64 => TypedField::Int64,
            Self::U64 => TypedField::Uint64(u64::MAX),
            Self::U32 => TypedField::Uint64(u64::from(u32::MAX)),
            Self::I32 => TypedField::Int32(i64::from(i32::MIN), i64::from(i32::MAX)),
            Self::I16 => TypedField::Int32(i64::from(i16::MIN), i64::from(i16::MAX)),
            Self::I8 => TypedField::Int32(i64::from(i8::MIN), i64::from(i8::MAX)),
            Self::U8 => TypedField::Int32(0, i64::from(u8::MAX)),
            Self::Bool => TypedField::Int32(0, 1),
            // Numbers of half precision stand there as their bits.
            Self::U16 | Self::F16 | Self::Bf16 => TypedField::Int32(0, i64::from(u16::MAX)),
        }
    }
}

/// As PyTorch calls it: `float16`.
impl fmt::Display for NumberType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "float32",
            Self::U8 => "uint8",
            Self::I8 => "int8",
            Self::U16 => "uint16",
            Self::I16 => "int16",
            Self::I32 => "int32",
            Self::I64 => "int64",
            Self::Bool => "bool",
            Self::F16 => "float16",
            Self::F64 => "float64",
            Self::U32 => "uint32",
            Self::U64 => "uint64",
            Self::Bf16 => "bfloat16",
        })
    }
}

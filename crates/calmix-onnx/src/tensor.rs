//! Tensors of an ONNX file: constants of a graph, and the example data beside it.

use std::fmt;

use calmix_io::protobuf::Message;

/// The element types that calmix reads and writes, with their numbers in `TensorProto.DataType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElementType {
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

impl ElementType {
    /// All types, with their names in PyTorch.
    const ALL: [(Self, &str); 13] = [
        (Self::F32, "float32"),
        (Self::U8, "uint8"),
        (Self::I8, "int8"),
        (Self::U16, "uint16"),
        (Self::I16, "int16"),
        (Self::I32, "int32"),
        (Self::I64, "int64"),
        (Self::Bool, "bool"),
        (Self::F16, "float16"),
        (Self::F64, "float64"),
        (Self::U32, "uint32"),
        (Self::U64, "uint64"),
        (Self::Bf16, "bfloat16"),
    ];

    /// Finds the type with this number of the standard; `None` for strings, complex numbers and numbers of 8 bits or fewer.
    pub fn from_standard(number: i64) -> Option<Self> {
        Self::ALL.into_iter().map(|(element, _)| element).find(|&element| element as i64 == number)
    }

    /// Returns the size of a number in bytes.
    pub fn bytes(self) -> usize {
        match self {
            Self::U8 | Self::I8 | Self::Bool => 1,
            Self::U16 | Self::I16 | Self::F16 | Self::Bf16 => 2,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::I64 | Self::F64 | Self::U64 => 8,
        }
    }

    pub fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F16 | Self::F64 | Self::Bf16)
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ALL.iter().find(|(element, _)| element == self).map_or("", |&(_, name)| name))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    name: String,
    shape: Vec<i64>,
    element: ElementType,
    /// Little-endian, row by row.
    bytes: Vec<u8>,
}

impl Tensor {
    /// Creates a tensor of f32 numbers.
    pub fn f32(name: impl Into<String>, shape: &[usize], numbers: &[f32]) -> Self {
        Self::new(name, shape, ElementType::F32, numbers.iter().flat_map(|number| number.to_le_bytes()))
    }

    pub fn f64(name: impl Into<String>, shape: &[usize], numbers: &[f64]) -> Self {
        Self::new(name, shape, ElementType::F64, numbers.iter().flat_map(|number| number.to_le_bytes()))
    }

    pub fn i64(name: impl Into<String>, shape: &[usize], numbers: &[i64]) -> Self {
        Self::new(name, shape, ElementType::I64, numbers.iter().flat_map(|number| number.to_le_bytes()))
    }

    /// Creates a tensor of bytes.
    pub fn u8(name: impl Into<String>, shape: &[usize], numbers: &[u8]) -> Self {
        Self::new(name, shape, ElementType::U8, numbers.iter().copied())
    }

    pub fn bool(name: impl Into<String>, shape: &[usize], values: &[bool]) -> Self {
        Self::new(name, shape, ElementType::Bool, values.iter().map(|&value| u8::from(value)))
    }

    fn new(
        name: impl Into<String>,
        shape: &[usize],
        element: ElementType,
        bytes: impl Iterator<Item = u8>,
    ) -> Self {
        let shape = shape.iter().map(|&size| size.cast_signed() as i64).collect();
        Self { name: name.into(), shape, element, bytes: bytes.collect() }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its approximate size in a file, in bytes.
    pub(crate) fn file_bytes(&self) -> usize {
        const HEAD: usize = 400;
        self.bytes.len() + HEAD
    }

    /// Adds a prefix to the name.
    pub(crate) fn with_prefix(mut self, prefix: &str) -> Self {
        self.name.insert_str(0, prefix);
        self
    }

    /// Serialises it as a `TensorProto`, as in the files of ONNX's own examples.
    pub fn to_message(&self) -> Message {
        let mut tensor = Message::default();
        for &size in &self.shape {
            tensor.integer(1, size);
        }
        tensor.integer(2, self.element as i64);
        tensor.text(8, &self.name);
        tensor.bytes(9, &self.bytes);
        tensor
    }
}

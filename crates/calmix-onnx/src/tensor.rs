//! Tensors of an ONNX file: constants of a graph, and the examples beside it.

use calmix_io::protobuf::Message;

/// The types of numbers, with their numbers in `TensorProto.DataType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElementType {
    /// `FLOAT`.
    F32 = 1,
    /// `UINT8`.
    U8 = 2,
    /// `INT64`.
    I64 = 7,
    /// `BOOL`.
    Bool = 9,
    /// `FLOAT16`.
    F16 = 10,
    /// `DOUBLE`.
    F64 = 11,
}

/// Numbers with a name and a shape.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    name: String,
    shape: Vec<i64>,
    element: ElementType,
    /// Little-endian, row by row.
    bytes: Vec<u8>,
}

impl Tensor {
    /// A tensor of f32 numbers.
    pub fn f32(name: impl Into<String>, shape: &[usize], numbers: &[f32]) -> Self {
        Self::new(name, shape, ElementType::F32, numbers.iter().flat_map(|number| number.to_le_bytes()))
    }

    /// A tensor of f64 numbers.
    pub fn f64(name: impl Into<String>, shape: &[usize], numbers: &[f64]) -> Self {
        Self::new(name, shape, ElementType::F64, numbers.iter().flat_map(|number| number.to_le_bytes()))
    }

    /// A tensor of integers.
    pub fn i64(name: impl Into<String>, shape: &[usize], numbers: &[i64]) -> Self {
        Self::new(name, shape, ElementType::I64, numbers.iter().flat_map(|number| number.to_le_bytes()))
    }

    /// A tensor of bytes.
    pub fn u8(name: impl Into<String>, shape: &[usize], numbers: &[u8]) -> Self {
        Self::new(name, shape, ElementType::U8, numbers.iter().copied())
    }

    /// A tensor of truth values.
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

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// About as many bytes as it needs in a file, beside its nodes.
    pub(crate) fn file_bytes(&self) -> usize {
        const HEAD: usize = 400;
        self.bytes.len() + HEAD
    }

    /// The same numbers under a name with a prefix.
    pub(crate) fn with_prefix(mut self, prefix: &str) -> Self {
        self.name.insert_str(0, prefix);
        self
    }

    /// A `TensorProto`, as in the files of ONNX's own examples.
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

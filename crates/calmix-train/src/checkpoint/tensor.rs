//! Numbers with a type and a shape, as they stand in a file.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// The type of a tensor's elements, all of them little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[non_exhaustive]
pub enum Dtype {
    /// Zero or one in a byte.
    Bool,
    /// Unsigned, 8 bits.
    U8,
    /// Signed, 8 bits.
    I8,
    /// Unsigned, 16 bits.
    U16,
    /// Signed, 16 bits.
    I16,
    /// IEEE half precision.
    F16,
    /// The upper half of single precision.
    BF16,
    /// Unsigned, 32 bits.
    U32,
    /// Signed, 32 bits.
    I32,
    /// IEEE single precision.
    F32,
    /// Unsigned, 64 bits.
    U64,
    /// Signed, 64 bits.
    I64,
    /// IEEE double precision.
    F64,
}

impl Dtype {
    /// Bytes of an element.
    pub const fn size(self) -> u64 {
        match self {
            Self::Bool | Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 | Self::BF16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// Bytes of a tensor; none if no number holds them.
    pub fn bytes(self, shape: &[u64]) -> Option<u64> {
        shape.iter().try_fold(self.size(), |bytes, &side| bytes.checked_mul(side))
    }
}

/// A tensor on its way to or from a file.
///
/// ```
/// use calmix_train::checkpoint::{Dtype, Tensor};
///
/// let margins = Tensor::from_f32(&[1.0, -0.5, 0.0, 2.0], &[2, 2]);
/// assert_eq!((margins.dtype, margins.bytes.len()), (Dtype::F32, 16));
/// assert_eq!(margins.to_f32(), Some(vec![1.0, -0.5, 0.0, 2.0]));
/// assert_eq!(margins.to_i64(), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor<'a> {
    /// The type of its elements.
    pub dtype: Dtype,
    /// Elements along each axis; none for a single number.
    pub shape: Vec<u64>,
    /// The elements, row by row, little-endian.
    pub bytes: Cow<'a, [u8]>,
}

impl<'a> Tensor<'a> {
    /// Over bytes that are in memory already.
    pub fn new(dtype: Dtype, shape: &[u64], bytes: &'a [u8]) -> Self {
        Self { dtype, shape: shape.to_vec(), bytes: bytes.into() }
    }

    /// Of single precision.
    pub fn from_f32(values: &[f32], shape: &[u64]) -> Tensor<'static> {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Tensor { dtype: Dtype::F32, shape: shape.to_vec(), bytes: Cow::Owned(bytes) }
    }

    /// Of signed integers.
    pub fn from_i64(values: &[i64], shape: &[u64]) -> Tensor<'static> {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Tensor { dtype: Dtype::I64, shape: shape.to_vec(), bytes: Cow::Owned(bytes) }
    }

    /// The elements, if they are of single precision.
    pub fn to_f32(&self) -> Option<Vec<f32>> {
        let (values, _) = self.bytes.as_chunks::<4>();
        (self.dtype == Dtype::F32).then(|| values.iter().map(|&value| f32::from_le_bytes(value)).collect())
    }

    /// The elements, if they are signed integers of 64 bits.
    pub fn to_i64(&self) -> Option<Vec<i64>> {
        let (values, _) = self.bytes.as_chunks::<8>();
        (self.dtype == Dtype::I64).then(|| values.iter().map(|&value| i64::from_le_bytes(value)).collect())
    }
}

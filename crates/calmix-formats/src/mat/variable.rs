//! One variable: an array of real numbers, read in file order (column by column).

use std::path::Path;

use super::body::{Body, ByteOrder, Element};
use crate::error::FormatError;

/// Types of elements inside a variable.
const INT8: u32 = 1;
const INT32: u32 = 5;
const UINT32: u32 = 6;
/// Classes of numeric arrays: 6 is double, 15 is uint64; lower ones are cells, structures, objects, text, sparse arrays.
const NUMERIC: std::ops::RangeInclusive<u32> = 6..=15;
const COMPLEX: u32 = 0x0800;
/// MATLAB's names have at most 63 letters.
const MAX_NAME_BYTES: u32 = 255;
const MAX_DIMENSIONS: u32 = 32;

/// The storage type of numbers, which may be narrower than their class: MATLAB stores integral doubles as bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the meaning")]
pub enum MatType {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    F32,
    F64,
    I64,
    U64,
}

impl MatType {
    fn of(kind: u32) -> Option<Self> {
        Some(match kind {
            1 => Self::I8,
            2 => Self::U8,
            3 => Self::I16,
            4 => Self::U16,
            5 => Self::I32,
            6 => Self::U32,
            7 => Self::F32,
            9 => Self::F64,
            12 => Self::I64,
            13 => Self::U64,
            _ => return None,
        })
    }

    pub fn bytes(self) -> u8 {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::F64 | Self::I64 | Self::U64 => 8,
        }
    }

    /// Decodes the number in the first [`bytes`](Self::bytes) of `b`, in little-endian order.
    fn number(self, b: [u8; 8]) -> f64 {
        let [b0, b1, b2, b3, ..] = b;
        match self {
            Self::I8 => f64::from(i8::from_le_bytes([b0])),
            Self::U8 => f64::from(b0),
            Self::I16 => f64::from(i16::from_le_bytes([b0, b1])),
            Self::U16 => f64::from(u16::from_le_bytes([b0, b1])),
            Self::I32 => f64::from(i32::from_le_bytes([b0, b1, b2, b3])),
            Self::U32 => f64::from(u32::from_le_bytes([b0, b1, b2, b3])),
            Self::F32 => f64::from(f32::from_le_bytes([b0, b1, b2, b3])),
            Self::F64 => f64::from_le_bytes(b),
            Self::I64 => i64::from_le_bytes(b) as f64,
            Self::U64 => u64::from_le_bytes(b) as f64,
        }
    }
}

/// A variable that is being read.
#[derive(Debug)]
pub struct Variable {
    name: String,
    dims: Vec<u64>,
    mat_type: MatType,
    values: u64,
    left: u64,
    data: Element,
    body: Body,
}

impl Variable {
    /// Reads the head of a variable; `None` if it has another name.
    pub(super) fn read(mut body: Body, wanted: &str) -> Result<Option<Self>, FormatError> {
        let flags = body.element()?;
        if (flags.kind, flags.bytes, flags.inline) != (UINT32, 8, false) {
            return Err(body.refused("expected the flags of an array"));
        }
        let mut bytes = [0; 8];
        body.read(&mut bytes)?;
        let [f0, f1, f2, f3, ..] = bytes;
        let flags = body.order.u32([f0, f1, f2, f3]);

        let shape = body.element()?;
        let count = shape.bytes / 4;
        if shape.kind != INT32 || shape.bytes % 4 != 0 || !(2..=MAX_DIMENSIONS).contains(&count) {
            return Err(body.refused(format!("expected 2 to {MAX_DIMENSIONS} dimensions of an array")));
        }
        let mut dims = Vec::new();
        for _ in 0..count {
            let mut dim = [0; 4];
            body.read(&mut dim)?;
            let dim = body.order.u32(dim);
            // Dimensions are signed; a negative one is invalid.
            if i32::try_from(dim).is_err() {
                return Err(body.refused("a negative dimension"));
            }
            dims.push(u64::from(dim));
        }
        body.padding(&shape)?;

        let title = body.element()?;
        if title.kind != INT8 || title.bytes > MAX_NAME_BYTES {
            return Err(body.refused("expected the name of an array"));
        }
        let mut name = vec![0; title.bytes as usize];
        body.read(&mut name)?;
        body.padding(&title)?;
        if name != wanted.as_bytes() {
            return Ok(None);
        }
        if !NUMERIC.contains(&(flags & 0xff)) || flags & COMPLEX != 0 {
            return Err(body.refused(format!("{wanted:?} is not an array of real numbers")));
        }

        let data = body.element()?;
        let values = dims.iter().try_fold(1_u64, |product, &dim| product.checked_mul(dim));
        let Some(mat_type) = MatType::of(data.kind) else {
            return Err(body.refused(format!("{wanted:?} holds elements of type {}, not numbers", data.kind)));
        };
        let expected = values.and_then(|values| values.checked_mul(u64::from(mat_type.bytes())));
        if expected != Some(u64::from(data.bytes)) {
            let found = data.bytes;
            return Err(
                body.refused(format!("{wanted:?} is {dims:?} of {mat_type:?}, but has {found} bytes"))
            );
        }
        if !data.inline && u64::from(data.bytes) > body.left() {
            let (expected, found) = (data.bytes, body.left());
            return Err(body.refused(format!("expected {expected} bytes of {wanted:?}, found {found}")));
        }
        let values = values.unwrap_or_default();
        let name = wanted.to_owned();
        Ok(Some(Self { name, dims, mat_type, values, left: values, data, body }))
    }

    /// Returns the path of its file.
    pub fn path(&self) -> &Path {
        &self.body.path
    }

    /// Returns its dimensions; the first varies fastest.
    pub fn dims(&self) -> &[u64] {
        &self.dims
    }

    /// Returns the number of values: the product of its dimensions.
    pub fn values(&self) -> u64 {
        self.values
    }

    /// Returns the storage type.
    pub fn mat_type(&self) -> MatType {
        self.mat_type
    }

    /// Returns the position of the next value in the file, if it is stored uncompressed.
    pub fn offset(&self) -> Option<u64> {
        self.body.offset()
    }

    /// Describes the location of the next value.
    pub fn location(&self) -> String {
        format!("variable {}, {}", self.name, self.body.location())
    }

    /// Reads the next value.
    pub fn number(&mut self) -> Result<f64, FormatError> {
        self.take(1)?;
        let mut bytes = [0; 8];
        let width = usize::from(self.mat_type.bytes());
        let used = bytes.get_mut(..width).unwrap_or_default();
        self.body.read(used)?;
        if self.body.order == ByteOrder::Big {
            used.reverse();
        }
        Ok(self.mat_type.number(bytes))
    }

    /// Reads the next bytes of a byte array and fills `into`.
    ///
    /// # Errors
    /// If it is not stored as bytes, has fewer left, or the file is damaged.
    pub fn bytes(&mut self, into: &mut [u8]) -> Result<(), FormatError> {
        if self.mat_type != MatType::U8 {
            let problem = format!("{} holds {:?}, not bytes", self.name, self.mat_type);
            return Err(FormatError::content(&self.body.path, problem).at(self.location()));
        }
        self.take(into.len() as u64)?;
        self.body.read(into)
    }

    /// Checks that all values were read, that nothing follows them, and that zlib's checksum matches.
    pub fn finish(mut self) -> Result<(), FormatError> {
        if self.left > 0 {
            return Err(self.body.refused(format!("{} values of {} were not read", self.left, self.name)));
        }
        self.body.padding(&self.data)?;
        self.body.finish()
    }

    fn take(&mut self, values: u64) -> Result<(), FormatError> {
        let Some(left) = self.left.checked_sub(values) else {
            let name = &self.name;
            return Err(self
                .body
                .refused(format!("{name} has {} values left, but {values} were requested", self.left)));
        };
        self.left = left;
        Ok(())
    }
}

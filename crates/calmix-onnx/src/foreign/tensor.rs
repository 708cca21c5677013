//! Tensors of a foreign model. Their data have exactly the size that type and shape require.

use std::borrow::Cow;

use calmix_io::protobuf::{Field, Fields, Message, ProtobufError};
use calmix_io::shown::shown;

use super::limits::{MAX_RANK, MAX_TENSOR_BYTES};
use super::location::{ExternalFiles, FileRange, Location};
use super::problem::{ForeignProblem, TensorProblem, name_of};
use crate::tensor::ElementType;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ForeignTensor<'a> {
    pub(super) name: &'a str,
    pub(super) dimensions: Vec<u64>,
    pub(super) element: ElementType,
    data: Data<'a>,
}

/// Little-endian numbers, row by row.
#[derive(Debug, Clone, PartialEq)]
enum Data<'a> {
    Bytes(Cow<'a, [u8]>),
    Beside(FileRange),
}

/// The total size of a model's tensors so far, and the files beside it.
pub(super) struct Storage<'r> {
    pub(super) files: ExternalFiles<'r>,
    pub(super) bytes: u64,
}

impl<'a> ForeignTensor<'a> {
    /// Reads a `TensorProto`. `place` names it in messages if it has no name.
    pub(super) fn read(
        fields: Fields<'a>,
        place: Option<&str>,
        storage: &mut Storage<'_>,
    ) -> Result<Self, ForeignProblem> {
        let mut parts = Parts::default();
        for field in fields.clone() {
            parts.add(&field?)?;
        }
        let described = place.map_or_else(|| format!("the tensor `{}`", shown(parts.name)), str::to_owned);
        let refused = |problem| ForeignProblem::Tensor { tensor: described.clone(), problem };
        if parts.dimensions.len() > MAX_RANK {
            return Err(refused(TensorProblem::Rank));
        }
        let element = ElementType::from_standard(parts.element);
        let element = element.ok_or_else(|| refused(TensorProblem::Type(parts.element)))?;
        let sizes = parts.dimensions.iter().map(|&size| u64::try_from(size).ok());
        let dimensions: Option<Vec<u64>> = sizes.collect();
        let dimensions = dimensions.ok_or_else(|| refused(TensorProblem::Shape))?;
        let wanted = bytes_of(&dimensions, element).ok_or_else(|| refused(TensorProblem::Shape))?;
        storage.bytes = storage.bytes.saturating_add(wanted as u64);
        if storage.bytes > MAX_TENSOR_BYTES {
            return Err(ForeignProblem::TooLarge { max: MAX_TENSOR_BYTES });
        }
        let data = match (parts.location, parts.raw, parts.is_typed) {
            (Some(location), None, false) => Data::Beside(storage.files.find(&described, &location, wanted)?),
            (None, Some(raw), false) => Data::Bytes(Cow::Borrowed(raw)),
            (None, None, true) => Data::Bytes(Cow::Owned(decoded(fields, element, wanted, &refused)?)),
            (None, None, false) if wanted == 0 => Data::Bytes(Cow::Borrowed(&[])),
            (None, None, false) => return Err(refused(TensorProblem::NoData)),
            _ => return Err(refused(TensorProblem::TwoSources)),
        };
        let tensor = Self { name: parts.name, dimensions, element, data };
        match &tensor.data {
            Data::Bytes(bytes) if bytes.len() != wanted => {
                Err(refused(TensorProblem::Bytes { found: bytes.len(), wanted }))
            }
            _ => Ok(tensor),
        }
    }

    pub(crate) fn name(&self) -> &'a str {
        self.name
    }

    /// Returns its bytes; `files` are those that its model was read with.
    pub(super) fn bytes<'s>(&'s self, files: &'s [Vec<u8>]) -> &'s [u8] {
        match &self.data {
            Data::Bytes(bytes) => bytes,
            // The range was checked against the file when it was read.
            Data::Beside(place) => {
                files.get(place.file).and_then(|file| file.get(place.range.clone())).unwrap_or_default()
            }
        }
    }

    /// Returns its numbers, if there are at most `max` of them, of a type that sizes may have.
    pub(super) fn numbers(&self, files: &[Vec<u8>], max: usize) -> Option<Vec<f64>> {
        let bytes = self.bytes(files);
        let width = self.element.bytes();
        if bytes.len() / width > max {
            return None;
        }
        let number = |bytes: &[u8]| -> Option<f64> {
            Some(match self.element {
                ElementType::I64 => i64::from_le_bytes(bytes.try_into().ok()?) as f64,
                ElementType::I32 => f64::from(i32::from_le_bytes(bytes.try_into().ok()?)),
                ElementType::F32 => f64::from(f32::from_le_bytes(bytes.try_into().ok()?)),
                ElementType::F64 => f64::from_le_bytes(bytes.try_into().ok()?),
                _ => return None,
            })
        };
        bytes.chunks_exact(width).map(number).collect()
    }

    /// Writes it as a `TensorProto` with all of its data.
    pub(crate) fn write(&self, tensor: &mut Message, name: &str, files: &[Vec<u8>]) {
        for &size in &self.dimensions {
            tensor.integer(1, size.cast_signed());
        }
        tensor.integer(2, self.element as i64);
        if !name.is_empty() {
            tensor.text(8, name);
        }
        tensor.bytes(9, self.bytes(files));
    }
}

/// The fields of a `TensorProto`.
#[derive(Default)]
struct Parts<'a> {
    name: &'a str,
    dimensions: Vec<i64>,
    element: i64,
    raw: Option<&'a [u8]>,
    is_typed: bool,
    location: Option<Location<'a>>,
}

impl<'a> Parts<'a> {
    fn add(&mut self, field: &Field<'a>) -> Result<(), ForeignProblem> {
        match field.number {
            1 => {
                for size in field.varints()? {
                    // One dimension too many is enough to refuse the tensor.
                    if self.dimensions.len() <= MAX_RANK {
                        self.dimensions.push(size?.cast_signed());
                    }
                }
            }
            2 => self.element = field.integer()?,
            number if TYPED.contains(&number) => self.is_typed = true,
            8 => self.name = name_of(field)?,
            9 => self.raw = Some(field.bytes()?),
            13 => self.location.get_or_insert_default().add(field.message()?)?,
            14 if field.integer()? == 1 => {
                self.location.get_or_insert_default();
            }
            _ => {}
        }
        Ok(())
    }
}

/// Returns the size in bytes of a tensor of this shape and type; `None` if it overflows.
fn bytes_of(dimensions: &[u64], element: ElementType) -> Option<usize> {
    let numbers = dimensions.iter().try_fold(1_u64, |numbers, &size| numbers.checked_mul(size))?;
    usize::try_from(numbers.checked_mul(element.bytes() as u64)?).ok()
}

/// Decodes the typed fields to bytes. Stops after more than `wanted`, which limits the memory.
fn decoded(
    fields: Fields<'_>,
    element: ElementType,
    wanted: usize,
    refused: &dyn Fn(TensorProblem) -> ForeignProblem,
) -> Result<Vec<u8>, ForeignProblem> {
    let typed = TypedField::of(element);
    let mut bytes = Vec::new();
    for field in fields {
        let field = field?;
        if !TYPED.contains(&field.number) {
            continue;
        }
        if field.number != typed.number() {
            return Err(refused(TensorProblem::TwoSources));
        }
        for bits in typed.bits_of(&field)? {
            let bits = bits?;
            if !typed.holds(bits) {
                return Err(refused(TensorProblem::Number));
            }
            // Little-endian, so the lower bytes come first.
            bytes.extend_from_slice(&bits.to_le_bytes()[..element.bytes()]);
            if bytes.len() > wanted {
                return Ok(bytes);
            }
        }
    }
    Ok(bytes)
}

/// The fields of a `TensorProto` with numbers of one type.
const TYPED: [u32; 5] = [4, 5, 7, 10, 11];

/// The field with the numbers of a type, if they are not in `raw_data`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TypedField {
    Float,
    Int32(i64, i64),
    Int64,
    Double,
    Uint64(u64),
}

impl TypedField {
    fn of(element: ElementType) -> Self {
        match element {
            ElementType::F32 => Self::Float,
            ElementType::F64 => Self::Double,
            ElementType::I64 => Self::Int64,
            ElementType::U64 => Self::Uint64(u64::MAX),
            ElementType::U32 => Self::Uint64(u64::from(u32::MAX)),
            ElementType::I32 => Self::Int32(i64::from(i32::MIN), i64::from(i32::MAX)),
            ElementType::I16 => Self::Int32(i64::from(i16::MIN), i64::from(i16::MAX)),
            ElementType::I8 => Self::Int32(i64::from(i8::MIN), i64::from(i8::MAX)),
            ElementType::U8 => Self::Int32(0, i64::from(u8::MAX)),
            ElementType::Bool => Self::Int32(0, 1),
            // This field has half-precision numbers as their bits.
            ElementType::U16 | ElementType::F16 | ElementType::Bf16 => Self::Int32(0, i64::from(u16::MAX)),
        }
    }

    fn number(self) -> u32 {
        match self {
            Self::Float => 4,
            Self::Int32(..) => 5,
            Self::Int64 => 7,
            Self::Double => 10,
            Self::Uint64(_) => 11,
        }
    }

    /// Returns the bits of the numbers in a field.
    fn bits_of<'a>(
        self,
        field: &Field<'a>,
    ) -> Result<Box<dyn Iterator<Item = Result<u64, ProtobufError>> + 'a>, ProtobufError> {
        Ok(match self {
            Self::Float => Box::new(field.fixed32s()?.map(|bits| bits.map(u64::from))),
            Self::Double => Box::new(field.fixed64s()?),
            Self::Int32(..) | Self::Int64 | Self::Uint64(_) => Box::new(field.varints()?),
        })
    }

    /// Returns whether the type of the tensor has a number with these bits.
    fn holds(self, bits: u64) -> bool {
        match self {
            Self::Float | Self::Double | Self::Int64 => true,
            Self::Int32(min, max) => (min..=max).contains(&bits.cast_signed()),
            Self::Uint64(max) => bits <= max,
        }
    }
}

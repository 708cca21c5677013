//! Plain numbers as tensors in a safetensors file, and back: one way for everything that this crate stores.
//!
//! Weights are not here: the engine hands them over as whole files.

use std::collections::HashMap;

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensorError, SafeTensors};

/// A tensor by name: type, shape and bytes.
pub(crate) type Named = (&'static str, Dtype, Vec<usize>, Vec<u8>);

/// Why a file does not hold the tensors that it should.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TensorsError {
    /// Not safetensors.
    #[error("not a safetensors file: {0}")]
    Format(#[from] SafeTensorError),
    /// A tensor of another type or shape.
    #[error("`{name}` is {found}, not {wanted}")]
    Shape {
        /// The tensor.
        name: String,
        /// What it is.
        found: String,
        /// What it should be.
        wanted: String,
    },
}

/// A kind of number that a file can hold, little-endian.
pub(crate) trait TensorElement: Copy {
    const DTYPE: Dtype;
    fn append(self, to: &mut Vec<u8>);
    fn all(bytes: &[u8]) -> Vec<Self>;
}

macro_rules! numbers {
    ($($type:ty => $dtype:ident)+) => {
        $(impl TensorElement for $type {
            const DTYPE: Dtype = Dtype::$dtype;
            fn append(self, to: &mut Vec<u8>) {
                to.extend(self.to_le_bytes());
            }
            fn all(bytes: &[u8]) -> Vec<Self> {
                bytes.as_chunks().0.iter().map(|&number| Self::from_le_bytes(number)).collect()
            }
        })+
    };
}

numbers! { f32 => F32 f64 => F64 i32 => I32 u32 => U32 u64 => U64 }

/// Numbers under a name.
pub(crate) fn tensor<T: TensorElement>(name: &'static str, shape: &[usize], numbers: &[T]) -> Named {
    let mut bytes = Vec::with_capacity(size_of_val(numbers));
    for number in numbers {
        number.append(&mut bytes);
    }
    (name, T::DTYPE, shape.to_vec(), bytes)
}

/// The bytes of a file: the same for the same tensors. At most one note, since the order of several is not fixed.
pub(crate) fn write(tensors: &[Named], note: Option<(&str, String)>) -> Result<Vec<u8>, TensorsError> {
    let views = tensors
        .iter()
        .map(|(name, dtype, shape, bytes)| Ok((*name, TensorView::new(*dtype, shape.clone(), bytes)?)))
        .collect::<Result<Vec<_>, SafeTensorError>>()?;
    let note = note.map(|(key, text)| HashMap::from([(key.to_owned(), text)]));
    Ok(safetensors::serialize(views, note)?)
}

/// A file that was read.
pub(crate) struct Tensors<'a>(SafeTensors<'a>);

impl<'a> Tensors<'a> {
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, TensorsError> {
        Ok(Self(SafeTensors::deserialize(bytes)?))
    }

    /// How many rows a tensor has.
    pub(crate) fn rows(&self, name: &str) -> Result<usize, TensorsError> {
        Ok(self.0.tensor(name)?.shape().first().copied().unwrap_or(0))
    }

    /// The numbers of a tensor that must have this shape.
    pub(crate) fn numbers<T: TensorElement>(
        &self,
        name: &str,
        shape: &[usize],
    ) -> Result<Vec<T>, TensorsError> {
        let tensor = self.0.tensor(name)?;
        if tensor.dtype() != T::DTYPE || tensor.shape() != shape {
            return Err(TensorsError::Shape {
                name: name.to_owned(),
                found: format!("{:?} {:?}", tensor.dtype(), tensor.shape()),
                wanted: format!("{:?} {shape:?}", T::DTYPE),
            });
        }
        Ok(T::all(tensor.data()))
    }
}

//! Encodes and decodes plain numbers as tensors in a safetensors file, for everything that this crate stores.
//!
//! Weights are not included: the engine encodes them itself.
//!
//! Files are written by hand around the header of the crate `safetensors`, whose own writer needs all tensors as bytes
//! first: the state of a hundred million samples would be in memory twice. A test compares the bytes with that writer's.

use std::collections::HashMap;

use safetensors::tensor::{Metadata, TensorInfo};
use safetensors::{Dtype, SafeTensors};

use crate::error::RunError;

/// A named tensor that is encoded directly into the file, so that the file's bytes are the only copy.
pub(crate) struct NamedTensor<'a> {
    name: &'static str,
    dtype: Dtype,
    shape: Vec<usize>,
    /// The size of all numbers, in bytes.
    length: usize,
    append: Append<'a>,
}

/// Appends all numbers of a tensor to a file.
type Append<'a> = Box<dyn Fn(&mut Vec<u8>) + 'a>;

/// An element type of a file, little-endian.
pub(crate) trait TensorElement: Copy {
    const DTYPE: Dtype;
    fn append(self, to: &mut Vec<u8>);
    fn each(bytes: &[u8]) -> impl Iterator<Item = Self>;
}

macro_rules! numbers {
    ($($type:ty => $dtype:ident)+) => {
        $(impl TensorElement for $type {
            const DTYPE: Dtype = Dtype::$dtype;
            fn append(self, to: &mut Vec<u8>) {
                to.extend(self.to_le_bytes());
            }
            fn each(bytes: &[u8]) -> impl Iterator<Item = Self> {
                bytes.as_chunks().0.iter().map(|&number| Self::from_le_bytes(number))
            }
        })+
    };
}

numbers! { f32 => F32 f64 => F64 i32 => I32 u8 => U8 u32 => U32 u64 => U64 }

pub(crate) fn tensor<'a, T: TensorElement>(
    name: &'static str,
    shape: &[usize],
    numbers: &'a [T],
) -> NamedTensor<'a> {
    let append = move |to: &mut Vec<u8>| {
        for number in numbers {
            number.append(to);
        }
    };
    let shape = shape.to_vec();
    let length = size_of_val(numbers);
    NamedTensor { name, dtype: T::DTYPE, shape, length, append: Box::new(append) }
}

/// Encodes a file; the same tensors always give the same bytes. At most one metadata entry, since the order of several is
/// not fixed.
pub(crate) fn write(
    mut tensors: Vec<NamedTensor<'_>>,
    note: Option<(&str, String)>,
) -> Result<Vec<u8>, RunError> {
    // The order of the crate `safetensors`: large elements first, so that all are aligned.
    tensors.sort_by(|left, right| right.dtype.cmp(&left.dtype).then(left.name.cmp(right.name)));
    let mut entries = Vec::new();
    let mut end = 0;
    for NamedTensor { name, dtype, shape, length, .. } in &tensors {
        let begin = end;
        end += length;
        let entry = TensorInfo { dtype: *dtype, shape: shape.clone(), data_offsets: (begin, end) };
        entries.push(((*name).to_owned(), entry));
    }
    let note = note.map(|(key, text)| HashMap::from([(key.to_owned(), text)]));
    let header = serde_json::to_vec(&Metadata::new(note, entries)?);
    let mut header =
        header.map_err(|error| RunError::Format(format!("the header cannot be written: {error}")))?;
    header.resize(header.len().next_multiple_of(8), b' ');
    let mut file = Vec::with_capacity(8 + header.len() + end);
    file.extend((header.len() as u64).to_le_bytes());
    file.extend(header);
    for tensor in &tensors {
        (tensor.append)(&mut file);
    }
    Ok(file)
}

pub(crate) struct Tensors<'a>(SafeTensors<'a>);

impl<'a> Tensors<'a> {
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, RunError> {
        Ok(Self(SafeTensors::deserialize(bytes)?))
    }

    /// Returns whether a tensor with this name exists.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.tensor(name).is_ok()
    }

    /// Counts the rows of a tensor.
    pub(crate) fn rows(&self, name: &str) -> Result<usize, RunError> {
        Ok(self.0.tensor(name)?.shape().first().copied().unwrap_or(0))
    }

    /// Returns the shape of a tensor with two dimensions.
    pub(crate) fn matrix_shape(&self, name: &str) -> Result<[usize; 2], RunError> {
        let tensor = self.0.tensor(name)?;
        let shape = tensor.shape();
        shape
            .try_into()
            .map_err(|_| RunError::Format(format!("`{name}` has {} dimensions, not 2", shape.len())))
    }

    /// Reads a tensor, which must have this shape.
    pub(crate) fn numbers<T: TensorElement>(&self, name: &str, shape: &[usize]) -> Result<Vec<T>, RunError> {
        Ok(T::each(self.bytes::<T>(name, shape)?).collect())
    }

    /// Reads a tensor with this shape into existing memory.
    pub(crate) fn numbers_into<T: TensorElement>(
        &self,
        name: &str,
        shape: &[usize],
        into: &mut [T],
    ) -> Result<(), RunError> {
        let numbers = T::each(self.bytes::<T>(name, shape)?);
        for (to, number) in into.iter_mut().zip(numbers) {
            *to = number;
        }
        Ok(())
    }

    fn bytes<T: TensorElement>(&self, name: &str, shape: &[usize]) -> Result<&[u8], RunError> {
        let tensor = self.0.tensor(name)?;
        if tensor.dtype() != T::DTYPE || tensor.shape() != shape {
            let found = format!("{:?} {:?}", tensor.dtype(), tensor.shape());
            let expected = format!("{:?} {shape:?}", T::DTYPE);
            return Err(RunError::Format(format!("`{name}` is {found}, not {expected}")));
        }
        Ok(tensor.data())
    }
}

#[cfg(test)]
mod tests {
    use safetensors::tensor::TensorView;

    use super::*;

    /// Numbers of every size, out of order, give the same bytes as the crate `safetensors`.
    #[test]
    fn the_file_is_the_one_of_the_crate() {
        let ids = [7_u64, 8];
        let labels = [1_u32, 2];
        let values = [0.5_f32, 1.0, 2.0, 4.0];
        let note = || Some(("calmix", "\"a note\"".to_owned()));
        let named = vec![
            tensor("b", &[2], &labels),
            tensor("values", &[2, 2], &values),
            tensor("a", &[2], &labels),
            tensor("ids", &[2], &ids),
            tensor::<f32>("none", &[0, 3], &[]),
        ];
        let file = write(named, note()).unwrap();
        let [ids, labels, values] = [
            ids.map(u64::to_le_bytes).concat(),
            labels.map(u32::to_le_bytes).concat(),
            values.map(f32::to_le_bytes).concat(),
        ];
        let views = [
            ("a", Dtype::U32, vec![2], &labels[..]),
            ("b", Dtype::U32, vec![2], &labels),
            ("ids", Dtype::U64, vec![2], &ids),
            ("none", Dtype::F32, vec![0, 3], &[]),
            ("values", Dtype::F32, vec![2, 2], &values),
        ]
        .map(|(name, dtype, shape, bytes)| (name, TensorView::new(dtype, shape, bytes).unwrap()));
        let note = note().map(|(key, text)| HashMap::from([(key.to_owned(), text)]));
        assert_eq!(file, safetensors::serialize(views, note).unwrap());
    }
}

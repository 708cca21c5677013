//! A safetensors file with a tensor of vectors, and optionally one of labels.

use std::io::Read;
use std::sync::Arc;

use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};

use super::array_data::ArrayData;
use super::array_format::{ArrayFormat, VectorArray};
use super::array_labels::{ArrayLabels, LABEL_NAMES};
use super::options::{VectorOptions, choose};
use super::place::VectorPlace;
use super::shape::VectorShape;
use super::vector_source::{VectorFile, VectorSource};
use crate::element_type::ElementType;
use crate::error::{FormatError, FormatProblem};
use crate::npy::NpyType;
use crate::read_at::{ReadFrom, read_error};

/// The maximum size of a header, in bytes: thousands of tensors.
const MAX_HEADER_BYTES: u64 = 16 << 20;

/// Opens a file with one tensor of vectors, and optionally one of labels.
pub(super) fn open(
    place: &VectorPlace,
    name: &str,
    options: &VectorOptions,
) -> Result<VectorSource, FormatError> {
    let file = Arc::new(place.open(name)?);
    let path = file.path().to_owned();
    let wrong = |problem: FormatProblem| FormatError::new(&path, problem);
    let damaged = |what: &str| wrong(FormatProblem::Format(what.to_owned())).hint("write it again");
    let mut from = ReadFrom::full(&file);
    let mut length = [0; 8];
    from.read_exact(&mut length).map_err(|error| read_error(&path, error))?;
    let length = u64::from_le_bytes(length);
    if length > MAX_HEADER_BYTES {
        let problem = format!("its header has {length} bytes, expected at most {MAX_HEADER_BYTES}");
        return Err(wrong(FormatProblem::Limit(problem)));
    }
    if length > file.length() {
        return Err(damaged("the file ends inside its header"));
    }
    let mut header = vec![0; length as usize];
    from.read_exact(&mut header).map_err(|error| read_error(&path, error))?;
    let header: Metadata = serde_json::from_slice(&header)
        .map_err(|error| damaged(&format!("not a safetensors file: {error}")))?;
    let first = 8 + length;
    if (header.data_len() as u64).checked_add(first) != Some(file.length()) {
        return Err(damaged("its length is not the one that its header says"));
    }
    let mut tensors: Vec<(String, &TensorInfo)> = header.tensors().into_iter().collect();
    tensors.sort_by(|a, b| a.0.cmp(&b.0));
    let labels = LABEL_NAMES.iter().find_map(|name| tensors.iter().position(|(tensor, _)| tensor == name));
    let labels = labels.map(|index| tensors.remove(index).1);
    tensors.retain(|(_, info)| element_type(info.dtype).is_some() && info.shape.len() >= 2);
    let names: Vec<&str> = tensors.iter().map(|(name, _)| name.as_str()).collect();
    let chosen = choose(&names, options.vector_column.as_deref(), "tensors").map_err(wrong)?;
    let (_, info) = tensors.swap_remove(chosen);
    let Some(element_type) = element_type(info.dtype) else { return Err(damaged("its type changed")) };
    let dimensions: Vec<u64> = info.shape.iter().map(|&size| size as u64).collect();
    let shape = VectorShape::from_dimensions(&dimensions).map_err(wrong)?;
    let data = |info: &TensorInfo| {
        let (start, end) = info.data_offsets;
        ArrayData::InFile { file: Arc::clone(&file), start: first + start as u64, end: first + end as u64 }
    };
    let expected = shape.rows.checked_mul((shape.numbers() * element_type.bytes()) as u64);
    if expected != Some((info.data_offsets.1 - info.data_offsets.0) as u64) {
        return Err(damaged("the tensor has another length than its shape says"));
    }
    let labels = labels.map(|info| {
        let item = int_type(info.dtype).ok_or_else(|| {
            let problem = FormatProblem::Content("its labels are not whole numbers".into());
            wrong(problem).hint("save them as int64, -1 for no label")
        })?;
        let dimensions: Vec<u64> = info.shape.iter().map(|&size| size as u64).collect();
        ArrayLabels::new(&path, data(info), item, &dimensions, shape.rows)
    });
    let labels = labels.transpose()?;
    let files = vec![VectorFile::new(&file, name, shape.rows, first + info.data_offsets.0 as u64)];
    let arrays = vec![VectorArray { path: path.clone(), data: data(info), rows: shape.rows }];
    let format = ArrayFormat { arrays, element_type, numbers: shape.numbers(), labels, metadata: None };
    Ok(VectorSource::new(shape, files, Some(element_type), format))
}

fn element_type(dtype: Dtype) -> Option<ElementType> {
    match dtype {
        Dtype::F16 => Some(ElementType::F16),
        Dtype::BF16 => Some(ElementType::Bf16),
        Dtype::F32 => Some(ElementType::F32),
        Dtype::F64 => Some(ElementType::F64),
        _ => None,
    }
}

fn int_type(dtype: Dtype) -> Option<NpyType> {
    let (bytes, signed) = match dtype {
        Dtype::U8 | Dtype::BOOL => (1, false),
        Dtype::I8 => (1, true),
        Dtype::U16 => (2, false),
        Dtype::I16 => (2, true),
        Dtype::U32 => (4, false),
        Dtype::I32 => (4, true),
        Dtype::U64 => (8, false),
        Dtype::I64 => (8, true),
        _ => return None,
    };
    Some(NpyType::Int { bytes, signed })
}

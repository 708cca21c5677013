//! A safetensors file with a tensor of vectors, and possibly one of labels.

use std::io::Read;
use std::sync::Arc;

use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};

use super::array_data::ArrayData;
use super::array_format::{ArrayFormat, VectorArray};
use super::array_labels::{ArrayLabels, NAMES};
use super::options::{VectorOptions, choose};
use super::place::VectorPlace;
use super::shape::VectorShape;
use super::vector_format::VectorFormat;
use super::vector_source::{VectorFile, VectorSource};
use crate::element_type::ElementType;
use crate::error::{FormatError, FormatProblem};
use crate::npy::NpyItem;
use crate::read_at::{ReadFrom, read_error};

/// Bytes of the longest header: thousands of tensors.
const LONGEST_HEADER: u64 = 16 << 20;

/// A file of tensors.
pub(super) struct Safetensors;

impl VectorFormat for Safetensors {
    fn ending(&self) -> Option<&'static str> {
        Some("safetensors")
    }

    fn matches(&self, start: &[u8], place: &VectorPlace) -> bool {
        place.has_ending(&["safetensors"]) || start.get(8) == Some(&b'{')
    }

    /// Opens a file with one tensor of vectors.
    fn open(
        &self,
        place: &VectorPlace,
        name: &str,
        options: &VectorOptions,
    ) -> Result<VectorSource, FormatError> {
        let file = Arc::new(place.open(name)?);
        let path = file.path().to_owned();
        let wrong = |problem: FormatProblem| FormatError::new(&path, problem);
        let damaged = |what: &str| wrong(FormatProblem::Format(what.to_owned())).hint("write it again");
        let mut from = ReadFrom::new(&file, 0, file.length());
        let mut length = [0; 8];
        from.read_exact(&mut length).map_err(|error| read_error(&path, error))?;
        let length = u64::from_le_bytes(length);
        if length > LONGEST_HEADER {
            let problem = format!("its header has {length} bytes, expected at most {LONGEST_HEADER}");
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
        let labels = NAMES.iter().find_map(|name| tensors.iter().position(|(tensor, _)| tensor == name));
        let labels = labels.map(|index| tensors.remove(index).1);
        tensors.retain(|(_, info)| number(info.dtype).is_some() && info.shape.len() >= 2);
        let names: Vec<&str> = tensors.iter().map(|(name, _)| name.as_str()).collect();
        let chosen = choose(&names, options.vector_column.as_deref(), "tensors").map_err(wrong)?;
        let (_, info) = tensors.swap_remove(chosen);
        let Some(number) = number(info.dtype) else { return Err(damaged("its type changed")) };
        let dimensions: Vec<u64> = info.shape.iter().map(|&size| size as u64).collect();
        let shape = VectorShape::of_array(&dimensions).map_err(wrong)?;
        let data = |info: &TensorInfo| {
            let (start, end) = info.data_offsets;
            ArrayData::InFile {
                file: Arc::clone(&file),
                start: first + start as u64,
                end: first + end as u64,
            }
        };
        let expected = shape.rows.checked_mul((shape.numbers() * number.bytes()) as u64);
        if expected != Some((info.data_offsets.1 - info.data_offsets.0) as u64) {
            return Err(damaged("the tensor has another length than its shape says"));
        }
        let labels = labels.map(|info| {
            let item = whole(info.dtype).ok_or_else(|| {
                let problem = FormatProblem::Content("its labels are not whole numbers".into());
                wrong(problem).hint("save them as int64, -1 for no label")
            })?;
            let dimensions: Vec<u64> = info.shape.iter().map(|&size| size as u64).collect();
            ArrayLabels::new(&path, data(info), item, &dimensions, shape.rows)
        });
        let labels = labels.transpose()?;
        let start = first + info.data_offsets.0 as u64;
        let relative = name.to_owned();
        let files =
            vec![VectorFile { path: path.clone(), relative, length: file.length(), rows: shape.rows, start }];
        let arrays = vec![VectorArray { path: path.clone(), data: data(info), rows: shape.rows }];
        let format = ArrayFormat { arrays, number, numbers: shape.numbers(), labels, metadata: None };
        Ok(VectorSource::new(shape, files, Some(number), format))
    }
}

fn number(kind: Dtype) -> Option<ElementType> {
    match kind {
        Dtype::F16 => Some(ElementType::F16),
        Dtype::BF16 => Some(ElementType::Bf16),
        Dtype::F32 => Some(ElementType::F32),
        Dtype::F64 => Some(ElementType::F64),
        _ => None,
    }
}

fn whole(kind: Dtype) -> Option<NpyItem> {
    let (bytes, signed) = match kind {
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
    Some(NpyItem::Whole { bytes, signed })
}

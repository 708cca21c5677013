//! A page of a cache: the verified vectors of a few samples in some views.
//!
//! A safetensors file with three tensors:
//!
//! | tensor | type and shape | what it is |
//! |---|---|---|
//! | `ids` | u64, samples | the samples, ascending |
//! | `views` | u8, views × 2 | each 0, 0 (clean), 1, n (weak) or 2, n (strong) |
//! | `vectors` | f16, samples × views × width | the features |
//!
//! The metadata key `blake3` holds the hash of `vectors`. The file name is a hash of everything else, so the samples and
//! views of a page can be verified without reading the vectors.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use calmix_formats::error::FormatProblem;
use calmix_io::confined_path::ConfinedPath;
use calmix_io::safe_open;
use calmix_io::system::read_exact_at;
use safetensors::tensor::{Metadata, TensorInfo, TensorView};
use safetensors::{Dtype, SafeTensorError, serialize};

use super::FeatureView;
use crate::error::DataError;

/// The maximum number of samples per page: those whose ids have the same quotient by this number.
pub(super) const PAGE_SAMPLES: usize = 256;
/// More views than any run stores.
const MAX_VIEWS: usize = 513;
/// The maximum length of a vector.
const MAX_WIDTH: usize = 1 << 19;
/// The maximum size of a header, in bytes; headers that calmix writes have some 300.
const MAX_HEADER_BYTES: u64 = 4_096;
/// The metadata key of the hash of the vectors.
const HASH: &str = "blake3";

/// The samples and views of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PageIndex {
    /// The length of a vector, in numbers.
    pub(super) width: usize,
    pub(super) views: Vec<FeatureView>,
    pub(super) ids: Vec<u64>,
}

impl PageIndex {
    /// Returns the file name, which identifies the page within its cache.
    pub(super) fn name(&self) -> String {
        let mut hash = blake3::Hasher::new();
        for number in [self.width, self.views.len(), self.ids.len()] {
            hash.update(&(number as u64).to_le_bytes());
        }
        hash.update(&self.view_bytes()).update(&self.id_bytes());
        format!("page-{}.safetensors", hash.finalize().to_hex().chars().take(24).collect::<String>())
    }

    pub(super) fn vector_bytes(&self) -> usize {
        2 * self.width * self.views.len() * self.ids.len()
    }

    fn view_bytes(&self) -> Vec<u8> {
        self.views.iter().flat_map(|view| view.to_bytes()).collect()
    }

    fn id_bytes(&self) -> Vec<u8> {
        self.ids.iter().flat_map(|id| id.to_le_bytes()).collect()
    }
}

/// Encodes a page; the same vectors always give the same bytes.
pub(super) fn to_bytes(index: &PageIndex, vectors: &[u8]) -> Result<Vec<u8>, SafeTensorError> {
    let PageIndex { width, views, ids } = index;
    let id_bytes = index.id_bytes();
    let view_bytes = index.view_bytes();
    let tensors = [
        ("ids", TensorView::new(Dtype::U64, vec![ids.len()], &id_bytes)?),
        ("views", TensorView::new(Dtype::U8, vec![views.len(), 2], &view_bytes)?),
        ("vectors", TensorView::new(Dtype::F16, vec![ids.len(), views.len(), *width], vectors)?),
    ];
    // Only one entry, because the order of several is not fixed.
    let hash = HashMap::from([(HASH.to_owned(), blake3::hash(vectors).to_hex().to_string())]);
    serialize(tensors, Some(hash))
}

/// An open page with its index; the vectors have not been read.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) index: PageIndex,
    file: File,
    /// The offset of the vectors in the file.
    vectors: u64,
    hash: String,
}

impl Page {
    /// Opens a page and reads its index. The caller checks that the index matches the file name.
    pub(super) fn open(path: &ConfinedPath) -> Result<Self, DataError> {
        let (file, _) = safe_open::open_owned(path)?;
        Self::read(file).map_err(|problem| DataError::new(path, problem))
    }

    fn read(mut file: File) -> Result<Self, FormatProblem> {
        let mut length = [0; 8];
        file.read_exact(&mut length)?;
        let length = Some(u64::from_le_bytes(length)).filter(|&length| length <= MAX_HEADER_BYTES);
        let length = length.ok_or_else(damaged)?;
        let mut header = vec![0; length as usize];
        file.read_exact(&mut header)?;
        let header: Metadata = serde_json::from_slice(&header).map_err(|_| damaged())?;
        let data = 8 + length;
        if file.metadata()?.len() != data + header.data_len() as u64 {
            return Err(damaged());
        }
        let ids = tensor(&header, "ids", Dtype::U64)?;
        let views = tensor(&header, "views", Dtype::U8)?;
        let vectors = tensor(&header, "vectors", Dtype::F16)?;
        let [samples] = ids.shape[..] else { return Err(damaged()) };
        let [kinds, 2] = views.shape[..] else { return Err(damaged()) };
        let [_, _, width] = vectors.shape[..] else { return Err(damaged()) };
        let is_sane = (1..=PAGE_SAMPLES).contains(&samples)
            && (1..=MAX_VIEWS).contains(&kinds)
            && (1..=MAX_WIDTH).contains(&width)
            && vectors.shape == [samples, kinds, width];
        if !is_sane {
            return Err(damaged());
        }
        let mut bytes = vec![0; 8 * samples];
        read_exact_at(&file, &mut bytes, data + ids.data_offsets.0 as u64)?;
        let ids = bytes.as_chunks().0.iter().map(|&id| u64::from_le_bytes(id)).collect();
        let mut bytes = vec![0; 2 * kinds];
        read_exact_at(&file, &mut bytes, data + views.data_offsets.0 as u64)?;
        let views = bytes.as_chunks().0.iter().map(|&view| FeatureView::from_bytes(view));
        let views = views.collect::<Option<Vec<_>>>().ok_or_else(damaged)?;
        let hash = header.metadata().as_ref().and_then(|texts| texts.get(HASH)).ok_or_else(damaged)?.clone();
        let vectors = data + vectors.data_offsets.0 as u64;
        Ok(Self { index: PageIndex { width, views, ids }, file, vectors, hash })
    }

    /// Reads and verifies the vectors, sample by sample and view by view.
    pub(super) fn vectors(&self, path: &Path) -> Result<Vec<u8>, DataError> {
        let mut vectors = vec![0; self.index.vector_bytes()];
        let read = read_exact_at(&self.file, &mut vectors, self.vectors);
        read.map_err(|error| DataError::new(path, error))?;
        if *blake3::hash(&vectors).to_hex() == *self.hash {
            Ok(vectors)
        } else {
            Err(DataError::new(path, damaged()))
        }
    }
}

fn tensor<'a>(header: &'a Metadata, name: &str, dtype: Dtype) -> Result<&'a TensorInfo, FormatProblem> {
    header.info(name).filter(|info| info.dtype == dtype).ok_or_else(damaged)
}

fn damaged() -> FormatProblem {
    FormatProblem::Changed("the page is damaged".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a page of any size, and opens it.
    fn opened(index: &PageIndex) -> Result<Page, DataError> {
        let temp = tempfile::tempdir().unwrap();
        let path = ConfinedPath::root(temp.path()).join(index.name());
        std::fs::write(&path, to_bytes(index, &vec![1; index.vector_bytes()]).unwrap()).unwrap();
        Page::open(&path)
    }

    /// An oversized page would exhaust the memory of the process that opens it.
    #[test]
    fn page_beyond_its_limits_is_refused() {
        let index = |width: usize, views: usize, samples: usize| PageIndex {
            width,
            views: (0..views).map(|n| FeatureView::Weak(n as u8)).collect(),
            ids: (0..samples as u64).collect(),
        };
        for fine in [index(1, 1, 1), index(1, 1, 256), index(1, 513, 1), index(1 << 19, 1, 1)] {
            assert_eq!(opened(&fine).unwrap().index, fine);
        }
        for (width, views, samples) in [(1, 1, 257), (1, 514, 1), ((1 << 19) + 1, 1, 1)] {
            opened(&index(width, views, samples)).unwrap_err();
        }
        for (width, views, samples) in [(1, 1, 0), (1, 0, 1), (0, 1, 1)] {
            opened(&index(width, views, samples)).unwrap_err();
        }
    }

    #[test]
    fn page_of_another_shape_is_refused() {
        let ids = 7_u64.to_le_bytes();
        let tensors = |shape: Vec<usize>| {
            [
                ("ids", TensorView::new(Dtype::U64, vec![1], &ids).unwrap()),
                ("views", TensorView::new(Dtype::U8, vec![1, 2], &[0, 0]).unwrap()),
                ("vectors", TensorView::new(Dtype::F16, shape, &[0; 8]).unwrap()),
            ]
        };
        let temp = tempfile::tempdir().unwrap();
        let path = ConfinedPath::root(temp.path()).join("page");
        let opened = |shape: Vec<usize>| {
            let hash = HashMap::from([(HASH.to_owned(), blake3::hash(&[0; 8]).to_hex().to_string())]);
            std::fs::write(&path, serialize(tensors(shape), Some(hash)).unwrap()).unwrap();
            Page::open(&path)
        };
        assert_eq!(opened(vec![1, 1, 4]).unwrap().vectors(&path).unwrap(), [0; 8]);
        for shape in [vec![2, 1, 2], vec![1, 2, 2], vec![1, 4], vec![4]] {
            opened(shape).unwrap_err();
        }
    }
}

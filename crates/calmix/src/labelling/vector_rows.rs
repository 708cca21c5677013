//! The names of a dataset's vectors: their ids, or the numbers of their rows.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use calmix_data::source::vectors;
use calmix_formats::vectors::{VectorOptions, VectorSource};

/// The rows to read at once.
const ROWS_PER_BLOCK: usize = 4_096;

/// The rows of a file of vectors.
#[derive(Debug)]
pub(crate) struct VectorRows {
    pub(crate) path: PathBuf,
    pub(crate) count: u64,
    /// The row of each id; `None` if the file has no ids.
    ids: Option<HashMap<String, u64>>,
    /// The labels in the file of the vectors, in the order of the rows, each with the name of its row.
    pub(crate) own_labels: Vec<(String, String)>,
}

impl VectorRows {
    /// Reads the names of all rows. The labels in the file itself are read only if there is no list yet, which would hide them.
    ///
    /// # Errors
    /// If the vectors cannot be read.
    pub(crate) fn read(path: &Path, options: &VectorOptions, has_list: bool) -> Result<Self> {
        let source = vectors::open(path, has_list, options)?;
        let count = source.rows();
        let mut rows = Self { path: path.to_owned(), count, ids: None, own_labels: Vec::new() };
        let first = source.unchecked_blocks(0, 1).next().transpose()?.unwrap_or_default();
        // Row numbers are known without reading the vectors.
        if first.ids.is_none() && (has_list || first.labels.is_none()) {
            return Ok(rows);
        }
        rows.read_names(&source, has_list)?;
        Ok(rows)
    }

    fn read_names(&mut self, source: &VectorSource, has_list: bool) -> Result<()> {
        let mut ids = HashMap::new();
        for block in source.unchecked_blocks(0, ROWS_PER_BLOCK) {
            let block = block?;
            let own = block.labels.filter(|_| !has_list).unwrap_or_default();
            for (index, label) in own.into_iter().enumerate() {
                let Some(label) = label else { continue };
                let id = block.ids.as_ref().and_then(|ids| ids.get(index)).cloned();
                let number = block.first + index as u64;
                self.own_labels.push((id.unwrap_or_else(|| number.to_string()), label));
            }
            for (id, row) in block.ids.into_iter().flatten().zip(block.first..) {
                ids.insert(id, row);
            }
        }
        self.ids = Some(ids).filter(|ids| !ids.is_empty());
        Ok(())
    }

    /// Returns the row with this name; `None` if there is none.
    pub(crate) fn find(&self, name: &str) -> Option<u64> {
        match &self.ids {
            Some(ids) => ids.get(name).copied(),
            // Only as calmix writes it, so that `7` and `07` are not the same row under two names.
            None => name.parse().ok().filter(|row: &u64| *row < self.count && row.to_string() == name),
        }
    }

    /// Returns whether the vectors have ids.
    pub(crate) fn has_ids(&self) -> bool {
        self.ids.is_some()
    }
}

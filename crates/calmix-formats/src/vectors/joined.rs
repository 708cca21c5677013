//! Several sets of features of the same samples, such as those of two backbones, joined row by row.
//!
//! Sets with ids are matched by them, whatever their order; a set without ids has its rows in the order of the first set with ids. A
//! set in another order is read into memory, because its format may have no access to single rows.

use std::collections::HashMap;
use std::path::Path;

use super::shape::VectorShape;
use super::vector_source::{FeatureSet, RowStream, VectorBlock, VectorRows, VectorSource};
use crate::error::FormatError;

/// The maximum number of sets.
const MAX_SETS: usize = 16;
/// The maximum size of a set that is read into memory because of its order, in bytes.
const MAX_REORDERED_BYTES: u64 = 8 << 30;
/// The number of rows that are read at once.
const BLOCK_ROWS: usize = 4_096;
/// The maximum number of ids that a message lists.
const MAX_LISTED: usize = 5;

/// The opened sets, in the order in which their features are joined.
#[derive(Debug)]
struct JoinedSets {
    sets: Vec<JoinedSet>,
    views: usize,
}

#[derive(Debug)]
struct JoinedSet {
    source: VectorSource,
    /// All its rows in the order of the joined ones, if its own order is another.
    reordered: Option<VectorBlock>,
}

impl VectorSource {
    /// Joins the rows of several sets of features of the same samples: the vector of a sample has the features of all sets, one set
    /// after the other. Ids, labels and groups are those of the first set that has them.
    ///
    /// # Errors
    /// If the sets do not have the same ids, or the same number of rows and views, or cannot be read.
    pub fn join(mut sources: Vec<Self>) -> Result<Self, FormatError> {
        if sources.len() == 1 {
            return Ok(sources.remove(0));
        }
        let [first, others @ ..] = &sources[..] else {
            return Err(FormatError::content("", "there are no vectors"));
        };
        if sources.len() > MAX_SETS {
            let problem = format!("{} sets of features, expected at most {MAX_SETS}", sources.len());
            return Err(FormatError::limit(first.path(), problem));
        }
        if let Some(other) = others.iter().find(|other| other.views() != first.views()) {
            let problem = format!(
                "{} vectors per sample, but {} has {}",
                other.views(),
                first.path().display(),
                first.views()
            );
            return Err(FormatError::content(other.path(), problem).hint("use the same views in every set"));
        }
        join_all(sources)
    }
}

fn join_all(sources: Vec<VectorSource>) -> Result<VectorSource, FormatError> {
    let ids = sources.iter().map(ids_of).collect::<Result<Vec<_>, _>>()?;
    // The order of the first set with ids, otherwise of the first one.
    let reference = ids.iter().position(Option::is_some).unwrap_or(0);
    let rows = sources.get(reference).map_or(0, VectorSource::rows);
    let views = sources.first().map_or(1, VectorSource::views);
    let mut features = Vec::new();
    let mut sets = Vec::new();
    let paths: Vec<_> = sources.iter().map(|source| source.path().to_owned()).collect();
    for (n, (source, own_ids)) in sources.into_iter().zip(&ids).enumerate() {
        let mut order = None;
        match (&ids[reference], own_ids) {
            (Some(wanted), Some(own)) => order = order_of(&source, own, wanted, &paths[reference])?,
            _ if source.rows() != rows => {
                let other = paths[reference].display();
                let problem = format!("{} rows, but {other} has {rows}", source.rows());
                let hint = "each set needs the same samples in the same order, or a column of ids";
                return Err(FormatError::content(&paths[n], problem).hint(hint));
            }
            _ => {}
        }
        let reordered = order.as_ref().map(|order| reorder(&source, order)).transpose()?;
        features.push(FeatureSet { width: source.width(), files: source.files().to_vec(), order });
        sets.push(JoinedSet { source, reordered });
    }
    let width = features.iter().map(|set| set.width as u64).sum();
    let problem = |problem| FormatError::new(&paths[reference], problem);
    let shape = VectorShape::new(rows, views as u64, width).map_err(problem)?;
    // Joined rows are in no file, so none can be read in place.
    let mut files = features.first().map(|set| set.files.clone()).unwrap_or_default();
    for file in &mut files {
        file.start = 0;
    }
    let label_columns = sets.iter().find_map(|set| {
        let columns = set.source.label_columns();
        (!columns.is_empty()).then(|| columns.to_vec())
    });
    let joined = VectorSource::new(shape, files, None, JoinedSets { sets, views });
    Ok(joined.with_label_columns(label_columns.unwrap_or_default()).with_sets(features))
}

/// Reads the ids of all rows; `None` if the set has none.
fn ids_of(source: &VectorSource) -> Result<Option<Vec<String>>, FormatError> {
    let mut ids = Vec::new();
    for block in source.unchecked_blocks(0, BLOCK_ROWS) {
        let Some(of_block) = block?.ids else { return Ok(None) };
        ids.extend(of_block);
    }
    Ok(Some(ids))
}

/// Returns the row of each wanted id; `None` if the set already has this order.
fn order_of(
    source: &VectorSource,
    own: &[String],
    wanted: &[String],
    wanted_path: &Path,
) -> Result<Option<Vec<u64>>, FormatError> {
    if own == wanted {
        return Ok(None);
    }
    let path = source.path();
    let mut rows: HashMap<&str, u64> = HashMap::with_capacity(own.len());
    for (row, id) in (0..).zip(own) {
        if let Some(first) = rows.insert(id, row) {
            let problem = format!("the rows {first} and {row} have the id {id:?}");
            return Err(FormatError::content(path, problem).hint("give every row its own id"));
        }
    }
    let mut order = Vec::with_capacity(wanted.len());
    let mut missing = Vec::new();
    for id in wanted {
        match rows.remove(id.as_str()) {
            Some(row) => order.push(row),
            None => missing.push(id.as_str()),
        }
    }
    let hint = "compute the features of the same samples for every set, or remove the others";
    if !missing.is_empty() {
        let other = wanted_path.display();
        let problem = format!(
            "no row for {} of the {} ids of {other}: {}",
            missing.len(),
            wanted.len(),
            listed(&missing)
        );
        return Err(FormatError::content(path, problem).hint(hint));
    }
    if !rows.is_empty() {
        let mut surplus: Vec<(u64, &str)> = rows.into_iter().map(|(id, row)| (row, id)).collect();
        surplus.sort_unstable();
        let surplus: Vec<&str> = surplus.into_iter().map(|(_, id)| id).collect();
        let problem = format!(
            "{} of its {} ids are not in {}: {}",
            surplus.len(),
            own.len(),
            wanted_path.display(),
            listed(&surplus)
        );
        return Err(FormatError::content(path, problem).hint(hint));
    }
    Ok(Some(order))
}

fn listed(ids: &[&str]) -> String {
    let named: Vec<String> = ids.iter().take(MAX_LISTED).map(|id| format!("{id:?}")).collect();
    let more = if ids.len() > MAX_LISTED { ", …" } else { "" };
    named.join(", ") + more
}

/// Reads all rows in another order.
fn reorder(source: &VectorSource, order: &[u64]) -> Result<VectorBlock, FormatError> {
    let numbers = source.width() * source.views();
    let bytes = source.rows().saturating_mul(4 * numbers as u64);
    if bytes > MAX_REORDERED_BYTES {
        let problem = format!(
            "its ids have another order than those of the other set, and its {bytes} bytes are too many to sort"
        );
        return Err(
            FormatError::limit(source.path(), problem).hint("sort the rows of every set by their ids")
        );
    }
    let mut all = VectorBlock::default();
    for block in source.unchecked_blocks(0, BLOCK_ROWS) {
        let block = block?;
        all.vectors.extend(block.vectors);
        all.labels = joined_column(all.labels, block.labels);
        all.groups = joined_column(all.groups, block.groups);
    }
    let mut sorted = VectorBlock::default();
    sorted.vectors.reserve(all.vectors.len());
    for &row in order {
        sorted.vectors.extend_from_slice(&all.vectors[row as usize * numbers..][..numbers]);
    }
    let column = |column: Option<Vec<Option<String>>>| {
        column.map(|column| order.iter().map(|&row| column[row as usize].clone()).collect())
    };
    sorted.labels = column(all.labels);
    sorted.groups = column(all.groups);
    Ok(sorted)
}

fn joined_column<T>(column: Option<Vec<T>>, more: Option<Vec<T>>) -> Option<Vec<T>> {
    let Some(more) = more else { return column };
    let mut column = column.unwrap_or_default();
    column.extend(more);
    Some(column)
}

impl VectorRows for JoinedSets {
    fn stream(&self, first: u64) -> Result<Box<dyn RowStream + '_>, FormatError> {
        let mut streams = Vec::new();
        for set in &self.sets {
            streams.push(match &set.reordered {
                Some(rows) => SetStream::Memory { rows, next: first as usize },
                None => SetStream::File(set.source.stream(first)?),
            });
        }
        let widths = self.sets.iter().map(|set| set.source.width()).collect();
        Ok(Box::new(JoinedStream { streams, widths, views: self.views }))
    }
}

struct JoinedStream<'a> {
    streams: Vec<SetStream<'a>>,
    widths: Vec<usize>,
    views: usize,
}

enum SetStream<'a> {
    File(Box<dyn RowStream + 'a>),
    Memory { rows: &'a VectorBlock, next: usize },
}

impl SetStream<'_> {
    fn read(&mut self, rows: usize, numbers: usize) -> Result<VectorBlock, FormatError> {
        let mut block = VectorBlock::default();
        match self {
            Self::File(stream) => stream.read(rows, &mut block)?,
            Self::Memory { rows: all, next } => {
                let places = *next..*next + rows;
                block.vectors.extend_from_slice(&all.vectors[places.start * numbers..places.end * numbers]);
                block.labels = all.labels.as_ref().map(|labels| labels[places.clone()].to_vec());
                block.groups = all.groups.as_ref().map(|groups| groups[places].to_vec());
                *next += rows;
            }
        }
        Ok(block)
    }
}

impl RowStream for JoinedStream<'_> {
    fn read(&mut self, rows: usize, into: &mut VectorBlock) -> Result<(), FormatError> {
        let mut blocks = Vec::with_capacity(self.streams.len());
        for (stream, width) in self.streams.iter_mut().zip(&self.widths) {
            let mut block = stream.read(rows, width * self.views)?;
            into.ids = into.ids.take().or(block.ids.take());
            into.labels = into.labels.take().or(block.labels.take());
            into.groups = into.groups.take().or(block.groups.take());
            blocks.push(block.vectors);
        }
        for view in 0..rows * self.views {
            for (numbers, width) in blocks.iter().zip(&self.widths) {
                // A short block leaves the row short, which the caller refuses with its place.
                into.vectors
                    .extend_from_slice(numbers.get(view * width..(view + 1) * width).unwrap_or_default());
            }
        }
        Ok(())
    }
}

//! A table of human votes: counts of each class for each sample.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::ops::Range;
use std::path::Path;

use anyhow::{Context, Result};
use calmix_core::matrix::Matrix;
use calmix_data::dataset::Dataset;
use calmix_formats::csv_lines::blank_lines;
use calmix_formats::npy;
use calmix_formats::npy::NpyTable;
use calmix_io::shown::shown;
use calmix_metrics::calibrator::Calibrator;
use calmix_metrics::measure::{VoteMetrics, vote_metrics};
use calmix_metrics::predictions::Predictions;

use crate::error::CliError;
use crate::output::format::counted;
use crate::predict::input::InputKind;

/// Names of the column with the image of a row.
const FILE_COLUMNS: [&str; 3] = ["file", "path", "file_name"];

/// The counts of each sample that has votes, in the order of the model's classes.
#[derive(Debug)]
pub(crate) struct Votes {
    of_sample: BTreeMap<u64, Vec<f32>>,
}

impl Votes {
    /// Reads a CSV or `.npy` table. In a CSV, the column `file` names the image of a row, below the folder. Without that column,
    /// and in an `.npy`, there is one row per image of `subset`, by default of the test subset, or of all images if there is
    /// none. The columns of an `.npy` are the classes of the dataset, in the order of their labels.
    pub(crate) fn read(
        file: &Path,
        dataset: &Dataset,
        subset: Option<&str>,
        classes: &[String],
        kind: InputKind,
    ) -> Result<Self> {
        let place = shown(file.display());
        let mut bytes = Vec::new();
        // More bytes than a table of all images can have.
        let longest = (1 << 20) + 64 * (dataset.len() + 1) * (classes.len() as u64 + 1);
        // Accept only plain files, because reading a pipe could block forever.
        if !fs::metadata(file).with_context(|| place.clone())?.is_file() {
            return Err(CliError::invalid(format!("{place}: this is not a file")).into());
        }
        let read = File::open(file).and_then(|file| file.take(longest).read_to_end(&mut bytes));
        if read.with_context(|| place.clone())? as u64 == longest {
            return Err(CliError::invalid(format!(
                "{place}: too large to be a table of votes on these {}s",
                kind.word()
            ))
            .into());
        }
        let in_order = subset.unwrap_or("test");
        if npy::is_npy(&bytes) {
            let table =
                npy::parse(&bytes).map_err(|problem| CliError::invalid(format!("{place}: {problem}")))?;
            return Self::of_npy(&place, &table, dataset, in_order, classes, kind);
        }
        Self::of_csv(&place, &bytes, dataset, in_order, classes, kind)
    }

    fn of_npy(
        place: &str,
        table: &NpyTable,
        dataset: &Dataset,
        subset: &str,
        classes: &[String],
        kind: InputKind,
    ) -> Result<Self> {
        let names = &dataset.header().classes;
        if table.columns != names.len() {
            let (columns, known) = (counted(table.columns as u64, "column"), names.len());
            let message = format!("{place}: {columns}, but the dataset has {known} classes");
            return Err(CliError::invalid(message).into());
        }
        let columns = names.iter().map(|name| column_of(place, name, classes)).collect::<Result<Vec<_>>>()?;
        let mut rows = VotedSamples::of(dataset, subset, false, kind)?;
        let mut of_sample = BTreeMap::new();
        for row in table.values.chunks_exact(table.columns) {
            let Some(id) = rows.next(None) else { break };
            let mut counts = vec![0.0; classes.len()];
            for (&class, &count) in columns.iter().zip(row) {
                counts[class] = count;
            }
            of_sample.insert(id, counts);
        }
        rows.check_row_count(place, table.rows)?;
        Ok(Self { of_sample })
    }

    fn of_csv(
        place: &str,
        bytes: &[u8],
        dataset: &Dataset,
        subset: &str,
        classes: &[String],
        kind: InputKind,
    ) -> Result<Self> {
        let mut table = csv::Reader::from_reader(bytes);
        let names = table.headers().with_context(|| place.to_owned())?.clone();
        let name_column = names.iter().position(|name| FILE_COLUMNS.contains(&name));
        let mut columns = Vec::new();
        for (column, name) in names.iter().enumerate().filter(|(column, _)| Some(*column) != name_column) {
            columns.push((column, column_of(place, name, classes)?));
        }
        let mut rows = VotedSamples::of(dataset, subset, name_column.is_some(), kind)?;
        let (mut of_sample, mut count) = (BTreeMap::new(), 0);
        for (row, record) in table.records().enumerate() {
            let record = record.with_context(|| place.to_owned())?;
            let in_row = |what: String| CliError::invalid(format!("{place}, row {}: {what}", row + 1));
            let name = name_column.and_then(|column| record.get(column));
            let start = record.position().map_or(0, |place| place.byte() as usize);
            // Refuse empty lines: the reader skips them, and the rows after one would be matched with the wrong samples.
            if name_column.is_none() && blank_lines(bytes, start) > 0 {
                let error = in_row("the line before it is empty".to_owned());
                return Err(error.hint("write a line of zeros for a sample without votes").into());
            }
            count += 1;
            let Some(id) = rows.next(name) else {
                let Some(name) = name else { continue };
                return Err(in_row(format!("no {} {name:?}", kind.word())).into());
            };
            let mut counts = vec![0.0; classes.len()];
            for &(column, class) in &columns {
                let text = record.get(column).unwrap_or_default().trim();
                let count = if text.is_empty() { Ok(0.0) } else { text.parse::<f32>() };
                counts[class] = count.map_err(|_| in_row(format!("{text:?} is not a count")))?;
            }
            of_sample.insert(id, counts);
        }
        rows.check_row_count(place, count)?;
        Ok(Self { of_sample })
    }

    /// Compares the model with the votes, uncalibrated and calibrated.
    pub(crate) fn compare(
        &self,
        predictions: &Predictions,
        map: &Calibrator,
    ) -> Result<(VoteMetrics, VoteMetrics)> {
        let (mut logits, mut votes, mut rows) = (Vec::new(), Vec::new(), 0);
        for (id, row) in predictions.ids.iter().zip(predictions.matrix()?.iter()) {
            if let Some(counts) = self.of_sample.get(id) {
                logits.extend_from_slice(row);
                votes.extend_from_slice(counts);
                rows += 1;
            }
        }
        let width = predictions.classes.len();
        let (logits, votes) = (Matrix::new(&logits, rows, width)?, Matrix::new(&votes, rows, width)?);
        let calibrated = map.apply(logits)?;
        let calibrated = Matrix::new(&calibrated, rows, width)?;
        Ok((vote_metrics(logits, votes, 1.0)?, vote_metrics(calibrated, votes, 1.0)?))
    }
}

/// Returns the class of the model whose votes a column counts.
fn column_of(place: &str, name: &str, classes: &[String]) -> Result<usize> {
    let Some(class) = classes.iter().position(|class| class == name) else {
        let message = format!("{place}: the column {name:?} is not a class of the model");
        let hint = shown(format!("the classes are {}", classes.join(", ")));
        return Err(CliError::invalid(message).hint(hint).into());
    };
    Ok(class)
}

/// The samples that the rows belong to.
enum VotedSamples {
    Named(BTreeMap<String, u64>),
    InOrder { ids: Range<u64>, samples: u64, kind: InputKind },
}

impl VotedSamples {
    fn of(dataset: &Dataset, subset: &str, named: bool, kind: InputKind) -> Result<Self> {
        if !named {
            let ids = match dataset.subset(subset) {
                Ok(ids) => ids,
                // The prepared dataset has vectors in the order of the subsets, their file in another order.
                Err(_) if kind == InputKind::Vector && dataset.header().subsets.len() > 1 => {
                    let message = "the rows of --votes cannot be matched with vectors of several subsets";
                    return Err(CliError::invalid(message).hint("choose the vectors with --subset").into());
                }
                Err(_) => 0..dataset.len(),
            };
            return Ok(Self::InOrder { samples: ids.end - ids.start, ids, kind });
        }
        let mut ids = BTreeMap::new();
        for record in dataset.records(0..dataset.len()) {
            let (id, record) = record?;
            let name = match kind {
                InputKind::Image => dataset.part(record.part)?.path,
                InputKind::Vector => dataset.sample_name(id)?,
            };
            ids.insert(name, id);
        }
        Ok(Self::Named(ids))
    }

    fn next(&mut self, name: Option<&str>) -> Option<u64> {
        match self {
            Self::Named(ids) => ids.get(name?).copied(),
            Self::InOrder { ids, .. } => ids.next(),
        }
    }

    /// Refuses rows without names if there are not as many as images: each could then belong to another image.
    fn check_row_count(&self, place: &str, rows: usize) -> Result<()> {
        match self {
            Self::InOrder { samples, kind, .. } if *samples != rows as u64 => {
                let word = kind.word();
                let rows = counted(rows as u64, "row");
                let message = format!("{place}: {rows} for {}", counted(*samples, word));
                let hint = format!(
                    "choose the {word}s with --subset, or name the {word} of each row in the column `file` of a CSV"
                );
                Err(CliError::invalid(message).hint(hint).into())
            }
            _ => Ok(()),
        }
    }
}

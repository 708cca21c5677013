//! A table of people's votes: counts of each class for each image.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use calmix::core::calibration::confidence_map::ConfidenceMap;
use calmix::core::calibration::{VoteFigures, vote_figures};
use calmix::core::matrix::Matrix;
use calmix::core::shown::shown;
use calmix::data::dataset::Dataset;
use calmix::run::evaluate::Predictions;

use crate::error::CliError;

/// Columns that name the image of a row.
const FILE: [&str; 3] = ["file", "path", "file_name"];

/// The counts of each sample that has votes, in the order of the model's classes.
#[derive(Debug)]
pub(crate) struct Votes {
    of_sample: BTreeMap<u64, Vec<f32>>,
}

impl Votes {
    /// Reads a CSV. A row belongs to the image that its column `file` names, below the folder; without that column, rows are
    /// in the order of the samples of the test subset, or of all samples.
    pub(crate) fn read(file: &Path, dataset: &Dataset, classes: &[String]) -> Result<Self> {
        let place = shown(file.display());
        let mut table = csv::Reader::from_path(file).with_context(|| place.clone())?;
        let names = table.headers().with_context(|| place.clone())?.clone();
        let name_column = names.iter().position(|name| FILE.contains(&name));
        let mut columns = Vec::new();
        for (column, name) in names.iter().enumerate().filter(|(column, _)| Some(*column) != name_column) {
            let Some(class) = classes.iter().position(|class| class == name) else {
                let message = format!("{place}: its column {name:?} is no class of the model");
                let hint = format!("the classes are {}", classes.join(", "));
                return Err(CliError::invalid(message).hint(hint).into());
            };
            columns.push((column, class));
        }
        let mut ids = Ids::of(dataset, name_column.is_some())?;
        let mut of_sample = BTreeMap::new();
        for (row, record) in table.records().enumerate() {
            let record = record.with_context(|| place.clone())?;
            let at = |what: String| CliError::invalid(format!("{place}, row {}: {what}", row + 1));
            let name = name_column.and_then(|column| record.get(column));
            let Some(id) = ids.next(name) else {
                let what =
                    name.map_or("more rows than images".to_owned(), |name| format!("no image {name:?}"));
                return Err(at(what).into());
            };
            let mut counts = vec![0.0; classes.len()];
            for &(column, class) in &columns {
                let text = record.get(column).unwrap_or_default().trim();
                let count = if text.is_empty() { Ok(0.0) } else { text.parse::<f32>() };
                counts[class] = count.map_err(|_| at(format!("{text:?} is no count")))?;
            }
            of_sample.insert(id, counts);
        }
        Ok(Self { of_sample })
    }

    /// The model against the votes, uncalibrated and calibrated.
    pub(crate) fn compare(
        &self,
        said: &Predictions,
        map: &ConfidenceMap,
    ) -> Result<(VoteFigures, VoteFigures)> {
        let (mut logits, mut votes, mut rows) = (Vec::new(), Vec::new(), 0);
        for (id, row) in said.ids.iter().zip(said.matrix()?.iter()) {
            if let Some(counts) = self.of_sample.get(id) {
                logits.extend_from_slice(row);
                votes.extend_from_slice(counts);
                rows += 1;
            }
        }
        let width = said.classes.len();
        let (logits, votes) = (Matrix::new(&logits, rows, width)?, Matrix::new(&votes, rows, width)?);
        let calibrated = map.apply(logits)?;
        let calibrated = Matrix::new(&calibrated, rows, width)?;
        Ok((vote_figures(logits, votes, 1.0)?, vote_figures(calibrated, votes, 1.0)?))
    }
}

/// Which sample a row is of.
enum Ids {
    Named(BTreeMap<String, u64>),
    InOrder(std::ops::Range<u64>),
}

impl Ids {
    fn of(dataset: &Dataset, named: bool) -> Result<Self> {
        if !named {
            return Ok(Self::InOrder(dataset.subset("test").unwrap_or(0..dataset.len())));
        }
        let mut ids = BTreeMap::new();
        for record in dataset.records(0..dataset.len()) {
            let (id, record) = record?;
            ids.insert(dataset.part(record.part)?.path, id);
        }
        Ok(Self::Named(ids))
    }

    fn next(&mut self, name: Option<&str>) -> Option<u64> {
        match self {
            Self::Named(ids) => ids.get(name?).copied(),
            Self::InOrder(ids) => ids.next(),
        }
    }
}

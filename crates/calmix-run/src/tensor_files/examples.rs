//! Example predictions with their images, in `thumbnails.safetensors`.
//!
//! The most confident mistakes reveal wrong labels and similar classes; the least confident hits reveal what the model finds
//! hard. They are selected by the uncalibrated confidence, so that a calibrator fitted later does not change them.

use calmix_metrics::error::MetricsError;
use calmix_metrics::measure::TopLabel;
use calmix_metrics::predictions::Predictions;
use safetensors::SafeTensors;
use serde::{Deserialize, Serialize};

use crate::error::RunError;
use crate::tensor_files::tensors::{self, Tensors, tensor};

/// The number of examples of each kind.
pub const EXAMPLES: usize = 12;

/// The sides of the small and the large thumbnails, in pixels.
pub const SIDES: [usize; 2] = [48, 96];

/// The row indices of the example predictions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExampleRows {
    /// The most confident mistakes, by descending confidence.
    pub mistakes: Vec<usize>,
    /// The least confident hits, by ascending confidence.
    pub hits: Vec<usize>,
}

impl ExampleRows {
    /// Selects the examples among these predictions, breaking ties by sample id.
    ///
    /// # Errors
    /// If labels and logits differ in number, or a logit is not finite.
    pub fn of(predictions: &Predictions) -> Result<Self, MetricsError> {
        let top_label = TopLabel::from_logits(predictions.matrix()?, &predictions.labels, 1.0)?;
        let chosen = |right: bool| {
            let mut rows: Vec<usize> =
                (0..top_label.len()).filter(|&row| top_label.correct()[row] == right).collect();
            rows.sort_by(|&a, &b| {
                let (first, second) = if right { (a, b) } else { (b, a) };
                let confidence = top_label.confidence()[first].total_cmp(&top_label.confidence()[second]);
                confidence.then(predictions.ids[a].cmp(&predictions.ids[b]))
            });
            rows.truncate(EXAMPLES);
            rows
        };
        Ok(Self { mistakes: chosen(false), hits: chosen(true) })
    }

    /// Iterates over the rows of both kinds.
    pub fn all(&self) -> impl Iterator<Item = usize> {
        self.mistakes.iter().chain(&self.hits).copied()
    }
}

/// Small and large thumbnails of samples: RGB, row by row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Thumbnails {
    /// The ids of the samples.
    pub ids: Vec<u64>,
    /// The names of the samples' files.
    pub names: Vec<String>,
    /// The concatenated thumbnails, one entry per size in [`SIDES`].
    pub pixels: [Vec<u8>; 2],
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    names: Vec<String>,
}

const KEY: &str = "calmix";

impl Thumbnails {
    /// The maximum size of a file to read, in bytes, with names of 4 kB each.
    pub const MAX_BYTES: u64 = (2 * EXAMPLES * (3 * (48 * 48 + 96 * 96) + 4096 + 64)) as u64;

    /// Encodes the file.
    pub fn to_bytes(&self) -> Result<Vec<u8>, RunError> {
        let (n, [small, large]) = (self.ids.len(), SIDES);
        let tensors = vec![
            tensor("ids", &[n], &self.ids),
            tensor("small", &[n, small, small, 3], &self.pixels[0]),
            tensor("large", &[n, large, large, 3], &self.pixels[1]),
        ];
        let named = Named { names: self.names.clone() };
        let named = serde_json::to_string(&named).map_err(|error| unreadable_names(&error))?;
        tensors::write(tensors, Some((KEY, named))).map_err(|error| no_thumbnails(&error))
    }

    /// Decodes the file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RunError> {
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(|error| no_thumbnails(&error.into()))?;
        let named = header.metadata().as_ref().and_then(|metadata| metadata.get(KEY));
        let Named { names } = serde_json::from_str(named.map_or("", String::as_str))
            .map_err(|error| unreadable_names(&error))?;
        let tensors = Tensors::read(bytes).map_err(|error| no_thumbnails(&error))?;
        let n = tensors.rows("ids").map_err(|error| no_thumbnails(&error))?;
        if names.len() != n {
            return Err(RunError::Format(format!("{} names for {n} thumbnails", names.len())));
        }
        Self::from_tensors(&tensors, names).map_err(|error| no_thumbnails(&error))
    }

    fn from_tensors(tensors: &Tensors<'_>, names: Vec<String>) -> Result<Self, RunError> {
        let n = names.len();
        let [small, large] = SIDES;
        let pixels = [
            tensors.numbers("small", &[n, small, small, 3])?,
            tensors.numbers("large", &[n, large, large, 3])?,
        ];
        Ok(Self { ids: tensors.numbers("ids", &[n])?, names, pixels })
    }

    /// Returns the file name of a sample, and its small and large thumbnails.
    pub fn get(&self, id: u64) -> Option<(&str, [&[u8]; 2])> {
        let at = self.ids.iter().position(|&other| other == id)?;
        let image = |which: usize| {
            let length = 3 * SIDES[which] * SIDES[which];
            self.pixels[which].get(at * length..(at + 1) * length)
        };
        Some((self.names.get(at)?, [image(0)?, image(1)?]))
    }
}

fn no_thumbnails(error: &RunError) -> RunError {
    RunError::Format(format!("this is not a file of thumbnails: {error}"))
}

fn unreadable_names(error: &serde_json::Error) -> RunError {
    RunError::Format(format!("the names of these thumbnails cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use calmix_metrics::predictions::{EvalModel, EvalSet};

    #[test]
    fn examples_are_confident_mistakes_and_unsure_hits() {
        let predictions = Predictions {
            step: 1,
            split: EvalSet::Test,
            model: EvalModel::Ema,
            classes: vec!["a".to_owned(), "b".to_owned()],
            ids: vec![9, 8, 7, 6, 5],
            labels: vec![0, 1, 1, 0, 1],
            logits: vec![1.0, 0.0, 3.0, 0.0, 2.0, 0.0, 0.5, 0.0, 3.0, 0.0],
            groups: Vec::new(),
        };
        let rows = ExampleRows::of(&predictions).unwrap();
        // Rows 1 and 4 have the same confidence, so the lower id, 5, comes first.
        assert_eq!((rows.mistakes, rows.hits), (vec![4, 1, 2], vec![3, 0]));
    }

    #[test]
    fn images_come_back_and_fit_the_limit() {
        let n = 2 * EXAMPLES;
        let pixels = SIDES.map(|side| (0..n * 3 * side * side).map(|i| (i % 251) as u8).collect());
        let names = vec!["é".repeat(2048); n];
        let thumbnails = Thumbnails { ids: (10..10 + n as u64).collect(), names, pixels };
        let bytes = thumbnails.to_bytes().unwrap();
        assert!(bytes.len() as u64 <= Thumbnails::MAX_BYTES, "{}", bytes.len());
        assert_eq!(Thumbnails::from_bytes(&bytes).unwrap(), thumbnails);
        let (_, [small, large]) = thumbnails.get(11).unwrap();
        assert_eq!((small[0], large.len()), ((3 * 48 * 48 % 251) as u8, 3 * 96 * 96));
        assert_eq!(thumbnails.get(9), None);
        assert!(Thumbnails::from_bytes(&bytes[..bytes.len() - 1]).is_err());
        let short = Thumbnails { names: Vec::new(), ..thumbnails };
        assert!(Thumbnails::from_bytes(&short.to_bytes().unwrap()).is_err());
    }
}

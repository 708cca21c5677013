//! The features of unlabelled samples that new samples are compared with, in the dimensions that a head reads.

use std::sync::atomic::AtomicBool;

use calmix_core::matrix::Matrix;
use calmix_head::fit::FittedHead;
use calmix_head::projection::Projection;
use calmix_head::samples::{HeadSamples, TrainingRows};
use calmix_metrics::calibrator::Calibrator;
use calmix_metrics::shift::ReferenceFeatures;
use calmix_metrics::shift::reference::{MIN_REFERENCE, reference_dimensions};

use crate::error::HeadsError;
use crate::vector_table::BLOCK_ROWS;

/// The largest number of samples that class means are averages of.
const MAX_AVERAGED: usize = 20_000;
/// The largest number of samples that directions are fitted to.
const MAX_FITTED: usize = 4_000;

/// Collects the features of the samples of `ids`, which the projection was fitted without, and the class means of the other
/// unlabelled samples by the kept head; `None` if there are too few.
///
/// # Errors
/// If vectors cannot be read; [`HeadsError::Stopped`] if `stop` becomes true.
pub(crate) fn reference_features(
    samples: &HeadSamples<'_>,
    rows: &TrainingRows,
    ids: &[u64],
    kept: &FittedHead,
    projection: &Projection,
    stop: &AtomicBool,
) -> Result<Option<ReferenceFeatures>, HeadsError> {
    let drawn = reference_rows(samples, ids);
    if drawn.len() < MIN_REFERENCE {
        return Ok(None);
    }
    let others: Vec<usize> =
        rows.unlabelled.iter().copied().filter(|row| drawn.binary_search(row).is_err()).collect();
    let classes = samples.classes.len();
    let width = samples.width();
    let dimensions = reference_dimensions(classes, width, drawn.len());
    let mut features = ReferenceFeatures { dimensions, ..ReferenceFeatures::default() };
    // The directions of a projection are sorted by variance; without directions, the first numbers are nothing special.
    if projection.rotation().is_empty() && dimensions < width {
        let fitted = samples.unaugmented(&spread(&others, MAX_FITTED))?;
        let fitted = Projection::fit_unless(rows_of(&fitted, width)?, &[], dimensions, stop)?;
        features.directions = fitted.rotation().to_vec();
    }
    let mut of_row = Vec::new();
    for vector in samples.unaugmented(&drawn)?.chunks_exact(width) {
        features.of_projected(vector, &mut of_row);
        features.rows.extend(of_row.iter().map(|&number| number as f32));
    }
    let mut sums = vec![0.0; classes * dimensions];
    let mut weights = vec![0.0; classes];
    for block in spread(&others, MAX_AVERAGED).chunks(BLOCK_ROWS) {
        HeadsError::check_stop(stop)?;
        let vectors = samples.unaugmented(block)?;
        let probabilities = probabilities(kept, &vectors, classes)?;
        for (vector, probabilities) in vectors.chunks_exact(width).zip(probabilities.chunks_exact(classes)) {
            features.of_projected(vector, &mut of_row);
            for ((sums, weight), &probability) in
                sums.chunks_exact_mut(dimensions).zip(&mut weights).zip(probabilities)
            {
                *weight += f64::from(probability);
                sums.iter_mut().zip(&of_row).for_each(|(sum, x)| *sum += f64::from(probability) * x);
            }
        }
    }
    for (sums, weight) in sums.chunks_exact(dimensions).zip(weights) {
        // A class that the head never predicts has its mean at the origin, which is that of the features.
        features.class_means.extend(sums.iter().map(|sum| (sum / f64::max(weight, 1.0)) as f32));
    }
    Ok(Some(features))
}

/// Returns the rows of the samples of a reference. Samples that could not be read have none.
pub(crate) fn reference_rows(samples: &HeadSamples<'_>, ids: &[u64]) -> Vec<usize> {
    ids.iter().filter_map(|id| samples.ids.binary_search(id).ok()).collect()
}

/// Computes the calibrated probabilities of projected vectors by the kept head.
pub(crate) fn probabilities(
    kept: &FittedHead,
    vectors: &[f32],
    classes: usize,
) -> Result<Vec<f32>, HeadsError> {
    let calibrator = kept.calibrator.calibrator().map_or(&Calibrator::IDENTITY, |fitted| &fitted.calibrator);
    let logits = kept.trained.ema.forward(vectors)?.logits;
    Ok(calibrator.probabilities(rows_of(&logits, classes)?).map_err(calmix_head::HeadError::from)?)
}

/// Selects at most `max` rows, evenly spread.
fn spread(rows: &[usize], max: usize) -> Vec<usize> {
    rows.iter().copied().step_by(rows.len().div_ceil(max).max(1)).collect()
}

fn rows_of(numbers: &[f32], width: usize) -> Result<Matrix<'_>, HeadsError> {
    Ok(Matrix::new(numbers, numbers.len() / width.max(1), width)?)
}

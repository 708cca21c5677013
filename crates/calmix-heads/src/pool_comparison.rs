//! The comparison of the unlabelled samples of a run with the labels that its guarantees rest on, by the tests that compare new
//! samples with both.

use calmix_core::rng::Seed;
use calmix_head::HeadError;
use calmix_head::fit::FittedHead;
use calmix_head::samples::HeadSamples;
use calmix_metrics::groups::one_of_each_group;
use calmix_metrics::predictions::EvalSet;
use calmix_metrics::shift::detector::{MIX_LEVEL, STRANGENESS_LEVEL};
use calmix_metrics::shift::{BatchSums, ObservedRow, Reference, ReferenceFeatures, ShiftDetector};
use calmix_run::result::{PoolComparison, PoolVerdict};

use crate::error::HeadsError;
use crate::head_vectors::LabelledVectors;
use crate::reference_features::{probabilities, reference_rows};

/// The rows that are compared.
#[derive(Debug)]
pub(crate) struct ComparedRows {
    /// The class and the features of the held-out labels, of which each counts as one observation.
    labels: Vec<(usize, Vec<f64>)>,
    /// The probabilities of the samples of the reference, row by row.
    pool: Vec<f32>,
}

impl ComparedRows {
    /// Collects the held-out labels of the kept head, and the samples of `ids`, which are those of the reference.
    ///
    /// # Errors
    /// If vectors cannot be read.
    pub(crate) fn collect(
        samples: &HeadSamples<'_>,
        validation: &LabelledVectors,
        kept: &FittedHead,
        ids: &[u64],
        reference: &ReferenceFeatures,
    ) -> Result<Self, HeadsError> {
        let predictions = &kept.predictions;
        let known = if predictions.split == EvalSet::Validation { &validation.ids[..] } else { samples.ids };
        let compared = one_of_each_group(&predictions.groups, predictions.ids.len(), Seed(0));
        let place = |row: usize| {
            Some((predictions.labels[row] as usize, known.binary_search(&predictions.ids[row]).ok()?))
        };
        let (classes, rows): (Vec<usize>, Vec<usize>) = compared.into_iter().filter_map(place).unzip();
        let width = samples.width();
        let vectors = if predictions.split == EvalSet::Validation {
            rows.iter()
                .flat_map(|&row| &validation.vectors[row * width..(row + 1) * width])
                .copied()
                .collect()
        } else {
            samples.unaugmented(&rows)?
        };
        let mut labels = Vec::with_capacity(rows.len());
        for (class, vector) in classes.into_iter().zip(vectors.chunks_exact(width)) {
            let mut features = Vec::new();
            reference.of_projected(vector, &mut features);
            labels.push((class, features));
        }
        let pool =
            probabilities(kept, &samples.unaugmented(&reference_rows(samples, ids))?, samples.classes.len())?;
        Ok(Self { labels, pool })
    }

    /// Compares the labels with the samples of the reference; `None` without labels or features to compare.
    ///
    /// # Errors
    /// If the reference contradicts itself.
    pub(crate) fn compare(&self, reference: &Reference) -> Result<Option<PoolComparison>, HeadsError> {
        let detector = ShiftDetector::new(reference.clone()).map_err(HeadError::from)?;
        if detector.labels() < 2 || !detector.compares_features() {
            return Ok(None);
        }
        let mut pool = detector.new_sums();
        for probabilities in self.pool.chunks_exact(reference.labels.classes.max(1)) {
            pool.add("", &ObservedRow::default(), probabilities);
        }
        let labels = self.labels_in_mix_of(&pool, &detector);
        let strangeness = detector.tests(&labels, None).ok().map(|tests| tests.strangeness);
        let mix = detector.mix(&pool, None);
        let verdict = match (strangeness.is_some_and(|p| p <= STRANGENESS_LEVEL), mix <= MIX_LEVEL) {
            (true, _) => PoolVerdict::Unlike,
            (false, true) => PoolVerdict::MixDiffers,
            (false, false) => PoolVerdict::Alike,
        };
        let (labels, unlabelled) = (self.labels.len() as u64, pool.rows);
        Ok(Some(PoolComparison { verdict, labels, unlabelled, strangeness, mix }))
    }

    /// Returns the sums of the labels, weighted so that their mix of classes is that of the pool, as those of as many rows as the
    /// weights are worth. The mean of a class that the pool hardly has is not in the span of the class means, which is the pool's.
    fn labels_in_mix_of(&self, pool: &BatchSums, detector: &ShiftDetector) -> BatchSums {
        let mut counts = vec![0.0; pool.probabilities.len()];
        self.labels.iter().for_each(|&(class, _)| counts[class] += 1.0);
        let weight = |class: usize| pool.probabilities[class] as f64 / counts[class];
        let total: f64 = self.labels.iter().map(|&(class, _)| weight(class)).sum();
        let of_squares: f64 = self.labels.iter().map(|&(class, _)| weight(class) * weight(class)).sum();
        let mut sums = detector.new_sums();
        let rows = (total * total / of_squares.max(f64::MIN_POSITIVE)).floor();
        for (class, features) in &self.labels {
            let mut row = detector.observe_features(features.clone());
            row.coordinates.iter_mut().for_each(|number| *number *= weight(*class) * rows / total);
            sums.add("", &row, &[]);
        }
        sums.rows = rows as u64;
        sums
    }
}

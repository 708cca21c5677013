//! The comparison of a batch with the reference of a model, and its verdict.

use calmix_core::rng::Seed;

use super::batch_means::MeansMartingale;
use super::mean_test::{MeanTest, remove_span, squared_distance};
use super::reference::Reference;
use super::sums::{BatchSums, ObservedRow};
use super::whitening::{Whitening, span};
use crate::calibrator::temperature::Temperature;
use crate::error::MetricsError;
use crate::groups::one_of_each_group;
use crate::held_out::LabelLogits;
use crate::stats::f_distribution;

/// The probability with which samples like those of training count as strange. Together with [`MIX_LEVEL`] it is a false alarm of
/// a batch, which must stay below 1% although features are not Gaussian.
pub const STRANGENESS_LEVEL: f64 = 0.005;
/// The probability with which an unchanged mix of classes counts as another one.
pub const MIX_LEVEL: f64 = 0.004;
/// The smallest number of rows that are compared: the mean of fewer is too far from normal.
pub const MIN_ROWS: u64 = 30;

/// Compares batches of predictions with the reference of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ShiftDetector {
    reference: Reference,
    space: Option<FeatureSpace>,
    labels: Vec<LabelRow>,
}

/// The coordinates in which the reference has mean 0 and covariance 1.
#[derive(Debug, Clone, PartialEq)]
struct FeatureSpace {
    whitening: Whitening,
    /// An orthonormal basis of the class means.
    class_span: Vec<Vec<f64>>,
    /// The test of a mean outside their span.
    outside: MeanTest,
    /// The mean logarithm of the distances of the reference samples, each from a reference without it.
    usual_distance: f64,
    /// How far the logarithms of these distances are from their mean, ascending. Strange samples may be far from the others, or near
    /// their centre: a network finds little in a blurred image.
    distances: Vec<f64>,
}

/// A held-out label that counts as one observation.
#[derive(Debug, Clone, PartialEq)]
struct LabelRow {
    label: u32,
    probabilities: Vec<f32>,
}

/// The p-values of a batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShiftTests {
    /// The number of rows.
    pub rows: u64,
    /// The probability of a mean this far outside the span of the class means if the samples are like those of training.
    pub strangeness: f64,
    /// The probability of mean probabilities this different if the mix of classes is that of the held-out labels.
    pub mix: f64,
    /// The estimated share of samples unlike those of training: what more there are of unusual rows than in the reference.
    pub unusual: f64,
}

/// What follows for the guarantees from a batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// Nothing speaks against the guarantees.
    Applies(ShiftTests),
    /// The mix of classes is not that of the held-out labels.
    MixDiffers(ShiftTests),
    /// The samples are unlike those of training.
    Void(ShiftTests),
    /// The batch was not compared.
    NotChecked(NotChecked),
}

/// Why a batch was not compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotChecked {
    /// The model has no held-out labels, and so no guarantees.
    NoLabels,
    /// The model keeps no features of unlabelled samples.
    NoFeatures,
    /// There are fewer rows than [`MIN_ROWS`].
    TooFewRows(u64),
    /// The sums are those of another model.
    OtherModel,
}

impl ShiftDetector {
    /// Creates the comparison with a reference.
    ///
    /// # Errors
    /// If lists of the reference contradict each other, or a number is not finite.
    pub fn new(reference: Reference) -> Result<Self, MetricsError> {
        reference.labels.check()?;
        let space = match &reference.features {
            Some(features) => {
                features.check()?;
                FeatureSpace::new(features)
            }
            None => None,
        };
        let labels = label_rows(&reference.labels);
        Ok(Self { reference, space, labels })
    }

    /// Returns the reference.
    pub fn reference(&self) -> &Reference {
        &self.reference
    }

    /// Returns the number of held-out labels, or of their groups.
    pub fn labels(&self) -> usize {
        self.labels.len()
    }

    /// Returns whether features are compared, so that rows need them.
    pub fn compares_features(&self) -> bool {
        self.space.is_some()
    }

    /// Returns empty sums for this model.
    pub fn new_sums(&self) -> BatchSums {
        let dimensions = self.reference.features.as_ref().filter(|_| self.space.is_some());
        BatchSums::new(dimensions.map_or(0, |features| features.dimensions), self.reference.labels.classes)
    }

    /// Starts a martingale on the means of batches; returns it with the number of samples of the reference. `None` if features are not
    /// compared.
    pub(super) fn means_martingale(&self) -> Option<(MeansMartingale, usize)> {
        let space = self.space.as_ref()?;
        let width = self.reference.features.as_ref()?.dimensions;
        let samples = space.distances.len();
        Some((MeansMartingale::new(space.outside.clone(), space.class_span.clone(), width, samples), samples))
    }

    /// Compares a projected vector with the reference.
    pub fn observe(&self, projected: &[f32]) -> ObservedRow {
        let Some(features) = &self.reference.features else { return ObservedRow::default() };
        let mut of_row = Vec::with_capacity(features.dimensions);
        features.of_projected(projected, &mut of_row);
        self.observe_features(of_row)
    }

    /// Compares the features of a sample with the reference.
    pub fn observe_features(&self, features: Vec<f64>) -> ObservedRow {
        let Some(space) = &self.space else { return ObservedRow::default() };
        let mut coordinates = features;
        space.whitening.apply(&mut coordinates);
        let distance = (log_length(squares(&coordinates)) - space.usual_distance).abs();
        let stranger = space.distances.len() - space.distances.partition_point(|&other| other < distance);
        let p_value = (1 + stranger) as f64 / (1 + space.distances.len()) as f64;
        ObservedRow { coordinates, distance, p_value }
    }

    /// Judges a batch. `weights` are those of the classes if the predictions are adapted to another mix of classes, which the
    /// batch is then compared with.
    pub fn verdict(&self, sums: &BatchSums, weights: Option<&[f64]>) -> Verdict {
        match self.tests(sums, weights) {
            Err(why) => Verdict::NotChecked(why),
            Ok(tests) if tests.strangeness <= STRANGENESS_LEVEL => Verdict::Void(tests),
            Ok(tests) if tests.mix <= MIX_LEVEL => Verdict::MixDiffers(tests),
            Ok(tests) => Verdict::Applies(tests),
        }
    }

    /// Computes the p-values of a batch.
    ///
    /// # Errors
    /// If it cannot be compared.
    pub fn tests(&self, sums: &BatchSums, weights: Option<&[f64]>) -> Result<ShiftTests, NotChecked> {
        if !self.new_sums().has_shape_of(sums) {
            return Err(NotChecked::OtherModel);
        }
        if self.labels.len() < 2 {
            return Err(NotChecked::NoLabels);
        }
        let Some(space) = &self.space else { return Err(NotChecked::NoFeatures) };
        if sums.rows < MIN_ROWS {
            return Err(NotChecked::TooFewRows(sums.rows));
        }
        Ok(ShiftTests {
            rows: sums.rows,
            strangeness: space.strangeness(&sums.mean(&sums.coordinates), sums.rows),
            mix: self.mix(sums, weights),
            unusual: unusual_share(&sums.p_values, sums.rows),
        })
    }

    /// Computes the p-value of the mix of classes alone, which needs no features.
    ///
    /// The statistic is Pearson's with the mean probabilities in place of counts. Probabilities vary less than counts do: by how
    /// much less is measured on the labels, with a standard error on the safe side.
    pub fn mix(&self, sums: &BatchSums, weights: Option<&[f64]>) -> f64 {
        let classes = self.reference.labels.classes;
        let weight = |row: &LabelRow| match weights {
            Some(weights) => weights.get(row.label as usize).copied().unwrap_or(0.0),
            None => 1.0,
        };
        let total: f64 = self.labels.iter().map(weight).sum();
        let of_squares: f64 = self.labels.iter().map(|row| weight(row) * weight(row)).sum();
        if total <= 0.0 || sums.rows == 0 {
            return 1.0;
        }
        let labels = total * total / of_squares;
        let rows = sums.rows as f64;
        let mut of_labels = vec![0.0; classes];
        for row in &self.labels {
            let weight = weight(row) / total;
            of_labels.iter_mut().zip(&row.probabilities).for_each(|(sum, &p)| *sum += weight * f64::from(p));
        }
        let of_rows = sums.mean(&sums.probabilities);
        let pooled: Vec<f64> =
            of_rows.iter().zip(&of_labels).map(|(a, b)| (rows * a + labels * b) / (rows + labels)).collect();
        let present: Vec<usize> = (0..classes).filter(|&class| pooled[class] > 1e-9).collect();
        if present.len() < 2 {
            return 1.0;
        }
        let degrees = (present.len() - 1) as f64;
        let mut moments = [0.0; 2];
        for row in &self.labels {
            let of_row = present.iter().map(|&class| {
                let difference = f64::from(row.probabilities[class]) - of_labels[class];
                difference * difference / pooled[class]
            });
            let of_row = of_row.sum::<f64>() / degrees;
            let weight = weight(row) / total;
            moments[0] += weight * of_row;
            moments[1] += weight * of_row * of_row;
        }
        let deviation = libm::sqrt((moments[1] - moments[0] * moments[0]).max(0.0) / labels);
        let variance = (moments[0] + deviation).clamp(1e-6, 1.0);
        let distances = present.iter().map(|&class| {
            let difference = of_rows[class] - of_labels[class];
            difference * difference / pooled[class]
        });
        let statistic = distances.sum::<f64>() / (1.0 / rows + 1.0 / labels) / variance;
        f_distribution::upper_tail(statistic / degrees, degrees, labels).unwrap_or(1.0)
    }
}

impl FeatureSpace {
    fn new(features: &super::ReferenceFeatures) -> Option<Self> {
        let width = features.dimensions;
        let whitening = Whitening::fit(&features.rows, width)?;
        let whitened = |row: &[f32]| {
            let mut row: Vec<f64> = row.iter().map(|&number| number.into()).collect();
            whitening.apply(&mut row);
            row
        };
        let means: Vec<Vec<f64>> = features.class_means.chunks_exact(width).map(whitened).collect();
        // Half of the dimensions remain, so that samples can be strange.
        let class_span = span(&means, means.len().saturating_sub(1).min(width / 2));
        let n = features.len() as f64;
        let mut distances: Vec<f64> = Vec::with_capacity(features.len());
        let mut squares_outside: Vec<f64> = Vec::with_capacity(features.len());
        for row in features.rows.chunks_exact(width) {
            let mut row = whitened(row);
            distances.push(log_length(squared_distance(squares(&row), n)));
            remove_span(&mut row, &class_span);
            squares_outside.push(squares(&row));
        }
        let outside = MeanTest::of_reference(&squares_outside, width - class_span.len());
        let usual_distance = distances.iter().sum::<f64>() / n;
        for distance in &mut distances {
            *distance = (*distance - usual_distance).abs();
        }
        distances.sort_by(f64::total_cmp);
        Some(Self { whitening, class_span, outside, usual_distance, distances })
    }

    /// Computes the p-value of Hotelling's T² of a mean outside the span of the class means.
    fn strangeness(&self, mean: &[f64], rows: u64) -> f64 {
        let mut outside = mean.to_vec();
        remove_span(&mut outside, &self.class_span);
        let samples = self.distances.len() as f64;
        let rows = rows as f64;
        let t_squared = squares(&outside) / (1.0 / rows + 1.0 / samples);
        self.outside.p_value(t_squared, samples - 1.0, [rows, samples])
    }
}

/// Estimates the share of rows that are unlike the reference from their p-values, which would else be uniform.
fn unusual_share(p_values: &[u64], rows: u64) -> f64 {
    let bins = p_values.len();
    let mut below = 0;
    let mut share: f64 = 0.0;
    for (bin, count) in p_values.iter().enumerate().take(bins / 2) {
        below += count;
        let expected = (bin + 1) as f64 / bins as f64;
        share = share.max((below as f64 / rows.max(1) as f64 - expected) / (1.0 - expected));
    }
    share
}

/// Returns one label of each group with its probabilities.
fn label_rows(labels: &LabelLogits) -> Vec<LabelRow> {
    let mut rows = Vec::new();
    for row in one_of_each_group(&labels.groups, labels.len(), Seed(0)) {
        let label = labels.labels[row];
        let mut probabilities = vec![0.0; labels.classes];
        let logits = labels.row(row);
        if logits[label as usize] == LabelLogits::UNSEEN {
            // The model of the fold could not know the class; the model that is used does.
            probabilities[label as usize] = 1.0;
        } else {
            Temperature::IDENTITY.probabilities_into(logits, &mut probabilities);
        }
        rows.push(LabelRow { label, probabilities });
    }
    rows
}

/// Returns the logarithm of a length from its square.
fn log_length(squares: f64) -> f64 {
    0.5 * libm::log(squares.max(f64::MIN_POSITIVE))
}

fn squares(numbers: &[f64]) -> f64 {
    numbers.iter().map(|x| x * x).sum()
}

#[cfg(test)]
mod tests;

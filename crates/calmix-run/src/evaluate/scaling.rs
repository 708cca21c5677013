//! Which temperature to use, and what speaks for it.

use calmix_core::calibration::CalibrationError;
use calmix_core::calibration::cross_fit::CrossFit;
use calmix_core::calibration::temperature::Temperature;
use calmix_core::rng::Seed;
use serde::{Deserialize, Serialize};

use super::Predictions;

/// From this many held-out labels on, one number is fitted on all of them without further ado. With fewer, a
/// handful of samples decides whether the network seems too sure or not sure enough.
pub const ENOUGH: usize = 100;

/// Folds of the cross-fit.
const FOLDS: usize = 5;

/// On what a temperature was fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FittedOn {
    /// Held-out labels.
    HeldOut,
    /// The labelled set, and only as far as it helps samples that a fit has not seen.
    LabelledCrossFit,
}

/// A temperature with the labels it rests on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scaling {
    /// The temperature.
    pub temperature: Temperature,
    /// On what it was fitted.
    pub fitted_on: FittedOn,
    /// On how many samples.
    pub samples: u64,
}

impl Scaling {
    /// Fits on held-out labels if there are [`ENOUGH`], otherwise by cross-fitting on the labelled set.
    ///
    /// None where neither says anything: no labels, or a labelled set that the network has learnt so well that its
    /// fit would make the network surer. It was trained on these labels and looks better on them than on any others,
    /// so what they advise is too cold; a fit that warms is kept, one that cools would be wrong (on Fashion-MNIST with
    /// 25 labels a class such a fit, 0.60, raised the ECE of the test split from 10 to 17 %).
    ///
    /// # Errors
    /// If labels and logits do not fit each other, or a logit is not finite.
    pub fn fit(
        held_out: Option<&Predictions>,
        labelled: Option<&Predictions>,
        seed: Seed,
    ) -> Result<Option<Self>, CalibrationError> {
        if let Some(held_out) = held_out.filter(|held_out| held_out.labels.len() >= ENOUGH) {
            let temperature = Temperature::fit(held_out.matrix()?, &held_out.labels)?;
            let samples = held_out.labels.len() as u64;
            return Ok(Some(Self { temperature, fitted_on: FittedOn::HeldOut, samples }));
        }
        let Some(labelled) = labelled.filter(|labelled| labelled.labels.len() >= 2) else {
            return Ok(None);
        };
        let n = labelled.labels.len();
        let fit = CrossFit::fit(labelled.matrix()?, &labelled.labels, FOLDS.min(n), seed)?;
        let temperature = fit.advised();
        let scaling = Self { temperature, fitted_on: FittedOn::LabelledCrossFit, samples: n as u64 };
        let warms = temperature.value() > 1.0 && !temperature.is_at_bound();
        Ok(warms.then_some(scaling))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{EvalModel, EvalSet};

    /// Margins of 6, every fourth of them wrong: the best temperature is 6 / ln 3.
    fn said(n: usize, period: usize) -> Predictions {
        Predictions {
            step: 1,
            split: EvalSet::Validation,
            model: EvalModel::Ema,
            classes: vec!["a".to_owned(), "b".to_owned()],
            ids: (0..n as u64).collect(),
            labels: (0..n).map(|i| u32::from(i % period == period - 1)).collect(),
            logits: (0..n).flat_map(|_| [6.0, 0.0]).collect(),
        }
    }

    #[test]
    fn held_out_labels_come_first_if_there_are_enough() {
        let fit = |held_out: usize| {
            Scaling::fit(Some(&said(held_out, 4)), Some(&said(40, 4)), Seed(1)).unwrap().unwrap()
        };
        let (few, many) = (fit(ENOUGH - 4), fit(ENOUGH));
        assert_eq!((few.fitted_on, few.samples), (FittedOn::LabelledCrossFit, 40));
        assert_eq!((many.fitted_on, many.samples), (FittedOn::HeldOut, ENOUGH as u64));
        for scaling in [few, many] {
            assert!((scaling.temperature.value() * 3.0_f64.ln() / 6.0 - 1.0).abs() < 1e-12);
        }
    }

    /// Held-out labels may ask for more confidence; the ones that were trained on may not.
    #[test]
    fn labels_that_were_trained_on_never_make_it_surer() {
        // One wrong in four hundred at a margin of 1: as sure as it is, it is not sure enough.
        let mut modest = said(400, 400);
        modest.logits = (0..400).flat_map(|_| [1.0, 0.0]).collect();
        assert_eq!(Scaling::fit(None, Some(&modest), Seed(1)).unwrap(), None);
        let held_out = Scaling::fit(Some(&modest), None, Seed(1)).unwrap().unwrap();
        assert!(held_out.temperature.value() < 0.5);
    }

    #[test]
    fn labels_learnt_by_heart_say_nothing() {
        let by_heart = said(40, usize::MAX);
        assert_eq!(Scaling::fit(None, Some(&by_heart), Seed(1)).unwrap(), None);
        assert_eq!(Scaling::fit(Some(&said(10, 4)), None, Seed(1)).unwrap(), None);
        assert_eq!(Scaling::fit(None, Some(&said(1, 4)), Seed(1)).unwrap(), None);
    }
}

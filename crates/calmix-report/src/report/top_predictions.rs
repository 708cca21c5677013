//! A model's predictions for every image, before and after calibration.

use calmix_core::softmax::argmax;
use calmix_metrics::error::MetricsError;
use calmix_metrics::evaluate::CalibratedLogits;
use calmix_metrics::fitted_calibrator::FittedCalibrator;
use calmix_metrics::measure::TopLabel;
use calmix_metrics::predictions::Predictions;
use serde::Serialize;

/// A value before calibration, and after it if there is a calibrator.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct BeforeAfter<T> {
    pub before: T,
    /// The value from the calibrated confidence; `None` without a calibrator.
    pub after: Option<T>,
}

impl<T> BeforeAfter<T> {
    pub fn map<U>(&self, of: impl Fn(&T) -> U) -> BeforeAfter<U> {
        BeforeAfter { before: of(&self.before), after: self.after.as_ref().map(of) }
    }

    /// Returns the value after calibration if any, otherwise before: what users of the model get.
    pub fn last(&self) -> &T {
        self.after.as_ref().unwrap_or(&self.before)
    }

    /// Iterates over both values with their names, `before` and `after`.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, &T)> {
        [("before", Some(&self.before)), ("after", self.after.as_ref())]
            .into_iter()
            .filter_map(|(name, of)| Some((name, of?)))
    }
}

/// The predictions for every image of a split.
#[derive(Debug, Clone, PartialEq)]
pub struct TopPredictions {
    pub predicted: Vec<u32>,
    /// The confidence of each prediction, and whether it is correct.
    pub top_label: TopLabel,
}

impl TopPredictions {
    /// Predicts before and after calibration. If the calibrator was fitted on the same labels, each image is calibrated by a
    /// fit that excludes it.
    ///
    /// # Errors
    /// If labels and logits differ in number, a logit is not finite, or the calibrator has another number of classes.
    pub fn of(
        predictions: &Predictions,
        calibrator: Option<&FittedCalibrator>,
    ) -> Result<BeforeAfter<Self>, MetricsError> {
        let top_predictions = |logits: &[f32], temperature: f64| {
            let matrix = predictions.shaped(logits)?;
            let top_label = TopLabel::from_logits(matrix, &predictions.labels, temperature)?;
            Ok(Self { predicted: matrix.iter().map(|row| argmax(row) as u32).collect(), top_label })
        };
        let calibrated =
            calibrator.map(|fitted| CalibratedLogits::of(predictions, fitted, &|| false)).transpose()?;
        let after = calibrated.map(|logits| top_predictions(&logits.logits, logits.temperature.value()));
        Ok(BeforeAfter { before: top_predictions(&predictions.logits, 1.0)?, after: after.transpose()? })
    }
}

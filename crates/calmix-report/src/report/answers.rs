//! What a model says of every image, before and after its map.

use calmix_core::softmax::argmax;
use calmix_metrics::error::CalibrationError;
use calmix_metrics::evaluate::MappedLogits;
use calmix_metrics::fitted_calibrator::FittedCalibrator;
use calmix_metrics::measure::TopLabel;
use calmix_metrics::predictions::Predictions;
use serde::Serialize;

/// Something before calibration, and after it where there is a map.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct BeforeAfter<T> {
    /// As the network says it.
    pub before: T,
    /// With the map; none where there is none.
    pub after: Option<T>,
}

impl<T> BeforeAfter<T> {
    /// The same of both.
    pub fn map<U>(&self, of: impl Fn(&T) -> U) -> BeforeAfter<U> {
        BeforeAfter { before: of(&self.before), after: self.after.as_ref().map(of) }
    }

    /// What people get: with the map if any.
    pub fn last(&self) -> &T {
        self.after.as_ref().unwrap_or(&self.before)
    }

    /// Both with their names.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, &T)> {
        [("before", Some(&self.before)), ("after", self.after.as_ref())]
            .into_iter()
            .filter_map(|(name, of)| Some((name, of?)))
    }
}

/// The answers to every image of a split.
#[derive(Debug, Clone, PartialEq)]
pub struct Answers {
    /// The class that wins.
    pub predicted: Vec<u32>,
    /// Its confidence, and whether it is the right one.
    pub said: TopLabel,
}

impl Answers {
    /// Before and after a map; where the same labels fitted it, each by a map fitted without it.
    ///
    /// # Errors
    /// If labels and logits do not fit each other, a logit is not finite, or the map is of another number of classes.
    pub fn of(
        predictions: &Predictions,
        map: Option<&FittedCalibrator>,
    ) -> Result<BeforeAfter<Self>, CalibrationError> {
        let answers = |logits: &[f32], temperature: f64| {
            let matrix = predictions.shaped(logits)?;
            let said = TopLabel::from_logits(matrix, &predictions.labels, temperature)?;
            Ok(Self { predicted: matrix.iter().map(|row| argmax(row) as u32).collect(), said })
        };
        let mapped = map.map(|map| MappedLogits::of(predictions, map)).transpose()?;
        let after = mapped.map(|mapped| answers(&mapped.logits, mapped.temperature.value()));
        Ok(BeforeAfter { before: answers(&predictions.logits, 1.0)?, after: after.transpose()? })
    }
}

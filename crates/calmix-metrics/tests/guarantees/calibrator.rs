//! What `train` and `calibrate` do with held-out labels: fit a calibrator, and keep the scores of the labels.

use calmix_metrics::calibrator::CalibratorChoice;
use calmix_metrics::calibrator::cross_fit::CrossFit;
use calmix_metrics::calibrator::{Calibrator, CalibratorKind};
use calmix_metrics::error::MetricsError;
use calmix_metrics::held_out::HeldOut;
use calmix_metrics::predictions::LabelledLogits;

use super::population::Draw;

/// Which calibrator a model has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ChosenCalibrator {
    None,
    Temperature,
    Vector,
    Isotonic,
    /// The kind that `calmix calibrate` chooses by these labels.
    Chosen,
}

impl ChosenCalibrator {
    pub(crate) const ALL: [Self; 5] =
        [Self::None, Self::Temperature, Self::Vector, Self::Isotonic, Self::Chosen];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Temperature => "temperature",
            Self::Vector => "vector scaling",
            Self::Isotonic => "isotonic",
            Self::Chosen => "as chosen",
        }
    }

    /// Microseconds that a label takes in the test profile, at this number of labels and classes.
    pub(crate) fn cost(self, n: usize, classes: usize) -> usize {
        let enough = |kind: CalibratorKind| n >= kind.min_labels();
        match self {
            Self::None => 2 + classes / 8,
            Self::Temperature => 20 + 5 * classes,
            Self::Vector => 24 * classes,
            Self::Isotonic => 5 + classes / 2,
            Self::Chosen => [Self::Temperature, Self::Vector, Self::Isotonic]
                .into_iter()
                .zip(CalibratorKind::ALL)
                .filter(|(_, kind)| *kind == CalibratorKind::Temperature || enough(*kind))
                .map(|(tried, _)| tried.cost(n, classes))
                .sum(),
        }
    }

    /// The scores that a model keeps of its held-out labels, and the kind of its calibrator, if any.
    pub(crate) fn score(self, draw: &Draw) -> Result<(HeldOut, Option<CalibratorKind>), MetricsError> {
        let logits = draw.matrix();
        let labels = draw.labels.as_slice();
        let kind = match self {
            Self::None => {
                return Ok((HeldOut::score(logits, labels, &Calibrator::IDENTITY)?, None));
            }
            Self::Chosen => {
                let CalibratorChoice { kind, cross_fit, .. } =
                    CalibratorChoice::of(LabelledLogits::ungrouped(logits, labels), &|| false)?;
                return Ok((HeldOut::score_cross_fitted(logits, labels, &cross_fit)?, Some(kind)));
            }
            Self::Temperature => CalibratorKind::Temperature,
            Self::Vector => CalibratorKind::Vector,
            Self::Isotonic => CalibratorKind::Isotonic,
        };
        let fit = |rows: LabelledLogits<'_>| Calibrator::fit(kind, rows.logits, rows.labels, &|| false);
        let cross_fit = CrossFit::with_five_folds(fit, LabelledLogits::ungrouped(logits, labels))?;
        Ok((HeldOut::score_cross_fitted(logits, labels, &cross_fit)?, Some(kind)))
    }
}

/// The calibrator that a model predicts with: fitted on all labels.
pub(crate) fn fit(kind: Option<CalibratorKind>, draw: &Draw) -> Result<Calibrator, MetricsError> {
    let fit = |kind| Calibrator::fit(kind, draw.matrix(), &draw.labels, &|| false);
    kind.map_or(Ok(Calibrator::IDENTITY), fit)
}

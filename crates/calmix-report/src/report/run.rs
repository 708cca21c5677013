//! The data of one run in a report.

use std::path::Path;

use calmix_core::rng::Seed;
use calmix_metrics::calibrator::Calibrator;
use calmix_metrics::calibrator::temperature::Temperature;
use calmix_metrics::error::MetricsError;
use calmix_metrics::evaluate::Evaluation;
use calmix_metrics::evaluate::evaluate;
use calmix_metrics::fitted_calibrator::{FittedCalibrator, FittedOn};
use calmix_metrics::held_out;
use calmix_metrics::margins::SampleMargins;
use calmix_metrics::metrics::{Intervals, Resampling};
use calmix_metrics::predictions::Predictions;
use calmix_metrics::predictions::{EvalModel, EvalSet};
use calmix_run::events::Event;
use calmix_run::read;
use calmix_run::read::overview::is_run;
use calmix_run::result::{HeadChoice, HeadName, RunResult};

use calmix_run::summary::RunSummary;
use serde::Serialize;

use super::assessment::LabelsOf;
use super::{Assessment, BeforeAfter, TopPredictions};
use crate::error::ReportError;
use crate::plot::by_class::{self, ClassMetrics};
use crate::plot::confusion::ConfusionMatrix;
use crate::plot::coverage::CoverageCurve;
use crate::plot::examples::Examples;
use crate::plot::pseudo_labels::{self, PseudoLabelPoint};
use crate::plot::reliability::ReliabilityDiagram;
use crate::plot::training::TrainingCurve;

/// A run with its metrics and plots.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunReport {
    pub name: String,
    /// Whether the run has ended with a result.
    pub finished: bool,
    /// The step of the metrics: the step of the result, or of the latest event.
    pub step: u64,
    /// Its dataset, method, network and seeds; `None` for predictions of another program.
    pub summary: Option<RunSummary>,
    pub assessment: Assessment,
    /// The number of training labels predicted by heads trained without them; 0 if the run has no such heads.
    pub out_of_fold: u64,
    /// Whether the test split was used both to select and to evaluate the model.
    pub chosen_on_test: bool,
    /// The head that is the model; `None` unless the run has several.
    pub head: Option<HeadName>,
    /// Its metrics; `None` without predictions.
    pub evaluated: Option<EvaluatedRun>,
    /// Error and ECE over training; `None` before the first evaluation, or without steps.
    pub training: Option<TrainingCurve>,
    /// Utilisation and impurity over training; empty without unlabelled samples.
    pub pseudo_labels: Vec<PseudoLabelPoint>,
    /// The sample margins at the end; `None` if the method does not use them.
    pub margins: Option<SampleMargins>,
}

/// The metrics and plots of a run's predictions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvaluatedRun {
    pub split: EvalSet,
    /// All metrics, before and after calibration.
    pub evaluation: Evaluation,
    pub reliability: BeforeAfter<ReliabilityDiagram>,
    pub coverage: BeforeAfter<CoverageCurve>,
    /// The confusion matrix, after calibration if there is a calibrator.
    pub confusion: ConfusionMatrix,
    pub by_class: Vec<ClassMetrics>,
    /// The most confident mistakes and the least confident hits.
    pub examples: Examples,
}

/// The intervals that the run computed at its end.
type ComputedIntervals = BeforeAfter<Option<Intervals>>;

impl RunReport {
    /// Reads a run, with its thumbnails if `images`. Takes no lock and writes nothing.
    pub fn read(folder: &Path, images: bool) -> Result<Self, ReportError> {
        if !is_run(folder) {
            return Err(ReportError::NoRun(folder.to_owned()));
        }
        if !read::has_begun(folder) {
            return Err(ReportError::NotBegun(folder.to_owned()));
        }
        let summary = read::summary(folder)?;
        let result = read::result(folder)?;
        let events = read::events(folder)?;
        let info = if result.is_some() { Some(read::model_info(folder)?) } else { None };
        let calibrator = info.as_ref().and_then(|info| info.calibration.as_ref());
        let thumbnails = if images { read::thumbnails(folder)? } else { None };
        let measured = |problem| ReportError::Measure { folder: folder.to_owned(), problem };
        let evaluated = match predicted(folder, &events, result.as_ref())? {
            Some((predictions, intervals)) => {
                let top_predictions = TopPredictions::of(&predictions, calibrator).map_err(measured)?;
                let examples =
                    Examples::of(&predictions, &top_predictions, thumbnails.as_ref()).map_err(measured)?;
                Some(
                    EvaluatedRun::of(&predictions, calibrator, &top_predictions, examples, &intervals)
                        .map_err(measured)?,
                )
            }
            None => None,
        };
        let held_out = info.as_ref().and_then(|info| info.held_out.as_ref());
        let evaluation = evaluated.as_ref().map(|evaluated| &evaluated.evaluation);
        let labels = match calibrator.map(|fitted| fitted.fitted_on) {
            _ if result.is_none() => LabelsOf::UnfinishedRun,
            Some(FittedOn::OutOfFold) => LabelsOf::OutOfFold,
            _ => LabelsOf::FinishedRun,
        };
        let assessment = Assessment::of(evaluation, held_out, labels);
        let name = std::path::absolute(folder).ok();
        let name = name.as_deref().unwrap_or(folder).file_name().unwrap_or_default();
        let selected = result.as_ref().and_then(|result| result.finished.selected.get(&result.selection));
        let steps = summary.steps;
        Ok(Self {
            name: name.to_string_lossy().into_owned(),
            finished: result.is_some(),
            step: result.as_ref().map_or(events.last().map_or(0, Event::step), |result| result.step),
            summary: Some(summary),
            assessment,
            out_of_fold: out_of_fold(&events),
            chosen_on_test: selected.is_some_and(|selected| selected.chosen_on_test),
            head: result.as_ref().and_then(|result| result.heads.as_ref()).and_then(HeadChoice::kept),
            evaluated,
            // Heads trained in one go have no training curve.
            training: if steps > 0 { TrainingCurve::of(&events) } else { None },
            pseudo_labels: pseudo_labels::curve(&events),
            margins: read::margins(folder)?,
        })
    }

    /// Makes a report on predictions of another program, for labels that its model was not trained on. The intervals use a
    /// thousand bootstrap replicates.
    ///
    /// # Errors
    /// If labels and logits differ in number, or a logit is not finite.
    pub fn of_predictions(name: &str, predictions: &Predictions) -> Result<Self, MetricsError> {
        let top_predictions = TopPredictions::of(predictions, None)?;
        let examples = Examples::of(predictions, &top_predictions, None)?;
        let logits = predictions.matrix()?;
        let labels = &predictions.labels;
        let intervals = Intervals::of(logits, labels, Temperature::IDENTITY, Resampling::default(), Seed(0))?;
        let intervals = BeforeAfter { before: intervals, after: None };
        let evaluated = EvaluatedRun::of(predictions, None, &top_predictions, examples, &intervals)?;
        let held_out = held_out::score(predictions, &Calibrator::IDENTITY)?;
        let assessment = Assessment::of(Some(&evaluated.evaluation), Some(&held_out), LabelsOf::Predictions);
        Ok(Self {
            name: name.to_owned(),
            finished: true,
            step: 0,
            summary: None,
            assessment,
            out_of_fold: 0,
            chosen_on_test: false,
            head: None,
            evaluated: Some(evaluated),
            training: None,
            pseudo_labels: Vec::new(),
            margins: None,
        })
    }
}

impl EvaluatedRun {
    fn of(
        predictions: &Predictions,
        calibrator: Option<&FittedCalibrator>,
        top_predictions: &BeforeAfter<TopPredictions>,
        examples: Examples,
        intervals: &ComputedIntervals,
    ) -> Result<Self, MetricsError> {
        let mut evaluation = evaluate(predictions, calibrator, None)?.without_lists();
        evaluation.intervals = intervals.before;
        if let Some(calibrated) = &mut evaluation.calibrated {
            calibrated.intervals = intervals.after.flatten();
        }
        Ok(Self {
            split: predictions.split,
            evaluation,
            reliability: top_predictions
                .map(|top_predictions| ReliabilityDiagram::of(&top_predictions.top_label)),
            coverage: top_predictions.map(|top_predictions| CoverageCurve::of(&top_predictions.top_label)),
            confusion: ConfusionMatrix::of(
                &predictions.classes,
                &predictions.labels,
                &top_predictions.last().predicted,
            ),
            by_class: by_class::metrics(predictions, top_predictions)?,
            examples,
        })
    }
}

/// Returns the number of labels predicted out of fold, at the latest evaluation.
fn out_of_fold(events: &[Event]) -> u64 {
    let samples = events.iter().rev().find_map(|event| match event {
        Event::Evaluation(evaluation) if evaluation.split == EvalSet::OutOfFold => Some(evaluation.samples),
        _ => None,
    });
    samples.unwrap_or_default()
}

/// Finds the predictions for the report, with the intervals computed by the run: those of the result or the latest ones, on
/// the test split if any, otherwise on validation, otherwise on the out-of-fold labels.
fn predicted(
    folder: &Path,
    events: &[Event],
    result: Option<&RunResult>,
) -> Result<Option<(Predictions, ComputedIntervals)>, ReportError> {
    let evaluations = |split: EvalSet| {
        events.iter().rev().filter_map(move |event| match event {
            Event::Evaluation(evaluation)
                if evaluation.split == split && evaluation.model == EvalModel::Ema =>
            {
                Some(evaluation)
            }
            _ => None,
        })
    };
    for split in [EvalSet::Test, EvalSet::Validation, EvalSet::OutOfFold] {
        for evaluation in
            evaluations(split).filter(|evaluation| result.is_none_or(|result| result.step == evaluation.step))
        {
            if let Some(predictions) = read::predictions_of(folder, evaluation)? {
                let after = evaluation.calibrated.as_ref().map(|calibrated| calibrated.intervals);
                return Ok(Some((predictions, BeforeAfter { before: evaluation.intervals, after })));
            }
        }
    }
    Ok(None)
}

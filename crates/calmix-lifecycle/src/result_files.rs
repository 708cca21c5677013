//! The files that a run writes when it finishes: its model, its metrics, and what its report shows.

use std::collections::BTreeMap;

use calmix_io::error::{FileError, FileProblem};
use calmix_metrics::evaluate::{Evaluation, Selected, select};
use calmix_metrics::fitted_calibrator::{Fitted, FittedCalibrator};
use calmix_metrics::margin_histogram::SampleMargins;
use calmix_recipe::{Recipe, Selection};
use calmix_run::error::RunError;
use calmix_run::event_writer::EventWriter;
use calmix_run::events::Finished;
use calmix_run::model_info::{HeadInfo, ModelInfo};
use calmix_run::result::{HeadChoice, RunResult};
use calmix_run::run::RunFile;
use calmix_run::tensor_files::examples::Thumbnails;
use serde::Serialize;

use crate::evaluation::final_evaluation::FinalEvaluation;
use crate::run_samples::RunSamples;

/// The model that a run results in.
#[derive(Debug)]
pub struct ResultingModel {
    /// The step whose weights these are.
    pub step: u64,
    /// The weights, as safetensors.
    pub weights: Vec<u8>,
    /// Its last evaluation.
    pub evaluation: FinalEvaluation,
    /// The heads that were compared, if any.
    pub heads: Option<HeadChoice>,
    /// The backbone and the projection, if the weights are a head.
    pub below: Option<HeadInfo>,
}

/// The bytes of the last files of a run.
#[derive(Debug)]
pub struct ResultFiles {
    model: Vec<u8>,
    info: Vec<u8>,
    margins: Option<Vec<u8>>,
    thumbnails: Option<Vec<u8>>,
    result: Vec<u8>,
}

impl ResultFiles {
    /// The files of a model.
    ///
    /// # Errors
    /// If they cannot be encoded.
    pub fn new(
        recipe: &Recipe,
        samples: &RunSamples,
        model: ResultingModel,
        (margins, thumbnails): (&SampleMargins, &Thumbnails),
        finished: &Finished,
    ) -> Result<Self, FileError> {
        let FinalEvaluation { fitted, evaluations, held_out, .. } = model.evaluation;
        let calibrator = fitted.as_ref().and_then(Fitted::map);
        let result = RunResult {
            step: model.step,
            selection: recipe.selection,
            classes: samples.classes.clone(),
            scaling: calibrator.and_then(FittedCalibrator::scaling),
            uncalibrated: fitted.as_ref().and_then(Fitted::nothing),
            evaluations,
            heads: model.heads,
            finished: finished.clone(),
        };
        let mut info = ModelInfo::new(recipe, &samples.classes, samples.shrunk(), &model.weights);
        info.calibration = calibrator.cloned();
        info.held_out = held_out;
        info.head = model.below;
        let weights = info
            .embed(&model.weights)
            .map_err(|error| FileError::new("model.safetensors", FileProblem::Format(error.to_string())))?;
        Ok(Self {
            model: weights,
            info: pretty("model.json", &info)?,
            margins: (!margins.is_empty()).then(|| margins_bytes(margins)).transpose()?,
            thumbnails: (!thumbnails.ids.is_empty()).then(|| thumbnail_bytes(thumbnails)).transpose()?,
            result: pretty("result.json", &result)?,
        })
    }

    /// Writes everything but the result.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write_model(&self, events: &mut EventWriter<'_>) -> Result<(), RunError> {
        events.last(RunFile::Model, &self.model)?;
        events.last(RunFile::ModelInfo, &self.info)?;
        if let Some(margins) = &self.margins {
            events.last(RunFile::Margins, margins)?;
        }
        if let Some(thumbnails) = &self.thumbnails {
            events.last(RunFile::Thumbnails, thumbnails)?;
        }
        Ok(())
    }

    /// Writes the result.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_result(&self, events: &mut EventWriter<'_>) -> Result<(), RunError> {
        events.last(RunFile::Result, &self.result)
    }
}

/// The metrics of a run by each rule of selection.
pub fn selected(recipe: &Recipe, history: &[Evaluation]) -> BTreeMap<Selection, Selected> {
    let window = recipe.evaluate.window as usize;
    // Selection on test is optimistic, so the recipe has to request it.
    let rules = [Selection::Last, Selection::Median, Selection::BestValidation, recipe.selection];
    let selected = |rule| Some((rule, select(rule, window, history)?));
    rules.into_iter().filter_map(selected).collect()
}

/// The file of margins.
fn margins_bytes(margins: &SampleMargins) -> Result<Vec<u8>, FileError> {
    serde_json::to_vec(margins)
        .map_err(|error| FileError::new("margins.json", FileProblem::Format(error.to_string())))
}

/// The file of thumbnails.
fn thumbnail_bytes(thumbnails: &Thumbnails) -> Result<Vec<u8>, FileError> {
    thumbnails
        .to_bytes()
        .map_err(|error| FileError::new("thumbnails.safetensors", FileProblem::Format(error.to_string())))
}

fn pretty(name: &str, what: &impl Serialize) -> Result<Vec<u8>, FileError> {
    serde_json::to_vec_pretty(what)
        .map_err(|error| FileError::new(name, FileProblem::Format(error.to_string())))
}

//! The files that a run writes when it finishes: its model, its metrics, and what its report shows.

use std::collections::BTreeMap;

use calmix_io::error::{FileError, FileProblem};
use calmix_metrics::evaluate::{Evaluation, Selected, select};
use calmix_metrics::fitted_calibrator::{Fitted, FittedCalibrator};
use calmix_metrics::margin_histogram::SampleMargins;
use calmix_recipe::{Recipe, Selection};
use calmix_run::events::Finished;
use calmix_run::examples::Thumbnails;
use calmix_run::model_info::HeadInfo;
use calmix_run::result::{HeadChoice, RunResult};
use calmix_run::run::RunFile;
use serde::Serialize;

use super::event_writer::EventWriter;
use crate::trainer::data::train_data::TrainData;
use crate::trainer::error::TrainError;
use crate::trainer::eval::final_evaluation::FinalEvaluation;
use crate::trainer::eval::report_files::{margins_bytes, thumbnail_bytes};
use crate::trainer::step::engine_settings::model_info;

/// The model that a run results in.
pub(crate) struct ResultingModel {
    /// The step whose weights these are.
    pub(crate) step: u64,
    pub(crate) weights: Vec<u8>,
    pub(crate) evaluation: FinalEvaluation,
    pub(crate) heads: Option<HeadChoice>,
    /// The backbone and the projection, if the weights are a head.
    pub(crate) below: Option<HeadInfo>,
}

/// The bytes of the last files of a run.
pub(crate) struct ResultFiles {
    model: Vec<u8>,
    info: Vec<u8>,
    margins: Option<Vec<u8>>,
    thumbnails: Option<Vec<u8>>,
    result: Vec<u8>,
}

impl ResultFiles {
    /// The files of a model.
    pub(crate) fn new(
        recipe: &Recipe,
        data: &TrainData,
        model: ResultingModel,
        (margins, thumbnails): (&SampleMargins, &Thumbnails),
        finished: &Finished,
    ) -> Result<Self, TrainError> {
        let FinalEvaluation { fitted, evaluations, held_out, .. } = model.evaluation;
        let calibrator = fitted.as_ref().and_then(Fitted::map);
        let result = RunResult {
            step: model.step,
            selection: recipe.selection,
            classes: data.classes.clone(),
            scaling: calibrator.and_then(FittedCalibrator::scaling),
            uncalibrated: fitted.as_ref().and_then(Fitted::nothing),
            evaluations,
            heads: model.heads,
            finished: finished.clone(),
        };
        let mut info = model_info(recipe, data, &model.weights);
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
    pub(crate) fn write_model(&self, events: &mut EventWriter<'_>) -> Result<(), TrainError> {
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
    pub(crate) fn write_result(&self, events: &mut EventWriter<'_>) -> Result<(), TrainError> {
        events.last(RunFile::Result, &self.result)
    }
}

/// The metrics of a run by each rule of selection.
pub(crate) fn selected(recipe: &Recipe, history: &[Evaluation]) -> BTreeMap<Selection, Selected> {
    let window = recipe.evaluate.window as usize;
    // Selection on test is optimistic, so the recipe has to request it.
    let rules = [Selection::Last, Selection::Median, Selection::BestValidation, recipe.selection];
    let selected = |rule| Some((rule, select(rule, window, history)?));
    rules.into_iter().filter_map(selected).collect()
}

fn pretty(name: &str, what: &impl Serialize) -> Result<Vec<u8>, FileError> {
    serde_json::to_vec_pretty(what)
        .map_err(|error| FileError::new(name, FileProblem::Format(error.to_string())))
}

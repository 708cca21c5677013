//! The files that a run writes when it begins and when it finishes, and reading its model again.

use std::collections::BTreeMap;
use std::path::Path;

use calmix_data::error::DataError;
use calmix_io::error::{FileError, FileProblem};
use calmix_io::safe_open;
use calmix_metrics::evaluate::{Evaluation, Selected, select};
use calmix_metrics::fitted_calibrator::{Fitted, FittedCalibrator};
use calmix_metrics::margins::SampleMargins;
use calmix_metrics::shift::{Reference, ReferenceFeatures};
use calmix_recipe::{Recipe, Resolved, Selection};
use calmix_run::error::RunError;
use calmix_run::event_writer::EventWriter;
use calmix_run::events::Finished;
use calmix_run::label_draws::LabelDraws;
use calmix_run::model_info::{HeadInfo, MAX_METADATA_BYTES, ModelInfo};
use calmix_run::read;
use calmix_run::result::{HeadChoice, PoolComparison, RunResult, Visits};
use calmix_run::run::{Paths, Run, RunEnvironment, RunFile};
use calmix_run::tensor_files::examples::Thumbnails;
use calmix_run::tensor_files::reference_file;
use serde::Serialize;

use crate::error::LifecycleError;
use crate::evaluation::FinalEvaluation;
use crate::run_samples::RunSamples;

/// Writes the first files of a run: split, environment, summary and recipe.
pub fn write_first_files(
    run: &Run,
    recipe: &Resolved,
    samples: &RunSamples,
    environment: &RunEnvironment,
) -> Result<(), LifecycleError> {
    let split = samples.split.to_bytes();
    let split = split.map_err(|problem| DataError::new(run.paths().folder(), problem))?;
    run.write(RunFile::Split, &split)?;
    run.write_json(RunFile::Environment, environment)?;
    run.write_json(RunFile::Summary, &samples.summary(recipe))?;
    // The recipe is written last, because a folder with a recipe is a run that can be resumed.
    run.write(RunFile::Recipe, recipe.to_toml().as_bytes())?;
    Ok(())
}

#[derive(Debug)]
pub struct ResultingModel {
    pub step: u64,
    pub weights: Vec<u8>,
    pub evaluation: FinalEvaluation,
    /// The heads that were compared, if any.
    pub heads: Option<HeadChoice>,
    /// The backbone and the projection, if the model is a head.
    pub head: Option<HeadInfo>,
    /// The features of unlabelled samples that new samples are compared with, if the model is a head.
    pub reference: Option<ReferenceFeatures>,
    /// The comparison of the unlabelled samples with the held-out labels, if there is such a reference.
    pub pool: Option<PoolComparison>,
    /// How the labels were drawn.
    pub draws: LabelDraws,
}

/// The contents of the last files of a run.
#[derive(Debug)]
pub struct ResultFiles {
    model: Vec<u8>,
    info: Vec<u8>,
    reference: Option<Vec<u8>>,
    margins: Option<Vec<u8>>,
    thumbnails: Option<Vec<u8>>,
    result: Vec<u8>,
}

impl ResultFiles {
    pub fn new(
        recipe: &Recipe,
        samples: &RunSamples,
        model: ResultingModel,
        (margins, thumbnails): (&SampleMargins, &Thumbnails),
        finished: &Finished,
    ) -> Result<Self, FileError> {
        let FinalEvaluation { fitted, evaluations, held_out, label_logits, .. } = model.evaluation;
        let calibrator = fitted.as_ref().and_then(Fitted::calibrator);
        let result = RunResult {
            step: model.step,
            selection: recipe.selection,
            classes: samples.classes.clone(),
            scaling: calibrator.and_then(FittedCalibrator::scaling),
            uncalibrated: fitted.as_ref().and_then(Fitted::reason),
            evaluations,
            heads: model.heads,
            pool: model.pool,
            visits: visits(recipe, samples, finished.step),
            finished: finished.clone(),
        };
        let mut info = ModelInfo::new(recipe, &samples.classes, samples.shrunk(), &model.weights);
        info.calibration = calibrator.cloned();
        info.held_out = held_out;
        info.label_draws = model.draws;
        info.head = model.head;
        let reference = Reference { labels: label_logits.unwrap_or_default(), features: model.reference };
        let reference = reference_file::to_bytes(&reference)
            .map_err(|problem| FileError::new("reference.safetensors", problem))?;
        let weights = info
            .embed(&model.weights)
            .map_err(|error| FileError::new("model.safetensors", FileProblem::Format(error.to_string())))?;
        // The reference changes with a later calibration, so the metadata of the weights do not have its hash.
        info.reference = reference.as_deref().map(ModelInfo::hash).unwrap_or_default();
        Ok(Self {
            model: weights,
            info: pretty("model.json", &info)?,
            reference,
            margins: (!margins.is_empty()).then(|| margins_bytes(margins)).transpose()?,
            thumbnails: (!thumbnails.ids.is_empty()).then(|| thumbnail_bytes(thumbnails)).transpose()?,
            result: pretty("result.json", &result)?,
        })
    }

    pub fn write_model(&self, events: &mut EventWriter<'_>) -> Result<(), RunError> {
        if let Some(reference) = &self.reference {
            events.write_final_file(RunFile::Reference, reference)?;
        }
        events.write_final_file(RunFile::Model, &self.model)?;
        events.write_final_file(RunFile::ModelInfo, &self.info)?;
        if let Some(margins) = &self.margins {
            events.write_final_file(RunFile::Margins, margins)?;
        }
        if let Some(thumbnails) = &self.thumbnails {
            events.write_final_file(RunFile::Thumbnails, thumbnails)?;
        }
        Ok(())
    }

    pub fn write_result(&self, events: &mut EventWriter<'_>) -> Result<(), RunError> {
        events.write_final_file(RunFile::Result, &self.result)
    }
}

/// Computes the visits to an unlabelled sample within a number of steps.
fn visits(recipe: &Recipe, samples: &RunSamples, steps: u64) -> Option<Visits> {
    let unlabelled = samples.unlabelled().len();
    let after = |steps: u64| (steps * u64::from(recipe.unlabelled())) as f64 / unlabelled as f64;
    let (labels, classes) = (samples.split.labelled().len(), samples.classes.len());
    let mixup = recipe.method.mixup().filter(|mixup| mixup.applies_to(labels, classes));
    let mixing = mixup.and_then(|mixup| mixup.start.first_step(steps));
    let before_mixing = mixing.map(|first| after(first.min(steps)));
    (unlabelled > 0 && steps > 0).then(|| Visits { all: after(steps), before_mixing })
}

/// Selects the metrics of a run by each selection rule.
pub fn selected(recipe: &Recipe, history: &[Evaluation]) -> BTreeMap<Selection, Selected> {
    let window = recipe.evaluate.window as usize;
    // Selection on the test split is optimistic, so it is computed only if the recipe requests it.
    let rules = [Selection::Last, Selection::Median, Selection::BestValidation, recipe.selection];
    let selected = |rule| Some((rule, select(rule, window, history)?));
    rules.into_iter().filter_map(selected).collect()
}

fn margins_bytes(margins: &SampleMargins) -> Result<Vec<u8>, FileError> {
    serde_json::to_vec(margins)
        .map_err(|error| FileError::new("margins.json", FileProblem::Format(error.to_string())))
}

fn thumbnail_bytes(thumbnails: &Thumbnails) -> Result<Vec<u8>, FileError> {
    thumbnails
        .to_bytes()
        .map_err(|error| FileError::new("thumbnails.safetensors", FileProblem::Format(error.to_string())))
}

fn pretty(name: &str, what: &impl Serialize) -> Result<Vec<u8>, FileError> {
    serde_json::to_vec_pretty(what)
        .map_err(|error| FileError::new(name, FileProblem::Format(error.to_string())))
}

/// Reads the weights of a finished run, of at most `max_bytes` without their metadata, and its `model.json`; checks both against
/// the recipe and the samples.
pub fn read_model(
    folder: &Path,
    max_bytes: u64,
    recipe: &Recipe,
    samples: &RunSamples,
    head: Option<HeadInfo>,
) -> Result<(Vec<u8>, ModelInfo), LifecycleError> {
    let path = Paths::new(folder).file(RunFile::Model)?;
    let model = safe_open::read(&path, max_bytes + MAX_METADATA_BYTES)?;
    let info = read::model_info(folder)?;
    let expected = ModelInfo { head, ..ModelInfo::new(recipe, &samples.classes, samples.shrunk(), &model) };
    let Some(problem) = info.difference(&expected) else { return Ok((model, info)) };
    let path = Paths::new(folder).file(RunFile::ModelInfo)?;
    let hint = "restore model.safetensors and model.json as the run wrote them";
    Err(FileError::new(path, FileProblem::Changed(problem)).hint(hint).into())
}

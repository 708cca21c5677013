//! A model in use, of images or of vectors: the interface that `evaluate --on`, `calibrate` and `export` need of both.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::Ordering;

use anyhow::Result;
use calmix_data::dataset::Dataset;
use calmix_data::error::DataError;
use calmix_data::loader::Workers;
use calmix_head::parallel;
use calmix_lifecycle::run_samples::VectorShape;

use crate::args::options::source::LabelledArgs;
use crate::export::example::{self, ExampleInput};
use crate::labelled::{self, LabelledPredictions, class_numbers, unknown_class};
use crate::model::files::ModelFiles;
use crate::model::folder::input_kind;
use crate::model::options::ModelOptions;
use crate::model::vector_model::VectorModel;
use crate::model::{Model, ModelError, encoder_trial};
use crate::predict::input::InputKind;
use crate::predict::prediction_rule::PredictionRule;
use crate::predict::shift_check::ShiftCheck;
use crate::predict::vector_batches::BLOCK_ROWS;
use crate::process::stop::Stop;

/// A model of images or of vectors.
#[derive(Debug)]
pub(crate) enum LoadedModel {
    Images(Box<Model>),
    Vectors(Box<VectorModel>),
}

impl LoadedModel {
    /// Loads the model of a run; `None` if the user stops the command.
    pub(crate) fn load(run: &Path, options: &ModelOptions, stop: &Stop) -> Result<Option<Self>> {
        match input_kind(run) {
            InputKind::Image => {
                Ok(load_images(run, options, stop)?.map(|model| Self::Images(Box::new(model))))
            }
            InputKind::Vector => Ok(Some(Self::Vectors(Box::new(VectorModel::load(run, options)?)))),
        }
    }

    /// Returns the kind of its inputs.
    pub(crate) fn kind(&self) -> InputKind {
        match self {
            Self::Images(_) => InputKind::Image,
            Self::Vectors(_) => InputKind::Vector,
        }
    }

    /// Returns the rule that turns its logits into predictions.
    pub(crate) fn rule(&self) -> &PredictionRule {
        match self {
            Self::Images(model) => model.rule(),
            Self::Vectors(model) => model.rule(),
        }
    }

    /// Returns the comparison of inputs with those of training.
    pub(crate) fn shift_check(&self) -> &ShiftCheck {
        match self {
            Self::Images(model) => model.shift_check(),
            Self::Vectors(model) => model.shift_check(),
        }
    }

    /// Prepares labelled samples, in any format of `calmix prepare`, in `scratch`.
    ///
    /// # Errors
    /// If they are not of the kind or length that the model of `run` reads.
    pub(crate) fn open_labelled(
        &self,
        run: &Path,
        path: &Path,
        args: &LabelledArgs,
        scratch: &Path,
        stop: &Stop,
    ) -> Result<Dataset> {
        match self {
            Self::Images(model) => labelled::open(&args.images(path, model.shrink())?, path, scratch, stop),
            Self::Vectors(model) => {
                let dataset = labelled::open(&args.vectors()?, path, scratch, stop)?;
                model.check_width(run, path, VectorShape::of(&dataset)?.width, &dataset.feature_sets())?;
                Ok(dataset)
            }
        }
    }

    /// Predicts labelled samples; `None` if the user stops the command.
    pub(crate) fn predict_labelled(
        &self,
        path: &Path,
        dataset: Dataset,
        ids: &[u64],
        threads: NonZeroUsize,
        stop: &Stop,
    ) -> Result<Option<LabelledPredictions>> {
        let found = self.predict_samples(path, dataset, ids, threads, stop)?;
        found.map(|found| found.check(path, self.kind()).map(|()| found)).transpose()
    }

    /// Predicts samples, with or without labels; `None` if the user stops the command. Those that cannot be read are left out.
    pub(crate) fn predict_samples(
        &self,
        path: &Path,
        dataset: Dataset,
        ids: &[u64],
        threads: NonZeroUsize,
        stop: &Stop,
    ) -> Result<Option<LabelledPredictions>> {
        match self {
            Self::Images(model) => predict_images(model, path, dataset, ids, threads, stop),
            Self::Vectors(model) => predict_vectors(model, path, &dataset, ids, threads, stop),
        }
    }

    /// Returns example inputs and their logits.
    pub(crate) fn example(&self) -> Result<(ExampleInput, Vec<f32>)> {
        match self {
            Self::Images(model) => {
                let side = model.size() as usize;
                let pixels = example::images(side);
                let logits = model.logits(&pixels)?;
                Ok((ExampleInput::Images(pixels, side), logits))
            }
            Self::Vectors(model) => {
                let vectors = example::vectors(model.head());
                let logits = model.logits(&vectors)?;
                Ok((ExampleInput::Vectors(vectors, model.width()), logits))
            }
        }
    }
}

/// Loads a model of images. A head of an earlier version that was trained on features of another precision is first compared with
/// its own stored predictions. `None` if the user stops the command.
pub(crate) fn load_images(run: &Path, options: &ModelOptions, stop: &Stop) -> Result<Option<Model>> {
    let files = ModelFiles::open(run)?;
    if let Some(head) = &files.info().head
        && let Some(spec) = &head.encoder
    {
        encoder_trial::first_run(&files.encoder(head)?, spec, 1, false)?;
    }
    match Model::load_with(run, options) {
        Err(ModelError::OtherPrecision { precision, .. }) => {
            let options = ModelOptions { accept_f32: true, ..*options };
            let model = Model::load_with(run, &options)?;
            let is_same =
                stop.ending_soon(|| {}, || super::precision_difference::check(run, &model, precision, stop))?;
            Ok(is_same.then_some(model))
        }
        model => Ok(Some(model?)),
    }
}

/// Predicts labelled images; `None` if the user stops the command.
fn predict_images(
    model: &Model,
    folder: &Path,
    dataset: Dataset,
    ids: &[u64],
    threads: NonZeroUsize,
    stop: &Stop,
) -> Result<Option<LabelledPredictions>> {
    let is_stopped = &mut || stop.flag().load(Ordering::Relaxed);
    let workers = Workers { threads, ..Workers::default() };
    match model.predict_samples(dataset, ids, workers, is_stopped) {
        Err(ModelError::Data(DataError::Interrupted)) => Ok(None),
        Err(ModelError::UnknownClass { class, known }) => Err(unknown_class(folder, &class, &known).into()),
        found => Ok(Some(found?)),
    }
}

/// The number of vectors that one thread predicts at a time.
const ROWS_PER_TASK: usize = 256;

/// Predicts labelled vectors; `None` if the user stops the command.
///
/// # Errors
/// If a class is not one of the model, or a vector has changed since it was read.
fn predict_vectors(
    model: &VectorModel,
    path: &Path,
    dataset: &Dataset,
    ids: &[u64],
    threads: NonZeroUsize,
    stop: &Stop,
) -> Result<Option<LabelledPredictions>> {
    let classes = &model.rule().info().classes;
    let numbers = class_numbers(dataset.classes(), classes);
    let numbers = numbers.map_err(|class| unknown_class(path, class, classes))?;
    let mut found = LabelledPredictions::empty(classes);
    let predictions = &mut found.predictions;
    for block in ids.chunks(BLOCK_ROWS) {
        if stop.flag().load(Ordering::Relaxed) {
            return Ok(None);
        }
        let mut vectors = Vec::with_capacity(block.len() * model.width());
        for &id in block {
            let start = vectors.len();
            dataset.vector(id, &mut vectors)?;
            // Of several views, the first is the unaugmented sample.
            vectors.truncate(start + model.width());
            let label = dataset.label(id)?.and_then(|label| numbers.get(label as usize).copied());
            predictions.labels.extend(label);
        }
        let tasks: Vec<&[f32]> = vectors.chunks(ROWS_PER_TASK * model.width()).collect();
        for logits in parallel::run(tasks.len(), threads.get(), |n| model.logits(tasks[n])) {
            predictions.logits.extend(logits?);
        }
        predictions.ids.extend_from_slice(block);
    }
    predictions.groups = dataset.group_numbers(&predictions.ids)?;
    Ok(Some(found))
}

//! The model of a run in use, whatever it reads: what `evaluate --on`, `calibrate` and `export` need of both kinds.

use std::num::NonZeroUsize;
use std::path::Path;

use anyhow::Result;
use calmix_data::dataset::Dataset;

use crate::args::options::labelled::LabelledArgs;
use crate::export::example::{self, ExampleInput};
use crate::labelled::samples::LabelledPredictions;
use crate::labelled::{images, vectors};
use crate::model::encoder_trial;
use crate::model::files::ModelFiles;
use crate::model::folder::input_kind;
use crate::model::options::ModelOptions;
use crate::model::vector_model::VectorModel;
use crate::model::{Model, ModelError};
use crate::predict::input_kind::InputKind;
use crate::predict::prediction_rule::PredictionRule;
use crate::process::stop::Stop;

/// A model of images or of vectors.
#[derive(Debug)]
pub(crate) enum LoadedModel {
    Images(Box<Model>),
    Vectors(Box<VectorModel>),
}

impl LoadedModel {
    /// Loads the model of a run; `None` if the user stops it.
    pub(crate) fn load(run: &Path, options: &ModelOptions, stop: &Stop) -> Result<Option<Self>> {
        match input_kind(run) {
            InputKind::Image => {
                Ok(load_images(run, options, stop)?.map(|model| Self::Images(Box::new(model))))
            }
            InputKind::Vector => Ok(Some(Self::Vectors(Box::new(VectorModel::load(run, options)?)))),
        }
    }

    /// What it reads.
    pub(crate) fn kind(&self) -> InputKind {
        match self {
            Self::Images(_) => InputKind::Image,
            Self::Vectors(_) => InputKind::Vector,
        }
    }

    /// What turns its logits into predictions.
    pub(crate) fn rule(&self) -> &PredictionRule {
        match self {
            Self::Images(model) => model.rule(),
            Self::Vectors(model) => model.rule(),
        }
    }

    /// Reads labelled samples such as the model of `run` reads into a table in `scratch`.
    pub(crate) fn open_labelled(
        &self,
        run: &Path,
        path: &Path,
        args: &LabelledArgs,
        scratch: &Path,
        stop: &Stop,
    ) -> Result<Dataset> {
        match self {
            Self::Images(model) => images::open(model, path, args, scratch, stop),
            Self::Vectors(model) => vectors::open(run, model, path, args, scratch, stop),
        }
    }

    /// Predicts labelled samples; `None` if the user stops it.
    pub(crate) fn predict_labelled(
        &self,
        path: &Path,
        dataset: Dataset,
        ids: &[u64],
        threads: NonZeroUsize,
        stop: &Stop,
    ) -> Result<Option<LabelledPredictions>> {
        match self {
            Self::Images(model) => images::predict(model, path, dataset, ids, threads, stop),
            Self::Vectors(model) => vectors::predict(model, path, &dataset, ids, threads, stop),
        }
    }

    /// An example of inputs, and the logits that the model computes for them.
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

/// Loads a model of images. A head of an earlier version, trained on features of another precision, is compared with its own
/// stored predictions first. `None` if the user stops it.
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

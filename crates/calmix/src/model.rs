//! Predictions with a trained model: labels with calibrated confidence, prediction sets and abstention.
//!
//! ```no_run
//! use calmix::Model;
//! use calmix::formats::decode::{DecodeLimits, decode};
//!
//! let model = Model::load("runs/a")?;
//! let image = decode(&std::fs::read("photo.jpg")?, &DecodeLimits::default())?;
//! let prediction = &model.predict(&[image])?[0];
//! println!("{}: {:.1}%", model.classes()[prediction.label], 100.0 * prediction.confidence);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub(crate) mod encoder_trial;
mod error;
pub(crate) mod files;
pub(crate) mod folder;
mod labelled;
pub(crate) mod loaded_model;
pub mod options;
mod precision_difference;
pub(crate) mod vector_model;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use calmix_data::augment::{Augment, EvalView, Scratch};
use calmix_data::features::{from_f16, to_f16};
use calmix_data::shrink::shrunk;
use calmix_formats::image::Image;
use calmix_head::model::HeadModel;
use calmix_ort::image_network::{ImageNetwork, ImageOutputs};
use calmix_ort::session::RunOn;
use calmix_recipe::device::Device;
use calmix_recipe::model_spec::ModelSpec;
use calmix_recipe::precision::Precision;
use calmix_run::model_info::{HeadInfo, ModelInfo};
use calmix_run::run::RunFile;

use crate::model::files::{ModelFiles, check_pixels};

pub use crate::labelled::LabelledPredictions;
pub use crate::model::options::ModelOptions;
pub use crate::predict::guarantee::{Guarantee, ScarceClass};
pub use crate::predict::prediction_rule::{Prediction, PredictionRule};
pub use crate::predict::shift_check::ShiftCheck;
pub use error::ModelError;

/// The maximum input size of a model, in pixels per side.
const MAX_SIDE: u32 = 2_048;

/// The maximum size in bytes of the views of a batch, unless a single view is larger. A command has up to five batches in memory:
/// the one being predicted, and those that its loaders read ahead.
const BATCH_BYTES: usize = 64 << 20;

/// The computation from views to logits and features.
#[derive(Debug)]
struct ModelNetwork {
    /// A network that was trained as a whole, or the backbone below a head.
    network: ImageNetwork,
    head: Option<HeadModel>,
}

/// The outputs of a model for some views, one row for each.
#[derive(Debug, Clone, PartialEq)]
pub struct ViewOutputs {
    /// The logits before calibration: one number for each class.
    pub logits: Vec<f32>,
    /// The input of the last layer of a whole network, or the features of the backbone below a head, before its projection.
    pub features: Vec<f32>,
}

impl ModelNetwork {
    fn outputs(&self, views: &[u8]) -> Result<ViewOutputs, ModelError> {
        let ImageOutputs { logits, features } = self.network.outputs(views)?;
        let Some(head) = &self.head else { return Ok(ViewOutputs { logits, features }) };
        // Round as the feature cache does, from which the head was trained.
        let features = from_f16(&to_f16(&features));
        Ok(ViewOutputs { logits: head.logits(&features)?, features })
    }
}

/// The model of a finished run.
#[derive(Debug)]
pub struct Model {
    size: u32,
    network: ModelNetwork,
    transform: Arc<Augment>,
    rule: PredictionRule,
    shift: ShiftCheck,
    batch: usize,
    /// The file of the weights, for errors.
    weights: PathBuf,
}

impl Model {
    /// Loads the model of the run in `folder`: `model.safetensors` and `model.json`, for a head also `backbone.safetensors`
    /// and `projection.safetensors`. Needs neither the recipe nor the dataset.
    ///
    /// # Errors
    /// If the files are missing, were changed, or contradict each other.
    pub fn load(folder: impl AsRef<Path>) -> Result<Self, ModelError> {
        Self::load_with(folder, &ModelOptions::default())
    }

    /// Loads a model with options.
    ///
    /// # Errors
    /// As [`load`](Self::load), and if an option is out of range.
    pub fn load_with(folder: impl AsRef<Path>, options: &ModelOptions) -> Result<Self, ModelError> {
        let files = ModelFiles::open(folder.as_ref())?;
        let info = files.info();
        let Some(pixels) = info.pixels() else {
            let problem = "it reads vectors, and has no network for images";
            return Err(files.wrong(problem.to_owned()).into());
        };
        let filter = info.filter.parse();
        let filter = filter.map_err(|_| files.wrong(format!("unknown filter {:?}", info.filter)))?;
        let mut transform = Augment::usb(pixels.size);
        transform.evaluation = EvalView { resize: info.resize };
        transform.filter = filter;
        transform.check().map_err(|error| files.wrong(error.to_string()))?;
        if pixels.size > MAX_SIDE {
            let problem =
                format!("images of {} pixels per side, more than the {MAX_SIDE} allowed", pixels.size);
            return Err(files.wrong(problem).into());
        }
        check_pixels(&pixels, info.model.and_then(|model| model.norm_eps))
            .map_err(|problem| files.implausible(problem))?;
        files.check_calibration()?;

        let path = files.path(RunFile::Model)?;
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let run_on = RunOn {
            threads: options.threads.unwrap_or_else(cores),
            device: options.device.unwrap_or(Device::Cpu),
        };
        let network = match (&info.head, &info.model) {
            (Some(head), Some(model)) => head_on_backbone(&files, head, model, options, run_on)?,
            (Some(head), None) => head_on_encoder(&files, head, run_on)?,
            (None, Some(model)) => whole_network(&files, model, run_on)?,
            (None, None) => return Err(files.wrong("neither a network nor a head".to_owned()).into()),
        };
        Guarantee::check(options)?;
        let rule = files.rule(options)?;
        let transform = Arc::new(transform);
        let batch = (BATCH_BYTES / transform.bytes().max(1)).min(options.batch).max(1);
        let shift = ShiftCheck::load(&files, network.head.as_ref().map(HeadModel::projection))?;
        Ok(Self { size: pixels.size, network, transform, rule, shift, batch, weights: path.to_path_buf() })
    }

    /// Returns the names of the classes, in the order of the probabilities.
    pub fn classes(&self) -> &[String] {
        &self.rule.info().classes
    }

    /// Returns the description of the weights in `model.json`: network, image format, calibration.
    pub fn info(&self) -> &ModelInfo {
        self.rule.info()
    }

    /// Returns the side of the images that the network receives, in pixels.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Returns the guarantees for prediction sets and answers.
    pub fn guarantee(&self) -> &Guarantee {
        self.rule.guarantee()
    }

    /// Returns the rule that turns the logits of the network into predictions.
    pub fn rule(&self) -> &PredictionRule {
        &self.rule
    }

    /// Returns the comparison of images with those of training.
    pub fn shift_check(&self) -> &ShiftCheck {
        &self.shift
    }

    /// Returns the transform from an image to the view that the network receives.
    pub fn transform(&self) -> &Arc<Augment> {
        &self.transform
    }

    /// Returns the shorter side to which [larger images are shrunk](calmix_data::shrink) before their view is made; 0 for none.
    pub fn shrink(&self) -> u32 {
        self.info().shrink.unwrap_or(0)
    }

    /// Returns the number of images in memory at a time: that of the options, or as many views as fit into 64 MiB.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// Returns the size in bytes of the views in one pass through the network. A larger pass is not faster per image.
    pub fn pass_bytes(&self) -> usize {
        self.network.network.pass_bytes()
    }

    /// Predicts images of any size.
    ///
    /// # Errors
    /// If an image has no pixels, or ONNX Runtime fails.
    pub fn predict(&self, images: &[Image]) -> Result<Vec<Prediction>, ModelError> {
        let (each, mut scratch) = (self.transform.bytes(), Scratch::default());
        let mut predictions = Vec::with_capacity(images.len());
        for images in images.chunks(self.batch) {
            let mut views = vec![0; images.len() * each];
            for (image, view) in images.iter().zip(views.chunks_exact_mut(each)) {
                let is_large = self.shrink() > 0 && image.width().min(image.height()) > self.shrink();
                let small = is_large.then(|| shrunk(image.clone(), self.shrink()));
                self.transform.evaluation(small.as_ref().unwrap_or(image), &mut scratch, view)?;
            }
            predictions.extend(self.predict_views(&views)?);
        }
        Ok(predictions)
    }

    /// Predicts views that were made with [`transform`](Self::transform).
    ///
    /// # Errors
    /// If they are not whole views, or ONNX Runtime fails.
    pub fn predict_views(&self, views: &[u8]) -> Result<Vec<Prediction>, ModelError> {
        let logits = self.logits(views)?;
        logits.chunks_exact(self.classes().len().max(1)).map(|row| self.prediction(row)).collect()
    }

    /// Computes the uncalibrated logits of views, one row per image.
    pub fn logits(&self, views: &[u8]) -> Result<Vec<f32>, ModelError> {
        Ok(self.outputs(views)?.logits)
    }

    /// Computes the uncalibrated logits of views, and their features.
    pub fn outputs(&self, views: &[u8]) -> Result<ViewOutputs, ModelError> {
        let outputs = self.network.outputs(views)?;
        if outputs.logits.iter().all(|logit| logit.is_finite()) {
            Ok(outputs)
        } else {
            Err(ModelError::NotFinite { path: self.weights.clone() })
        }
    }

    /// Turns the logits of an image into a prediction.
    ///
    /// # Errors
    /// If the calibrator is for another number of classes.
    pub fn prediction(&self, logits: &[f32]) -> Result<Prediction, ModelError> {
        Ok(self.rule.prediction(logits)?)
    }
}

/// Reads a network that was trained as a whole.
fn whole_network(files: &ModelFiles, model: &ModelSpec, run_on: RunOn) -> Result<ModelNetwork, ModelError> {
    let path = files.path(RunFile::Model)?;
    let classes = files.info().classes.len();
    let weights = files.weights(ImageNetwork::max_weights_bytes(model, classes))?;
    let network = ImageNetwork::with_classifier(model, classes, &weights, run_on);
    let network = network.map_err(|error| ModelError::of_weights(error, &path))?;
    Ok(ModelNetwork { network, head: None })
}

/// Reads a head and the backbone below it.
fn head_on_backbone(
    files: &ModelFiles,
    head: &HeadInfo,
    model: &ModelSpec,
    options: &ModelOptions,
    run_on: RunOn,
) -> Result<ModelNetwork, ModelError> {
    if head.precision != Precision::F32 && !options.accept_f32 {
        let folder = files.path(RunFile::ModelInfo)?.to_path_buf();
        return Err(ModelError::OtherPrecision { path: folder, precision: head.precision });
    }
    let path = files.path(RunFile::Backbone)?;
    let weights =
        files.below_head(RunFile::Backbone, ImageNetwork::max_backbone_bytes(model), &head.backbone)?;
    let network = ImageNetwork::backbone(model, &weights, run_on);
    let network = network.map_err(|error| ModelError::of_weights(error, &path))?;
    let head = files.head(head, network.feature_width())?;
    Ok(ModelNetwork { network, head: Some(head) })
}

/// Reads a head and the encoder below it.
fn head_on_encoder(files: &ModelFiles, head: &HeadInfo, run_on: RunOn) -> Result<ModelNetwork, ModelError> {
    let Some(spec) = &head.encoder else {
        return Err(files.wrong("head: it has no backbone".to_owned()).into());
    };
    let file = files.encoder(head)?;
    let network = ImageNetwork::encoder(spec, &file.graph(spec)?, run_on);
    let network = network.map_err(|error| ModelError::of_weights(error, &file.path))?;
    let head = files.head(head, network.feature_width())?;
    Ok(ModelNetwork { network, head: Some(head) })
}

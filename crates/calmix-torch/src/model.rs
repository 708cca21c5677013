//! Predictions with a trained model: labels with calibrated confidence, prediction sets and abstention.
//!
//! ```no_run
//! use calmix_torch::Model;
//! use calmix_torch::data::decode::{DecodeLimits, decode};
//!
//! let model = Model::load("runs/a")?;
//! let image = decode(&std::fs::read("photo.jpg")?, &DecodeLimits::default())?;
//! let prediction = &model.predict(&[image])?[0];
//! println!("{}: {:.1}%", model.classes()[prediction.label], 100.0 * prediction.confidence);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod labelled;
mod pixel_check;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use calmix::model_files::ModelFiles;
use calmix_data::augment::{Augment, EvalView, Scratch};
use calmix_data::features::widened;
use calmix_data::image::Image;
use calmix_data::shrink::shrunk;
use calmix_engine::device;
use calmix_engine::device::set_threads;
use calmix_engine::frozen_backbone::FrozenBackbone;
use calmix_engine::predictor::{Predictor, PredictorSettings};
use calmix_head::model::HeadModel;
use calmix_recipe::precision::Precision;
use calmix_run::model_info::{HeadInfo, ModelInfo};
use calmix_run::run::RunFile;

pub use calmix::labelled_samples::LabelledPredictions;
pub use calmix::model_options::ModelOptions;
pub use calmix::predict::guarantee::{Guarantee, ScarceClass};
pub use calmix::predict::prediction_rule::{Prediction, PredictionRule};
pub use error::ModelError;

/// The largest input size of a model, in pixels per side.
const LARGEST: u32 = 2_048;

/// The most bytes of the views of a batch, unless one view has more. A command has up to five batches in memory: the one
/// that it predicts, and those that its loaders read ahead.
const BATCH_BYTES: usize = 64 << 20;

/// What turns views into logits.
#[derive(Debug)]
enum ModelNetwork {
    /// A network that was trained as a whole.
    Whole(Box<Predictor>),
    /// A head on the projected features of a frozen backbone.
    Head(Box<FrozenBackbone>, HeadModel),
}

/// The outputs of a network for some views, one row for each.
#[derive(Debug, Clone, PartialEq)]
pub struct ViewOutputs {
    /// The logits before calibration: one number for each class.
    pub logits: Vec<f32>,
    /// The vector before the last layer of a network, or the one that the backbone below a head makes, before its projection.
    pub features: Vec<f32>,
}

impl ModelNetwork {
    fn outputs(&self, views: &[u8]) -> Result<ViewOutputs, ModelError> {
        match self {
            Self::Whole(predictor) => {
                let outputs = predictor.predict(views)?;
                Ok(ViewOutputs { logits: outputs.logits, features: outputs.features })
            }
            Self::Head(backbone, head) => {
                let features = widened(&backbone.features(views)?);
                Ok(ViewOutputs { logits: head.logits(&features)?, features })
            }
        }
    }
}

/// The model of a finished run.
#[derive(Debug)]
pub struct Model {
    network: ModelNetwork,
    transform: Arc<Augment>,
    rule: PredictionRule,
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

    /// Loads a model as [`load`](Self::load) does, with options.
    ///
    /// # Errors
    /// As [`load`](Self::load), and if an option is out of range.
    pub fn load_with(folder: impl AsRef<Path>, options: &ModelOptions) -> Result<Self, ModelError> {
        let files = ModelFiles::open(folder.as_ref())?;
        let info = files.info();
        let Some(model) = info.model else {
            let problem = "it reads vectors, and has no network for images";
            return Err(files.wrong(problem.to_owned()).into());
        };
        let filter = info.filter.parse();
        let filter = filter.map_err(|_| files.wrong(format!("unknown filter {:?}", info.filter)))?;
        let mut transform = Augment::usb(model.size);
        transform.evaluation = EvalView { resize: info.resize };
        transform.filter = filter;
        transform.check().map_err(|error| files.wrong(error.to_string()))?;
        if model.size > LARGEST {
            let problem =
                format!("images of {} pixels per side, more than the {LARGEST} allowed", model.size);
            return Err(files.wrong(problem).into());
        }
        pixel_check::check_pixels(&model).map_err(|problem| files.implausible(problem))?;
        files.check_calibration()?;

        let classes = info.classes.len();
        let path = files.path(RunFile::Model)?;
        let device = options.device.unwrap_or_else(device::fastest);
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        set_threads(options.threads.unwrap_or_else(cores));
        let settings = PredictorSettings { model, classes, device };
        let network = if let Some(head) = &info.head {
            let precision = if options.backbone_in_f32 { Precision::F32 } else { head.precision };
            let backbone = backbone(&files, head, precision, &settings)?;
            let head = files.head(head, backbone.width())?;
            ModelNetwork::Head(Box::new(backbone), head)
        } else {
            let weights = files.weights(Predictor::longest_weights(model.network, model.block, classes))?;
            let predictor = Predictor::new(&settings, &weights);
            let predictor = predictor.map_err(|error| ModelError::of_weights(error, &path))?;
            ModelNetwork::Whole(Box::new(predictor))
        };
        Guarantee::check(options)?;
        let rule = files.rule(options)?;
        let transform = Arc::new(transform);
        let batch = (BATCH_BYTES / transform.bytes().max(1)).min(options.batch).max(1);
        Ok(Self { network, transform, rule, batch, weights: path.to_path_buf() })
    }

    /// The names of the classes, in the order of the probabilities.
    pub fn classes(&self) -> &[String] {
        &self.rule.info().classes
    }

    /// The description of the weights in `model.json`: network, image format, calibration.
    pub fn info(&self) -> &ModelInfo {
        self.rule.info()
    }

    /// The guarantees for prediction sets and answers.
    pub fn guarantee(&self) -> &Guarantee {
        self.rule.guarantee()
    }

    /// What turns the logits of the network into predictions.
    pub fn rule(&self) -> &PredictionRule {
        &self.rule
    }

    /// The transform from an image to the view that the network receives.
    pub fn transform(&self) -> &Arc<Augment> {
        &self.transform
    }

    /// The shorter side to which [larger images are shrunk](calmix_data::shrink) before their view is made; 0 for none.
    pub fn shrink(&self) -> u32 {
        self.info().shrink.unwrap_or(0)
    }

    /// Images in memory at a time: the number of the options, or as many views as fit into 64 MiB.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// The bytes of the views in one pass through the network. A larger pass is not faster per image.
    pub fn pass_bytes(&self) -> usize {
        match &self.network {
            ModelNetwork::Whole(predictor) => predictor.pass_bytes(),
            ModelNetwork::Head(backbone, _) => backbone.pass_bytes(),
        }
    }

    /// Predicts images of any size.
    ///
    /// # Errors
    /// If an image has no pixels, or libtorch fails.
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

    /// Predicts views that the [`transform`](Self::transform) of the model made.
    ///
    /// # Errors
    /// If they are not whole views, or libtorch fails.
    pub fn predict_views(&self, views: &[u8]) -> Result<Vec<Prediction>, ModelError> {
        let logits = self.logits(views)?;
        logits.chunks_exact(self.classes().len().max(1)).map(|row| self.prediction(row)).collect()
    }

    /// Computes the logits of views before calibration, one row per image.
    ///
    /// # Errors
    /// As [`predict_views`](Self::predict_views).
    pub fn logits(&self, views: &[u8]) -> Result<Vec<f32>, ModelError> {
        Ok(self.outputs(views)?.logits)
    }

    /// Computes the logits of views before calibration, and their features.
    ///
    /// # Errors
    /// As [`predict_views`](Self::predict_views).
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

/// Reads the backbone below a head from the run's folder.
fn backbone(
    files: &ModelFiles,
    head: &HeadInfo,
    precision: Precision,
    settings: &PredictorSettings,
) -> Result<FrozenBackbone, ModelError> {
    let longest = FrozenBackbone::longest_file(settings);
    let bytes = files.below_head(RunFile::Backbone, longest, &head.backbone)?;
    let path = files.path(RunFile::Backbone)?;
    FrozenBackbone::new(settings, precision, &bytes).map_err(|error| ModelError::of_weights(error, &path))
}

//! The files of a trained model in its run's folder. They may come from an untrusted source with valid hashes, so they are
//! checked against each other.

use std::path::Path;

use calmix_formats::vectors::MAX_ROW_VALUES;
use calmix_head::model::HeadModel;
use calmix_io::confined_path::ConfinedPath;
use calmix_io::error::{FileError, FileProblem};
use calmix_io::safe_open;
use calmix_lifecycle::pretrained::{EncoderFile, MAX_ENCODER_BYTES};
use calmix_metrics::calibrator::Calibrator;
use calmix_metrics::held_out::HeldOut;
use calmix_run::model_info::{HeadInfo, MAX_METADATA_BYTES, ModelInfo, PixelFormat};
use calmix_run::read;
use calmix_run::run::{Paths, RunFile};
use calmix_run::tensor_files::head_files::{
    max_head_bytes, max_projection_bytes, read_head, read_projection,
};

use crate::model::options::ModelOptions;
use crate::predict::prediction_rule::PredictionRule;

/// The files of a model whose `model.json` has been read.
#[derive(Debug)]
pub(crate) struct ModelFiles {
    paths: Paths,
    info: ModelInfo,
    info_path: ConfinedPath,
}

impl ModelFiles {
    /// Reads `model.json`.
    pub(crate) fn open(folder: &Path) -> Result<Self, FileError> {
        let paths = Paths::new(folder);
        let info_path = paths.file(RunFile::ModelInfo)?;
        if !safe_open::exists(&info_path) && !safe_open::exists(&paths.file(RunFile::Model)?) {
            let problem =
                FileProblem::Content("there is no model here: a run writes it when it finishes".into());
            return Err(FileError::new(folder, problem).hint("resume the run, or name another folder"));
        }
        let info = read::model_info(folder)?;
        Ok(Self { paths, info, info_path })
    }

    /// Returns the content of `model.json`.
    pub(crate) fn info(&self) -> &ModelInfo {
        &self.info
    }

    /// Returns the path of one of the files.
    pub(crate) fn path(&self, file: RunFile<'_>) -> Result<ConfinedPath, FileError> {
        self.paths.file(file)
    }

    /// Returns an error about the content of `model.json`.
    pub(crate) fn wrong(&self, problem: String) -> FileError {
        FileError::new(&self.info_path, FileProblem::Content(problem))
    }

    /// Returns an error about an implausible value in `model.json`.
    pub(crate) fn implausible(&self, problem: String) -> FileError {
        self.wrong(problem).hint("check that you trust its origin, and restore model.json as it was written")
    }

    /// Refuses an implausible calibrator or implausible scores of held-out labels.
    ///
    /// # Errors
    /// The error names the key in `model.json`.
    pub(crate) fn check_calibration(&self) -> Result<(), FileError> {
        let classes = self.info.classes.len();
        if let Some(calibration) = &self.info.calibration {
            check_calibrator(&calibration.calibrator, classes)
                .map_err(|problem| self.implausible(format!("calibration: {problem}")))?;
        }
        if let Some(held_out) = &self.info.held_out {
            check_scores(held_out, classes)
                .map_err(|problem| self.implausible(format!("held_out: {problem}")))?;
        }
        Ok(())
    }

    /// Reads `model.safetensors`, which may have up to `longest` bytes besides its metadata.
    ///
    /// # Errors
    /// If it is not the file that `model.json` describes.
    pub(crate) fn weights(&self, longest: u64) -> Result<Vec<u8>, FileError> {
        let path = self.paths.file(RunFile::Model)?;
        let weights = safe_open::read(&path, longest + MAX_METADATA_BYTES)?;
        let in_weights = |problem: String| FileError::new(&path, FileProblem::Format(problem));
        let embedded = ModelInfo::embedded(&weights).map_err(|error| in_weights(error.to_string()))?;
        let embedded = embedded.ok_or_else(|| in_weights("it has no metadata of calmix".to_owned()))?;
        match self.info.difference(&embedded) {
            Some(difference) => Err(self
                .wrong(difference)
                .hint("restore model.safetensors and model.json as the run wrote them")),
            None => Ok(weights),
        }
    }

    /// Reads a file that a head needs besides its weights, such as its projection, and checks its hash.
    ///
    /// # Errors
    /// If it is missing, or its hash is wrong.
    pub(crate) fn below_head(
        &self,
        file: RunFile<'_>,
        longest: u64,
        hash: &str,
    ) -> Result<Vec<u8>, FileError> {
        let path = self.paths.file(file)?;
        if !safe_open::exists(&path) {
            let problem = FileProblem::Content("missing: the model is a head and needs it".into());
            let hint = "copy it from the folder of the run that trained the model, with model.safetensors and model.json";
            return Err(FileError::new(path, problem).hint(hint));
        }
        let bytes = safe_open::read(&path, longest)?;
        if ModelInfo::hash(&bytes) == hash {
            return Ok(bytes);
        }
        let problem = "not the file that the head was trained on: model.json has another hash";
        let error = FileError::new(path, FileProblem::Changed(problem.to_owned()));
        Err(error.hint("restore the file as the run wrote it"))
    }

    /// Reads the encoder below a head.
    ///
    /// # Errors
    /// If it is missing, another file, or not an encoder that calmix can run.
    pub(crate) fn encoder(&self, head: &HeadInfo) -> Result<EncoderFile, FileError> {
        let bytes = self.below_head(RunFile::Encoder, MAX_ENCODER_BYTES, &head.backbone)?;
        EncoderFile::of_run(&self.path(RunFile::Encoder)?, bytes)
    }

    /// Reads the head and its projection of features of this length.
    pub(crate) fn head(&self, head: &HeadInfo, width: usize) -> Result<HeadModel, FileError> {
        let shape = head.shape(self.info.classes.len());
        let weights = self.weights(max_head_bytes(shape))?;
        let projection =
            self.below_head(RunFile::Projection, max_projection_bytes(width), &head.projection)?;
        let path = self.path(RunFile::Projection)?;
        let projection = read_projection(&projection, width, head.dimensions as usize);
        let projection = projection.map_err(|problem| FileError::new(path, problem))?;
        let path = self.path(RunFile::Model)?;
        let head = read_head(&weights, shape).map_err(|problem| FileError::new(path, problem))?;
        HeadModel::new(projection, head).map_err(|error| self.wrong(error.to_string()))
    }

    /// Reads a head on the user's own vectors.
    ///
    /// # Errors
    /// As [`head`](Self::head), and if its sizes are implausible.
    pub(crate) fn head_on_vectors(&self, head: &HeadInfo) -> Result<HeadModel, FileError> {
        // Check the sizes before they decide how much is read.
        if u64::from(head.features) > MAX_ROW_VALUES
            || head.dimensions > head.features
            || head.dimensions == 0
        {
            let problem = format!("head: {} dimensions of {} features", head.dimensions, head.features);
            return Err(self.implausible(problem));
        }
        self.head(head, head.features as usize)
    }

    /// Returns the rule that turns the logits of the model into predictions.
    ///
    /// # Errors
    /// If the held-out labels cannot be used.
    pub(crate) fn rule(&self, options: &ModelOptions) -> Result<PredictionRule, FileError> {
        let rule = PredictionRule::new(self.info.clone(), options);
        rule.map_err(|error| self.wrong(format!("held_out: {error}")))
    }
}

/// Checks that a calibrator gives finite probabilities for this number of classes.
fn check_calibrator(calibrator: &Calibrator, classes: usize) -> Result<(), String> {
    let mut probabilities = vec![0.0; classes];
    let given = calibrator.probabilities_into(&vec![0.0; classes], &mut probabilities);
    given.map_err(|error| error.to_string())?;
    let is_one = (probabilities.iter().sum::<f32>() - 1.0).abs() < 1e-3;
    if is_one { Ok(()) } else { Err("its probabilities are not finite".to_owned()) }
}

/// Checks that labels and scores are in range.
fn check_scores(held_out: &HeldOut, classes: usize) -> Result<(), String> {
    if let Some(label) = held_out.label.iter().find(|&&label| label as usize >= classes) {
        return Err(format!("label {label} is not one of the {classes} classes"));
    }
    let mut all = held_out.lac.iter().chain(&held_out.aps);
    match all.find(|score| !(-1e-3..=HeldOut::MAX_SCORE).contains(*score)) {
        Some(score) => Err(format!("a score of {score}, which is not between 0 and 1")),
        None => Ok(()),
    }
}

/// The largest offset or scale of pixels, in units of 0 to 255. Beyond it, f32 overflows within a network.
const MAX_PIXEL_SCALE: f64 = 1e6;

/// Refuses implausible values in `model.json`, by key.
pub(super) fn check_pixels(pixels: &PixelFormat, norm_eps: Option<f64>) -> Result<(), String> {
    if let Some(std) =
        pixels.std.iter().find(|&&std| !(1.0 / MAX_PIXEL_SCALE..=MAX_PIXEL_SCALE).contains(&std))
    {
        return Err(format!(
            "std has {std}, which is not between {} and {MAX_PIXEL_SCALE}",
            1.0 / MAX_PIXEL_SCALE
        ));
    }
    if let Some(mean) = pixels.mean.iter().find(|mean| !(-MAX_PIXEL_SCALE..=MAX_PIXEL_SCALE).contains(*mean))
    {
        return Err(format!(
            "mean has {mean}, which is not between -{MAX_PIXEL_SCALE} and {MAX_PIXEL_SCALE}"
        ));
    }
    match norm_eps.filter(|eps| !(0.0..=MAX_PIXEL_SCALE).contains(eps)) {
        Some(eps) => Err(format!("norm_eps is {eps}, which is not between 0 and {MAX_PIXEL_SCALE}")),
        None => Ok(()),
    }
}

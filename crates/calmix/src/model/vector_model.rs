//! A trained head on the user's own vectors, in use. It has no backbone and needs no libtorch.

use std::path::Path;

use anyhow::Result;
use calmix_head::HeadError;
use calmix_head::model::HeadModel;
use calmix_io::error::FileError;
use calmix_io::shown::shown;
use calmix_metrics::fitted_calibrator::FittedCalibrator;
use calmix_recipe::device::Device;
use calmix_run::tensor_files::head_files::folded_head_bytes;

use crate::error::CliError;
use crate::model::files::ModelFiles;
use crate::model::options::ModelOptions;
use crate::predict::guarantee::Guarantee;
use crate::predict::prediction_rule::PredictionRule;
use crate::predict::shift_check::ShiftCheck;

/// The model of a finished run on vectors.
#[derive(Debug)]
pub struct VectorModel {
    head: HeadModel,
    /// The same model with its projection folded into the weights, if that needs less arithmetic.
    folded: HeadModel,
    width: usize,
    rule: PredictionRule,
    shift: ShiftCheck,
}

impl VectorModel {
    /// Loads `model.json`, `model.safetensors` and `projection.safetensors` from a run's folder.
    ///
    /// # Errors
    /// If they are missing, were changed, or contradict each other, or an option is out of range.
    pub fn load(folder: &Path, options: &ModelOptions) -> Result<Self> {
        check_device(folder, options.device)?;
        let files = ModelFiles::open(folder)?;
        let info = files.info();
        let Some(head) = info.head.as_ref().filter(|_| info.reads_vectors()) else {
            return Err(files.wrong("a model of images, not of vectors".to_owned()).into());
        };
        files.check_calibration()?;
        let width = head.features as usize;
        let head = files.head_on_vectors(head)?;
        let folded = head.folded().map_err(|error| files.wrong(error.to_string()))?;
        Guarantee::check(options)?;
        let shift = ShiftCheck::load(&files, Some(head.projection()))?;
        Ok(Self { head, folded, width, rule: files.rule(options)?, shift })
    }

    /// Returns the head and its projection.
    pub fn head(&self) -> &HeadModel {
        &self.head
    }

    /// Returns the length of the vectors that it reads.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Refuses vectors whose length is not the one that it reads, or that consist of other sets of features; `sets` has the widths of
    /// several, and is empty for vectors of one file.
    pub fn check_width(&self, run: &Path, path: &Path, found: usize, sets: &[usize]) -> Result<(), CliError> {
        let width = self.width;
        let trained = self.head.projection().sets();
        if found == width && (sets.is_empty() || sets == trained) {
            return Ok(());
        }
        let run = shown(run.display());
        let place = shown(path.display());
        if trained.len() > 1 {
            let joined =
                |sets: &[usize]| sets.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
            let found = if sets.is_empty() { found.to_string() } else { joined(sets) };
            let message = format!(
                "{place} has vectors of {found} numbers, but {run} was trained on sets of {} numbers",
                joined(trained)
            );
            let hint =
                "name one path for each set, in the order of training, or one with all features joined";
            return Err(CliError::invalid(message).hint(hint));
        }
        let message =
            format!("{place} has vectors of {found} numbers, but {run} was trained on vectors of {width}");
        let hint = "compute the vectors with the model that made those of the training, in the same way";
        Err(CliError::invalid(message).hint(hint))
    }

    /// Returns the bytes of `head.safetensors`, with the temperature of this model folded in; `None` if the head has a hidden
    /// layer.
    pub fn folded(&self) -> Result<Option<Vec<u8>>, FileError> {
        let info = self.rule.info();
        let temperature = info.calibration.as_ref().and_then(FittedCalibrator::temperature);
        folded_head_bytes(self.head.projection(), self.head.head(), temperature, &info.classes)
    }

    /// Returns the rule that turns its logits into predictions.
    pub fn rule(&self) -> &PredictionRule {
        &self.rule
    }

    /// Returns the comparison of vectors with those of training.
    pub fn shift_check(&self) -> &ShiftCheck {
        &self.shift
    }

    /// Returns whether the length of a vector overflows, which [`logits`](Self::logits) refuses.
    pub fn is_too_long(&self, vector: &[f32]) -> bool {
        self.folded.projection().is_too_long(vector)
    }

    /// Computes the logits of vectors that follow each other. The logits of a vector do not depend on the others.
    ///
    /// # Errors
    /// If they are not whole vectors, or one is too long.
    pub fn logits(&self, vectors: &[f32]) -> Result<Vec<f32>, HeadError> {
        self.folded.logits(vectors)
    }
}

/// Refuses a device other than the CPU.
pub(crate) fn check_device(folder: &Path, device: Option<Device>) -> Result<(), CliError> {
    if device.is_none_or(|device| device == Device::Cpu) {
        return Ok(());
    }
    let message = format!("{}: a head on vectors runs on the CPU", shown(folder.display()));
    Err(CliError::invalid(message).hint("remove --device"))
}

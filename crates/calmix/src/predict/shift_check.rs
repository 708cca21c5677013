//! The comparison of what a model predicts with the reference that its run kept.

use calmix_core::matrix::Matrix;
use calmix_head::HeadError;
use calmix_head::projection::Projection;
use calmix_io::error::FileError;
use calmix_io::safe_open;
use calmix_metrics::shift::{
    BatchSums, MIN_ROWS, NotChecked, ObservedRow, ReferenceFeatures, ShiftDetector, Verdict,
};
use calmix_run::model_info::ModelInfo;
use calmix_run::run::RunFile;
use calmix_run::tensor_files::reference_file::{self, MAX_REFERENCE_BYTES};

use crate::model::files::ModelFiles;

/// The reference of a model, if it has one that can be used.
#[derive(Debug)]
pub struct ShiftCheck {
    detector: Option<ShiftDetector>,
    /// The projection from features to the numbers that the reference has; `None` if rows are not compared.
    projection: Option<Projection>,
    /// Why nothing is compared; used if there is no detector.
    reason: &'static str,
}

impl ShiftCheck {
    /// Reads the reference of a model. `projection` is that of its head, if it is one.
    ///
    /// # Errors
    /// If the reference is damaged, although it is the file that `model.json` names.
    pub(crate) fn load(files: &ModelFiles, projection: Option<&Projection>) -> Result<Self, FileError> {
        let without = |reason: &'static str| Ok(Self { detector: None, projection: None, reason });
        let info = files.info();
        if info.held_out.is_none() {
            return without("no labels were held out from training");
        }
        if info.reference.is_empty() {
            return without("the run kept no reference; runs of earlier versions do not");
        }
        let path = files.path(RunFile::Reference)?;
        if !safe_open::exists(&path) {
            return without("reference.safetensors is missing; copy it from the folder of the run");
        }
        let bytes = safe_open::read(&path, MAX_REFERENCE_BYTES)?;
        // Not an error: predictions do not depend on it, and undoing `calmix calibrate` leaves the later one.
        if ModelInfo::hash(&bytes) != info.reference {
            return without("reference.safetensors is not the file that model.json describes");
        }
        let width = projection.map_or(0, Projection::dimensions);
        let detector = reference_file::from_bytes(&bytes, info.classes.len(), Some(width));
        Self::new(detector.map_err(|problem| FileError::new(&path, problem))?, projection)
            .map_err(|error| files.wrong(error.to_string()))
    }

    /// Creates the comparison with a reference.
    ///
    /// # Errors
    /// If it does not fit the projection.
    pub fn new(detector: ShiftDetector, projection: Option<&Projection>) -> Result<Self, HeadError> {
        let features = detector.reference().features.as_ref().filter(|_| detector.compares_features());
        let projection = match features.zip(projection) {
            Some((features, projection)) if features.directions.is_empty() => {
                // Later directions are not read, so they need not be computed.
                let numbers = (features.dimensions * projection.width()).min(projection.rotation().len());
                let rotation = projection.rotation()[..numbers].to_vec();
                Some(Projection::new(projection.mean().to_vec(), rotation)?)
            }
            Some((_, projection)) => Some(projection.clone()),
            None => None,
        };
        Ok(Self { detector: Some(detector), projection, reason: "" })
    }

    /// Returns the features that an exported model computes for the comparison, if rows are compared.
    pub(crate) fn features(&self) -> Option<&ReferenceFeatures> {
        self.detector.as_ref().filter(|_| self.compares_rows())?.reference().features.as_ref()
    }

    /// Returns the comparison, if there is a reference.
    pub fn detector(&self) -> Option<&ShiftDetector> {
        self.detector.as_ref()
    }

    /// Returns whether each row is compared.
    pub fn compares_rows(&self) -> bool {
        self.projection.is_some()
    }

    /// Compares feature vectors, one after the other, with the reference; empty if rows are not compared.
    ///
    /// # Errors
    /// If they are not whole vectors, or one is too long.
    pub fn observe(&self, features: &[f32]) -> Result<Vec<ObservedRow>, HeadError> {
        let (Some(detector), Some(projection)) = (&self.detector, &self.projection) else {
            return Ok(Vec::new());
        };
        let rows = features.len() / projection.width().max(1);
        let projected = projection.apply(Matrix::new(features, rows, projection.width())?)?;
        Ok(projected.chunks_exact(projection.dimensions()).map(|row| detector.observe(row)).collect())
    }

    /// Returns why nothing is compared, if there is no reference of labels or of features.
    pub fn missing(&self) -> Option<&'static str> {
        let Some(detector) = &self.detector else { return Some(self.reason) };
        (!detector.compares_features()).then_some(NO_FEATURES)
    }

    /// Judges a batch; `sums` are `None` if they are not known.
    pub fn verdict(&self, sums: Option<&BatchSums>, weights: Option<&[f64]>) -> ComparedBatch {
        let not_checked = |why: &str| ComparedBatch { verdict: None, why_not: why.to_owned() };
        let (Some(detector), Some(sums)) = (&self.detector, sums) else {
            let no_sums = "the output was begun by a version that kept no sums";
            return not_checked(if self.detector.is_none() { self.reason } else { no_sums });
        };
        let verdict = detector.verdict(sums, weights);
        match verdict {
            Verdict::NotChecked(NotChecked::NoLabels) => not_checked("no labels were held out from training"),
            Verdict::NotChecked(NotChecked::NoFeatures) => not_checked(NO_FEATURES),
            Verdict::NotChecked(NotChecked::OtherModel) => not_checked("the sums are those of another model"),
            Verdict::NotChecked(NotChecked::TooFewRows(rows)) => ComparedBatch {
                verdict: None,
                why_not: format!("{rows} rows are too few: at least {MIN_ROWS} are compared"),
            },
            checked => ComparedBatch { verdict: Some(checked), why_not: String::new() },
        }
    }
}

const NO_FEATURES: &str =
    "the run kept no features to compare with: that takes a head, and 2,500 unlabelled samples";

/// The verdict of a batch, or why there is none.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedBatch {
    /// The verdict; `None` if the batch was not compared.
    pub verdict: Option<Verdict>,
    /// Why it was not compared; empty if it was.
    pub why_not: String,
}

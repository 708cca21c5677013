//! The comparison of new samples with the reference of an exported model.

use std::fs;
use std::path::PathBuf;

use calmix::io::safe_open;
use calmix::predict::batch_verdict::BatchVerdict;
use calmix::predict::shift_check::ShiftCheck;
use calmix_metrics::shift::ShiftDetector;
use calmix_run::model_info::ModelInfo;
use calmix_run::tensor_files::reference_file::{MAX_REFERENCE_BYTES, from_bytes};
use numpy::{PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::interop::{internal, invalid};

/// The reference of an exported model.
#[pyclass(frozen)]
pub(crate) struct ExportedReference {
    check: ShiftCheck,
    detector: ShiftDetector,
}

#[pymethods]
impl ExportedReference {
    /// Reads `reference.safetensors`, whose BLAKE3 is `hash`, of a model of so many classes.
    #[new]
    fn new(path: PathBuf, hash: &str, classes: usize) -> PyResult<Self> {
        let in_file = |problem: &dyn std::fmt::Display| invalid(format!("{}: {problem}", path.display()));
        // The user named the folder, so links are followed: caches of downloaded models consist of them.
        let resolved = fs::canonicalize(&path).map_err(|error| in_file(&error))?;
        let bytes = safe_open::read(&resolved, MAX_REFERENCE_BYTES).map_err(invalid)?;
        if ModelInfo::hash(&bytes) != hash {
            return Err(in_file(&"not the file that model.onnx describes; export the model again"));
        }
        let detector = from_bytes(&bytes, classes, None).map_err(|problem| in_file(&problem))?;
        let check = ShiftCheck::new(detector.clone(), None).map_err(invalid)?;
        Ok(Self { check, detector })
    }

    /// The number of features of a row; 0 if rows are not compared.
    #[getter]
    fn dimensions(&self) -> usize {
        self.detector.new_sums().coordinates.len()
    }

    /// The verdict of a batch as JSON, with the names of the rows in their order.
    fn verdict(
        &self,
        py: Python<'_>,
        features: PyReadonlyArray2<'_, f32>,
        probabilities: PyReadonlyArray2<'_, f32>,
    ) -> PyResult<String> {
        let [rows, width] = [features.shape()[0], features.shape()[1].max(1)];
        let classes = probabilities.shape()[1].max(1);
        if width != self.dimensions().max(1) || probabilities.shape()[0] != rows {
            return Err(invalid("features and probabilities are not those of the reference"));
        }
        let features = features.as_slice()?;
        let probabilities = probabilities.as_slice()?;
        py.detach(|| {
            let mut sums = self.detector.new_sums();
            let all = features.chunks_exact(width).zip(probabilities.chunks_exact(classes));
            for (row, (features, probabilities)) in all.enumerate() {
                let features = features.iter().map(|&number| number.into()).collect();
                sums.add(&row.to_string(), &self.detector.observe_features(features), probabilities);
            }
            let verdict = BatchVerdict::new(self.check.verdict(Some(&sums), None), Some(&sums), None);
            serde_json::to_string(&verdict).map_err(internal)
        })
    }
}

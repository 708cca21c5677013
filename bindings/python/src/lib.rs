//! The extension module `calmix._calmix`: functions and classes on arrays, which the Python code in `python/calmix` wraps. The
//! Python code checks arrays, which are contiguous here, and the interpreter is released while Rust computes.

#![allow(clippy::needless_pass_by_value, reason = "PyO3 passes arguments as it extracts them")]

mod calibrator;
mod classifier;
mod guarantees;
mod interop;
mod martingale;
mod measure;
mod onnx_file;
mod planner;
mod report;
mod rows;
mod shift;
mod views;

use pyo3::prelude::*;

/// The native part of calmix.
#[pymodule]
mod _calmix {
    #[pymodule_export]
    use crate::calibrator::{Calibrator, fit_calibrator};
    #[pymodule_export]
    use crate::classifier::{Classifier, fit_classifier};

    #[pymodule_export]
    use crate::guarantees::{SetRule, answer_scores, answer_thresholds, clopper_pearson, set_scores};
    #[pymodule_export]
    use crate::martingale::Martingale;
    #[pymodule_export]
    use crate::measure::{measure, reliability_bins};
    #[pymodule_export]
    use crate::onnx_file::read_onnx;
    #[pymodule_export]
    use crate::planner::Planner;
    #[pymodule_export]
    use crate::report::{page_of_predictions, report_of_run};
    #[pymodule_export]
    use crate::shift::ExportedReference;
    #[pymodule_export]
    use crate::views::ImageView;

    /// The largest distance of a row's sum from 1.
    #[pymodule_export]
    const SUM_TOLERANCE: f64 = crate::rows::SUM_TOLERANCE;

    /// The version of the package.
    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "Python's name of it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}

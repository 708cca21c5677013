//! Pickles, which calmix does not load.

use std::path::Path;

use crate::error::{DataError, DataProblem};

/// The endings of files that Python programs pickle into.
pub(super) const ENDINGS: [&str; 5] = ["pkl", "pickle", "pt", "pth", "joblib"];

/// Whether bytes begin like a pickle of protocol 2 to 5.
pub(super) fn is_one(start: &[u8]) -> bool {
    matches!(start, [0x80, 2..=5, ..])
}

/// The refusal, with the lines that convert the file.
pub(super) fn refused(path: &Path) -> DataError {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    let load = match ending.as_str() {
        "pt" | "pth" => format!("import numpy, torch; x = torch.load({name:?}, map_location=\"cpu\")"),
        "joblib" => format!("import numpy, joblib; x = joblib.load({name:?})"),
        _ => format!("import numpy, pickle; x = pickle.load(open({name:?}, \"rb\"))"),
    };
    let problem = DataProblem::Format("a pickle: loading one can run any code, so calmix does not".into());
    DataError::new(path, problem).hint(format!(
        "convert it in Python, if you trust it: `{load}` and `numpy.save(\"vectors.npy\", \
         numpy.asarray(x, dtype=\"float32\"))`"
    ))
}

//! Pickles, which calmix does not load.

use std::path::Path;

use super::options::VectorOptions;
use super::place::VectorPlace;
use super::vector_format::VectorFormat;
use super::vector_source::VectorSource;
use crate::error::{FormatError, FormatProblem};

/// The endings of files that Python programs pickle into.
const ENDINGS: [&str; 5] = ["pkl", "pickle", "pt", "pth", "joblib"];

/// A format that is recognised only to say how to convert it.
pub(super) struct Pickle;

impl VectorFormat for Pickle {
    fn ending(&self) -> Option<&'static str> {
        None
    }

    fn matches(&self, start: &[u8], place: &VectorPlace) -> bool {
        // Pickles of protocol 2 to 5.
        matches!(start, [0x80, 2..=5, ..]) || place.has_ending(&ENDINGS)
    }

    fn open(
        &self,
        place: &VectorPlace,
        name: &str,
        _options: &VectorOptions,
    ) -> Result<VectorSource, FormatError> {
        Err(refused(&place.folder.join(name)))
    }
}

/// The refusal, with the lines that convert the file.
pub(super) fn refused(path: &Path) -> FormatError {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    let load = match ending.as_str() {
        "pt" | "pth" => format!("import numpy, torch; x = torch.load({name:?}, map_location=\"cpu\")"),
        "joblib" => format!("import numpy, joblib; x = joblib.load({name:?})"),
        _ => format!("import numpy, pickle; x = pickle.load(open({name:?}, \"rb\"))"),
    };
    let problem = FormatProblem::Format("a pickle: loading one can run any code, so calmix does not".into());
    FormatError::new(path, problem).hint(format!(
        "convert it in Python, if you trust it: `{load}` and `numpy.save(\"vectors.npy\", \
         numpy.asarray(x, dtype=\"float32\"))`"
    ))
}

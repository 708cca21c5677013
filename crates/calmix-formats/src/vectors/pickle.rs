//! Pickles, which calmix does not load.

use std::path::Path;

use super::options::VectorOptions;
use super::place::VectorPlace;
use super::vector_source::VectorSource;
use crate::error::FormatError;

/// The extensions of files that Python programs pickle into.
const EXTENSIONS: [&str; 5] = ["pkl", "pickle", "pt", "pth", "joblib"];

/// Returns whether a file is a pickle, which is detected only to explain how to convert it.
pub(super) fn matches(start: &[u8], place: &VectorPlace) -> bool {
    // Pickle protocols 2 to 5.
    matches!(start, [0x80, 2..=5, ..]) || place.has_extension(&EXTENSIONS)
}

pub(super) fn refuse(
    place: &VectorPlace,
    name: &str,
    _: &VectorOptions,
) -> Result<VectorSource, FormatError> {
    Err(refused(&place.folder.join(name)))
}

/// Returns the error, with code that converts the file.
pub(super) fn refused(path: &Path) -> FormatError {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    let load = match extension.as_str() {
        "pt" | "pth" => format!("import numpy, torch; x = torch.load({name:?}, map_location=\"cpu\")"),
        "joblib" => format!("import numpy, joblib; x = joblib.load({name:?})"),
        _ => format!("import numpy, pickle; x = pickle.load(open({name:?}, \"rb\"))"),
    };
    FormatError::format(path, "a pickle: loading one can run any code, so calmix does not").hint(format!(
        "convert it in Python, if you trust it: `{load}` and `numpy.save(\"vectors.npy\", \
         numpy.asarray(x, dtype=\"float32\"))`"
    ))
}

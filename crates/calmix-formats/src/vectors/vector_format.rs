//! What every format of files of vectors can do.

use super::options::VectorOptions;
use super::place::VectorPlace;
use super::vector_source::VectorSource;
use crate::error::FormatError;

/// A format of files of vectors.
pub(super) trait VectorFormat: Sync {
    /// What the names of its files usually end in, without the dot; `None` for a format that is refused.
    fn ending(&self) -> Option<&'static str>;

    /// Whether a file is of this format, by its first 16 bytes, or fewer if it is shorter, and by its name.
    fn matches(&self, start: &[u8], place: &VectorPlace) -> bool;

    /// Opens the file `name` below the folder of `place`, and reads as much as it takes to know its size.
    fn open(
        &self,
        place: &VectorPlace,
        name: &str,
        options: &VectorOptions,
    ) -> Result<VectorSource, FormatError>;
}

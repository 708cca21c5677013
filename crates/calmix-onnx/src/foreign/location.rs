//! Tensor data of an ONNX file that is in a second file.

use std::collections::BTreeMap;
use std::ops::Range;

use calmix_io::protobuf::Fields;
use calmix_io::safe_path;
use calmix_io::shown::shown;

use super::problem::{ForeignProblem, LocationProblem, check_max};

const MAX_FILES: usize = 1_000;
/// The maximum total size of these files in bytes. They may contain more than the weights of this model.
const MAX_EXTERNAL_BYTES: usize = 4_000_000_000;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Location<'a> {
    name: &'a str,
    offset: Option<&'a str>,
    length: Option<&'a str>,
}

/// The function that reads a file beside the model, from its name to all of its bytes.
pub(super) type ReadFile<'r> = &'r mut dyn FnMut(&str) -> Result<Vec<u8>, String>;

/// The files beside a model, each of which is read once.
pub(super) struct ExternalFiles<'r> {
    read: Option<ReadFile<'r>>,
    numbers: BTreeMap<String, usize>,
    files: Vec<Vec<u8>>,
    bytes: usize,
}

/// A range of a file beside the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileRange {
    pub(super) file: usize,
    pub(super) range: Range<usize>,
}

impl<'a> Location<'a> {
    /// Reads an entry of `external_data`.
    pub(super) fn add(&mut self, entry: Fields<'a>) -> Result<(), ForeignProblem> {
        let mut key = "";
        let mut value = "";
        for field in entry {
            let field = field?;
            match field.number {
                1 => key = field.text()?,
                2 => value = field.text()?,
                _ => {}
            }
        }
        match key {
            "location" => self.name = value,
            "offset" => self.offset = Some(value),
            "length" => self.length = Some(value),
            // Ignore the checksum, which is optional in the standard.
            _ => {}
        }
        Ok(())
    }
}

impl<'r> ExternalFiles<'r> {
    /// Creates the list of files that `read` can read; without `read`, none are allowed.
    pub(super) fn new(read: Option<ReadFile<'r>>) -> Self {
        Self { read, numbers: BTreeMap::new(), files: Vec::new(), bytes: 0 }
    }

    /// Finds the `wanted` bytes of a tensor.
    pub(super) fn find(
        &mut self,
        tensor: &str,
        location: &Location<'_>,
        wanted: usize,
    ) -> Result<FileRange, ForeignProblem> {
        let refused = |problem| ForeignProblem::External {
            tensor: tensor.to_owned(),
            location: location.name.to_owned(),
            problem,
        };
        let number = |what: &'static str, text: Option<&str>| match text {
            Some(text) => text.parse::<u64>().map(Some).map_err(|_| refused(LocationProblem::Entry(what))),
            None => Ok(None),
        };
        if let Some(problem) = why_refused(location.name) {
            return Err(refused(LocationProblem::Name(problem)));
        }
        let offset = number("offset", location.offset)?.unwrap_or(0);
        let declared = number("length", location.length)?;
        if let Some(declared) = declared.filter(|&declared| declared != wanted as u64) {
            return Err(refused(LocationProblem::Length { declared, wanted }));
        }
        let file = self.number_of(location.name, &refused)?;
        let found = self.files.get(file).map_or(0, Vec::len);
        let end = offset.saturating_add(wanted as u64);
        if end > found as u64 {
            return Err(refused(LocationProblem::Short { found, end }));
        }
        // Does not overflow: both are at most the length of the file.
        let start = offset as usize;
        Ok(FileRange { file, range: start..start + wanted })
    }

    /// Returns the index of a file, which is read on first use.
    fn number_of(
        &mut self,
        name: &str,
        refused: &dyn Fn(LocationProblem) -> ForeignProblem,
    ) -> Result<usize, ForeignProblem> {
        if let Some(&number) = self.numbers.get(name) {
            return Ok(number);
        }
        let Some(read) = &mut self.read else { return Err(refused(LocationProblem::NotAllowed)) };
        check_max(self.files.len() + 1, MAX_FILES, "external file")?;
        let bytes = read(name).map_err(|error| refused(LocationProblem::Unreadable(shown(error))))?;
        self.bytes = self.bytes.saturating_add(bytes.len());
        check_max(self.bytes, MAX_EXTERNAL_BYTES, "external byte")?;
        let number = self.files.len();
        self.files.push(bytes);
        self.numbers.insert(name.to_owned(), number);
        Ok(number)
    }

    /// Returns all files that were read, by index.
    pub(super) fn into_files(self) -> Vec<Vec<u8>> {
        self.files
    }
}

/// Explains why a file name from a model must not be opened; `None` if it may be.
fn why_refused(name: &str) -> Option<&'static str> {
    if name.contains('/') {
        return Some("has a folder in it");
    }
    if name.contains("..") {
        return Some("leads out of the folder");
    }
    safe_path::why_unsafe_here(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_beside_the_model_pass() {
        for fine in ["model.onnx_data", "model.onnx.data", "ä.bin"] {
            assert_eq!(why_refused(fine), None, "{fine}");
        }
        for bad in ["", ".", "..", "../a", "/etc/passwd", "a/b", "a\\b", "C:a", "a\0", "./a", "a..b"] {
            assert!(why_refused(bad).is_some(), "{bad}");
        }
    }
}

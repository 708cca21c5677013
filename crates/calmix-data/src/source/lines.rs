//! The lines of a list that came with a dataset.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use calmix_formats::error::FormatProblem;

use crate::error::DataError;

/// Bytes of the longest line: a path and a word or two need far less.
const LONGEST: u64 = 64 << 10;

/// Calls `visit` with the number and text of every line that is not blank, without byte order mark and line end.
pub(super) fn for_each(
    path: &Path,
    mut visit: impl FnMut(u64, &str) -> Result<(), DataError>,
) -> Result<(), DataError> {
    let file = File::open(path).map_err(|error| DataError::new(path, error))?;
    let mut reader = BufReader::new(file);
    let mut bytes = Vec::new();
    for number in 1.. {
        bytes.clear();
        let read = reader.by_ref().take(LONGEST).read_until(b'\n', &mut bytes);
        if read.map_err(|error| DataError::new(path, error))? == 0 {
            break;
        }
        let at = |problem| DataError::new(path, problem).at(format!("line {number}"));
        if bytes.len() as u64 == LONGEST {
            return Err(at(FormatProblem::Limit("the line is longer than 64 KiB".into())));
        }
        let text = str::from_utf8(&bytes).map_err(|_| at(FormatProblem::Format("not UTF-8".into())))?;
        let text = text.strip_prefix('\u{feff}').filter(|_| number == 1).unwrap_or(text).trim();
        if !text.is_empty() {
            visit(number, text)?;
        }
    }
    Ok(())
}

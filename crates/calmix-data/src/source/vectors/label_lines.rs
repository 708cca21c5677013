//! The records of a CSV of labels, and the empty lines between them: each is the line of a row without a label.

use std::path::{Path, PathBuf};

use calmix_formats::csv_lines::{LineCount, blank_lines};
use calmix_formats::error::FormatProblem;
use csv::{Reader, ReaderBuilder, StringRecord};

use crate::error::DataError;

/// The lines of a text, in order.
pub(super) struct LabelLines<'a> {
    path: PathBuf,
    text: &'a [u8],
    reader: Reader<&'a [u8]>,
    lines: LineCount<'a>,
}

/// What follows a record.
pub(super) struct NextLines {
    /// Empty lines before the next record, or before the end of the text.
    pub(super) blank: u64,
    /// The line of the next record, counted from 1; after the last one, that of the end.
    pub(super) number: u64,
    /// Whether there is a next record.
    pub(super) has_record: bool,
}

impl<'a> LabelLines<'a> {
    /// Reads from the start of a text without a byte order mark.
    pub(super) fn new(path: &Path, text: &'a [u8]) -> Self {
        let reader = ReaderBuilder::new().has_headers(false).from_reader(text);
        Self { path: path.to_owned(), text, reader, lines: LineCount::new(text) }
    }

    /// Reads the next record, and counts the empty lines before it.
    pub(super) fn read(&mut self, record: &mut StringRecord) -> Result<NextLines, DataError> {
        let place = self.reader.position().byte() as usize;
        let blank = blank_lines(self.text, place);
        let number = self.lines.line_at(place);
        let has_record = self.reader.read_record(record).map_err(|error| {
            let problem = FormatProblem::Format(error.to_string());
            DataError::new(&self.path, problem)
                .at(format!("line {number}"))
                .hint("save the list as \"CSV UTF-8\"")
        })?;
        Ok(NextLines { blank, number, has_record })
    }
}

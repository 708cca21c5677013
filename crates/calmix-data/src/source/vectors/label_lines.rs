//! Reads the records of a CSV of labels and the empty lines between them, which stand for unlabelled rows. If lines are
//! matched to rows by order, there must be exactly one line per row.

use std::path::{Path, PathBuf};

use calmix_formats::csv_lines::{LineCount, blank_lines};
use calmix_formats::error::FormatProblem;
use calmix_formats::labels::drawn::Drawn;
use calmix_io::shown::shown;
use calmix_io::text::counted;
use csv::{Reader, ReaderBuilder, StringRecord};

use crate::error::DataError;

/// An iterator over the lines of a text.
pub(super) struct LabelLines<'a> {
    path: PathBuf,
    text: &'a [u8],
    reader: Reader<&'a [u8]>,
    lines: LineCount<'a>,
}

/// The lines that follow a record.
pub(super) struct NextLines {
    /// The number of empty lines before the next record or the end of the text.
    pub(super) blank: u64,
    /// The line of the next record, counted from 1; after the last record, the line of the end.
    pub(super) number: u64,
    /// Whether there is a next record.
    pub(super) has_record: bool,
}

impl<'a> LabelLines<'a> {
    /// Starts reading a text without a byte order mark.
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
            DataError::format(&self.path, error.to_string())
                .at(format!("line {number}"))
                .hint("save the list as \"CSV UTF-8\"")
        })?;
        Ok(NextLines { blank, number, has_record })
    }
}

/// A line of a CSV.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) number: u64,
    pub(super) label: Option<String>,
    /// An index into the subsets.
    pub(super) subset: u8,
    /// The name of its group, if any.
    pub(super) group: Option<String>,
    pub(super) drawn: Drawn,
    pub(super) weight: f64,
}

/// The lines after the header, matched to rows by order.
pub(super) struct LinesInOrder {
    lines: Vec<Line>,
    rows: u64,
    /// The number of lines, including surplus ones.
    count: u64,
    /// The first surplus line.
    surplus: Option<u64>,
    /// The number of trailing empty lines so far.
    last_blank: u64,
    header_line: u64,
    /// The header if it is not a usual name, since it may be the first label.
    unusual_header: Option<String>,
    /// The first line whose label equals the unusual header.
    header_again: Option<u64>,
}

impl LinesInOrder {
    pub(super) fn new(header_line: u64, unusual_header: Option<String>, rows: u64) -> Self {
        Self {
            lines: Vec::new(),
            rows,
            count: 0,
            surplus: None,
            last_blank: 0,
            header_line,
            unusual_header,
            header_again: None,
        }
    }

    /// Adds the empty lines before a record.
    pub(super) fn add_blank(&mut self, next: &NextLines) {
        let blank = next.blank;
        // Without the limit, a file of line ends would take forty bytes of memory per byte.
        for number in (next.number.saturating_sub(blank)..next.number).take(self.missing()) {
            let drawn = Drawn::Given;
            self.lines.push(Line { number, label: None, subset: 0, group: None, drawn, weight: 1.0 });
        }
        self.count += blank;
        self.last_blank = blank;
        if self.count > self.rows && self.surplus.is_none() {
            self.surplus = Some(next.number.saturating_sub(self.count - self.rows));
        }
    }

    /// Adds the line of a record.
    pub(super) fn add(&mut self, line: Line) {
        self.count += 1;
        if self.header_again.is_none() && line.label.is_some() && line.label == self.unusual_header {
            self.header_again = Some(line.number);
        }
        if self.missing() > 0 {
            self.lines.push(line);
        } else {
            self.surplus.get_or_insert(line.number);
        }
    }

    fn missing(&self) -> usize {
        usize::try_from(self.rows).unwrap_or(usize::MAX).saturating_sub(self.lines.len())
    }

    /// Returns the lines if there is one per row: otherwise labels would belong to other rows.
    pub(super) fn finish(self) -> Result<Vec<Line>, FormatProblem> {
        let Self { count, rows, last_blank, header_line, .. } = self;
        let header = self.unusual_header.as_deref().map(shown).unwrap_or_default();
        if count == rows {
            // Without a header and with one empty line too many, the number of lines is right but every label is one line
            // too early.
            if let Some(again) = self.header_again.filter(|_| last_blank > 0) {
                return Err(FormatProblem::Ambiguous {
                    what: format!(
                        "line {header_line}, `{header}`, is read as the header, but it is also the label of line {again}, \
                         and the last line is empty"
                    ),
                    readings: vec![
                        "if it is a label, add a first line `label` and remove the last one".to_owned(),
                        "if it is the header, rename it to `label`".to_owned(),
                    ],
                });
            }
            return Ok(self.lines);
        }
        let lines = counted(count, "line");
        let found = format!("{lines} of labels after the header for {}", counted(rows, "row"));
        let difference = match self.surplus {
            Some(surplus) => format!("line {surplus} is the first without a row"),
            None => format!("row {count}, counted from 0, is the first without a line"),
        };
        let next = if count > rows && count - rows <= last_blank {
            let surplus = counted(count - rows, "empty line");
            format!("remove the last {surplus}")
        } else if count + header_line == rows && self.unusual_header.is_some() {
            format!(
                "line {header_line}, `{header}`, was read as the header: if it is a label, add a first line `label`"
            )
        } else if count + 1 == rows {
            "write one line per row, an empty one for a row without a label; if that is the last row, its empty line needs \
             a line end of its own"
                .to_owned()
        } else {
            "write one line per row, an empty one for a row without a label; or add a column `id` that names the row"
                .to_owned()
        };
        Err(FormatProblem::Content(format!("{found} of vectors: {difference}; {next}")))
    }
}

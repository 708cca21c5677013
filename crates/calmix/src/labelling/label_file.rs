//! A list of labels as text that is edited row by row: other columns, rows and their order stay.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::Result;
use calmix_formats::csv_lines::{LineCount, blank_lines};
use calmix_formats::error::{FormatError, FormatProblem};
use calmix_formats::labels::columns::{self, LabelColumns, simplified};
use calmix_formats::labels::csv_table::{read_record, without_mark};
use calmix_formats::labels::drawn::Drawn;
use calmix_io::text::counted;
use csv::{ReaderBuilder, StringRecord, Terminator, WriterBuilder};

/// The name of the column that says when a label was given.
const DATE: &str = "date";

/// Its name in a list that already has a column `date`, perhaps that of the photo.
const LABEL_DATE: &str = "label_date";

/// What the rows of a list name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listed {
    /// Images, by their path.
    Images,
    /// Vectors, by their id, their row number, or their order.
    Vectors,
}

/// A list of labels.
#[derive(Debug)]
pub(crate) struct LabelFile {
    path: PathBuf,
    listed: Listed,
    has_mark: bool,
    terminator: Terminator,
    header: StringRecord,
    rows: Vec<StringRecord>,
    columns: Columns,
    /// The row of each sample.
    by_key: HashMap<String, usize>,
    /// The digest of the text that was read; `None` if the file did not exist.
    read: Option<blake3::Hash>,
    is_changed: bool,
}

/// The indices of the columns that are read or written.
#[derive(Debug)]
struct Columns {
    /// The column that names the sample; `None` if rows are in the order of the vectors.
    key: Option<usize>,
    label: usize,
    drawn: usize,
    date: usize,
    split: Option<usize>,
    group: Option<usize>,
}

impl LabelFile {
    /// Creates an empty list of images or vectors.
    pub(crate) fn new(path: &Path, listed: Listed, has_groups: bool) -> Self {
        let key = if listed == Listed::Images { "file" } else { "id" };
        let mut header = StringRecord::from(vec![key, "label", "drawn", DATE]);
        if has_groups {
            header.push_field("group");
        }
        let columns = Columns {
            key: Some(0),
            label: 1,
            drawn: 2,
            date: 3,
            split: None,
            group: has_groups.then_some(4),
        };
        Self {
            path: path.to_owned(),
            listed,
            has_mark: false,
            terminator: Terminator::Any(b'\n'),
            header,
            rows: Vec::new(),
            columns,
            by_key: HashMap::new(),
            read: None,
            is_changed: false,
        }
    }

    /// Parses a list, and adds the columns `drawn` and `date` if they are missing. Whether its rows are valid is checked by the
    /// readers of datasets.
    ///
    /// # Errors
    /// If a column of samples or labels is missing, or a line is not a row.
    pub(crate) fn parse(
        path: &Path,
        text: &[u8],
        listed: Listed,
        names: &LabelColumns,
    ) -> Result<Self, FormatError> {
        let read = Some(blake3::hash(text));
        let has_mark = without_mark(text).len() < text.len();
        let text = without_mark(text);
        let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text);
        let mut lines = LineCount::new(text);
        let mut header = StringRecord::new();
        if !read_record(&mut reader, &mut header, path, &mut lines)? {
            let hint = "remove it, and calmix writes a new one";
            return Err(FormatError::content(path, "the list is empty").hint(hint));
        }
        let line = lines.line_at(header.position().map_or(0, |place| place.byte() as usize));
        let at = |problem| FormatError::new(path, problem).at(format!("line {line}"));
        let width = header.len();
        let columns = Columns::find(&mut header, listed, names, &at)?;
        let mut file = Self {
            path: path.to_owned(),
            listed,
            has_mark,
            terminator: if has_crlf(text) { Terminator::CRLF } else { Terminator::Any(b'\n') },
            header,
            rows: Vec::new(),
            columns,
            by_key: HashMap::new(),
            read,
            is_changed: false,
        };
        loop {
            // Without ids, an empty line is an unlabelled row; the crate csv skips it.
            let blank = blank_lines(text, reader.position().byte() as usize);
            if file.columns.key.is_none() {
                (0..blank).for_each(|_| file.push_record(StringRecord::new()));
            }
            let mut record = StringRecord::new();
            if !read_record(&mut reader, &mut record, path, &mut lines)? {
                return Ok(file);
            }
            let line = lines.line_at(record.position().map_or(0, |place| place.byte() as usize));
            let at = |problem| FormatError::new(path, problem).at(format!("line {line}"));
            if record.len() != width {
                let found = counted(record.len() as u64, "field");
                let problem = format!("the row has {found}, but the header has {width} columns");
                let hint = "put fields that contain a comma in double quotes";
                return Err(at(FormatProblem::Content(problem)).hint(hint));
            }
            file.push_record(record);
        }
    }

    /// Adds a row, padded to the width of the header.
    fn push_record(&mut self, mut record: StringRecord) {
        while record.len() < self.header.len() {
            record.push_field("");
        }
        let row = self.rows.len();
        let key = match self.columns.key {
            Some(column) if self.listed == Listed::Vectors => record[column].trim().to_owned(),
            Some(column) => record[column].strip_prefix("./").unwrap_or(&record[column]).to_owned(),
            None => row.to_string(),
        };
        self.rows.push(record);
        self.by_key.insert(key, row);
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the file does not exist yet.
    pub(crate) fn is_new(&self) -> bool {
        self.read.is_none()
    }

    /// Returns whether the file is as it was when it was read: another process may have written it since.
    pub(crate) fn is_as_read(&self) -> bool {
        match (fs::read(&self.path), self.read) {
            (Ok(text), Some(read)) => blake3::hash(&text) == read,
            (Err(error), None) => error.kind() == io::ErrorKind::NotFound,
            _ => false,
        }
    }

    /// Returns whether a row was set.
    pub(crate) fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// Returns whether rows are in the order of the vectors, and named by their number.
    pub(crate) fn is_in_order(&self) -> bool {
        self.columns.key.is_none()
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns the row of a sample, if it is listed.
    pub(crate) fn find(&self, key: &str) -> Option<usize> {
        self.by_key.get(key).copied()
    }

    /// Returns the label of a row; `None` if it has none, as the readers of datasets see it.
    pub(crate) fn label(&self, row: usize) -> Option<&str> {
        let split = self.columns.split.map_or("", |split| self.rows[row][split].trim());
        // A label in the split `unlabelled` of vectors is not read.
        let is_unlabelled = simplified(split).starts_with("unlabel");
        let label = self.rows[row][self.columns.label].trim();
        // As other tools write it, −1 is the label of an unlabelled vector.
        let is_missing = label.is_empty() || (self.listed == Listed::Vectors && label == "-1");
        Some(label).filter(|_| !is_missing && !is_unlabelled)
    }

    /// Returns how a row was drawn. The readers of datasets have checked its word.
    pub(crate) fn drawn(&self, row: usize) -> Drawn {
        Drawn::parse(self.rows[row][self.columns.drawn].trim()).unwrap_or_default()
    }

    /// Adds a row with a label that was already known, without a draw or a date.
    pub(crate) fn push(&mut self, key: &str, label: &str, group: &str) -> usize {
        let row = self.rows.len();
        let fields = (0..self.header.len()).map(|column| match column {
            column if Some(column) == self.columns.key => key,
            column if column == self.columns.label => label,
            column if Some(column) == self.columns.group => group,
            _ => "",
        });
        self.push_record(fields.collect());
        row
    }

    /// Sets the label of a row (empty for a skipped one) and how it was drawn, and dates a label that is new or has no date.
    pub(crate) fn set(&mut self, row: usize, label: &str, drawn: Drawn, date: &str) {
        let old = self.rows[row].clone();
        let is_same = self.label(row).unwrap_or_default() == label;
        let is_dated = !old[self.columns.date].is_empty();
        let fields = old.iter().enumerate().map(|(column, field)| match column {
            column if column == self.columns.label && !is_same => label,
            column if column == self.columns.drawn => drawn.word(),
            column if column == self.columns.date && !(is_same && is_dated) => date,
            // Its label would not be read otherwise.
            column if Some(column) == self.columns.split && !is_same && !label.is_empty() => {
                if simplified(field).starts_with("unlabel") { "train" } else { field }
            }
            _ => field,
        });
        let new: StringRecord = fields.collect();
        // Records compare with their position, which a new one does not have.
        self.is_changed |= old.iter().ne(new.iter());
        self.rows[row] = new;
    }

    /// Returns the text of the list.
    pub(crate) fn text(&self) -> Result<Vec<u8>> {
        let mut text = Vec::new();
        if self.has_mark {
            text.extend(b"\xef\xbb\xbf");
        }
        let mut writer = WriterBuilder::new().terminator(self.terminator).from_writer(&mut text);
        writer.write_record(&self.header)?;
        for row in &self.rows {
            writer.write_record(row)?;
        }
        writer.flush()?;
        drop(writer);
        Ok(text)
    }
}

impl Columns {
    /// Finds the columns, and adds those of draws and dates to the header if they are missing.
    fn find(
        header: &mut StringRecord,
        listed: Listed,
        names: &LabelColumns,
        at: &impl Fn(FormatProblem) -> FormatError,
    ) -> Result<Self, FormatError> {
        let (key, label, split, group, drawn) = match listed {
            Listed::Images => {
                let found = columns::find(header, names, at)?;
                (Some(found.path), found.label, None, found.group, found.drawn)
            }
            Listed::Vectors => {
                let found = columns::find_for_vectors(header, names, at)?;
                if found.is_unusual {
                    // With a second column, the readers would no longer take it for the labels.
                    let name = header.get(0).unwrap_or_default();
                    let problem = format!("the only column is called {name:?}, which may be the first label");
                    let hint = "begin the list with a line `label`";
                    return Err(at(FormatProblem::Content(problem)).hint(hint));
                }
                (found.id, found.label, found.split, found.group, found.drawn)
            }
        };
        let is_free = |column: &usize| *column != label && Some(*column) != key;
        let position = |wanted: &str| header.iter().position(|name| name.trim() == wanted).filter(is_free);
        let had_dates = drawn.is_some();
        let date = position(LABEL_DATE).or_else(|| position(DATE).filter(|_| had_dates));
        // A list without draws was not written by calmix, so its column `date` may be that of the photos.
        let name = if date.is_none() && position(DATE).is_some() { LABEL_DATE } else { DATE };
        let mut add = |name: &str| {
            header.push_field(name);
            header.len() - 1
        };
        let drawn = drawn.unwrap_or_else(|| add("drawn"));
        let date = date.unwrap_or_else(|| add(name));
        Ok(Self { key, label, drawn, date, split, group })
    }
}

/// Returns whether the first line ends as on Windows.
fn has_crlf(text: &[u8]) -> bool {
    let end = text.iter().position(|byte| matches!(byte, b'\r' | b'\n')).unwrap_or_default();
    text.get(end..).is_some_and(|rest| rest.starts_with(b"\r\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str, listed: Listed) -> Result<LabelFile, String> {
        let parsed =
            LabelFile::parse(Path::new("labels.csv"), text.as_bytes(), listed, &LabelColumns::default());
        parsed.map_err(|error| error.to_string())
    }

    fn text(file: &LabelFile) -> String {
        String::from_utf8(file.text().unwrap()).unwrap()
    }

    #[test]
    fn other_columns_rows_and_their_order_stay() {
        let list =
            "iso,File,note,Label\n100,b.png,\"on a \"\"sofa\"\", asleep\",cat\n200,./a.png,\"two\nlines\",\n";
        let mut file = parsed(list, Listed::Images).unwrap();
        assert_eq!((file.find("a.png"), file.find("b.png"), file.find("c.png")), (Some(1), Some(0), None));
        assert_eq!((file.label(0), file.label(1)), (Some("cat"), None));
        file.set(1, "dog", Drawn::Random, "2026-11-19");
        let row = file.push("c.png", "", "");
        file.set(row, "", Drawn::Skipped, "2026-11-19");
        assert_eq!(
            text(&file),
            "iso,File,note,Label,drawn,date\n100,b.png,\"on a \"\"sofa\"\", asleep\",cat,,\n\
             200,./a.png,\"two\nlines\",dog,random,2026-11-19\n,c.png,,,skipped,2026-11-19\n"
        );
    }

    #[test]
    fn mark_and_line_ends_stay() {
        let mut file = parsed("\u{feff}file,label\r\na.png,cat\r\n", Listed::Images).unwrap();
        file.set(0, "dog", Drawn::Given, "2026-11-19");
        assert_eq!(text(&file), "\u{feff}file,label,drawn,date\r\na.png,dog,given,2026-11-19\r\n");
    }

    #[test]
    fn date_of_the_same_label_stays() {
        let list = "file,label,drawn,date\na.png,cat,random,2020-01-01\nb.png,cat,,\n";
        let mut file = parsed(list, Listed::Images).unwrap();
        file.set(0, "cat", Drawn::Random, "2026-11-19");
        assert!(!file.is_changed());
        assert_eq!(text(&file), list);
        file.set(1, "cat", Drawn::Given, "2026-11-19");
        assert!(file.is_changed());
        file.set(0, "dog", Drawn::Random, "2026-11-20");
        assert_eq!(
            text(&file),
            "file,label,drawn,date\na.png,dog,random,2026-11-20\nb.png,cat,given,2026-11-19\n"
        );
    }

    #[test]
    fn date_of_the_photos_stays() {
        let mut file = parsed("file,date,label\na.png,2019,\n", Listed::Images).unwrap();
        file.set(0, "cat", Drawn::Chosen, "2026-11-19");
        let once = text(&file);
        assert_eq!(once, "file,date,label,drawn,label_date\na.png,2019,cat,chosen,2026-11-19\n");
        // Read again, the column is known.
        let mut file = parsed(&once, Listed::Images).unwrap();
        file.set(0, "dog", Drawn::Chosen, "2026-11-20");
        assert!(text(&file).ends_with("a.png,2019,dog,chosen,2026-11-20\n"), "{}", text(&file));
    }

    #[test]
    fn empty_lines_are_rows_if_there_are_no_ids() {
        let mut file = parsed("label\n\n1\n-1\n\n", Listed::Vectors).unwrap();
        assert!(file.is_in_order());
        assert_eq!((file.len(), file.find("0"), file.find("4")), (4, Some(0), None));
        assert_eq!((file.label(0), file.label(1), file.label(2)), (None, Some("1"), None));
        file.set(3, "7", Drawn::ByClass, "2026-11-19");
        assert_eq!(text(&file), "label,drawn,date\n,,\n1,,\n-1,,\n7,by-class,2026-11-19\n");
        let by_id = parsed("id,label\n\na,1\n", Listed::Vectors).unwrap();
        assert_eq!((by_id.len(), by_id.find("a")), (1, Some(0)));
        let problem = parsed("seven\n1\n", Listed::Vectors).unwrap_err();
        assert!(problem.contains("line 1: the only column is called \"seven\""), "{problem}");
    }

    #[test]
    fn label_of_an_unlabelled_split_moves_to_train() {
        let mut file = parsed("id,split,label\na,unlabelled,1\nb,test,1\n", Listed::Vectors).unwrap();
        assert_eq!((file.label(0), file.label(1)), (None, Some("1")));
        file.set(0, "1", Drawn::Random, "2026-11-19");
        file.set(1, "2", Drawn::Given, "2026-11-19");
        assert_eq!(
            text(&file),
            "id,split,label,drawn,date\na,train,1,random,2026-11-19\nb,test,2,given,2026-11-19\n"
        );
    }

    #[test]
    fn lines_that_are_not_rows_are_refused() {
        for (list, expected) in [
            ("", "the list is empty"),
            ("file,label\na.png\n", "line 2: the row has 1 field, but the header has 2 columns"),
            ("file;label\na.png;cat\n", "line 1: columns are separated by ';'"),
        ] {
            let problem = parsed(list, Listed::Images).unwrap_err();
            assert!(problem.contains(expected), "{list:?}: {problem}");
        }
    }
}

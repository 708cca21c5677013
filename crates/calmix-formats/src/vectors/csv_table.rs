//! CSV with a column per value: `filenames,embedding_0,…,embedding_767,labels`, as LightlyTrain writes it, or any columns
//! named `PREFIX_0`, `PREFIX_1`, … or `PREFIX0`, `PREFIX1`, …, in any order.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use csv::{ErrorKind, Reader, ReaderBuilder, StringRecord};

use super::options::{VectorOptions, choose};
use super::place::VectorPlace;
use super::shape::{MAX_ROW_VALUES, VectorShape};
use super::vector_source::{RowStream, VectorBlock, VectorFile, VectorRows, VectorSource, skip};
use crate::error::{FormatError, FormatProblem};
use crate::labels::columns::{check_separator, group_column, id_column, label_column};
use crate::labels::text::{parse_group, parse_label};
use crate::read_at::{ReadAt, ReadFrom};

/// The maximum length of a line, in bytes.
const MAX_LINE_BYTES: u64 = 64 << 20;

/// A CSV file with its header read and its rows counted.
#[derive(Debug)]
struct CsvTable {
    path: PathBuf,
    file: Arc<ReadAt>,
    shape: VectorShape,
    columns: CsvColumns,
}

/// The columns to read.
#[derive(Debug, Clone)]
struct CsvColumns {
    /// The columns of the values, in order.
    numbers: Vec<usize>,
    id: Option<usize>,
    label: Option<usize>,
    group: Option<usize>,
}

/// Opens a CSV file with a column per value, and counts its rows.
pub(super) fn open(
    place: &VectorPlace,
    name: &str,
    options: &VectorOptions,
) -> Result<VectorSource, FormatError> {
    let file = Arc::new(place.open(name)?);
    let path = file.path().to_owned();
    let mut lines = CsvLines::new(&path, &file);
    let mut record = StringRecord::new();
    let at = |problem| FormatError::new(&path, problem).at("line 1");
    if !lines.read(&mut record)? {
        return Err(FormatError::content(&path, "the file is empty"));
    }
    check_separator(&record, &at)?;
    let columns = CsvColumns::find(&record, options).map_err(at)?;
    let is_other = |column: &usize| {
        ![columns.id, columns.group].contains(&Some(*column)) && !columns.numbers.contains(column)
    };
    let others = (0..record.len()).filter(is_other).map(|column| record[column].trim().to_owned()).collect();
    let mut rows = 0;
    while lines.read(&mut record)? {
        rows += 1;
    }
    let shape = VectorShape::new(rows, 1, columns.numbers.len() as u64);
    let shape = shape.map_err(|problem| FormatError::new(&path, problem))?;
    let files = vec![VectorFile::new(&file, name, rows, 0)];
    let source = VectorSource::new(shape, files, None, CsvTable { path, file, shape, columns });
    Ok(source.with_label_columns(others))
}

impl CsvColumns {
    fn find(header: &StringRecord, options: &VectorOptions) -> Result<Self, FormatProblem> {
        let mut groups: BTreeMap<&str, BTreeMap<u64, usize>> = BTreeMap::new();
        for (column, name) in header.iter().enumerate() {
            let name = name.trim();
            let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
            let Some(index) = name.get(prefix.len()..).and_then(|index| index.parse().ok()) else { continue };
            let group = groups.entry(prefix.trim_end_matches(['_', '-', '.', ' '])).or_default();
            if group.insert(index, column).is_some() {
                return Err(FormatProblem::Content(format!("there are two columns `{name}`")));
            }
        }
        // A vector has no gaps, and a single column with a number in its name is not a vector.
        groups.retain(|_, group| group.len() > 1 && group.keys().copied().eq(0..group.len() as u64));
        let names: Vec<&str> = groups.keys().copied().collect();
        if names.is_empty() {
            let problem = "no columns are called PREFIX_0, PREFIX_1, … without a gap".to_owned();
            return Err(FormatProblem::Content(problem));
        }
        let chosen = choose(&names, options.vector_column.as_deref(), "groups of columns")?;
        let numbers: Vec<usize> =
            groups.into_values().nth(chosen).unwrap_or_default().into_values().collect();
        if numbers.len() as u64 > MAX_ROW_VALUES {
            return Err(FormatProblem::Limit(format!(
                "{} columns, expected at most {MAX_ROW_VALUES}",
                numbers.len()
            )));
        }
        let outside = |column: &usize| !numbers.contains(column);
        let id = id_column(header, &options.columns)?.filter(outside);
        let label = label_column(header, &options.columns)?.filter(outside);
        // The user may have assigned this column another role.
        let group = group_column(header)?.filter(|&column| ![id, label].contains(&Some(column)));
        Ok(Self { numbers, id, label, group })
    }
}

impl VectorRows for CsvTable {
    fn stream(&self, first: u64) -> Result<Box<dyn RowStream + '_>, FormatError> {
        let mut lines = CsvLines::new(&self.path, &self.file);
        let mut record = StringRecord::new();
        lines.read(&mut record)?;
        let mut stream = CsvStream { table: self, lines, record };
        skip(&mut stream, self.shape, first)?;
        Ok(Box::new(stream))
    }
}

struct CsvStream<'a> {
    table: &'a CsvTable,
    lines: CsvLines,
    record: StringRecord,
}

impl RowStream for CsvStream<'_> {
    fn read(&mut self, rows: usize, into: &mut VectorBlock) -> Result<(), FormatError> {
        let CsvColumns { numbers, id, label, group } = &self.table.columns;
        for _ in 0..rows {
            if !self.lines.read(&mut self.record)? {
                let problem = "the file became shorter while it was read";
                return Err(FormatError::changed(&self.table.path, problem));
            }
            let record = &self.record;
            let wrong = |problem| {
                let line = record.position().map_or(0, csv::Position::line);
                FormatError::new(&self.table.path, problem).at(format!("line {line}"))
            };
            for (index, &column) in numbers.iter().enumerate() {
                let text = record.get(column).unwrap_or_default().trim();
                // Parsed directly to the nearest f32: via f64 it would be rounded twice.
                into.vectors.push(text.parse().map_err(|_| {
                    let problem = format!("number {index} is {text:?}, which is not a number");
                    let line = record.position().map_or(0, csv::Position::line);
                    let row = into.first + (into.vectors.len() / numbers.len()) as u64;
                    FormatError::content(&self.table.path, problem).at(format!("line {line}, row {row}"))
                })?);
            }
            if let Some(id) = id {
                into.ids.get_or_insert_default().push(record.get(*id).unwrap_or_default().to_owned());
            }
            if let Some(label) = label {
                let label = parse_label(record.get(*label).unwrap_or_default().trim());
                into.labels.get_or_insert_default().push(label.map_err(wrong)?);
            }
            if let Some(group) = group {
                let group = parse_group(record.get(*group).unwrap_or_default().trim()).map_err(wrong)?;
                into.groups.get_or_insert_default().push(group.map(str::to_owned));
            }
        }
        Ok(())
    }
}

/// A reader for the lines of a CSV file, each of bounded length.
pub struct CsvLines {
    path: PathBuf,
    reader: Reader<LimitedReader>,
    left: Arc<AtomicU64>,
}

/// A reader that fails in a line that is too long.
struct LimitedReader {
    from: BufReader<ReadFrom>,
    left: Arc<AtomicU64>,
    at_start: bool,
}

impl CsvLines {
    /// Starts reading a file without its byte order mark. `path` is for errors.
    pub fn new(path: &Path, file: &Arc<ReadAt>) -> Self {
        let from = BufReader::with_capacity(1 << 16, ReadFrom::full(file));
        let left = Arc::new(AtomicU64::new(0));
        let from = LimitedReader { from, left: Arc::clone(&left), at_start: true };
        let reader = ReaderBuilder::new().has_headers(false).from_reader(from);
        Self { path: path.to_owned(), reader, left }
    }

    /// Reads the next record; returns `false` after the last one.
    ///
    /// # Errors
    /// If the record is damaged, too long, or has another number of fields than the first.
    pub fn read(&mut self, record: &mut StringRecord) -> Result<bool, FormatError> {
        self.left.store(MAX_LINE_BYTES, Ordering::Relaxed);
        self.reader.read_record(record).map_err(|error| {
            let line = error.position().map(csv::Position::line);
            let wrong = |problem: &str| FormatError::format(&self.path, problem);
            let failed = match error.into_kind() {
                ErrorKind::Utf8 { .. } => wrong("not UTF-8").hint("save the table as \"CSV UTF-8\""),
                ErrorKind::UnequalLengths { expected_len, len, .. } => {
                    wrong(&format!("the line has {len} fields, but the header has {expected_len} columns"))
                        .hint("put fields that contain a comma in double quotes")
                }
                ErrorKind::Io(error) if error.kind() == io::ErrorKind::InvalidData => {
                    wrong(&error.to_string())
                }
                ErrorKind::Io(error) => FormatError::new(&self.path, error),
                other => wrong(&format!("{other:?}")),
            };
            match line {
                Some(line) => failed.at(format!("line {line}")),
                None => failed,
            }
        })
    }
}

impl Read for LimitedReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut count = self.from.read(into)?;
        if std::mem::take(&mut self.at_start) && into[..count].starts_with(b"\xef\xbb\xbf") {
            into.copy_within(3..count, 0);
            count -= 3;
        }
        let left = self.left.load(Ordering::Relaxed).checked_sub(count as u64);
        let left = left.ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, format!("a line of more than {MAX_LINE_BYTES} bytes"))
        })?;
        self.left.store(left, Ordering::Relaxed);
        Ok(count)
    }
}

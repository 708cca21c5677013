//! A file of labels for vectors: a CSV or a one-dimensional `.npy`.
//!
//! A CSV has a column of labels, and optionally columns of ids, splits and groups. Lines are matched to rows by id; by row
//! number from 0 if the vectors have no ids; and by order if the CSV has no ids. By order, an empty line is an unlabelled
//! row; by id, it is skipped.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use calmix_formats::error::{FormatError, FormatProblem};
use calmix_formats::labels::columns::{self, LabelColumns, VectorListColumns};
use calmix_formats::labels::csv_table::{DRAWN_HINT, without_mark};
use calmix_formats::labels::drawn::Drawn;
use calmix_formats::labels::text::{parse_group, parse_label};
use calmix_formats::labels::weight::{WEIGHT_HINT, parse_weight};
use calmix_formats::vectors::{LabelStream, NpyFile, VectorPlace};
use csv::StringRecord;

use super::super::layout::{TRAIN, UNLABELLED, split};
use super::label_lines::{LabelLines, Line, LinesInOrder};
use crate::error::DataError;

/// The maximum size of a list, in bytes: ten million rows.
const MAX_LIST_BYTES: u64 = 1 << 30;

/// The subsets, in the order of their ids.
pub(super) const SUBSETS: [&str; 4] = [TRAIN, UNLABELLED, "val", "test"];

/// Labels by row.
#[derive(Debug)]
pub struct LabelList {
    path: PathBuf,
    lines: Lines,
    /// Whether there is a column of groups.
    pub has_groups: bool,
}

#[derive(Debug)]
enum Lines {
    /// One label per row, in order.
    Npy(NpyLabels),
    /// One line per row, in order.
    InOrder(std::vec::IntoIter<Line>),
    /// Lines by id, each with whether a row has taken it.
    ById(HashMap<String, (Line, bool)>),
}

struct NpyLabels(LabelStream);

impl std::fmt::Debug for NpyLabels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NpyLabels")
    }
}

/// The entry of a row in a list.
#[derive(Debug)]
pub struct ListedRow {
    pub label: Option<String>,
    /// An index into [`SUBSETS`].
    pub(super) subset: u8,
    pub group: Option<String>,
    pub drawn: Drawn,
    /// The weight of the label in training.
    pub(super) weight: f64,
}

impl ListedRow {
    /// The entry of a row that the list does not name.
    const UNLISTED: Self = Self { label: None, subset: 1, group: None, drawn: Drawn::Given, weight: 1.0 };

    /// The entry of a row that has a label, if any, and nothing else.
    pub(super) fn of_label(label: Option<String>) -> Self {
        Self { label, subset: 0, ..Self::UNLISTED }
    }
}

impl LabelList {
    /// Reads the labels of `rows` rows.
    pub fn read(path: &Path, columns: &LabelColumns, rows: u64) -> Result<Self, DataError> {
        if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npy")) {
            let place = VectorPlace::find(path)?;
            let name = place.file.clone().unwrap_or_default();
            let labels = NpyFile::open(&place, &name)?.labels(rows)?.stream(0)?;
            let lines = Lines::Npy(NpyLabels(labels));
            return Ok(Self { path: path.to_owned(), lines, has_groups: false });
        }
        let mut text = Vec::new();
        let read = File::open(path).and_then(|file| file.take(MAX_LIST_BYTES).read_to_end(&mut text));
        if read.map_err(|error| DataError::new(path, error))? as u64 == MAX_LIST_BYTES {
            let problem = format!("the list is larger than {MAX_LIST_BYTES} bytes");
            return Err(DataError::limit(path, problem).hint("save the labels as a .npy of whole numbers"));
        }
        Self::parse(path, &text, columns, rows)
    }

    /// Reads the text of a CSV of labels of `rows` rows; `path` is for messages.
    pub(super) fn parse(
        path: &Path,
        text: &[u8],
        columns: &LabelColumns,
        rows: u64,
    ) -> Result<Self, DataError> {
        let (lines, has_groups) = read_csv(path, without_mark(text), columns, rows)?;
        Ok(Self { path: path.to_owned(), lines, has_groups })
    }

    /// Label, subset and group of the next row.
    pub fn take(&mut self, row: u64, id: Option<&str>) -> Result<ListedRow, DataError> {
        match &mut self.lines {
            Lines::Npy(NpyLabels(labels)) => {
                let mut label = Vec::with_capacity(1);
                labels.read(1, &mut label)?;
                Ok(ListedRow::of_label(label.pop().flatten()))
            }
            Lines::InOrder(lines) => Ok(lines.next().map_or(ListedRow::UNLISTED, ListedRow::from)),
            Lines::ById(lines) => {
                let number = row.to_string();
                let id = id.unwrap_or(&number);
                let Some((line, is_taken)) = lines.get_mut(id) else { return Ok(ListedRow::UNLISTED) };
                if std::mem::replace(is_taken, true) {
                    let problem = format!("two rows of vectors have the id {id:?}");
                    let error = DataError::content(&self.path, problem).at(format!("line {}", line.number));
                    return Err(error.hint("give every row its own id, or leave the ids out of this file"));
                }
                Ok(ListedRow {
                    label: line.label.take(),
                    subset: line.subset,
                    group: line.group.take(),
                    drawn: line.drawn,
                    weight: line.weight,
                })
            }
        }
    }

    /// Refuses a list with lines for nonexistent rows.
    pub fn finish(self) -> Result<(), DataError> {
        let Lines::ById(lines) = self.lines else { return Ok(()) };
        let all = lines.len();
        let unused = || lines.iter().filter(|(_, (_, is_taken))| !is_taken);
        let Some((id, (line, _))) = unused().min_by_key(|(_, (line, _))| line.number) else { return Ok(()) };
        let count = unused().count();
        let problem = format!("no row of vectors has the id {id:?}; {count} of {all} lines have no row");
        let error = DataError::content(&self.path, problem).at(format!("line {}", line.number));
        Err(error.hint(
            "write the ids as in the file of vectors, or row numbers from 0 if it has none; without a column of \
             ids, lines are matched to rows in order",
        ))
    }
}

impl From<Line> for ListedRow {
    fn from(line: Line) -> Self {
        let Line { label, subset, group, drawn, weight, .. } = line;
        Self { label, subset, group, drawn, weight }
    }
}

/// Reads the lines of a CSV, and whether it has a column of groups.
fn read_csv(path: &Path, text: &[u8], columns: &LabelColumns, rows: u64) -> Result<(Lines, bool), DataError> {
    let mut lines = LabelLines::new(path, text);
    let mut record = StringRecord::new();
    let wrong =
        |line: u64, problem: FormatProblem| FormatError::new(path, problem).at(format!("line {line}"));
    let first = lines.read(&mut record)?;
    if !first.has_record {
        return Err(DataError::content(path, "the list is empty"));
    }
    let in_header = |problem| wrong(first.number, problem);
    let VectorListColumns { id, label, split: splits, group, drawn, weight, is_unusual } =
        columns::find_for_vectors(&record, columns, &in_header)?;
    let unusual_header = record.get(0).filter(|_| is_unusual).map(str::to_owned);
    let mut in_order = LinesInOrder::new(first.number, unusual_header, rows);
    let mut by_id: HashMap<String, (Line, bool)> = HashMap::new();
    loop {
        let next = lines.read(&mut record)?;
        in_order.add_blank(&next);
        if !next.has_record {
            break;
        }
        let number = next.number;
        let field = |column: usize| record.get(column).unwrap_or_default().trim();
        let subset = splits.map_or(Ok(0), |column| subset_of(field(column))).map_err(|problem| {
            wrong(number, problem).hint("the splits are train, val, test and unlabelled")
        })?;
        let label = parse_label(field(label)).map_err(|problem| wrong(number, problem))?;
        let group = group.map_or("", field);
        let group = parse_group(group).map_err(|problem| wrong(number, problem))?.map(str::to_owned);
        let drawn = Drawn::parse(drawn.map_or("", field));
        let drawn = drawn.map_err(|problem| wrong(number, problem).hint(DRAWN_HINT))?;
        let weight = parse_weight(weight.map_or("", field));
        let weight = weight.map_err(|problem| wrong(number, problem).hint(WEIGHT_HINT))?;
        let line = Line { number, label, subset, group, drawn, weight };
        let Some(id) = id else {
            in_order.add(line);
            continue;
        };
        let id = field(id).to_owned();
        if let Some((first, _)) = by_id.get(&id) {
            let problem =
                FormatProblem::Content(format!("the id {id:?} is already in line {}", first.number));
            return Err(wrong(number, problem).hint("keep one line per row").into());
        }
        by_id.insert(id, (line, false));
    }
    if id.is_some() {
        return Ok((Lines::ById(by_id), group.is_some()));
    }
    let lines = in_order.finish().map_err(|problem| DataError::new(path, problem))?;
    Ok((Lines::InOrder(lines.into_iter()), group.is_some()))
}

/// Returns the index of the subset that a word in the column `split` means.
fn subset_of(word: &str) -> Result<u8, FormatProblem> {
    if word.is_empty() {
        return Ok(0);
    }
    let subset = split(word).and_then(|subset| SUBSETS.iter().position(|name| *name == subset));
    match subset {
        Some(subset) => Ok(subset as u8),
        None => Err(FormatProblem::Content(format!("there is no split {word:?}"))),
    }
}

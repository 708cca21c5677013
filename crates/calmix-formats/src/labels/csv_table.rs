//! Reads the rows of a list of labels, and checks each against the files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use calmix_io::safe_path;
use calmix_io::text::counted;
use csv::{ErrorKind, ReaderBuilder, StringRecord};

use super::columns::{self, LabelColumns};
use super::drawn::Drawn;
use super::text::{parse_class, parse_group};
use super::weight::{WEIGHT_HINT, parse_weight};
use crate::csv_lines::LineCount;
use crate::error::FormatError;
use crate::listing::below;

/// The maximum size of a list, in bytes: ten million rows.
const MAX_LIST_BYTES: u64 = 1 << 30;

/// The hint for a word that is not a draw.
pub const DRAWN_HINT: &str = "correct the word, or rename the column `drawn` if it means something else";

/// A list of labels.
#[derive(Debug)]
pub struct LabelTable {
    /// The path of the list.
    pub path: PathBuf,
    /// The rows in the order of the list.
    pub rows: Vec<LabelRow>,
}

#[derive(Debug)]
pub struct LabelRow {
    /// The path of the image, relative to the root.
    pub file: String,
    /// Its class; `None` for an unlabelled image.
    pub label: Option<String>,
    /// The name of its group; `None` if it is a group of its own.
    pub group: Option<String>,
    /// How its label was drawn.
    pub drawn: Drawn,
    /// The weight of its label in training.
    pub weight: f64,
}

impl LabelTable {
    /// Reads the list `list` in the folder `folder` below `root`; `folder` is empty for the root itself.
    ///
    /// # Errors
    /// If it cannot be read, contradicts itself, or names a file that does not exist.
    pub fn read(root: &Path, folder: &str, list: &str, columns: &LabelColumns) -> Result<Self, FormatError> {
        let path = root.join(folder).join(list);
        let text = read_list(root, &path)?;
        Self::parse(root, folder, &path, &text, columns)
    }

    /// Reads the text of a list in the folder `folder` below `root`; `path` is for messages.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(
        root: &Path,
        folder: &str,
        path: &Path,
        text: &[u8],
        columns: &LabelColumns,
    ) -> Result<Self, FormatError> {
        let mut rows = Vec::new();
        read_rows(without_mark(text), path, columns, |line, row| {
            let name = below(folder, &row.file);
            check_file(root, &name, &row.file, &|text| {
                FormatError::content(path, text).at(format!("line {line}"))
            })?;
            rows.push(LabelRow { file: name, ..row });
            Ok(())
        })?;
        Ok(Self { path: path.to_owned(), rows })
    }
}

/// Checks that the file `name` below `root` exists; `file` is its name in a message, to which `at` adds the line.
///
/// # Errors
/// If it does not, or is a folder.
pub fn check_file(
    root: &Path,
    name: &str,
    file: &str,
    at: &impl Fn(String) -> FormatError,
) -> Result<(), FormatError> {
    let full = root.join(name);
    if full.is_dir() {
        return Err(at(format!("{file} is a folder")).hint("write one row per image in it"));
    }
    if !full.exists() {
        return Err(at(format!("there is no file {file}")).hint(suggest(&full)));
    }
    Ok(())
}

/// Returns whether the header of a list has a column for the image and one for its label.
pub fn has_labels(root: &Path, path: &Path) -> bool {
    const START: u64 = 64 << 10;
    let Ok(text) = read_start(root, path, START) else { return false };
    let mut record = StringRecord::new();
    let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(without_mark(&text));
    reader.read_record(&mut record).is_ok_and(|read| read && columns::has_image_and_label(&record))
}

/// Reads the bytes of a list, with its byte order mark.
///
/// # Errors
/// If it cannot be read, lies outside `root`, or is too large.
pub fn read_list(root: &Path, path: &Path) -> Result<Vec<u8>, FormatError> {
    let text = read_start(root, path, MAX_LIST_BYTES)?;
    if text.len() as u64 == MAX_LIST_BYTES {
        return Err(FormatError::limit(path, format!("the list is larger than {MAX_LIST_BYTES} bytes"))
            .hint("split it into one list each for train, val and test"));
    }
    Ok(text)
}

/// Returns a text without its byte order mark, if any.
pub fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}

/// Reads at most `longest` bytes of a list.
fn read_start(root: &Path, path: &Path, longest: u64) -> Result<Vec<u8>, FormatError> {
    safe_path::check(root, path)?;
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(longest).read_to_end(&mut text));
    read.map_err(|error| FormatError::new(path, error))?;
    Ok(text)
}

/// Calls `visit` with every row and its line. Files are relative to the list.
fn read_rows(
    text: &[u8],
    path: &Path,
    names: &LabelColumns,
    mut visit: impl FnMut(u64, LabelRow) -> Result<(), FormatError>,
) -> Result<(), FormatError> {
    let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text);
    let mut record = StringRecord::new();
    let mut lines = LineCount::new(text);
    let mut columns = None;
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    while read_record(&mut reader, &mut record, path, &mut lines)? {
        let line = lines.line_at(record.position().map_or(0, |place| place.byte() as usize));
        let at = |text: String| FormatError::content(path, text).at(format!("line {line}"));
        let Some((columns::ListColumns { path: file, label, group, drawn, weight }, fields)) = columns else {
            let at = |problem| FormatError::new(path, problem).at(format!("line {line}"));
            columns = Some((columns::find(&record, names, &at)?, record.len()));
            continue;
        };
        if record.len() != fields {
            let found = counted(record.len() as u64, "field");
            let error = at(format!("the row has {found}, but the header has {fields} columns"));
            return Err(error.hint("put fields that contain a comma in double quotes"));
        }
        let file = &record[file];
        let label = &record[label];
        let group = group.map_or("", |group| &record[group]);
        let drawn = drawn.map_or("", |drawn| &record[drawn]);
        let weight = weight.map_or("", |weight| &record[weight]);
        if let Some(why) = safe_path::why_unsafe_here(file.strip_prefix("./").unwrap_or(file)) {
            return Err(at(format!("the file name {file:?} {why}")).hint("name files relative to this list"));
        }
        let file = file.strip_prefix("./").unwrap_or(file);
        for (what, text) in [("label", label), ("group", group)] {
            if text.trim() != text {
                return Err(at(format!("the {what} {text:?} has spaces around it")).hint("remove them"));
            }
        }
        if let Some(first) = seen.insert(file.to_owned(), line) {
            let error = at(format!("{file} is already listed in line {first}"));
            return Err(error.hint("keep one row per image"));
        }
        let wrong = |problem| FormatError::new(path, problem).at(format!("line {line}"));
        let label = parse_class(label).map_err(wrong)?;
        let group = parse_group(group).map_err(wrong)?.map(str::to_owned);
        let drawn = Drawn::parse(drawn).map_err(|problem| wrong(problem).hint(DRAWN_HINT))?;
        let weight = parse_weight(weight).map_err(|problem| wrong(problem).hint(WEIGHT_HINT))?;
        visit(line, LabelRow { file: file.to_owned(), label, group, drawn, weight })?;
    }
    if seen.is_empty() {
        return Err(FormatError::content(path, "the list has no rows")
            .hint("write the header `file,label` and one line per image"));
    }
    Ok(())
}

/// Reads the next record of a list; `lines` counts those of the text.
///
/// # Errors
/// If it is not UTF-8.
pub fn read_record(
    reader: &mut csv::Reader<impl Read>,
    record: &mut StringRecord,
    path: &Path,
    lines: &mut LineCount<'_>,
) -> Result<bool, FormatError> {
    reader.read_record(record).map_err(|error| {
        let line = error.position().map(|place| lines.line_at(place.byte() as usize));
        let failed = match error.into_kind() {
            ErrorKind::Utf8 { .. } => {
                FormatError::format(path, "not UTF-8").hint("save the list as \"CSV UTF-8\"")
            }
            ErrorKind::Io(error) => FormatError::new(path, error),
            other => FormatError::new(path, io::Error::other(format!("{other:?}"))),
        };
        match line {
            Some(line) => failed.at(format!("line {line}")),
            None => failed,
        }
    })
}

/// Suggests a file whose name differs from the missing one only in case or extension, if any.
fn suggest(missing: &Path) -> String {
    let (Some(folder), Some(name)) = (missing.parent(), missing.file_name()) else {
        return "correct the name".into();
    };
    let name = name.to_string_lossy();
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let near = entries.filter_map(|entry| entry.file_name().into_string().ok()).filter(|other| {
        other.eq_ignore_ascii_case(&name) || Path::new(other).file_stem().is_some_and(|stem| *stem == *name)
    });
    // The smallest name, so that the message does not depend on the listing order of the system.
    match near.min() {
        Some(other) => format!("the file is called {other}: correct the name"),
        None => "correct the name, add the file or remove the row".into(),
    }
}

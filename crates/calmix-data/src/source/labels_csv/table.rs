//! The rows of a list of labels, each checked against the files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use csv::{ErrorKind, ReaderBuilder, StringRecord};

use crate::error::{DataError, DataProblem};
use crate::safe_path;

const FILE: [&str; 2] = ["file", "file_name"];
const LABEL: [&str; 2] = ["label", "labels"];

/// A list of labels.
#[derive(Debug)]
pub(super) struct LabelTable {
    /// The list itself.
    pub(super) path: PathBuf,
    /// Its rows, in its order.
    pub(super) rows: Vec<LabelRow>,
}

/// One row.
#[derive(Debug)]
pub(super) struct LabelRow {
    /// The image, relative to the root.
    pub(super) file: String,
    /// Its class, if it has one.
    pub(super) label: Option<String>,
}

impl LabelTable {
    /// Reads the list `list` in the folder `folder` below `root`; `folder` is empty for the root itself.
    pub(super) fn read(root: &Path, folder: &str, list: &str) -> Result<Self, DataError> {
        let path = root.join(folder).join(list);
        safe_path::check(root, &path)?;
        let file = File::open(&path).map_err(|error| DataError::new(&path, error))?;
        let mut rows = Vec::new();
        read_rows(file, &path, |line, file, label| {
            let at =
                |text: String| DataError::new(&path, DataProblem::Content(text)).at(format!("line {line}"));
            let name = if folder.is_empty() { file.to_owned() } else { format!("{folder}/{file}") };
            let full = root.join(&name);
            if full.is_dir() {
                return Err(at(format!("{file} is a folder")).hint("write one row for each image in it"));
            }
            if !full.exists() {
                let error = at(format!("there is no file {file}"));
                return Err(error.hint(suggest(&full)));
            }
            rows.push(LabelRow { file: name, label });
            Ok(())
        })?;
        Ok(Self { path, rows })
    }
}

/// Calls `visit` with line, file and label of every row.
fn read_rows(
    list: impl Read,
    path: &Path,
    mut visit: impl FnMut(u64, &str, Option<String>) -> Result<(), DataError>,
) -> Result<(), DataError> {
    let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(list);
    let mut record = StringRecord::new();
    let mut columns = None;
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    while read_record(&mut reader, &mut record, path)? {
        let line = record.position().map_or(0, csv::Position::line);
        let at = |text: String| DataError::new(path, DataProblem::Content(text)).at(format!("line {line}"));
        let Some((file, label)) = columns else {
            columns = Some(read_header(&record, &at)?);
            continue;
        };
        if record.len() != 2 {
            let found = record.len();
            let error = at(format!("fields: {found}, but columns: 2"));
            return Err(error.hint("put names with a comma in them between double quotes"));
        }
        let (file, label) = (&record[file], &record[label]);
        if let Some(why) = safe_path::why_unsafe(file.strip_prefix("./").unwrap_or(file)) {
            return Err(at(format!("the file name {file:?} {why}")).hint("name files relative to this list"));
        }
        let file = file.strip_prefix("./").unwrap_or(file);
        if label.trim() != label {
            return Err(at(format!("spaces around the label {label:?}")).hint("remove them"));
        }
        if let Some(first) = seen.insert(file.to_owned(), line) {
            let error = at(format!("{file} stands in line {first} already"));
            return Err(error.hint("keep one row for each image"));
        }
        visit(line, file, (!label.is_empty()).then(|| label.to_owned()))?;
    }
    if seen.is_empty() {
        let problem = DataProblem::Content("no rows".into());
        return Err(
            DataError::new(path, problem).hint("write a line `file,label` and one line for each image")
        );
    }
    Ok(())
}

fn read_record(
    reader: &mut csv::Reader<impl Read>,
    record: &mut StringRecord,
    path: &Path,
) -> Result<bool, DataError> {
    reader.read_record(record).map_err(|error| {
        let line = error.position().map(csv::Position::line);
        let failed = match error.into_kind() {
            ErrorKind::Utf8 { .. } => {
                let problem = DataProblem::Format("not UTF-8".into());
                DataError::new(path, problem).hint("save the list as \"CSV UTF-8\"")
            }
            ErrorKind::Io(error) => DataError::new(path, error),
            other => DataError::new(path, io::Error::other(format!("{other:?}"))),
        };
        match line {
            Some(line) => failed.at(format!("line {line}")),
            None => failed,
        }
    })
}

/// Which fields hold the file and the label.
fn read_header(
    header: &StringRecord,
    at: &impl Fn(String) -> DataError,
) -> Result<(usize, usize), DataError> {
    const WANTED: &str = "the first line must be `file,label`";
    // Excel in half of the world's languages separates by semicolons.
    let joined = header.iter().next().filter(|_| header.len() == 1).unwrap_or_default();
    if let Some(separator) = [';', '\t', '|'].into_iter().find(|&separator| joined.contains(separator)) {
        let error = at(format!("columns are separated by {separator:?}"));
        return Err(error.hint("separate them by commas"));
    }
    let known = |names: [&str; 2]| header.iter().position(|name| names.contains(&name));
    let (file, label) = match (known(FILE), known(LABEL)) {
        (None, None) => return Err(at("no names of columns".into()).hint(WANTED)),
        (None, _) => return Err(at("no column file".into()).hint(WANTED)),
        (_, None) => return Err(at("no column label".into()).hint(WANTED)),
        (Some(file), Some(label)) => (file, label),
    };
    if let Some(other) = (0..header.len()).find(|&column| column != file && column != label) {
        let name = &header[other];
        let error = at(format!("an unknown column {name:?}"));
        return Err(error.hint("remove it: the columns are file and label"));
    }
    Ok((file, label))
}

/// What a missing file may have been meant to be.
fn suggest(missing: &Path) -> String {
    let (Some(folder), Some(name)) = (missing.parent(), missing.file_name()) else {
        return "correct the name".into();
    };
    let name = name.to_string_lossy();
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let near = entries.filter_map(|entry| entry.file_name().into_string().ok()).filter(|other| {
        other.eq_ignore_ascii_case(&name) || Path::new(other).file_stem().is_some_and(|stem| *stem == *name)
    });
    // The least of them, so that the sentence does not depend on the order of the folder.
    match near.min() {
        Some(other) => format!("there is {other}: write the name as it is there"),
        None => "correct the name, fetch the file or remove the row".into(),
    }
}

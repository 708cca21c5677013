//! The paths of `--out`: what they may name, the format of the rows, and files of the user that must not be overwritten.

use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::Result;
use calmix_data::cloud::CloudUrl;
use calmix_io::safe_open;
use calmix_io::shown::shown;
use calmix_io::system::CREATE_FOLDERS;
use serde_json::Value;

use crate::args::predict::RowKind;
use crate::error::CliError;
use crate::output::format::shell_quoted;

/// The ending of the name of the journal of an output's sums.
pub(super) const SUMS_ENDING: &str = ".sums.jsonl";

/// Returns the format of the rows: `--format`, or that of the extension of the output. A name without an extension is CSV.
///
/// # Errors
/// If the extension is unknown.
pub(crate) fn row_kind(out: Option<&Path>, format: Option<RowKind>) -> Result<RowKind, CliError> {
    let ending = out.and_then(Path::extension).unwrap_or_default();
    let ending = ending.to_string_lossy().to_lowercase();
    if let Some(kind) = format {
        return Ok(kind);
    }
    match ending.as_str() {
        "" | "csv" => Ok(RowKind::Csv),
        "jsonl" | "json" => Ok(RowKind::Jsonl),
        "parquet" => Ok(RowKind::Parquet),
        _ => {
            let out = out.unwrap_or(Path::new(""));
            let message = format!(
                "{}: calmix writes .csv, .jsonl (JSON lines) and .parquet, not .{}",
                shown(out.display()),
                shown(ending)
            );
            let csv = out.with_extension("csv");
            let hint = format!("--out {}, or name the format with --format csv", shell_quoted(&csv));
            Err(CliError::invalid(message).hint(hint))
        }
    }
}

/// Refuses an output that must be a mistake: `-` for standard output, or a file in a folder that does not exist.
pub(crate) fn check_place(out: &Path) -> Result<(), CliError> {
    if CloudUrl::is_url(out) {
        return Ok(());
    }
    if out.as_os_str() == "-" {
        let message = "--out names a file, and `-` is not one";
        return Err(CliError::invalid(message).hint("leave --out out: rows go to standard output by default"));
    }
    let Some(folder) = out.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return Ok(()) };
    if folder.is_dir() {
        return Ok(());
    }
    let place = shown(folder.display());
    if folder.exists() {
        let message = format!("{}: cannot write here, because {place} is not a folder", shown(out.display()));
        return Err(CliError::invalid(message).hint("name another file with `--out`"));
    }
    let message = format!("{}: the folder {place} does not exist", shown(out.display()));
    Err(CliError::invalid(message).hint(format!("{CREATE_FOLDERS} {}", shell_quoted(folder))))
}

/// Returns the path of a file beside an output: its name with an ending.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    path.with_file_name(name)
}

/// The maximum number of bytes that are read to recognise a file.
const MAX_PROBED_BYTES: u64 = 64 << 20;

/// The endings of the files beside an output, and the keys of their first JSON document.
const SIDECAR_KEYS: [(&str, &[&str]); 3] = [
    (".predict.json", &["version", "model", "coverage", "paths"]),
    (".parts.jsonl", &["part", "rows", "blake3"]),
    (SUMS_ENDING, &["written", "sums"]),
];

/// Refuses an output if a file with the name of one of its sidecars is not from calmix.
pub(super) fn refuse_foreign(path: &Path) -> Result<()> {
    for (ending, keys) in SIDECAR_KEYS {
        let file = beside(path, ending);
        if safe_open::exists(&file) && !is_from_calmix(&file, keys) {
            let message = format!("{} exists, and `calmix predict` did not write it", shown(file.display()));
            return Err(CliError::invalid(message).hint("name another file with `--out`").into());
        }
    }
    Ok(())
}

/// Returns whether a file is empty, or its first JSON document has these keys.
fn is_from_calmix(file: &Path, keys: &[&str]) -> bool {
    let Ok((file, length)) = safe_open::open(file) else { return false };
    let documents = serde_json::Deserializer::from_reader(BufReader::new(file.take(MAX_PROBED_BYTES)));
    let first = documents.into_iter::<Value>().next();
    length == 0 || matches!(first, Some(Ok(found)) if keys.iter().all(|key| found.get(key).is_some()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn files_of_the_user_are_refused() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("out.csv");
        refuse_foreign(&path).unwrap();
        let note = r#"{"version": "1", "model": "abc", "coverage": 0.9, "paths": []}"#;
        let line = r#"{"part": 0, "rows": 2, "blake3": "abc"}"#;
        for (ending, own) in [("predict.json", note.to_owned()), ("parts.jsonl", format!("{line}\n{line}\n"))]
        {
            let file = temp.path().join(format!("out.csv.{ending}"));
            // A kill can leave an empty file.
            for own in ["", own.as_str()] {
                fs::write(&file, own).unwrap();
                refuse_foreign(&path).unwrap();
            }
            for foreign in ["notes", "{}", "[]", "\n", r#"{"version": "1", "part": 0, "rows": 2}"#] {
                fs::write(&file, foreign).unwrap();
                let refused = refuse_foreign(&path).unwrap_err().to_string();
                assert!(refused.contains(&format!("out.csv.{ending} exists")), "{refused}");
            }
            fs::remove_file(&file).unwrap();
            fs::create_dir(&file).unwrap();
            assert!(refuse_foreign(&path).is_err());
            fs::remove_dir(&file).unwrap();
        }
    }
}

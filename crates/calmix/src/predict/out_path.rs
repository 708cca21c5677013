//! What `--out` may name, and the format of the rows there.

use std::path::{Path, PathBuf};

use calmix_data::cloud::CloudUrl;
use calmix_io::shown::shown;

use crate::args::predict::{PredictArgs, RowKind};
use crate::error::CliError;
use crate::output::format::shell_quoted;

/// The format of the rows: `--format`, or the one that the name of the output ends with. A name without an ending is CSV.
///
/// # Errors
/// If the name ends as no format does.
pub(super) fn row_kind(args: &PredictArgs) -> Result<RowKind, CliError> {
    let ending = args.out.as_deref().and_then(Path::extension).unwrap_or_default();
    let ending = ending.to_string_lossy().to_lowercase();
    if let Some(kind) = args.format {
        return Ok(kind);
    }
    match ending.as_str() {
        "" | "csv" => Ok(RowKind::Csv),
        "jsonl" | "json" => Ok(RowKind::Jsonl),
        "parquet" => Ok(RowKind::Parquet),
        _ => {
            let out = args.out.as_deref().unwrap_or(Path::new(""));
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

/// Refuses an output that can only be a slip: standard output by its usual name, or a file in a folder that does not exist.
///
/// # Errors
/// Names what is missing.
pub(super) fn check_place(out: &Path) -> Result<(), CliError> {
    if CloudUrl::is_in(out) {
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
    Err(CliError::invalid(message).hint(format!("mkdir -p {}", shell_quoted(folder))))
}

/// A file beside an output, with its name and an ending.
pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    path.with_file_name(name)
}

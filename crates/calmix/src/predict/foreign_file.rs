//! Files of the user with the names that `calmix predict` writes beside its output.

use std::io::{BufReader, Read};
use std::path::Path;

use anyhow::Result;
use calmix_io::safe_open;
use calmix_io::shown::shown;
use serde_json::Value;

use super::output::beside;
use crate::error::CliError;

/// Bytes that are read of a file to recognise it.
const LONGEST: u64 = 64 << 20;

/// The endings of the files beside an output, and keys in their first JSON document.
const OURS: [(&str, &[&str]); 2] = [
    (".predict.json", &["version", "model", "coverage", "paths"]),
    (".parts.jsonl", &["part", "rows", "blake3"]),
];

/// Refuses an output if a file beside it would be replaced that calmix did not write.
pub(super) fn refuse_foreign(path: &Path) -> Result<()> {
    for (ending, keys) in OURS {
        let file = beside(path, ending);
        if safe_open::exists(&file) && !is_ours(&file, keys) {
            let message = format!("{} exists, and `calmix predict` did not write it", shown(file.display()));
            return Err(CliError::invalid(message).hint("name another file with `--out`").into());
        }
    }
    Ok(())
}

/// Whether a file is empty, or its first document has these keys.
fn is_ours(file: &Path, keys: &[&str]) -> bool {
    let Ok((file, length)) = safe_open::open(file) else { return false };
    let documents = serde_json::Deserializer::from_reader(BufReader::new(file.take(LONGEST)));
    let first = documents.into_iter::<Value>().next();
    length == 0 || matches!(first, Some(Ok(found)) if keys.iter().all(|key| found.get(key).is_some()))
}

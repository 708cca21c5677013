//! Files of the user with the names that `calmix predict` writes beside its output.

use std::io::{BufReader, Read};
use std::path::Path;

use anyhow::Result;
use calmix_io::safe_open;
use calmix_io::shown::shown;
use serde_json::Value;

use super::out_path::beside;
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

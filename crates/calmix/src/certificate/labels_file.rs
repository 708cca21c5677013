//! `labels.csv` of a certificate: every row of the pool with its predicted label, the confidence in it, and the hash of its content.
//!
//! The rows are in the order of their rank: the most confident first, equal ones by their id; rows that could not be predicted are
//! last, with an empty label and score.

use std::collections::HashSet;
use std::path::Path;

use anyhow::Result;
use calmix_formats::csv_lines::LineCount;
use calmix_formats::error::{FormatError, FormatProblem};
use calmix_formats::labels::csv_table::read_record;
use calmix_io::safe_open;
use csv::{ReaderBuilder, StringRecord, Writer};

use super::digest::{is_sha256, sha256};

/// The name of the file.
pub(crate) const LABELS: &str = "labels.csv";

const HEADER: [&str; 4] = ["id", "label", "score", "content"];
const HINT: &str = "take the file that calmix wrote beside the certificate";
/// The largest file: five million rows with long names.
const MAX_BYTES: u64 = 2 << 30;

/// A row of the pool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LabelRow {
    /// The path of an image below the folder of the pool, or the id of a vector.
    pub(crate) id: String,
    /// The predicted label and the calibrated probability that it is right; `None` if the row could not be read.
    pub(crate) predicted: Option<(String, f64)>,
    /// SHA-256 of the file of an image, or of the numbers of a vector.
    pub(crate) content: String,
}

/// All rows of the pool in the order of their rank.
#[derive(Debug)]
pub(crate) struct LabelsFile {
    pub(crate) rows: Vec<LabelRow>,
    /// SHA-256 of the file.
    pub(crate) sha256: String,
}

impl LabelsFile {
    /// Returns the predicted label of the row with this rank.
    pub(crate) fn predicted(&self, rank: u64) -> Option<&str> {
        let row = usize::try_from(rank).ok().and_then(|rank| self.rows.get(rank))?;
        row.predicted.as_ref().map(|(label, _)| label.as_str())
    }

    /// Ranks the rows; returns them with the text of the file.
    ///
    /// # Errors
    /// If two rows have the same id, or an id cannot be in the file.
    pub(crate) fn new(mut rows: Vec<LabelRow>) -> Result<(Self, Vec<u8>)> {
        rows.sort_by(|a, b| score(b).total_cmp(&score(a)).then_with(|| a.id.cmp(&b.id)));
        let mut writer = Writer::from_writer(Vec::new());
        writer.write_record(HEADER)?;
        for row in &rows {
            let (label, score) = match &row.predicted {
                Some((label, score)) => (label.as_str(), score.to_string()),
                None => ("", String::new()),
            };
            writer.write_record([row.id.as_str(), label, &score, &row.content])?;
        }
        let text = writer.into_inner().map_err(csv::IntoInnerError::into_error)?;
        // What is written is what a reader takes.
        let rows = parse(Path::new(LABELS), &text)?;
        Ok((Self { rows, sha256: sha256(&text) }, text))
    }

    /// Reads the file of a certificate.
    ///
    /// # Errors
    /// If it is not a list of ranked rows.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = safe_open::read(path, MAX_BYTES)?;
        Ok(Self { rows: parse(path, &text)?, sha256: sha256(&text) })
    }

    /// Returns the hash of the ids and contents of all rows, which does not depend on predictions.
    pub(crate) fn fingerprint(&self) -> String {
        let mut rows: Vec<&LabelRow> = self.rows.iter().collect();
        rows.sort_by(|a, b| a.id.cmp(&b.id));
        let mut text = String::new();
        for row in rows {
            text.extend([row.id.as_str(), "\t", &row.content, "\n"]);
        }
        sha256(text.as_bytes())
    }
}

/// The score by which a row is ranked; below all others without a prediction.
fn score(row: &LabelRow) -> f64 {
    row.predicted.as_ref().map_or(-1.0, |(_, score)| *score)
}

fn parse(path: &Path, text: &[u8]) -> Result<Vec<LabelRow>, FormatError> {
    let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text);
    let mut lines = LineCount::new(text);
    let mut record = StringRecord::new();
    let mut rows: Vec<LabelRow> = Vec::new();
    let mut is_header = true;
    while read_record(&mut reader, &mut record, path, &mut lines)? {
        let line = lines.line_at(record.position().map_or(0, |place| place.byte() as usize));
        let wrong = |problem: String| {
            FormatError::new(path, FormatProblem::Content(problem)).at(format!("line {line}")).hint(HINT)
        };
        if is_header {
            if record != HEADER[..] {
                return Err(wrong(format!("the columns are not {}", HEADER.join(", "))));
            }
            is_header = false;
            continue;
        }
        let row = parse_row(&record).map_err(wrong)?;
        if let Some(before) = rows.last() {
            let is_ranked = score(before) > score(&row) || score(before) == score(&row) && before.id < row.id;
            if !is_ranked {
                return Err(wrong(
                    "the row is out of order: rows are sorted by score, then by id".to_owned(),
                ));
            }
        }
        rows.push(row);
    }
    let mut seen = HashSet::with_capacity(rows.len());
    match rows.iter().find(|row| !seen.insert(row.id.as_str())) {
        Some(row) => Err(FormatError::content(path, format!("two rows have the id {:?}", row.id)).hint(HINT)),
        None => Ok(rows),
    }
}

fn parse_row(record: &StringRecord) -> Result<LabelRow, String> {
    let fields: Vec<&str> = record.iter().collect();
    let [id, label, score, content] = fields[..] else {
        return Err(format!("the row has {} fields instead of {}", fields.len(), HEADER.len()));
    };
    // A tab or a line break would make two pools with one fingerprint.
    if id.is_empty() || id.contains(['\t', '\n', '\r']) {
        return Err(format!("{id:?} is not an id"));
    }
    if !is_sha256(content) {
        return Err(format!("{content:?} is not a SHA-256 hash"));
    }
    let predicted = match (label, score) {
        ("", "") => None,
        (label, score) => {
            let number: f64 = score.parse().map_err(|_| format!("{score:?} is not a score"))?;
            if label.is_empty() || !(0.0..=1.0).contains(&number) {
                return Err(format!("{score:?} with the label {label:?} is not a prediction"));
            }
            Some((label.to_owned(), number))
        }
    };
    Ok(LabelRow { id: id.to_owned(), predicted, content: content.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, predicted: Option<(&str, f64)>) -> LabelRow {
        let predicted = predicted.map(|(label, score)| (label.to_owned(), score));
        LabelRow { id: id.to_owned(), predicted, content: sha256(id.as_bytes()) }
    }

    #[test]
    fn rows_are_ranked_and_read_back() {
        let rows = vec![
            row("d,\"1\"", Some(("cat", 0.5))),
            row("x", None),
            row("b", Some(("dog", 0.9))),
            row("a", Some(("cat", 0.5))),
        ];
        let (file, text) = LabelsFile::new(rows).unwrap();
        let ids: Vec<&str> = file.rows.iter().map(|row| row.id.as_str()).collect();
        assert_eq!(ids, ["b", "a", "d,\"1\"", "x"]);
        assert_eq!(parse(Path::new("labels.csv"), &text).unwrap(), file.rows);
        assert_eq!(file.sha256, sha256(&text));
    }

    #[test]
    fn damaged_files_are_refused_with_their_line() {
        let hash = sha256(b"");
        let good = format!("id,label,score,content\nb,cat,0.9,{hash}\na,cat,0.5,{hash}\n");
        assert!(parse(Path::new("labels.csv"), good.as_bytes()).is_ok());
        for (from, to, expected) in [
            ("id,label", "id,class", "line 1: the columns are not id, label, score, content"),
            ("b,cat,0.9", "b,cat,0.4", "line 3: the row is out of order"),
            ("b,cat,0.9", "b,cat,1.5", "line 2: \"1.5\" with the label \"cat\" is not a prediction"),
            ("b,cat,0.9", "b,cat,NaN", "line 2: \"NaN\" with the label \"cat\""),
            ("b,cat,0.9", "b,,0.9", "line 2: \"0.9\" with the label \"\""),
            ("b,cat,0.9", "b,cat,x", "line 2: \"x\" is not a score"),
            ("b,cat,0.9,", "b,cat,0.9,x", "is not a SHA-256 hash"),
            ("b,cat,0.9", ",cat,0.9", "line 2: \"\" is not an id"),
            ("b,cat", "a,cat", "two rows have the id \"a\""),
            ("a,cat,0.5,", "a,cat,0.5,1,", "line 3: the row has 5 fields instead of 4"),
        ] {
            let text = good.replacen(from, to, 1);
            let problem = parse(Path::new("labels.csv"), text.as_bytes()).unwrap_err().to_string();
            assert!(problem.contains(expected), "{from} to {to}: {problem}");
        }
    }
}

//! A review: a CSV with the columns `file`, `label` and `drawn`, and others that `calmix label` does not read; or an export of
//! Label Studio.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::Result;
use calmix_formats::csv_lines::LineCount;
use calmix_formats::error::{FormatError, FormatProblem};
use calmix_formats::labels::columns::{check_separator, simplified};
use calmix_formats::labels::csv_table::{DRAWN_HINT, read_record, without_mark};
use calmix_formats::labels::drawn::Drawn;
use calmix_formats::labels::text::parse_class;
use calmix_io::shown::shown;
use calmix_io::text::counted;
use csv::{ReaderBuilder, StringRecord};

use super::label_studio::{self, MAX_EXPORT_BYTES};
use super::review_row::{ReviewFile, ReviewRow, RowPlace, check_spaces};
use crate::error::CliError;

/// The maximum size of a review, in bytes.
const MAX_REVIEW_BYTES: u64 = 256 << 20;

/// The columns of a review that are read.
struct ReviewColumns {
    file: usize,
    label: usize,
    drawn: Option<usize>,
    count: usize,
}

/// Reads the reviews of a file: one of a CSV, and one per annotator of an export of Label Studio, which ends in `.json`.
///
/// # Errors
/// If it is not a review, or names a sample twice.
pub(crate) fn read_reviews(path: &Path) -> Result<Vec<ReviewFile>> {
    if path.is_dir() {
        let message = format!("{}: is a folder; a review is a file", shown(path.display()));
        return Err(CliError::invalid(message).hint("calmix label DATA review.csv").into());
    }
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json")) {
        let hint = "export fewer tasks at once";
        return Ok(label_studio::parse(path, without_mark(&read_limited(path, MAX_EXPORT_BYTES, hint)?))?);
    }
    let text = read_limited(path, MAX_REVIEW_BYTES, "split it into several files")?;
    Ok(vec![parse(path, without_mark(&text))?])
}

fn parse(path: &Path, text: &[u8]) -> Result<ReviewFile, FormatError> {
    let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text);
    let mut record = StringRecord::new();
    let mut lines = LineCount::new(text);
    let mut columns = None;
    let mut rows = Vec::new();
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    while read_record(&mut reader, &mut record, path, &mut lines)? {
        let line = lines.line_at(record.position().map_or(0, |place| place.byte() as usize));
        let at = |problem| FormatError::new(path, problem).at(format!("line {line}"));
        let Some(columns) = &columns else {
            columns = Some(ReviewColumns::find(&record, &at)?);
            continue;
        };
        let row = columns.row(&record, line, &at)?;
        if let Some(first) = seen.insert(row.file.clone(), line) {
            let problem = format!("{} is already in line {first}", row.file);
            return Err(at(FormatProblem::Content(problem)).hint("keep one row per sample"));
        }
        rows.push(row);
    }
    if columns.is_none() {
        let hint = "write the header `file,label,drawn` and one line per sample";
        return Err(FormatError::content(path, "the review is empty").hint(hint));
    }
    Ok(ReviewFile { path: path.to_owned(), part: String::new(), rows })
}

fn read_limited(path: &Path, limit: u64, hint: &str) -> Result<Vec<u8>, FormatError> {
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(limit).read_to_end(&mut text));
    read.map_err(|error| FormatError::new(path, error))?;
    if text.len() as u64 == limit {
        return Err(FormatError::limit(path, format!("the review is larger than {limit} bytes")).hint(hint));
    }
    Ok(text)
}

impl ReviewColumns {
    fn find(header: &StringRecord, at: &impl Fn(FormatProblem) -> FormatError) -> Result<Self, FormatError> {
        check_separator(header, at)?;
        let find = |wanted: &str| header.iter().position(|name| simplified(name) == wanted);
        let missing = |wanted: &str| {
            let all = header.iter().collect::<Vec<_>>().join(", ");
            let problem = format!("there is no column `{wanted}`; the columns are: {all}");
            at(FormatProblem::Content(problem)).hint("a review has the columns file, label and drawn")
        };
        Ok(Self {
            file: find("file").ok_or_else(|| missing("file"))?,
            label: find("label").ok_or_else(|| missing("label"))?,
            drawn: find("drawn"),
            count: header.len(),
        })
    }

    fn row(
        &self,
        record: &StringRecord,
        line: u64,
        at: &impl Fn(FormatProblem) -> FormatError,
    ) -> Result<ReviewRow, FormatError> {
        if record.len() != self.count {
            let found = counted(record.len() as u64, "field");
            let problem = format!("the row has {found}, but the header has {} columns", self.count);
            let hint = "put fields that contain a comma in double quotes";
            return Err(at(FormatProblem::Content(problem)).hint(hint));
        }
        let file = &record[self.file];
        let label = &record[self.label];
        if file.is_empty() {
            return Err(at(FormatProblem::Content("the row names no sample".into())).hint("remove the row"));
        }
        check_spaces(label, at)?;
        let drawn = self.drawn.map_or("", |drawn| &record[drawn]);
        let drawn = if drawn.is_empty() {
            None
        } else {
            Some(Drawn::parse(drawn).map_err(|problem| at(problem).hint(DRAWN_HINT))?)
        };
        Ok(ReviewRow {
            place: RowPlace::Line(line),
            file: file.strip_prefix("./").unwrap_or(file).to_owned(),
            label: parse_class(label).map_err(at)?,
            drawn,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Vec<ReviewRow>, String> {
        let parsed = parse(Path::new("review.csv"), without_mark(text.as_bytes()));
        parsed.map(|review| review.rows).map_err(|error| error.to_string())
    }

    #[test]
    fn columns_are_found_by_name() {
        let rows = parsed(
            "\u{feff}why,Drawn,label,file,note\r\nx,random,cat,./a.png,\r\ny,skipped,,b.png,\"1,2\"\r\n",
        )
        .unwrap();
        let [a, b] = rows.as_slice() else { panic!("{rows:?}") };
        assert_eq!(
            (a.place, a.file.as_str(), a.label.as_deref(), a.drawn),
            (RowPlace::Line(2), "a.png", Some("cat"), Some(Drawn::Random))
        );
        assert_eq!((b.file.as_str(), b.label.as_deref(), b.drawn), ("b.png", None, Some(Drawn::Skipped)));
        assert!(a.is_reviewed() && b.is_reviewed());
        let rows = parsed("file,label\na.png,\n").unwrap();
        assert_eq!((rows[0].drawn, rows[0].is_reviewed()), (None, false));
    }

    #[test]
    fn mistakes_are_refused_with_their_line() {
        for (text, expected) in [
            ("", "the review is empty"),
            ("file;label;drawn\na.png;cat;random\n", "line 1: columns are separated by ';'"),
            ("name,label\na.png,cat\n", "line 1: there is no column `file`; the columns are: name, label"),
            ("file,given\na.png,cat\n", "line 1: there is no column `label`"),
            ("file,label,drawn\na,b,c,d\n", "line 2: the row has 4 fields, but the header has 3 columns"),
            ("file,label\na.png,cat\n\nb.png,cat \n", "line 4: the label \"cat \" has spaces around it"),
            ("file,label\na.png,cat\n./a.png,dog\n", "line 3: a.png is already in line 2"),
            ("file,label,drawn\na.png,cat,Random\n", "line 2: \"Random\" does not say how a label was drawn"),
            ("file,label\na.png,NaN\n", "line 2: the label is \"NaN\""),
            ("file,label\n,cat\n", "line 2: the row names no sample"),
        ] {
            let problem = parsed(text).unwrap_err();
            assert!(problem.contains(expected), "{text:?}: {problem}");
        }
        let not_text = parse(Path::new("review.csv"), b"file,label\n\xff.png,cat\n").unwrap_err();
        assert!(not_text.to_string().contains("line 2: not UTF-8"), "{not_text}");
    }
}

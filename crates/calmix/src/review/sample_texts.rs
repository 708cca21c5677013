//! The further columns of a list of labels, which a review shows of vectors: a text, an address, a date.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use calmix_formats::labels::columns::{
    LabelColumns, drawn_column, id_column, is_group, label_column, simplified,
};
use csv::StringRecord;

/// The largest list that is read.
const MAX_LIST_BYTES: u64 = 1 << 30;
/// The maximum number of characters of a text on the page.
const MAX_CHARACTERS: usize = 2_000;

/// The texts of samples by their id.
#[derive(Debug, Default)]
pub(crate) struct SampleTexts {
    names: Vec<String>,
    by_id: HashMap<String, Vec<String>>,
}

impl SampleTexts {
    /// Reads the further columns of a CSV with ids; none if it has no ids, or cannot be read: the list was read before, and the
    /// texts are shown only for convenience.
    pub(crate) fn read(list: &Path, columns: &LabelColumns) -> Self {
        let mut text = String::new();
        let read = File::open(list).and_then(|file| file.take(MAX_LIST_BYTES).read_to_string(&mut text));
        if read.is_err() {
            return Self::default();
        }
        Self::parse(text.strip_prefix('\u{feff}').unwrap_or(&text), columns).unwrap_or_default()
    }

    fn parse(text: &str, columns: &LabelColumns) -> Option<Self> {
        let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
        let header = reader.headers().ok()?.clone();
        let id = id_column(&header, columns).ok()??;
        let label = label_column(&header, columns).ok()?;
        let is_text = |column: &usize| {
            let name = &header[*column];
            let is_known = *column == id || Some(*column) == label || Some(*column) == drawn_column(&header);
            !is_known && !is_group(name) && !["split", "date"].contains(&simplified(name).as_str())
        };
        let shown: Vec<usize> = (0..header.len()).filter(is_text).collect();
        let names = shown.iter().map(|&column| header[column].to_owned()).collect();
        let mut by_id = HashMap::new();
        let mut record = StringRecord::new();
        while reader.read_record(&mut record).ok()? {
            let texts = shown.iter().map(|&column| short(record.get(column).unwrap_or_default()));
            by_id.insert(record.get(id).unwrap_or_default().trim().to_owned(), texts.collect());
        }
        Some(Self { names, by_id })
    }

    /// Returns the columns of a sample that are not empty, each with its name.
    pub(crate) fn of(&self, id: &str) -> Vec<(String, String)> {
        let texts = self.by_id.get(id).map(Vec::as_slice).unwrap_or_default();
        let named = self.names.iter().cloned().zip(texts.iter().cloned());
        named.filter(|(_, text)| !text.is_empty()).collect()
    }
}

fn short(text: &str) -> String {
    let mut short: String = text.chars().take(MAX_CHARACTERS).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_columns_are_shown_by_id() {
        let list =
            "id,label,Text,group,drawn,date,source\nx1,a,\"one, two\",g,random,2026-01-01,web\nx2,,,,,,\n";
        let texts = SampleTexts::parse(list, &LabelColumns::default()).unwrap();
        let expected = [("Text", "one, two"), ("source", "web")];
        assert_eq!(texts.of("x1"), expected.map(|(name, text)| (name.to_owned(), text.to_owned())));
        assert_eq!(texts.of("x2"), []);
        assert_eq!(texts.of("x3"), []);
        assert!(SampleTexts::parse("label\na\n", &LabelColumns::default()).is_none());
    }
}

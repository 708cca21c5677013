//! Rows of predictions as a Parquet file, written by Apache's crate `parquet`: with dictionaries, zstd, statistics and a page
//! index, which let readers load a part of the table.
//!
//! The feature `arrow` is off: column writers are enough for ten columns of three types. The crate writes no checksums of pages;
//! the hash of every file is in the list beside its folder.

use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, FloatType};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::row::{PredictedRow, RowFormat};

/// The maximum number of rows per row group; readers skip groups by their statistics.
const GROUP_ROWS: usize = 10_000;
/// The size in memory at which a row group ends, however few rows it has.
const GROUP_BYTES: usize = 64 << 20;
/// The number of rows per page; readers skip pages by the page index. The writer ends pages at multiples of 1,024 rows.
const PAGE_ROWS: usize = 2_048;
/// The maximum length of texts in statistics. Paths often share their first hundred bytes.
const STATISTICS_BYTES: usize = 256;

/// The columns after the one that names the input.
const COLUMNS: &str = "
    optional binary label (STRING);
    optional float confidence;
    optional float margin;
    optional group set (LIST) { repeated group list { required binary element (STRING); } }
    optional boolean abstain;
    optional binary error (STRING);
";
const UNUSUAL: &str = "optional float unusual;";
const PROBABILITIES: &str =
    "optional group probabilities (LIST) { repeated group list { required float element; } }";
const FEATURES: &str = "optional group features (LIST) { repeated group list { required float element; } }";

/// A Parquet file in memory, which grows row by row.
#[derive(Debug)]
pub(crate) struct ParquetRows {
    writer: SerializedFileWriter<Vec<u8>>,
    classes: Vec<ByteArray>,
    group: RowGroup,
    has_unusual: bool,
    has_probabilities: bool,
    has_features: bool,
}

/// The rows that are not written yet, column by column.
#[derive(Debug, Default)]
struct RowGroup {
    rows: usize,
    /// The total length of the names and errors in bytes.
    text_bytes: usize,
    name: ParquetColumn<ByteArray>,
    label: ParquetColumn<ByteArray>,
    confidence: ParquetColumn<f32>,
    margin: ParquetColumn<f32>,
    set: ParquetColumn<ByteArray>,
    abstain: ParquetColumn<bool>,
    error: ParquetColumn<ByteArray>,
    unusual: ParquetColumn<f32>,
    probabilities: ParquetColumn<f32>,
    features: ParquetColumn<f32>,
}

/// A column as Dremel levels and the values that are present.
#[derive(Debug, Default)]
struct ParquetColumn<T> {
    values: Vec<T>,
    /// The definition level of each entry: 0 is null; in lists, 1 is an empty list. Empty in a column without nulls.
    definitions: Vec<i16>,
    /// The repetition level of each entry of a list: 1 if it continues the list of the previous entry, otherwise 0.
    repetitions: Vec<i16>,
}

impl<T> ParquetColumn<T> {
    fn push(&mut self, value: Option<T>) {
        self.definitions.push(value.is_some().into());
        self.values.extend(value);
    }

    fn push_list(&mut self, values: Option<impl Iterator<Item = T>>) {
        let is_there = values.is_some();
        let before = self.values.len();
        self.values.extend(values.into_iter().flatten());
        let length = self.values.len() - before;
        // A list without values has one entry, too.
        self.repetitions.push(0);
        self.repetitions.extend(std::iter::repeat_n(1, length.saturating_sub(1)));
        if length == 0 {
            self.definitions.push(is_there.into());
        } else {
            self.definitions.extend(std::iter::repeat_n(2, length));
        }
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.values) + size_of_val(&*self.definitions) + size_of_val(&*self.repetitions)
    }
}

impl ParquetRows {
    pub(crate) fn new(format: &RowFormat<'_>) -> Result<Self> {
        let probabilities = if format.probabilities { PROBABILITIES } else { "" };
        let features = if format.features { FEATURES } else { "" };
        let unusual = if format.unusual { UNUSUAL } else { "" };
        let schema = parse_message_type(&format!(
            "message schema {{ required binary {} (STRING); {COLUMNS} {unusual} {probabilities} {features} }}",
            format.input.column()
        ))?;
        let classes = format.classes.iter().map(|class| ByteArray::from(class.as_str())).collect();
        Ok(Self {
            writer: SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties(format)))?,
            classes,
            group: RowGroup::default(),
            has_unusual: format.unusual,
            has_probabilities: format.probabilities,
            has_features: format.features,
        })
    }

    pub(crate) fn add(&mut self, row: &PredictedRow<'_>) -> Result<()> {
        let Self { classes, group, .. } = self;
        // A class is in many rows; they share its bytes.
        let class = |class: usize| classes.get(class).cloned().unwrap_or_else(|| ByteArray::from(""));
        let prediction = row.prediction;
        let set = prediction.and_then(|prediction| prediction.set.as_ref());
        group.rows += 1;
        group.text_bytes += row.name.len() + row.error.as_ref().map_or(0, String::len);
        group.name.values.push(ByteArray::from(row.name.as_str()));
        group.label.push(prediction.map(|prediction| class(prediction.label)));
        group.confidence.push(prediction.map(|prediction| prediction.confidence));
        group.margin.push(prediction.map(|prediction| prediction.margin));
        group.set.push_list(set.map(|set| set.iter().map(|&member| class(member as usize))));
        group.abstain.push(prediction.and_then(|prediction| prediction.abstain));
        group.error.push(row.error.as_deref().map(ByteArray::from));
        if self.has_unusual {
            group.unusual.push(row.observed.map(|observed| observed.p_value as f32));
        }
        if self.has_probabilities {
            group
                .probabilities
                .push_list(prediction.map(|prediction| prediction.probabilities.iter().copied()));
        }
        if self.has_features {
            group.features.push_list(row.features.map(|features| features.iter().copied()));
        }
        if group.rows >= GROUP_ROWS || group.bytes() >= GROUP_BYTES { self.end_group() } else { Ok(()) }
    }

    /// Returns the size of the file so far in bytes, without its last row group.
    pub(crate) fn bytes(&self) -> usize {
        self.writer.bytes_written()
    }

    /// Ends the file and returns its bytes.
    pub(crate) fn finish(mut self) -> Result<Vec<u8>> {
        if self.group.rows > 0 {
            self.end_group()?;
        }
        self.writer.into_inner()
    }

    fn end_group(&mut self) -> Result<()> {
        let group = std::mem::take(&mut self.group);
        let mut writer = self.writer.next_row_group()?;
        write_column::<ByteArrayType>(&mut writer, &group.name)?;
        write_column::<ByteArrayType>(&mut writer, &group.label)?;
        write_column::<FloatType>(&mut writer, &group.confidence)?;
        write_column::<FloatType>(&mut writer, &group.margin)?;
        write_column::<ByteArrayType>(&mut writer, &group.set)?;
        write_column::<BoolType>(&mut writer, &group.abstain)?;
        write_column::<ByteArrayType>(&mut writer, &group.error)?;
        if self.has_unusual {
            write_column::<FloatType>(&mut writer, &group.unusual)?;
        }
        if self.has_probabilities {
            write_column::<FloatType>(&mut writer, &group.probabilities)?;
        }
        if self.has_features {
            write_column::<FloatType>(&mut writer, &group.features)?;
        }
        writer.close()?;
        Ok(())
    }
}

impl RowGroup {
    /// Returns the size in memory in bytes.
    fn bytes(&self) -> usize {
        let texts = [&self.name, &self.label, &self.set, &self.error].map(ParquetColumn::bytes);
        let numbers = [&self.confidence, &self.margin, &self.unusual, &self.probabilities, &self.features];
        let numbers = numbers.map(ParquetColumn::bytes);
        self.text_bytes + texts.iter().chain(&numbers).sum::<usize>() + self.abstain.bytes()
    }
}

fn write_column<D: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    column: &ParquetColumn<D::T>,
) -> Result<()> {
    let writer = group.next_column()?;
    let mut writer =
        writer.ok_or_else(|| ParquetError::General("the schema has fewer columns".to_owned()))?;
    let definitions = (!column.definitions.is_empty()).then_some(&*column.definitions);
    let repetitions = (!column.repetitions.is_empty()).then_some(&*column.repetitions);
    writer.typed::<D>().write_batch(&column.values, definitions, repetitions)?;
    writer.close()
}

/// Returns how files are written. Nothing varies with machine or time: the same rows give the same bytes.
fn properties(format: &RowFormat<'_>) -> WriterProperties {
    let classes = serde_json::Value::from(format.classes).to_string();
    WriterProperties::builder()
        .set_created_by(concat!("calmix version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(vec![KeyValue::new("calmix.classes".to_owned(), classes)]))
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        // Only classes repeat: a dictionary of paths or probabilities would be as long as the column. Delta and byte-stream
        // encodings would save only 4 and 7% of a table without probabilities, and fewer readers support them.
        .set_dictionary_enabled(false)
        .set_column_dictionary_enabled("label".into(), true)
        .set_column_dictionary_enabled(
            vec!["set".to_owned(), "list".to_owned(), "element".to_owned()].into(),
            true,
        )
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_statistics_truncate_length(Some(STATISTICS_BYTES))
        .set_column_index_truncate_length(Some(STATISTICS_BYTES))
        .build()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use parquet::basic::Encoding;
    use parquet::file::metadata::ColumnChunkMetaData;
    use parquet::file::page_index::column_index::ColumnIndexMetaData;
    use parquet::file::reader::FileReader;
    use parquet::file::serialized_reader::{ReadOptionsBuilder, SerializedFileReader};
    use parquet::file::statistics::Statistics;

    use super::*;
    use crate::predict::prediction_rule::Prediction;

    /// Writes rows of two classes, of which those from `first` on abstain.
    fn file(rows: usize, first: usize) -> Vec<u8> {
        let classes = ["cat".to_owned(), "dog".to_owned()];
        let format = RowFormat { classes: &classes, probabilities: true, ..RowFormat::default() };
        let mut file = ParquetRows::new(&format).unwrap();
        for row in 0..rows {
            let prediction = Prediction {
                label: row % 2,
                confidence: 0.75,
                margin: 0.5,
                probabilities: vec![0.25, 0.75],
                set: Some(vec![1, 0]),
                abstain: Some(row >= first),
            };
            let name = format!("{row:06}.png");
            let image = PredictedRow { name, prediction: Some(&prediction), ..PredictedRow::default() };
            file.add(&image).unwrap();
        }
        file.finish().unwrap()
    }

    /// A query for the rows that abstain needs one of three row groups, and of that one a page.
    #[test]
    fn statistics_find_the_rows_that_abstain() {
        let rows = 2 * GROUP_ROWS + 3 * PAGE_ROWS;
        let bytes = file(rows, rows - 1);
        assert!(bytes == file(rows, rows - 1), "the same rows have other bytes");
        let mut written = tempfile::tempfile().unwrap();
        written.write_all(&bytes).unwrap();
        let options = ReadOptionsBuilder::new().with_page_index().build();
        let reader = SerializedFileReader::new_with_options(written, options).unwrap();
        let metadata = reader.metadata();
        let abstain = |group: usize| match metadata.row_group(group).column(5).statistics() {
            Some(Statistics::Boolean(found)) => (found.min_opt().copied(), found.max_opt().copied()),
            other => panic!("{other:?}"),
        };
        let never = (Some(false), Some(false));
        assert_eq!([0, 1, 2].map(abstain), [never, never, (Some(false), Some(true))]);
        let pages = metadata.page_index_for_row_group(2);
        let Some(ColumnIndexMetaData::BOOLEAN(pages)) = pages.column_index(5) else {
            panic!("no page index")
        };
        assert_eq!(pages.max_values(), [false, false, true]);

        let columns = metadata.row_group(0).columns();
        let has_dictionary = |column: &ColumnChunkMetaData| {
            column.dictionary_page_offset().is_some()
                && column.encodings().any(|encoding| encoding == Encoding::RLE_DICTIONARY)
        };
        let with_dictionary: Vec<_> = columns.iter().map(has_dictionary).collect();
        assert_eq!(with_dictionary, [false, true, false, false, true, false, false, false]);
        assert!(columns.iter().all(|column| matches!(column.compression(), Compression::ZSTD(_))));
        let counts = metadata.row_groups().iter().map(|group| group.num_rows() as usize);
        assert_eq!(counts.collect::<Vec<_>>(), [GROUP_ROWS, GROUP_ROWS, 3 * PAGE_ROWS]);
    }

    #[test]
    fn no_row_group_is_empty() {
        let groups = |rows| {
            let mut written = tempfile::tempfile().unwrap();
            written.write_all(&file(rows, 0)).unwrap();
            SerializedFileReader::new(written).unwrap().metadata().num_row_groups()
        };
        assert_eq!([0, 1, GROUP_ROWS, GROUP_ROWS + 1].map(groups), [0, 1, 1, 2]);
    }

    /// Long paths, or many numbers with two levels each, fill the memory before the rows do.
    #[test]
    fn row_groups_end_by_their_bytes() {
        let classes = ["cat".to_owned()];
        let format = RowFormat { classes: &classes, features: true, ..RowFormat::default() };
        let features = vec![0.0; 1 << 18];
        let path = "a".repeat(1 << 20);
        for (name, features, row_bytes) in [(path.as_str(), None, 1 << 20), ("a", Some(&*features), 8 << 18)]
        {
            let mut file = ParquetRows::new(&format).unwrap();
            let image = PredictedRow { name: name.to_owned(), features, ..PredictedRow::default() };
            let start = file.bytes();
            for _ in 0..GROUP_BYTES / row_bytes {
                assert_eq!(file.bytes(), start);
                file.add(&image).unwrap();
            }
            assert!(file.bytes() > start, "{} rows wait in memory", file.group.rows);
            assert_eq!(file.group.rows, 0);
        }
    }

    /// Null, a list of two, an empty one, null.
    #[test]
    fn lists_are_levels() {
        let mut column = ParquetColumn::default();
        let null = None::<std::array::IntoIter<char, 0>>;
        column.push_list(null.clone());
        column.push_list(Some(['a', 'b'].into_iter()));
        column.push_list(Some([].into_iter()));
        column.push_list(null);
        assert_eq!(column.repetitions, [0, 0, 1, 0, 0]);
        assert_eq!(column.definitions, [0, 2, 2, 1, 0]);
        assert_eq!(column.values, ['a', 'b']);
    }
}

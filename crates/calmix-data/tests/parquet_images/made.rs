//! Parquet files of images, sound and hostile, written without pyarrow.

use std::sync::Arc;

use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

/// Hugging Face's columns, without the paths.
pub(crate) const HUB: &str =
    "message schema { optional group image { optional binary bytes; } optional int64 label; }";

/// The values of a column, with a definition level for each row: less than the highest one where the value is missing.
pub(crate) enum Column<'a> {
    Bytes(&'a [i16], &'a [&'a [u8]]),
    Whole(&'a [i16], &'a [i64]),
}

/// A file of one row group.
pub(crate) fn file(schema: &str, columns: &[Column<'_>], metadata: &[(&str, &str)]) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let pairs = metadata.iter().map(|(key, value)| KeyValue::new((*key).to_owned(), (*value).to_owned()));
    let properties = WriterProperties::builder().set_key_value_metadata(Some(pairs.collect())).build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for column in columns {
        let mut open = group.next_column().unwrap().unwrap();
        match column {
            Column::Bytes(levels, values) => {
                let values: Vec<ByteArray> = values.iter().map(|value| value.to_vec().into()).collect();
                open.typed::<ByteArrayType>().write_batch(&values, Some(levels), None).unwrap();
            }
            Column::Whole(levels, values) => {
                open.typed::<Int64Type>().write_batch(values, Some(levels), None).unwrap();
            }
        }
        open.close().unwrap();
    }
    group.close().unwrap();
    writer.into_inner().unwrap()
}

/// A file with Hugging Face's columns and metadata.
pub(crate) fn hub(images: &[&[u8]], labels: &[Option<i64>], names: &[&str]) -> Vec<u8> {
    let label_levels: Vec<i16> = labels.iter().map(|label| label.is_some().into()).collect();
    let labels: Vec<i64> = labels.iter().copied().flatten().collect();
    let image_levels = vec![2; images.len()];
    let columns = [Column::Bytes(&image_levels, images), Column::Whole(&label_levels, &labels)];
    file(HUB, &columns, &[("huggingface", &metadata(names))])
}

/// The metadata of Hugging Face for these classes.
pub(crate) fn metadata(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    format!(r#"{{"info": {{"features": {{"label": {{"names": [{}]}}}}}}}}"#, names.join(", "))
}

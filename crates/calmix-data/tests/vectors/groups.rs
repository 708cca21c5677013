//! Groups of vectors: in the file of their labels, or in their own file.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use calmix_data::error::DataError;
use parquet::data_type::{ByteArray, ByteArrayType, FloatType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::same::prepared;

/// The vectors in this file, in groups by their first number, with labels in a list of this text.
fn groups_of(name: &str, vectors: &[u8], labels: Option<&str>) -> Result<Vec<(f32, Option<u32>)>, DataError> {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join(name);
    fs::write(&root, vectors).unwrap();
    let list = folder.path().join("labels.csv");
    if let Some(labels) = labels {
        fs::write(&list, labels).unwrap();
    }
    let list: Option<&Path> = labels.map(|_| list.as_path());
    let (dataset, _) = prepared(&root, list, &folder.path().join("prepared"))?;
    dataset.verify()?;
    let mut groups = Vec::new();
    for id in 0..dataset.len() {
        let mut numbers = Vec::new();
        dataset.vector(id, &mut numbers)?;
        groups.push((numbers[0], dataset.group(id)?));
    }
    Ok(groups)
}

const OWN: &[u8] = b"id,x_0,x_1,group,label\na,0,1,p,cat\nb,1,1,,dog\nc,2,1,p,\nd,3,1,q,cat\ne,4,1,q,\n";

#[test]
fn group_column_of_the_vectors_is_read() {
    // The labelled rows come first.
    let expected = [(0.0, Some(0)), (1.0, None), (3.0, Some(1)), (2.0, Some(0)), (4.0, Some(1))];
    assert_eq!(groups_of("own.csv", OWN, None).unwrap(), expected);
    // A list without groups leaves those of the vectors.
    let list = "id,label\nb,cat\na,dog\n";
    let expected = [(0.0, Some(0)), (1.0, None), (2.0, Some(0)), (3.0, Some(1)), (4.0, Some(1))];
    assert_eq!(groups_of("own.csv", OWN, Some(list)).unwrap(), expected);
}

#[test]
fn group_column_of_the_list_is_read() {
    let by_id = "id,label,group\nb,cat,9\na,dog,9\ne,,9\n";
    let expected = [(0.0, Some(0)), (1.0, Some(0)), (2.0, None), (3.0, None), (4.0, Some(0))];
    assert_eq!(groups_of("own.csv", OWN, Some(by_id)).unwrap(), expected);
    let in_order = "Group,label\nu,cat\n\nu,dog\nv,\nv,dog\n";
    let expected = [(0.0, Some(0)), (2.0, Some(0)), (4.0, Some(1)), (1.0, None), (3.0, Some(1))];
    assert_eq!(groups_of("own.csv", OWN, Some(in_order)).unwrap(), expected);
}

#[test]
fn unusable_groups_name_their_line() {
    let own = b"x_0,x_1,group,label\n0,1,p,cat\n1,1,NaN,dog\n";
    let own = groups_of("own.csv", own, None).unwrap_err().to_string();
    assert!(own.contains("own.csv, line 3: the group is \"NaN\", which may stand for a missing"), "{own}");
    let long = format!("label,group\ncat,{}\ndog,\n", "x".repeat(2_000));
    for (list, expected) in [
        ("label,group\ncat,\ndog,-1\n", "labels.csv, line 3: the group is \"-1\""),
        (
            "label,group,GROUP\ncat,a,b\ndog,a,b\n",
            "labels.csv, line 1: `group` and `GROUP` both name the group",
        ),
        (&long, "labels.csv, line 2: the name of the group has 2000 bytes"),
    ] {
        let error = groups_of("own.csv", b"x_0,x_1\n0,1\n1,1\n", Some(list)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// Three vectors of two numbers in Parquet, with labels and a column of groups.
fn parquet(group: &str, write: impl Fn(&mut parquet::file::writer::SerializedColumnWriter<'_>)) -> Vec<u8> {
    let schema = format!(
        "message schema {{ required group embedding (LIST) {{ repeated group list {{ required float element; }} }} \
         required int64 label; {group} }}"
    );
    let schema = Arc::new(parse_message_type(&schema).unwrap());
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties).unwrap();
    let mut rows = writer.next_row_group().unwrap();
    let mut column = rows.next_column().unwrap().unwrap();
    let numbers = [0.0, 1.0, 1.0, 1.0, 2.0, 1.0];
    column.typed::<FloatType>().write_batch(&numbers, Some(&[1; 6]), Some(&[0, 1, 0, 1, 0, 1])).unwrap();
    column.close().unwrap();
    let mut column = rows.next_column().unwrap().unwrap();
    column.typed::<Int64Type>().write_batch(&[0, 1, 0], None, None).unwrap();
    column.close().unwrap();
    let mut column = rows.next_column().unwrap().unwrap();
    write(&mut column);
    column.close().unwrap();
    rows.close().unwrap();
    writer.into_inner().unwrap()
}

#[test]
fn group_column_of_parquet_is_read() {
    let expected = [(0.0, Some(0)), (1.0, None), (2.0, Some(0))];
    let text = parquet("optional binary group (UTF8);", |column| {
        let values: Vec<ByteArray> = vec!["p".into(), "p".into()];
        column.typed::<ByteArrayType>().write_batch(&values, Some(&[1, 0, 1]), None).unwrap();
    });
    assert_eq!(groups_of("v.parquet", &text, None).unwrap(), expected);
    let whole = parquet("optional int64 group;", |column| {
        column.typed::<Int64Type>().write_batch(&[3, 3], Some(&[1, 0, 1]), None).unwrap();
    });
    assert_eq!(groups_of("v.parquet", &whole, None).unwrap(), expected);
    let float = parquet("optional float group;", |column| {
        column.typed::<FloatType>().write_batch(&[0.5, 0.5], Some(&[1, 0, 1]), None).unwrap();
    });
    let error = groups_of("v.parquet", &float, None).unwrap_err().to_string();
    assert!(error.contains("v.parquet: the column `group` names the groups, but holds neither"), "{error}");
    let missing = parquet("optional int64 group;", |column| {
        column.typed::<Int64Type>().write_batch(&[3, -1], Some(&[1, 0, 1]), None).unwrap();
    });
    let error = groups_of("v.parquet", &missing, None).unwrap_err().to_string();
    assert!(error.contains("v.parquet, row 2: the group is \"-1\""), "{error}");
}

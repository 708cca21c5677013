//! Labels of vectors from a file of their own.

use std::fs;

use calmix_data::dataset::Dataset;
use calmix_data::error::DataError;
use calmix_data::source::labels_csv::LabelColumns;
use calmix_data::source::vectors;
use calmix_data::vectors::VectorOptions;

use crate::same::{golden, prepared};

/// A subset and its number of rows.
type Count = (String, u64);

/// Prepares golden vectors with labels from a CSV of this text; returns classes and subsets.
fn with_csv(name: &str, text: &str) -> Result<(Vec<String>, Vec<Count>), DataError> {
    let folder = tempfile::tempdir().unwrap();
    let labels = folder.path().join("labels.csv");
    fs::write(&labels, text).unwrap();
    let (dataset, _) = prepared(&golden(name), Some(&labels), &folder.path().join("prepared"))?;
    let subsets = dataset.header().subsets.iter().map(|subset| (subset.name.clone(), subset.count)).collect();
    Ok((dataset.classes().to_vec(), subsets))
}

fn counts(subsets: &[(&str, u64)]) -> Vec<Count> {
    subsets.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

#[test]
fn ids_match_lines_to_rows() {
    let text = "file,label,split\nphotos/07.jpg,dog,train\nphotos/01.jpg,cat,\nphotos/02.jpg,cat,test\n\
                photos/03.jpg,dog,validation\nphotos/04.jpg,,val\nphotos/05.jpg,dog,unlabelled\n";
    let (classes, subsets) = with_csv("snappy.parquet", text).unwrap();
    assert_eq!(classes, ["cat", "dog"]);
    assert_eq!(subsets, counts(&[("train", 2), ("unlabelled", 46), ("val", 1), ("test", 1)]));
}

#[test]
fn numbers_match_lines_to_rows_without_ids() {
    let (classes, subsets) = with_csv("f4.npy", "row,class\n49,b\n0,a\n1,-1\n").unwrap();
    assert_eq!(classes, ["a", "b"]);
    assert_eq!(subsets, counts(&[("train", 2), ("unlabelled", 48)]));
}

#[test]
fn lines_without_ids_are_in_order() {
    let lines = ["0\n1\n2\n"; 17].concat().replacen("2\n", "", 1);
    let (classes, subsets) = with_csv("f4.npy", &format!("anything\n{lines}")).unwrap();
    assert_eq!((classes, subsets), (vec!["0".into(), "1".into(), "2".into()], counts(&[("train", 50)])));
}

#[test]
fn named_columns_are_those_of_the_list() {
    let folder = tempfile::tempdir().unwrap();
    let labels = folder.path().join("list.csv");
    fs::write(&labels, "photo,species\nphotos/01.jpg,oak\nphotos/02.jpg,elm\n").unwrap();
    let columns = LabelColumns { path: Some("photo".into()), label: Some("species".into()) };
    let options = VectorOptions { vector_column: None, columns };
    let target = folder.path().join("prepared");
    vectors::prepare(&golden("snappy.parquet"), &target, Some(&labels), &options, None).unwrap();
    let dataset = Dataset::open(&target, &golden("snappy.parquet")).unwrap();
    assert_eq!(dataset.classes(), ["elm", "oak"]);
    assert_eq!(dataset.sample_name(0).unwrap(), "snappy.parquet[1]");
}

#[test]
fn labels_that_contradict_the_vectors_are_refused() {
    for (name, text, expected) in [
        ("f4.npy", "label\na\nb\n", "2 labels for 50 rows"),
        ("f4.npy", "id,label\n50,a\n", "line 2: no row of vectors has the id \"50\""),
        ("f4.npy", "file,label\na.jpg,a\n", "row numbers from 0"),
        ("snappy.parquet", "id,label\nphotos/00.jpg,a\nphotos/00.jpg,b\n", "line 3: the id"),
        ("f4.npy", "id,label,split\n0,a,training set\n", "line 2: there is no split"),
        ("f4.npy", "id;label\n0;a\n", "separated by ';'"),
        ("f4.npy", "id,note\n0,a\n", "no column holds the label"),
        ("f4.npy", "id,label\n0,a,b\n", "line 2"),
        ("f4.npy", "", "the list is empty"),
    ] {
        let error = with_csv(name, text).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("labels.csv"), "{error}");
    }
}

#[test]
fn duplicates_zeros_and_constant_columns_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("v.csv");
    fs::write(&path, "x0,x1,x2,label\n1,2,5,a\n3,2,5,b\n0,0,5,b\n0,0,0,a\n1,2,5,b\n").unwrap();
    let labels = folder.path().join("split.csv");
    fs::write(&labels, "label,split\na,train\nb,train\nb,train\na,train\nb,test\n").unwrap();
    let (_, warnings) = prepared(&path, Some(&labels), &folder.path().join("prepared")).unwrap();
    let all = warnings.join("\n");
    for expected in [
        "1 vector is all zeros, the first is v.csv[3]",
        "in two subsets: v.csv[0] = v.csv[4]",
        "under two labels: v.csv[0] = v.csv[4]",
    ] {
        assert!(all.contains(expected), "{all}");
    }
    fs::write(&path, "x0,x1,x2,label\n1,2,5,a\n3,2,5,b\n").unwrap();
    let (_, warnings) = prepared(&path, None, &folder.path().join("again")).unwrap();
    assert!(
        warnings.join("\n").contains("2 of 3 columns have the same number in all samples"),
        "{warnings:?}"
    );
}

//! Labels of vectors from a file of their own.

use std::fs;

use calmix_data::dataset::Dataset;
use calmix_data::error::DataError;
use calmix_data::source::vectors;
use calmix_formats::labels::columns::LabelColumns;
use calmix_formats::vectors::VectorOptions;

use super::same::{golden, prepared};

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

/// The class of each row of `f4.npy`, in the order of the file; −1 for none.
fn labels_by_row(text: &str) -> Result<Vec<String>, DataError> {
    let folder = tempfile::tempdir().unwrap();
    let labels = folder.path().join("labels.csv");
    fs::write(&labels, text).unwrap();
    let (dataset, _) = prepared(&golden("f4.npy"), Some(&labels), &folder.path().join("prepared"))?;
    let mut by_row = vec![String::from("missing"); 50];
    for record in dataset.records(0..dataset.len()) {
        let (id, record) = record.unwrap();
        let name = dataset.sample_name(id).unwrap();
        let row: usize = name.trim_start_matches("f4.npy[").trim_end_matches(']').parse().unwrap();
        let class = record.class().map(|class| dataset.classes()[class as usize].clone());
        by_row[row] = class.unwrap_or_else(|| "-1".to_owned());
    }
    Ok(by_row)
}

/// Lines of labels for 50 rows: every fifth has one, and the last two have none.
fn sparse_lines() -> Vec<&'static str> {
    (0..50).map(|row| if row % 5 == 0 { ["cat", "dog"][row / 5 % 2] } else { "" }).collect()
}

#[test]
fn empty_lines_are_unlabelled_rows() {
    let lines = sparse_lines();
    let expected: Vec<String> =
        lines.iter().map(|line| if line.is_empty() { "-1" } else { line }.to_owned()).collect();
    for end in ["\n", "\r\n", "\r"] {
        let all = lines.join(end) + end;
        assert_eq!(labels_by_row(&format!("label{end}{all}")).unwrap(), expected, "{end:?}");
        assert_eq!(labels_by_row(&format!("\u{feff}{end}label{end}{all}")).unwrap(), expected, "{end:?}");
        let quoted = format!("\"{}\"{end}", lines.join(&format!("\"{end}\"")));
        assert_eq!(labels_by_row(&format!("label{end}{quoted}")).unwrap(), expected, "{end:?}");
        let last_is_open = quoted.trim_end_matches(['\r', '\n']);
        assert_eq!(labels_by_row(&format!("label{end}{last_is_open}")).unwrap(), expected, "{end:?}");
        // More columns: empty lines, and lines with empty fields.
        for blank in ["", ",,"] {
            let line = |line: &&str| match *line {
                "" => format!("{blank}{end}"),
                label => format!("\"a note,{end}in two lines\",{label},train{end}"),
            };
            let all: String = lines.iter().map(line).collect();
            let text = format!("note,label,split{end}{all}");
            assert_eq!(labels_by_row(&text).unwrap(), expected, "{end:?} {blank:?}");
        }
    }
    // With ids an empty line names no row.
    let by_id = "id,label\n0,cat\n\n\n5,dog\n\n";
    let (_, subsets) = with_csv("f4.npy", by_id).unwrap();
    assert_eq!(subsets, counts(&[("train", 2), ("unlabelled", 48)]));
}

#[test]
fn surplus_lines_never_shift_labels() {
    let lines = sparse_lines();
    let all = lines.join("\n") + "\n";
    for (text, expected) in [
        // The last row is unlabelled, and its line has no line end: indistinguishable from a row that is missing.
        (
            format!("label\n{}", lines.join("\n")),
            "49 lines of labels after the header for 50 rows of vectors: row 49",
        ),
        (format!("label\n{}", lines.join("\n")), "needs a line end of its own"),
        (format!("label\n{all}\n"), "51 lines of labels after the header for 50 rows of vectors: line 52 is"),
        (format!("label\n{all}\n\n"), "remove the last 2 empty lines"),
        (format!("label\n{all}cat\n"), "line 52 is the first without a row"),
        // As many surplus lines as empty ones, which were skipped once.
        (format!("label\n{all}{}", "dog\n".repeat(40)), "90 lines of labels after the header for 50 rows"),
        (all.clone(), "49 lines of labels after the header for 50 rows"),
        (all.clone(), "line 1, `cat`, was read as the header: if it is a label, add a first line `label`"),
        (format!("{}cat\n", &all[4..]), "line 5, `dog`, was read as the header"),
        (format!("{all}\n"), "line 1, `cat`, is read as the header, but it is also the label of line 11"),
        ("0,cat\n1,dog\n".to_owned(), "if the header line is missing, add it, such as id,label"),
        ("label\ncat\n\n\n".to_owned(), "3 lines of labels after the header for 50 rows of vectors: row 3"),
    ] {
        let error = labels_by_row(&text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn missing_values_are_not_classes() {
    for word in ["NaN", "nan", "<NA>"] {
        let lines = sparse_lines().join("\n").replace("\n\n", &format!("\n{word}\n"));
        let error = labels_by_row(&format!("label\n{lines}\n")).unwrap_err().to_string();
        let expected = format!("line 3: the label is {word:?}, which stands for a missing value");
        assert!(error.contains(&expected) && error.contains("leave it empty"), "{error}");
    }
    // A word that may be a class is one, with a warning.
    let folder = tempfile::tempdir().unwrap();
    let labels = folder.path().join("labels.csv");
    fs::write(&labels, format!("id,label\n{}", "0,a\n1,None\n2,a\n3,None\n4,a\n5,None\n")).unwrap();
    let target = folder.path().join("prepared");
    let (dataset, warnings) = prepared(&golden("f4.npy"), Some(&labels), &target).unwrap();
    assert_eq!(dataset.classes(), ["None", "a"]);
    let all = warnings.join("\n");
    assert!(all.contains("3 samples have the class `None`; if it means that the label is missing"), "{all}");
}

#[test]
fn long_class_names_are_refused() {
    let name = "x".repeat(100_000);
    let error = with_csv("f4.npy", &format!("id,label\n0,cat\n1,{name}\n")).unwrap_err().to_string();
    assert!(error.contains("line 3: the class name \"xxx"), "{error}");
    assert!(error.contains("has 100000 bytes, expected at most 1024") && error.len() < 500, "{error}");
}

#[test]
fn named_columns_are_those_of_the_list() {
    let folder = tempfile::tempdir().unwrap();
    let labels = folder.path().join("list.csv");
    fs::write(&labels, "photo,species\nphotos/01.jpg,oak\nphotos/02.jpg,elm\n").unwrap();
    let columns = LabelColumns { path: Some("photo".into()), label: Some("species".into()) };
    let options = VectorOptions { vector_column: None, columns };
    let target = folder.path().join("prepared");
    vectors::prepare(&[golden("snappy.parquet")], &target, Some(&labels), &options, None).unwrap();
    let dataset = Dataset::open(&target, &golden("snappy.parquet")).unwrap();
    assert_eq!(dataset.classes(), ["elm", "oak"]);
    assert_eq!(dataset.sample_name(0).unwrap(), "snappy.parquet[1]");
}

#[test]
fn labels_that_contradict_the_vectors_are_refused() {
    for (name, text, expected) in [
        ("f4.npy", "label\na\nb\n", "2 lines of labels after the header for 50 rows"),
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
    let all = warnings.join("\n");
    assert!(all.contains("2 of 3 columns have the same number in all samples"), "{all}");
}

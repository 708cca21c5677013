//! Several sets of features of the same samples.

use std::fs;
use std::path::Path;

use calmix_data::dataset::Dataset;
use calmix_data::error::DataError;
use calmix_data::prepare::prepare;
use calmix_data::source::SourceSpec;
use calmix_formats::labels::columns::LabelColumns;

fn prepared(folder: &Path, first: &str, more: &[&str], name: &str) -> Result<Dataset, DataError> {
    let place = |file: &str| folder.join(file).display().to_string();
    let source = SourceSpec::Vectors {
        labels: None,
        more_features: more.iter().map(|file| place(file)).collect(),
        vector_column: None,
        columns: LabelColumns::default(),
    };
    let target = folder.join(name);
    prepare(&source, &folder.join(first), &target)?;
    Dataset::open(&target, &folder.join(first))
}

/// The vectors of all samples by class, in the order of their ids.
fn rows(dataset: &Dataset) -> Vec<(Option<u32>, Vec<f32>)> {
    let row = |id: u64| {
        let mut numbers = Vec::new();
        dataset.vector(id, &mut numbers).unwrap();
        (dataset.label(id).unwrap(), numbers)
    };
    (0..dataset.len()).map(row).collect()
}

fn written() -> tempfile::TempDir {
    let temp = tempfile::tempdir().unwrap();
    let files = [
        ("a.csv", "id,a_0,a_1,label\nx,1,2,ant\ny,3,4,bee\nz,5,6,\n"),
        ("b.csv", "id,b_0,b_1,b_2\nz,0.5,0.6,0.7\nx,0.1,0.2,0.3\ny,0.3,0.4,0.5\n"),
        ("rows.csv", "c_0,c_1\n10,11\n12,13\n14,15\n"),
        (
            "joined.csv",
            "id,v_0,v_1,v_2,v_3,v_4,label\nx,1,2,0.1,0.2,0.3,ant\ny,3,4,0.3,0.4,0.5,bee\nz,5,6,0.5,0.6,0.7,\n",
        ),
        ("missing.csv", "id,b_0,b_1\nz,0.5,0.6\nw,0.1,0.2\ny,0.3,0.4\n"),
        ("surplus.csv", "id,b_0,b_1\nz,1,2\nx,3,4\ny,5,6\nw,7,8\n"),
        ("twice.csv", "id,b_0,b_1\nz,1,2\nz,3,4\ny,5,6\n"),
        ("two.csv", "b_0,b_1\n1,2\n3,4\n"),
        ("infinite.csv", "id,b_0,b_1\nz,1,2\ny,3,inf\nx,5,6\n"),
        ("broken.csv", "id,b_0,b_1\nz,1,2\nx,3,4\ny,5,six\n"),
    ];
    for (name, text) in files {
        fs::write(temp.path().join(name), text).unwrap();
    }
    temp
}

#[test]
fn sets_are_joined_by_id() {
    let temp = written();
    let sets = prepared(temp.path(), "a.csv", &["b.csv"], "sets").unwrap();
    let joined = prepared(temp.path(), "joined.csv", &[], "joined").unwrap();
    assert_eq!((sets.feature_sets(), joined.feature_sets()), (vec![2, 3], Vec::new()));
    assert_eq!(rows(&sets), rows(&joined));
    // Heads differ, because each set is scaled to the same length.
    assert_ne!(sets.fingerprint(), joined.fingerprint());
    assert_eq!(sets.sample_name(1).unwrap(), "a.csv[1]");
}

#[test]
fn sets_without_ids_are_joined_by_row() {
    let temp = written();
    let sets = prepared(temp.path(), "rows.csv", &["a.csv", "b.csv"], "sets").unwrap();
    assert_eq!(sets.feature_sets(), [2, 2, 3]);
    let vectors: Vec<Vec<f32>> = rows(&sets).into_iter().map(|(_, numbers)| numbers).collect();
    assert_eq!(vectors[0], [10.0, 11.0, 1.0, 2.0, 0.1, 0.2, 0.3]);
    assert_eq!(vectors[2], [14.0, 15.0, 5.0, 6.0, 0.5, 0.6, 0.7]);
    assert_eq!(sets.classes(), ["ant", "bee"]);
}

#[test]
fn sets_of_other_samples_are_refused() {
    let temp = written();
    let cases = [
        ("missing.csv", &["missing.csv", "no row for 1 of the 3 ids of", "a.csv", "\"x\""][..]),
        ("surplus.csv", &["surplus.csv", "1 of its 4 ids are not in", "\"w\""]),
        ("twice.csv", &["twice.csv", "the rows 0 and 1 have the id \"z\""]),
        ("two.csv", &["two.csv", "2 rows, but", "has 3"]),
        ("infinite.csv", &["infinite.csv", "row 1", "column 1 is inf"]),
        ("broken.csv", &["broken.csv", "six"]),
    ];
    for (number, (file, expected)) in cases.into_iter().enumerate() {
        let error = prepared(temp.path(), "a.csv", &[file], &number.to_string()).unwrap_err().to_string();
        for expected in expected {
            assert!(error.contains(expected), "{file}: {expected}: {error}");
        }
    }
}

//! How labels were drawn: chosen ones are not held out, and a table that does not say how is refused.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use calmix_core::rng::Seed;
use calmix_data::dataset::Dataset;
use calmix_data::error::DataError;
use calmix_data::prepare::prepare;
use calmix_data::source::SourceSpec;
use calmix_data::split::{HoldOut, LabelSplit, Rule, SplitPlan};
use calmix_formats::labels::columns::LabelColumns;
use calmix_formats::labels::drawn::Drawn;
use calmix_testkit::npy_file;

const ROWS: u64 = 60;

fn is_chosen(row: u64) -> bool {
    row % 3 == 1
}

/// Vectors with labels of three classes, of which a third was chosen; rows that follow each other are in one group if asked for.
fn prepared(folder: &Path, rows_per_group: Option<u64>) -> PathBuf {
    let rows = ROWS as usize;
    fs::write(folder.join("rows.npy"), npy_file::floats(&[rows, 1], (0..ROWS).map(|row| row as f32)))
        .unwrap();
    let mut list = "id,label,drawn,group\n".to_owned();
    for row in 0..ROWS {
        let drawn = if is_chosen(row) { "chosen" } else { "random" };
        let group = rows_per_group.map(|rows| (row / rows).to_string()).unwrap_or_default();
        writeln!(list, "{row},{},{drawn},{group}", row / 3 % 3).unwrap();
    }
    let labels = folder.join("labels.csv");
    fs::write(&labels, list).unwrap();
    let source = SourceSpec::Vectors {
        labels: Some(labels.display().to_string()),
        more_features: Vec::new(),
        vector_column: None,
        columns: LabelColumns::default(),
    };
    let target = folder.join("prepared");
    prepare(&source, &folder.join("rows.npy"), &target).unwrap();
    target
}

fn open(folder: &Path) -> Result<Dataset, DataError> {
    Dataset::open(&folder.join("prepared"), &folder.join("rows.npy"))
}

/// The rows that are held out at some seeds.
fn held_out(dataset: &Dataset) -> BTreeSet<u64> {
    let rule = Rule::Fraction { share: 1.0 };
    let plan =
        |seed| SplitPlan { rule, validation: HoldOut::Share(0.3), ..SplitPlan::new(Seed(seed), "train") };
    let held = |seed| LabelSplit::draw(dataset, plan(seed)).unwrap().validation().to_vec();
    (0..20).flat_map(held).collect()
}

#[test]
fn chosen_labels_are_not_held_out() {
    let temp = tempfile::tempdir().unwrap();
    prepared(temp.path(), None);
    let dataset = open(temp.path()).unwrap();
    let random: BTreeSet<u64> = (0..ROWS).filter(|&row| !is_chosen(row)).collect();
    assert_eq!(held_out(&dataset), random);
    assert_eq!([0, 1].map(|row| dataset.drawn(row).unwrap()), [Drawn::Random, Drawn::Chosen]);
}

#[test]
fn group_with_a_chosen_label_is_not_held_out() {
    let temp = tempfile::tempdir().unwrap();
    prepared(temp.path(), Some(2));
    let dataset = open(temp.path()).unwrap();
    let random =
        (0..ROWS).filter(|&row| !is_chosen(row) && !is_chosen(row / 2 * 2) && !is_chosen(row / 2 * 2 + 1));
    assert_eq!(held_out(&dataset), random.collect());
}

#[test]
fn damaged_table_of_draws_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    let path = prepared(temp.path(), None).join("drawn.bin");
    let whole = fs::read(&path).unwrap();
    assert_eq!(whole.len() as u64, ROWS);
    let mut unknown = whole.clone();
    unknown[7] = 9;
    for damaged in [unknown, whole[1..].to_vec(), [&whole[..], &[1]].concat()] {
        fs::write(&path, damaged).unwrap();
        let read = open(temp.path()).and_then(|dataset| dataset.verify().map(|()| dataset.drawn(7)));
        let error = read.map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("drawn.bin"), "{error}");
    }
    fs::remove_file(&path).unwrap();
    assert!(open(temp.path()).is_err());
}

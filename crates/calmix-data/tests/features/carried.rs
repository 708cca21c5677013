//! Features are taken over when labels change.

use std::fs;
use std::path::Path;

use calmix_data::dataset::Dataset;
use calmix_data::features::{FeatureCache, FeatureIdentity, FeatureView};
use calmix_data::prepare::prepare;
use calmix_data::source::SourceSpec;
use calmix_formats::labels::columns::LabelColumns;
use calmix_io::confined_path::ConfinedPath;
use calmix_testkit::npy_file;

use super::{fill, identity, vector};

/// Two rows of a file with equal numbers, and a third; the labels decide their ids.
fn three_rows(folder: &Path, labels: &str) -> Dataset {
    fs::write(folder.join("rows.npy"), npy_file::floats(&[3, 1], [1.0, 1.0, 2.0])).unwrap();
    let list = folder.join("labels.csv");
    fs::write(&list, format!("id,label\n{labels}")).unwrap();
    let source = SourceSpec::Vectors {
        labels: Some(list.display().to_string()),
        more_features: Vec::new(),
        vector_column: None,
        columns: LabelColumns::default(),
    };
    let target = folder.join(format!("prepared-{}", labels.len()));
    prepare(&source, &folder.join("rows.npy"), &target).unwrap();
    Dataset::open(&target, &folder.join("rows.npy")).unwrap()
}

#[test]
fn features_survive_new_labels() {
    let temp = tempfile::tempdir().unwrap();
    let parent = ConfinedPath::from(&temp.path().join("features"));
    let open = |dataset: &Dataset| {
        let identity = FeatureIdentity { dataset: dataset.fingerprint().to_owned(), ..identity("a") };
        let mut cache = FeatureCache::open(parent.clone(), &identity).unwrap();
        let carried = cache.carry_over(&parent, &identity, dataset).unwrap();
        (cache, carried)
    };
    // Without labels but one, the rows 2, 0 and 1 are the samples 0, 1 and 2.
    let before = three_rows(temp.path(), "2,a\n");
    assert_eq!(before.sample_name(0).unwrap(), "rows.npy[2]");
    let (mut cache, carried) = open(&before);
    assert_eq!(carried, 0);
    fill(&mut cache, 0..3, &[FeatureView::Clean, FeatureView::Weak(0)]);
    // With a label, row 1 comes first.
    let after = three_rows(temp.path(), "1,b\n2,a\n");
    assert_eq!(after.sample_name(0).unwrap(), "rows.npy[1]");
    let (mut cache, carried) = open(&after);
    assert_eq!(carried, 3);
    let (ids, vectors) = cache.read(&[0, 1, 2], &[FeatureView::Clean]).unwrap();
    // Rows with equal numbers are not confused: row 1 was sample 2, row 2 sample 0, row 0 sample 1.
    assert_eq!(ids, [0, 1, 2]);
    assert_eq!(vectors, [2, 0, 1].map(|id| vector(id, FeatureView::Clean)).concat());
    // Other views depend on the id, so they are not taken over.
    assert_eq!(cache.held(&[0, 1, 2], &[FeatureView::Weak(0)]), [0; 0]);
    assert_eq!(open(&after).1, 0);
}

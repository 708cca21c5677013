//! Published datasets from `$CALMIX_DATASETS`, from the first byte to a split.

use std::path::PathBuf;

use calmix_core::rng::Seed;
use calmix_data::dataset::Dataset;
use calmix_data::prepare::{Report, prepare};
use calmix_data::source::SourceSpec;
use calmix_data::split::{LabelSplit, Rule, SplitPlan};
use calmix_testkit::tier;
use tempfile::TempDir;

/// Prepares a dataset and opens it; none, and the test is skipped, if it is not available.
fn prepared(name: &str, source: &SourceSpec) -> Option<(TempDir, Report, Dataset)> {
    let root = std::env::var_os("CALMIX_DATASETS").map(|datasets| PathBuf::from(datasets).join(name));
    let Some(root) = root.filter(|root| root.is_dir()) else {
        tier::skipped(&format!("CALMIX_DATASETS has no {name}"));
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("prepared");
    let report = prepare(source, &root, &target).unwrap();
    let dataset = Dataset::open(&target, &root).unwrap();
    Some((folder, report, dataset))
}

#[test]
fn cifar10_is_sixty_thousand_and_its_usual_split_is_balanced() {
    let Some((_folder, report, dataset)) = prepared("cifar10", &SourceSpec::Cifar10) else { return };
    let text = report.to_string();
    assert!(text.contains("60000 samples: train 50000, test 10000\n10 classes, "), "{text}");
    assert!(text.contains("labelled images per class: train 5000, test 1000"), "{text}");
    assert_eq!(report.labelled_per_class("train"), Some((5000, 5000)));
    dataset.verify().unwrap();
    let rule = Rule::Total { labels: 40 };
    let plan = SplitPlan { rule, include_labelled: true, ..SplitPlan::new(Seed(1), "train") };
    let split = LabelSplit::draw(&dataset, plan).unwrap();
    let counts = split.counts(&dataset).unwrap();
    assert_eq!((counts.labelled, counts.unlabelled, counts.in_both), (40, 50_000, 40));
    assert_eq!(counts.per_class, [4; 10]);
}

#[test]
fn a_folder_of_photos_decodes() {
    let Some((_folder, report, dataset)) = prepared("tiny-imagenet-10", &SourceSpec::Imagenet) else {
        return;
    };
    assert_eq!((report.classes.len(), report.unreadable.len()), (10, 0), "{report}");
    for id in (0..dataset.len()).step_by(97) {
        let image = dataset.image(id).unwrap();
        assert_eq!((image.width(), image.height()), (64, 64));
    }
}

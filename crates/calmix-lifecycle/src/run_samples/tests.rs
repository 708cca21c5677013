use std::collections::BTreeSet;
use std::fs;

use calmix_data::prepare::prepare;
use calmix_recipe::Layers;

use super::*;

/// 100 images of ten classes to train on and 20 to evaluate by, prepared.
fn dataset() -> tempfile::TempDir {
    let temp = tempfile::tempdir().unwrap();
    let idx = |kind, dims: &[u32], bytes: Vec<u8>| {
        let dims = dims.iter().flat_map(|dim| dim.to_be_bytes());
        [0, 0, 8, kind].into_iter().chain(dims).chain(bytes).collect::<Vec<u8>>()
    };
    for (name, n) in [("train", 100_u8), ("t10k", 20)] {
        let pixels = (0..n).flat_map(|i| [i.wrapping_mul(37); 16]).collect();
        let labels = (0..n).map(|i| i % 10).collect();
        let images = idx(3, &[n.into(), 4, 4], pixels);
        fs::write(temp.path().join(format!("{name}-images-idx3-ubyte")), images).unwrap();
        fs::write(temp.path().join(format!("{name}-labels-idx1-ubyte")), idx(1, &[n.into()], labels))
            .unwrap();
    }
    let recipe = recipe(temp.path(), &[]);
    prepare(&recipe.dataset.source_spec(), temp.path(), &temp.path().join("prepared")).unwrap();
    temp
}

fn recipe(root: &Path, settings: &[&str]) -> Recipe {
    let own = [
        "dataset.source=mnist",
        &format!("dataset.path={}", root.display()),
        &format!("dataset.prepared={}", root.join("prepared").display()),
        "labels.count=3",
        "labels.validation=0",
    ];
    let layers = own.iter().chain(settings).fold(Layers::new(), |layers, setting| layers.set(setting));
    layers.resolve().unwrap().recipe
}

fn open(root: &Path, settings: &[&str]) -> RunSamples {
    RunSamples::open(&recipe(root, settings), &Paths::new(root.join("run")), None).unwrap()
}

fn unlabelled(data: &RunSamples) -> BTreeSet<u64> {
    data.unlabelled_ids().into_iter().collect()
}

/// The test images of the fixture are its first training images.
#[test]
fn copies_of_test_images_are_left_out_on_request() {
    let temp = dataset();
    let others = unlabelled(&open(temp.path(), &["labels.leave_out_test_copies=true"]));
    assert_eq!(others, (20..100).collect());
    let drawn = open(temp.path(), &["labels.leave_out_test_copies=true", "labels.unlabelled_count=30"]);
    assert!(unlabelled(&drawn).len() == 30 && unlabelled(&drawn).is_subset(&others));
    let without = ["labels.leave_out_test_copies=true", "dataset.test="];
    assert_eq!(unlabelled(&open(temp.path(), &without)).len(), 100);
}

#[test]
fn unlabelled_draw_does_not_depend_on_the_seed() {
    let temp = dataset();
    let drawn = open(temp.path(), &["labels.unlabelled_count=20"]);
    assert_eq!(unlabelled(&drawn).len(), 20);
    let all = unlabelled(&open(temp.path(), &[]));
    assert_eq!(all.len(), 100);
    assert!(unlabelled(&drawn).is_subset(&all));
    // Not the first ones, which are of few classes in a folder.
    assert!(unlabelled(&drawn).last().is_some_and(|&last| last >= 50), "{:?}", unlabelled(&drawn));
    let other = open(temp.path(), &["labels.unlabelled_count=20", "labels.seed=9", "train.seed=9"]);
    assert_ne!(other.labelled(), drawn.labelled());
    assert_eq!(unlabelled(&other), unlabelled(&drawn));
    // A larger draw has the smaller one in it: a cache of features grows.
    let more = open(temp.path(), &["labels.unlabelled_count=40"]);
    assert!(unlabelled(&drawn).is_subset(&unlabelled(&more)));
    assert_eq!(unlabelled(&open(temp.path(), &["labels.unlabelled_count=1000"])), all);
}

#[test]
fn some_samples_are_spread_over_all_of_them() {
    assert_eq!(evenly(5, 5).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert_eq!(evenly(6, 5).collect::<Vec<_>>(), [0, 2, 4]);
    assert_eq!(evenly(0, 5).count(), 0);
    let many: Vec<u64> = evenly(100_000_000, 100_000).collect();
    assert_eq!((many.len(), many[1], many[99_999]), (100_000, 1000, 99_999_000));
}

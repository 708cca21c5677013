//! The published datasets, read whole; skipped where `CALMIX_DATASETS` does not name a folder that holds them.

use std::path::PathBuf;

use calmix_data::source::cifar::Variant;
use calmix_data::source::idx::Classes;
use calmix_data::source::{cifar, idx};
use calmix_formats::source_dir::Count;
use calmix_testkit::tier;

use super::read_back::ReadBack;

fn dataset(name: &str) -> Option<PathBuf> {
    let Some(root) = std::env::var_os("CALMIX_DATASETS") else {
        tier::skipped("CALMIX_DATASETS is not set");
        return None;
    };
    let folder = PathBuf::from(root).join(name);
    if !folder.is_dir() {
        tier::skipped(&format!("there is no {}", folder.display()));
        return None;
    }
    Some(folder)
}

/// Mean and standard deviation of each channel over the first subset, in grey levels, from exact sums.
fn moments(back: &ReadBack) -> ([f64; 3], [f64; 3]) {
    let (mut sums, mut squares, mut count) = ([0_u64; 3], [0_u64; 3], 0_u64);
    for id in 0..back.header.subsets[0].count as usize {
        for pixel in back.image(id).pixels().chunks_exact(3) {
            for c in 0..3 {
                sums[c] += u64::from(pixel[c]);
                squares[c] += u64::from(pixel[c]).pow(2);
            }
            count += 1;
        }
    }
    let mean = sums.map(|sum| sum as f64 / count as f64);
    let mut deviation = [0.0; 3];
    for c in 0..3 {
        deviation[c] = (squares[c] as f64 / count as f64 - mean[c] * mean[c]).sqrt();
    }
    (mean, deviation)
}

fn class_counts(back: &ReadBack, subset: usize) -> Vec<u64> {
    let mut counts = vec![0; back.header.classes.len()];
    let subset = &back.header.subsets[subset];
    for id in subset.first..subset.first + subset.count {
        counts[back.label(id as usize).unwrap() as usize] += 1;
    }
    counts
}

#[test]
fn cifar10_whole() {
    let Some(root) = dataset("cifar10") else { return };
    let out = tempfile::tempdir().unwrap();
    let target = out.path().join("prepared");
    cifar::prepare(&root, &target, Variant::Cifar10, Count::Official).unwrap();
    let back = ReadBack::open(&root, &target);
    assert_eq!(back.subsets(), [("train", 0, 50_000), ("test", 50_000, 10_000)]);
    assert_eq!(class_counts(&back, 0), [5_000; 10]);
    assert_eq!(class_counts(&back, 1), [1_000; 10]);
    // Published with four decimals of one, so half a unit of the last.
    for (mean, published) in moments(&back).0.into_iter().zip([0.4914, 0.4822, 0.4465]) {
        assert!((mean / 255.0 - published).abs() <= 0.5e-4, "{}", mean / 255.0);
    }
    for id in 50_000..60_000 {
        back.image(id);
    }
}

/// The published table of CIFAR-100: each superclass and its five classes.
#[rustfmt::skip]
const SUPERCLASSES: [(&str, [&str; 5]); 20] = [
    ("aquatic_mammals", ["beaver", "dolphin", "otter", "seal", "whale"]),
    ("fish", ["aquarium_fish", "flatfish", "ray", "shark", "trout"]),
    ("flowers", ["orchid", "poppy", "rose", "sunflower", "tulip"]),
    ("food_containers", ["bottle", "bowl", "can", "cup", "plate"]),
    ("fruit_and_vegetables", ["apple", "mushroom", "orange", "pear", "sweet_pepper"]),
    ("household_electrical_devices", ["clock", "keyboard", "lamp", "telephone", "television"]),
    ("household_furniture", ["bed", "chair", "couch", "table", "wardrobe"]),
    ("insects", ["bee", "beetle", "butterfly", "caterpillar", "cockroach"]),
    ("large_carnivores", ["bear", "leopard", "lion", "tiger", "wolf"]),
    ("large_man-made_outdoor_things", ["bridge", "castle", "house", "road", "skyscraper"]),
    ("large_natural_outdoor_scenes", ["cloud", "forest", "mountain", "plain", "sea"]),
    ("large_omnivores_and_herbivores", ["camel", "cattle", "chimpanzee", "elephant", "kangaroo"]),
    ("medium_mammals", ["fox", "porcupine", "possum", "raccoon", "skunk"]),
    ("non-insect_invertebrates", ["crab", "lobster", "snail", "spider", "worm"]),
    ("people", ["baby", "boy", "girl", "man", "woman"]),
    ("reptiles", ["crocodile", "dinosaur", "lizard", "snake", "turtle"]),
    ("small_mammals", ["hamster", "mouse", "rabbit", "shrew", "squirrel"]),
    ("trees", ["maple_tree", "oak_tree", "palm_tree", "pine_tree", "willow_tree"]),
    ("vehicles_1", ["bicycle", "bus", "motorcycle", "pickup_truck", "train"]),
    ("vehicles_2", ["lawn_mower", "rocket", "streetcar", "tank", "tractor"]),
];

#[test]
fn cifar100_whole() {
    let Some(root) = dataset("cifar100") else { return };
    let out = tempfile::tempdir().unwrap();
    let (fine, coarse) = (out.path().join("fine"), out.path().join("coarse"));
    cifar::prepare(&root, &fine, Variant::Cifar100Fine, Count::Official).unwrap();
    cifar::prepare(&root, &coarse, Variant::Cifar100Coarse, Count::Official).unwrap();
    let (fine, coarse) = (ReadBack::open(&root, &fine), ReadBack::open(&root, &coarse));
    assert_eq!(fine.subsets(), [("train", 0, 50_000), ("test", 50_000, 10_000)]);
    assert_eq!(class_counts(&fine, 0), [500; 100]);
    assert_eq!(class_counts(&coarse, 1), [500; 20]);
    // Published in grey levels with one decimal.
    for (mean, published) in moments(&fine).0.into_iter().zip([129.3, 124.1, 112.4]) {
        assert!((mean - published).abs() <= 0.05, "{mean}");
    }
    // The names are right only if every image's two labels stand in one row of the table.
    for id in 0..60_000 {
        let class = &fine.header.classes[fine.label(id).unwrap() as usize];
        let superclass = &coarse.header.classes[coarse.label(id).unwrap() as usize];
        let row = SUPERCLASSES.iter().find(|(name, _)| name == superclass).unwrap();
        assert!(row.1.contains(&class.as_str()), "{class} in {superclass}");
    }
}

#[test]
fn fashion_mnist_whole() {
    let Some(root) = dataset("fashion-mnist") else { return };
    let out = tempfile::tempdir().unwrap();
    let target = out.path().join("prepared");
    idx::prepare(&root, &target, Classes::Fashion).unwrap();
    let back = ReadBack::open(&root, &target);
    assert_eq!(back.subsets(), [("train", 0, 60_000), ("test", 60_000, 10_000)]);
    assert_eq!(class_counts(&back, 0), [6_000; 10]);
    let (mean, deviation) = moments(&back);
    assert!((mean[0] / 255.0 - 0.2860).abs() <= 0.5e-4, "{}", mean[0] / 255.0);
    assert!((deviation[0] / 255.0 - 0.3530).abs() <= 0.5e-4, "{}", deviation[0] / 255.0);
}

//! The names of classes: from the dataset's own list, or as published.

use calmix_formats::source_dir::SourceDir;

use crate::error::DataError;

/// The maximum size of a list of names, in bytes; the longest published one has a thousand names.
const LIMIT: u64 = 1 << 16;

/// Returns the classes in the order of their numbers, from `file` if it exists.
pub(super) fn classes(dir: &SourceDir, file: &str, official: &[&str]) -> Result<Vec<String>, DataError> {
    if !dir.has(file) {
        return Ok(owned(official));
    }
    let text = dir.text(file, LIMIT)?;
    let lines = text.trim_start_matches('\u{feff}').lines().map(str::trim);
    let names: Vec<String> = lines.filter(|line| !line.is_empty()).map(str::to_owned).collect();
    let refused = |problem: String| {
        let hint = "download the archive again, or remove the file to use the published names";
        Err(DataError::content(dir.path(file), problem).hint(hint))
    };
    if names.len() != official.len() {
        return refused(format!("expected {} class names, found {}", official.len(), names.len()));
    }
    for (index, name) in names.iter().enumerate() {
        if names.iter().take(index).any(|earlier| earlier == name) {
            return refused(format!("the class name {name:?} occurs twice"));
        }
        if name.chars().any(char::is_control) {
            return refused(format!("the class name {name:?} contains control characters"));
        }
    }
    Ok(names)
}

/// Copies published names into a list.
pub(super) fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// The digits of MNIST and SVHN.
pub(super) const DIGITS: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];

#[rustfmt::skip]
pub(super) const FASHION: [&str; 10] = [
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
];

#[rustfmt::skip]
pub(super) const CIFAR10: [&str; 10] = [
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
];

#[rustfmt::skip]
pub(super) const STL10: [&str; 10] = [
    "airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck",
];

/// The twenty superclasses of CIFAR-100.
#[rustfmt::skip]
pub(super) const CIFAR100_COARSE: [&str; 20] = [
    "aquatic_mammals", "fish", "flowers", "food_containers", "fruit_and_vegetables",
    "household_electrical_devices", "household_furniture", "insects", "large_carnivores",
    "large_man-made_outdoor_things", "large_natural_outdoor_scenes", "large_omnivores_and_herbivores",
    "medium_mammals", "non-insect_invertebrates", "people", "reptiles", "small_mammals", "trees", "vehicles_1",
    "vehicles_2",
];

#[rustfmt::skip]
pub(super) const CIFAR100_FINE: [&str; 100] = [
    "apple", "aquarium_fish", "baby", "bear", "beaver", "bed", "bee", "beetle", "bicycle", "bottle",
    "bowl", "boy", "bridge", "bus", "butterfly", "camel", "can", "castle", "caterpillar", "cattle",
    "chair", "chimpanzee", "clock", "cloud", "cockroach", "couch", "crab", "crocodile", "cup", "dinosaur",
    "dolphin", "elephant", "flatfish", "forest", "fox", "girl", "hamster", "house", "kangaroo", "keyboard",
    "lamp", "lawn_mower", "leopard", "lion", "lizard", "lobster", "man", "maple_tree", "motorcycle", "mountain",
    "mouse", "mushroom", "oak_tree", "orange", "orchid", "otter", "palm_tree", "pear", "pickup_truck", "pine_tree",
    "plain", "plate", "poppy", "porcupine", "possum", "rabbit", "raccoon", "ray", "road", "rocket",
    "rose", "sea", "seal", "shark", "shrew", "skunk", "skyscraper", "snail", "snake", "spider",
    "squirrel", "streetcar", "sunflower", "sweet_pepper", "table", "tank", "telephone", "television", "tiger", "tractor",
    "train", "trout", "tulip", "turtle", "wardrobe", "whale", "willow_tree", "wolf", "woman", "worm",
];

//! Groups runs into settings, which differ only in their seeds. Columns are data, rows are methods.

use std::collections::{BTreeMap, BTreeSet};

use calmix_io::shown::shown;
use serde::Serialize;

use super::ComparedRun;
use super::method_words::{HEAD, RowOrder, SettingTexts, method_words, order, value};

/// The datasets in the order of the paper's tables.
const DATASETS: [(&str, &str); 7] = [
    ("cifar10", "CIFAR-10"),
    ("cifar100", "CIFAR-100"),
    ("svhn", "SVHN"),
    ("stl10", "STL-10"),
    ("imagenet", "ImageNet"),
    ("webvision", "WebVision"),
    ("fashion-mnist", "Fashion-MNIST"),
];

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DataColumn {
    pub dataset: String,
    /// The number of labels kept per class, a share, or `all`.
    pub labels: String,
    pub on: String,
}

/// Runs that differ only in their seeds, sorted by seed.
#[derive(Debug)]
pub(super) struct GroupedRuns {
    pub(super) column: usize,
    pub(super) row: usize,
    pub(super) runs: Vec<ComparedRun>,
}

#[derive(Debug)]
pub(super) struct Grouped {
    pub(super) columns: Vec<DataColumn>,
    pub(super) rows: Vec<String>,
    pub(super) settings: Vec<GroupedRuns>,
    pub(super) notes: Vec<String>,
}

/// The data of a column: files, kept labels and evaluated split. Ordered like the columns.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ColumnKey {
    place: usize,
    source: String,
    count: u64,
    labels: String,
    kept: Vec<(String, String)>,
    fingerprint: String,
    on: &'static str,
    samples: u64,
}

/// Groups runs, independent of their order.
pub(super) fn group(mut runs: Vec<ComparedRun>) -> Grouped {
    runs.sort_by(|a, b| (a.seeds, &a.name).cmp(&(b.seeds, &b.name)));
    let mut groups: BTreeMap<(ColumnKey, RowOrder, SettingTexts), Vec<ComparedRun>> = BTreeMap::new();
    let mut notes = Vec::new();
    for mut run in runs {
        // The head on the labels alone is a separate method, besides that of its run.
        if let Some(head) = run.head {
            run.settings.insert(HEAD.to_owned(), head.name().to_owned());
        }
        let key = (ColumnKey::of(&run), order(&run.settings), run.settings.clone());
        let same = groups.entry(key).or_default();
        match same.iter().find(|other| other.seeds == run.seeds) {
            Some(other) => notes.push(format!(
                "{} has the same setting and seeds as {} and is left out",
                shown(&run.name),
                shown(&other.name)
            )),
            None => same.push(run),
        }
    }
    let names = row_names(groups.keys().map(|(column, _, settings)| (column, settings)));
    let ordered: BTreeSet<(&RowOrder, &String)> =
        groups.keys().zip(&names).map(|((_, order, _), name)| (order, name)).collect();
    let rows: Vec<String> = ordered.into_iter().map(|(_, name)| name.clone()).collect();
    let keys: BTreeSet<ColumnKey> = groups.keys().map(|(column, ..)| column.clone()).collect();
    let columns = columns(&keys);
    let settings = groups.into_iter().zip(&names).map(|(((column, ..), runs), name)| GroupedRuns {
        column: keys.iter().take_while(|key| **key != column).count(),
        row: rows.iter().take_while(|row| *row != name).count(),
        runs,
    });
    let settings = settings.collect();
    Grouped { columns, rows, settings, notes }
}

impl ColumnKey {
    fn of(run: &ComparedRun) -> Self {
        let source = value(&run.settings, "dataset.source");
        let kept = run.settings.iter().filter(|(key, _)| key.starts_with("labels."));
        let labels = labels_words(&run.settings);
        Self {
            place: DATASETS.iter().position(|(known, _)| *known == source).unwrap_or(DATASETS.len()),
            source: source.to_owned(),
            // Values that are not numbers come last.
            count: labels.parse().unwrap_or(u64::MAX),
            labels,
            kept: kept.map(|(key, value)| (key.clone(), value.clone())).collect(),
            fingerprint: run.fingerprint.clone(),
            on: run.on.word(),
            samples: run.samples,
        }
    }
}

/// Formats the number of labels kept, as in the paper's tables: `4` per class, `10%`, `all`.
pub(super) fn labels_words(settings: &SettingTexts) -> String {
    let count = value(settings, "labels.count");
    match value(settings, "labels.keep") {
        "per-class" => count.to_owned(),
        "total" => format!("{count} in total"),
        "share" => {
            let share: f64 = value(settings, "labels.share").parse().unwrap_or(f64::NAN);
            format!("{}%", (1e6 * share).round() / 1e4)
        }
        other => other.to_owned(),
    }
}

/// Names the columns. Columns with the same dataset and labels also show their other differences.
fn columns(keys: &BTreeSet<ColumnKey>) -> Vec<DataColumn> {
    let column = |key: &ColumnKey| {
        let similar: Vec<_> = keys
            .iter()
            .filter(|other| (&other.source, &other.labels) == (&key.source, &key.labels))
            .collect();
        let known = DATASETS.iter().find(|(word, _)| *word == key.source);
        let mut dataset = known.map_or_else(|| shown(&key.source), |(_, name)| (*name).to_owned());
        if similar.iter().any(|other| other.fingerprint != key.fingerprint) {
            dataset.push(' ');
            dataset.extend(key.fingerprint.chars().take(8));
        }
        let mut labels = key.labels.clone();
        for (name, value) in &key.kept {
            let others = similar.iter().flat_map(|other| &other.kept).filter(|(other, _)| other == name);
            if others.clone().any(|(_, other)| other != value) {
                labels.extend([", ", name, " = ", &shown(value)]);
            }
        }
        DataColumn { dataset, labels, on: key.on.to_owned() }
    };
    keys.iter().map(column).collect()
}

/// Keys that pretrained weights set unless the user does: if the weights differ, their name is enough.
const BY_WEIGHTS: [&str; 9] = [
    "augment.size",
    "dataset.mean",
    "dataset.std",
    "network.block",
    "network.cache",
    "network.name",
    "network.norm_eps",
    "network.stride",
    "network.weights_hash",
];
const WEIGHTS: &str = "network.weights";

/// Names each setting by its method and every key in which settings of one method differ on the same data. Keys set by the
/// weights are left out if the name of the weights already distinguishes the settings.
fn row_names<'a>(settings: impl Iterator<Item = (&'a ColumnKey, &'a SettingTexts)> + Clone) -> Vec<String> {
    let mut values: BTreeMap<(&ColumnKey, String, &str), BTreeSet<&str>> = BTreeMap::new();
    for (column, settings) in settings.clone() {
        for (key, value) in settings.iter().filter(|(key, _)| !key.starts_with("labels.")) {
            values.entry((column, method_words(settings), key)).or_default().insert(value);
        }
    }
    let differ: BTreeSet<(String, &str)> = values
        .into_iter()
        .filter(|(_, values)| values.len() > 1)
        .map(|((_, method, key), _)| (method, key))
        .collect();
    let have_weights: BTreeSet<&String> =
        differ.iter().filter(|(_, key)| *key == WEIGHTS).map(|(method, _)| method).collect();
    let is_needed =
        |(method, key): &&(String, &str)| !have_weights.contains(method) || !BY_WEIGHTS.contains(key);
    let short: BTreeSet<(String, &str)> = differ.iter().filter(is_needed).cloned().collect();
    let names = named(settings.clone(), &short);
    let is_alone: BTreeSet<(&ColumnKey, &String)> =
        settings.clone().map(|(column, _)| column).zip(&names).collect();
    if is_alone.len() == names.len() { names } else { named(settings, &differ) }
}

/// Names each setting by its method and the values of these keys.
fn named<'a>(
    settings: impl Iterator<Item = (&'a ColumnKey, &'a SettingTexts)>,
    keys: &BTreeSet<(String, &str)>,
) -> Vec<String> {
    let name = |(_, settings): (&ColumnKey, &SettingTexts)| {
        let method = method_words(settings);
        let keys = keys.iter().filter(|(other, _)| *other == method);
        let more = keys.map(|(_, key)| format!(", {key} = {}", shown(value(settings, key))));
        format!("{}{}", shown(&method), more.collect::<Vec<_>>().concat())
    };
    settings.map(name).collect()
}

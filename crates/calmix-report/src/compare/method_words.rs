//! The names of methods as in the paper.

use std::collections::BTreeMap;

use calmix_run::result::HeadName;

pub(super) type SettingTexts = BTreeMap<String, String>;

/// The setting that identifies the head of the metrics; it is not a key of recipes.
pub(super) const HEAD: &str = "head";

/// The base algorithms in the order of the paper's tables.
const BASES: [(&str, &str); 6] = [
    ("fixmatch", "FixMatch"),
    ("flexmatch", "FlexMatch"),
    ("softmatch", "SoftMatch"),
    ("freematch", "FreeMatch"),
    ("supervised", "Supervised"),
    ("supervised-pseudo-mixup", "Supervised, pseudo mixup"),
];

const PAIRINGS: [(&str, &str); 5] = [
    ("none", ""),
    ("random", " + RandomMixup"),
    ("crossed", " + crossed mixup"),
    ("all", " + mixup all"),
    ("calibratemix", " + CalibrateMix"),
];

pub(super) fn value<'a>(settings: &'a SettingTexts, key: &str) -> &'a str {
    settings.get(key).map_or("", String::as_str)
}

/// Formats the name of a method, such as `FixMatch + CalibrateMix + LS`.
pub(super) fn method_words(settings: &SettingTexts) -> String {
    let of = |key| value(settings, key);
    let known = |words: &[(&str, &'static str)], word: &str| {
        words.iter().find(|(known, _)| *known == word).map(|(_, name)| *name)
    };
    let base = of("method.base");
    let name = match known(&BASES, base) {
        Some("Supervised") if of("labels.keep") == "all" => "FullySupervised",
        name => name.unwrap_or(base),
    };
    let pairing = of("method.mixup.pairing");
    let pairing = known(&PAIRINGS, pairing).map_or_else(|| format!(" + {pairing}"), str::to_owned);
    let smoothing = if matches!(of("method.smoothing"), "none" | "") { "" } else { " + LS" };
    let penalty =
        if matches!(of("method.logit_penalty.weight"), "0.0" | "") { "" } else { " + logit penalty" };
    let method = format!("{name}{pairing}{smoothing}{penalty}");
    match head_of(settings) {
        None | Some(HeadName::Recipe) => method,
        Some(head @ HeadName::LabelsAlone) => format!("{method}, {}", head.title()),
        // The recipe's method did not contribute to this head.
        Some(head) => head.title().to_owned(),
    }
}

fn head_of(settings: &SettingTexts) -> Option<HeadName> {
    HeadName::ALL.into_iter().find(|head| head.name() == value(settings, HEAD))
}

/// Formats the name of a method in the paper's tables, with the k and the warm-up of the ablations.
pub(super) fn published_words(settings: &SettingTexts) -> String {
    let of = |key| value(settings, key);
    let ablation = match of("method.mixup.pairing") {
        "calibratemix" => {
            match (of("method.mixup.guidance.dissimilar"), of("method.mixup.guidance.fraction")) {
                ("any", _) => " k=0 (no cosine)",
                (_, "0.1") => " k=10",
                (_, "0.15") => " k=15",
                _ => "",
            }
        }
        "all" if of("method.mixup.start.share") == "0.0" => " -warmup",
        "all" => " +warmup",
        _ => "",
    };
    format!("{}{ablation}", method_words(settings))
}

pub(super) fn is_plain(settings: &SettingTexts) -> bool {
    BASES.iter().any(|(_, name)| method_words(settings) == *name)
        || method_words(settings) == "FullySupervised"
}

/// The sort key of rows: by base algorithm with the plain one first, then by pairing and smoothing, with the labels alone
/// last.
pub(super) type RowOrder = (usize, bool, usize, String, bool);

/// Returns the sort key of a setting.
pub(super) fn order(settings: &SettingTexts) -> RowOrder {
    let place = |words: &[(&str, &str)], key| {
        let word = value(settings, key);
        words.iter().position(|(known, _)| *known == word).unwrap_or(words.len())
    };
    let smoothing = value(settings, "method.smoothing").to_owned();
    let is_alone = head_of(settings).is_some_and(HeadName::is_labels_alone);
    let pairing = place(&PAIRINGS, "method.mixup.pairing");
    (place(&BASES, "method.base"), !is_plain(settings), pairing, smoothing, is_alone)
}

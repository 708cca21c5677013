//! Suggests the nearest valid word or key for an unknown one.

mod aliases;

use strsim::osa_distance;

use crate::field::{Field, Shape};
use crate::nearest::aliases::key_of_alias;

/// The longest word that is compared. No key is half as long, so a longer word is not a typo, and comparing it takes time.
const LONGEST: usize = 100;

/// Returns the candidate nearest to `word`, if one is close enough for a typo.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST {
        return None;
    }
    let allowed = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (osa_distance(word, candidate), candidate))
        .filter(|&(distance, _)| distance <= allowed)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Returns the key nearest to `path`: one that has this name in another framework, one with the same name in another
/// section, or one with a similar spelling.
pub(super) fn nearest_key(path: &str, fields: &'static [Field]) -> Option<String> {
    if path.len() > LONGEST {
        return None;
    }
    let name = last(path);
    if let Some(ours) = key_of_alias(name) {
        return Some(ours.to_owned());
    }
    let keys = keys(fields, "");
    let spelt_alike = || nearest(path, keys.iter().map(String::as_str));
    // Of several sections with a key of that name, the one most similar to the path.
    let elsewhere = || {
        let same = keys.iter().filter(|key| last(key) == name);
        same.min_by_key(|key| osa_distance(path, key)).map(String::as_str)
    };
    let names_alike = || keys.iter().map(String::as_str).find(|key| nearest(name, [last(key)]).is_some());
    let close = spelt_alike().filter(|key| osa_distance(path, key) <= 2);
    close.or_else(elsewhere).or_else(spelt_alike).or_else(names_alike).map(str::to_owned)
}

fn last(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// Returns every section and every key, by path.
fn keys(fields: &'static [Field], prefix: &str) -> Vec<String> {
    let mut all = Vec::new();
    for field in fields {
        let path = format!("{prefix}{}", field.name);
        if let Shape::Section(inner) = (field.shape)() {
            all.extend(keys(inner, &format!("{path}.")));
        }
        all.push(path);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Recipe;

    #[test]
    fn nearest_key_is_suggested() {
        for (path, expected) in [
            ("train.stpes", Some("train.steps")),
            (concat!("optimi", "zer"), Some("optimiser")),
            (concat!("optimi", "zer.lr"), Some("optimiser.lr")),
            ("train.weight_decay", Some("optimiser.weight_decay")),
            ("lr", Some("optimiser.lr")),
            ("steps", Some("train.steps")),
            ("train.uratio", Some("train.ratio")),
            ("num_labels", Some("labels.count")),
            ("method.mixup.thresholds", Some("method.fixmatch.threshold")),
            ("method.softmatch.threshold", Some("method.fixmatch.threshold")),
            ("weather", None),
        ] {
            assert_eq!(nearest_key(path, Recipe::fields()).as_deref(), expected, "{path}");
        }
    }
}

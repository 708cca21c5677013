//! What was perhaps meant by a word that does not exist.

use super::field::{Field, Shape};
use super::known_elsewhere::our_key;

/// Nothing of ours is half as long; what is longer is no slip of the finger, and comparing it would take its time.
const LONGEST: usize = 100;

/// The candidate nearest to `word`, if any is near enough to be a slip of the finger.
pub(super) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST {
        return None;
    }
    let allowed = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|&(distance, _)| distance <= allowed)
        .min()
        .map(|(_, candidate)| candidate)
}

/// The key nearest to `path`: one with another name elsewhere, one of the same name in another section, or one that
/// is spelt almost alike.
pub(super) fn nearest_key(path: &str, fields: &'static [Field]) -> Option<String> {
    if path.len() > LONGEST {
        return None;
    }
    let name = last(path);
    if let Some(ours) = our_key(name) {
        return Some(ours.to_owned());
    }
    let keys = keys(fields, "");
    let spelt_alike = || nearest(path, keys.iter().map(String::as_str));
    // Of several sections with a key of that name, the one that is spelt most like the path.
    let elsewhere = || {
        let same = keys.iter().filter(|key| last(key) == name);
        same.min_by_key(|key| distance(path, key)).map(String::as_str)
    };
    let names_alike = || keys.iter().map(String::as_str).find(|key| nearest(name, [last(key)]).is_some());
    let close = spelt_alike().filter(|key| distance(path, key) <= 2);
    close.or_else(elsewhere).or_else(spelt_alike).or_else(names_alike).map(str::to_owned)
}

fn last(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// Every section and every key, by path.
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

/// How many slips lie between two words: letters inserted, left out, replaced, or two neighbours swapped.
fn distance(a: &str, b: &str) -> usize {
    let [a, b]: [Vec<char>; 2] = [a, b].map(|word| word.chars().collect());
    // table[i][j] is the distance between the first i letters of a and the first j of b.
    let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            table[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replaced = table[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                let swapped = if swapped { table[i - 2][j - 2] + 1 } else { usize::MAX };
                replaced.min(swapped).min(table[i - 1][j] + 1).min(table[i][j - 1] + 1)
            };
        }
    }
    table[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::Recipe;

    #[test]
    fn distances() {
        for (a, b, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
            ("steps", "stpes", 1),
            ("k1", "1k", 1),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn keys_that_were_perhaps_meant() {
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

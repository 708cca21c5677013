//! Suggests the nearest valid word or key for an unknown one.

use strsim::osa_distance;

use crate::field::{Field, Shape};

/// The maximum length of a word to compare. No key is half as long, so a longer word is not a typo, and comparing it takes
/// time.
const MAX_WORD_BYTES: usize = 100;

/// Returns the candidate nearest to `word`, if one is close enough to be a typo.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > MAX_WORD_BYTES {
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

/// Returns the key nearest to `path`: one with this name in another framework, with the same name in another section, or
/// with a similar spelling.
pub(super) fn nearest_key(path: &str, fields: &'static [Field]) -> Option<String> {
    if path.len() > MAX_WORD_BYTES {
        return None;
    }
    let name = last(path);
    if let Some(ours) = key_for_alias(name) {
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

/// The names of our keys in USB, TorchSSL, FixMatch's ports and timm, each with our key.
const ALIASES: &[(&str, &str)] = &[
    ("amp", "train.precision"),
    ("arch", "network.name"),
    ("batch_size", "train.batch"),
    ("bs", "train.batch"),
    ("clip_grad", "optimiser.clip"),
    ("clip_thresh", "method.freematch.clip"),
    ("crop_ratio", "augment.weak.shift"),
    ("data_dir", "dataset.path"),
    ("dist_uniform", "method.softmatch.target"),
    ("ema_m", "ema.decay"),
    ("ema_p", "method.softmatch.momentum"),
    ("ent_loss_ratio", "method.freematch.fairness"),
    ("epoch", "train.steps"),
    ("epochs", "train.steps"),
    ("eval_batch_size", "evaluate.batch"),
    ("expand_labels", "labels.include_labelled"),
    ("img_size", "augment.size"),
    ("include_lb_to_ulb", "labels.include_labelled"),
    ("lambda_e", "method.freematch.fairness"),
    ("lambda_u", "method.unlabelled_weight"),
    ("learning_rate", "optimiser.lr"),
    ("margin_hyperparam", "method.logit_penalty.margin"),
    ("mu", "train.ratio"),
    ("net", "network.name"),
    ("num_eval_iter", "evaluate.every"),
    ("num_labeled", "labels.count"),
    ("num_labels", "labels.count"),
    ("num_log_iter", "log.every"),
    ("num_train_iter", "train.steps"),
    ("num_workers", "loader.workers"),
    ("p_cutoff", "method.fixmatch.threshold"),
    ("p_margin", "method.logit_penalty.weight"),
    ("per_class", "labels.count"),
    ("thresh_warmup", "method.flexmatch.warmup"),
    ("total_steps", "train.steps"),
    ("ulb_loss_ratio", "method.unlabelled_weight"),
    ("uratio", "train.ratio"),
    ("wd", "optimiser.weight_decay"),
];

fn key_for_alias(name: &str) -> Option<&'static str> {
    ALIASES.iter().find(|(theirs, _)| *theirs == name).map(|(_, ours)| *ours)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Recipe;
    use crate::field::leaves;

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

    #[test]
    fn aliases_lead_to_keys_and_are_not_keys() {
        let keys = leaves(Recipe::fields());
        for (theirs, ours) in ALIASES {
            assert!(keys.iter().any(|(path, _)| path == ours), "{ours}");
            assert!(!keys.iter().any(|(_, field)| field.name == *theirs), "{theirs}");
        }
    }
}

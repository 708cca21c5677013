//! Finds the keys that have no effect because of the values of others.
//!
//! Most of this follows from the declaration of the keys ([`Field::when`]); only conditions on several keys at once are
//! coded here.

use std::collections::BTreeMap;

use calmix_core::pseudo::Base;
use calmix_data::split::HoldOut;
use toml::Value;

use crate::Recipe;
use crate::field::{Field, Shape, When, leaves};
use crate::keys::data::Keep;
use crate::value::Leaves;

/// The keys of images and of the backbone of a head, outside the section `augment`.
const OF_IMAGES: [&str; 11] = [
    "dataset.mean",
    "dataset.std",
    "network.name",
    "network.weights",
    "network.weights_hash",
    "network.output",
    "network.pooling",
    "network.cache",
    "network.norm_eps",
    "loader.memory",
    "loader.workers",
];

/// The keys and sections of step-by-step training.
const OF_STEPS: [&str; 10] = [
    "preset",
    "method.",
    "train.steps",
    "train.batch",
    "train.batch_norm",
    "train.timeout",
    "optimiser.",
    "ema.",
    "network.labels_alone",
    "log.every",
];

/// The sections of weak and strong views of images.
const OF_VIEWS: [&str; 4] = ["augment.weak.", "augment.strong.", "augment.rand_augment.", "augment.cutout."];

/// Returns every key without effect, with the reason, in the order of the recipe.
pub(crate) fn unused_keys(recipe: &Recipe, values: &Leaves) -> Vec<(String, String)> {
    let mut reasons = BTreeMap::new();
    by_declaration(Recipe::fields(), "", None, values, &mut reasons);
    for (path, why) in by_several_keys(recipe) {
        reasons.entry(path.to_owned()).or_insert(why);
    }
    if recipe.has_vectors() {
        for (path, _) in leaves(Recipe::fields()).into_iter().filter(|(path, _)| path.starts_with("augment."))
        {
            let why = "dataset.source is vectors, and there are no images".to_owned();
            reasons.entry(path).or_insert(why);
        }
    }
    if recipe.has_one_vector() {
        for (path, _) in leaves(Recipe::fields()) {
            if OF_VIEWS.iter().any(|section| path.starts_with(section)) {
                let why = "network.weak_views and network.strong_views are 0".to_owned();
                reasons.entry(path).or_insert(why);
            }
        }
        // These replace a reason such as "method.base is softmatch", because another base would not help.
        for (path, _) in leaves(Recipe::fields()).into_iter().filter(|(path, _)| is_of_steps(path, recipe)) {
            let why = "there is one vector per sample, and its heads are trained at once, without steps";
            reasons.insert(path, why.to_owned());
        }
    }
    let in_order = leaves(Recipe::fields()).into_iter();
    in_order.filter_map(|(path, _)| reasons.remove(&path).map(|why| (path, why))).collect()
}

/// Returns whether a key is about step-by-step training. `supervised` and a ratio of 0 also mean training on the labels
/// alone.
fn is_of_steps(path: &str, recipe: &Recipe) -> bool {
    match path {
        "method.base" => recipe.method.base != Base::Supervised,
        "train.ratio" => recipe.train.ratio > 0 && recipe.method.base != Base::Supervised,
        _ => OF_STEPS.iter().any(|of| path == *of || (of.ends_with('.') && path.starts_with(of))),
    }
}

/// A key whose value makes other keys unused.
#[derive(Clone)]
struct Reason {
    key: String,
    value: String,
}

/// Adds the keys of a section whose conditions are not met. `outer` is why the whole section has no effect.
fn by_declaration(
    fields: &'static [Field],
    section: &str,
    outer: Option<&Reason>,
    values: &Leaves,
    reasons: &mut BTreeMap<String, String>,
) {
    for field in fields {
        let path = format!("{section}{}", field.name);
        // The numbers of a rule depend on everything that the rule depends on.
        let of_rule =
            fields.iter().filter(|other| Some(other.name) == field.rule && other.name != field.name);
        let mut conditions = of_rule.flat_map(|rule| rule.when).chain(field.when);
        let reason = outer.cloned().or_else(|| conditions.find_map(|when| broken(when, section, values)));
        match ((field.shape)(), reason) {
            (Shape::Section(inner), reason) => {
                by_declaration(inner, &format!("{path}."), reason.as_ref(), values, reasons);
            }
            (Shape::Value(_), Some(Reason { key, value })) if key != path => {
                reasons.insert(path, format!("{key} is {value}"));
            }
            (Shape::Value(_), _) => {}
        }
    }
}

fn broken(when: &When, section: &str, values: &Leaves) -> Option<Reason> {
    let key = format!("{section}{}", when.key);
    let value = match values.get(&key)? {
        Value::String(word) => word.clone(),
        value => value.to_string(),
    };
    (!(when.matches)(&value)).then_some(Reason { key, value })
}

/// Returns the unused keys that depend on several other keys, or on more than a word.
fn by_several_keys(recipe: &Recipe) -> Vec<(&'static str, String)> {
    let Recipe { labels, network, train, .. } = recipe;
    let mut unused = Vec::new();
    if recipe.has_vectors() {
        let why = "dataset.source is vectors, and there are no images";
        unused.extend(OF_IMAGES.map(|key| (key, why.to_owned())));
    }
    if !recipe.has_one_vector() {
        let why = "only heads on one vector per sample are trained with weights";
        unused.push(("labels.class_weight", why.to_owned()));
        let why = "only heads on one vector per sample are compared with heads on neighbours";
        unused.push(("network.neighbours", why.to_owned()));
    }
    if matches!(labels.keep, Keep::All | Keep::Given) && labels.validation == HoldOut::NONE {
        unused.push(("labels.seed", format!("labels.keep is {}", labels.keep)));
    }
    if recipe.unlabelled() == 0 {
        let has_ratio = train.ratio > 0;
        let why = if has_ratio { "method.base is supervised" } else { "train.ratio is 0" };
        let why = format!("{why}, so there are no unlabelled batches");
        unused.push(("labels.unlabelled_from", why.clone()));
        unused.push(("labels.include_labelled", why.clone()));
        unused.push(("labels.unlabelled_count", why.clone()));
        unused.push(("labels.unlabelled_file", why.clone()));
        unused.push(("labels.leave_out_test_copies", why.clone()));
        unused.push(("network.neighbours", why.clone()));
        if has_ratio {
            unused.push(("train.ratio", why));
        }
    }
    if recipe.has_head() {
        let why = "network.train is head";
        unused.push(("train.step", format!("{why}, and a head has no batch normalisation")));
        for key in ["train.non_finite", "train.non_finite_skips"] {
            unused.push((key, format!("{why}, and a step of a head that is not finite ends the run")));
        }
        for key in ["checkpoint.every", "checkpoint.keep", "checkpoint.on_failure"] {
            unused.push((key, format!("{why}, and a head is trained within seconds, without checkpoints")));
        }
        for key in ["evaluate.every", "evaluate.window", "evaluate.online", "evaluate.batch"] {
            unused.push((key, format!("{why}, and a head is evaluated at the end")));
        }
        unused.push(("network.norm_momentum", format!("{why}, and its backbone is frozen")));
        unused.push((
            "labels.validation",
            format!("{why}, and every label is held out from one of its folds instead"),
        ));
    } else {
        let why = "network.train is all, and mixtures of images have no unit length";
        unused.push(("method.mixup.unit_length", why.to_owned()));
        let why = "network.train is all, and labels are not dealt into folds";
        unused.push(("labels.link_copies", why.to_owned()));
    }
    if recipe.has_encoder() {
        let why = "network.weights is an ONNX encoder";
        for key in ["network.name", "network.block", "network.stride", "network.norm_eps"] {
            unused.push((key, why.to_owned()));
        }
    } else if recipe.has_head() {
        unused.push(("network.pooling", "network.output is empty".to_owned()));
    }
    if !network.name.to_string().starts_with("wrn-") {
        unused.push(("network.block", format!("network.name is {}", network.name)));
    }
    if network.weights.is_empty() {
        unused.push(("network.weights_hash", "network.weights is empty".to_owned()));
    }
    if !network.name.has_bottlenecks() {
        unused.push(("network.stride", format!("network.name is {}", network.name)));
    }
    unused
}

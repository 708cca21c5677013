//! What a resumed run may change.

use calmix_recipe::field::{Kind, Resume, Shape, leaves};
use calmix_recipe::{Layers, Recipe, differences};

use super::set;

/// The intended list of keys that may change. All others must match.
const MAY_CHANGE: &[&str] = &[
    "description",
    "dataset.path",
    "dataset.prepared",
    "dataset.labels",
    "dataset.more_features",
    "labels.file",
    "network.cache",
    "train.device",
    "train.threads",
    "train.timeout",
    "train.non_finite",
    "train.non_finite_skips",
    "loader.workers",
    "loader.prefetch",
    "loader.patience",
    "loader.memory",
    "loader.on_corrupt",
    "loader.corrupt_share",
    "evaluate.batch",
    "evaluate.bootstrap",
    "evaluate.keep_predictions",
    "evaluate.pseudo_labels",
    "checkpoint.every",
    "checkpoint.keep",
    "checkpoint.on_failure",
    "log.every",
    "log.tensorboard",
];

#[test]
fn keys_that_may_change_are_as_intended() {
    let free: Vec<_> = leaves(Recipe::fields())
        .into_iter()
        .filter(|(_, field)| field.resume == Resume::MayChange)
        .map(|(path, _)| path)
        .collect();
    assert_eq!(free, MAY_CHANGE);
}

/// Settings with which a key has an effect, and a value of it other than the default.
fn other(path: &str, kind: Kind) -> Vec<String> {
    let context: &[&str] = match path {
        "preset" => &["method.base=softmatch"],
        "selection" => &["labels.validation=0.2"],
        "dataset.unlabelled" | "dataset.path_column" | "dataset.label_column" => {
            &["dataset.source=labels-csv"]
        }
        "dataset.labels" | "dataset.more_features" | "dataset.vector_column" => &["dataset.source=vectors"],
        "labels.class_weight" | "network.neighbours" => {
            &["network.train=head", "network.weak_views=0", "network.strong_views=0"]
        }
        "labels.share" => &["labels.keep=share"],
        "labels.file" => &["labels.keep=given", "labels.file=a"],
        "method.base_loss" => &["train.step=joint"],
        "method.epsilon" => &["method.smoothing=uniform"],
        "method.mixup.gamma" => &["method.mixup.lambda=fixed"],
        "method.mixup.start.full" => &["method.mixup.start.rule=ramp"],
        "method.mixup.start.step" => &["method.mixup.start.rule=step"],
        "method.mixup.start.level" | "method.mixup.start.momentum" | "method.mixup.start.not_before" => {
            &["method.mixup.start.rule=utilisation"]
        }
        "method.mixup.guidance.rho" => &["method.mixup.guidance.averaging=exponential"],
        "method.mixup.guidance.quantile" | "method.mixup.guidance.momentum" => {
            &["method.mixup.guidance.split=running"]
        }
        "method.mixup.guidance.count" => &["method.mixup.guidance.dissimilar=count"],
        "dataset.order" => &["dataset.source=webdataset"],
        "dataset.block" => &["dataset.source=webdataset", "dataset.order=blocks"],
        "train.batch_norm" => &["train.micro_batches=2"],
        "train.non_finite_skips" => &["train.non_finite=skip"],
        "augment.weak.resize" => &["augment.weak.frame=crop"],
        "augment.strong.resize" => &["augment.strong.frame=crop"],
        "augment.weak.area" | "augment.weak.ratio" => &["augment.weak.frame=resized-crop"],
        "augment.strong.area" | "augment.strong.ratio" => &["augment.strong.frame=resized-crop"],
        "augment.cutout.side" => &["augment.cutout.rule=fixed"],
        "network.weights_hash" => &["network.weights=some"],
        "labels.link_copies"
        | "network.head"
        | "network.output"
        | "network.weak_views"
        | "network.strong_views"
        | "network.dimensions"
        | "network.folds"
        | "network.labels_alone"
        | "network.cache"
        | "method.mixup.max_labels_per_class"
        | "method.mixup.unit_length" => &["network.train=head"],
        "network.pooling" => &["network.train=head", "network.output=features"],
        "network.stride" => &["network.name=resnet50"],
        "method.logit_penalty.margin" => &["method.logit_penalty.weight=0.1"],
        "method.mixup.anchors" => &["method.mixup.pairing=all"],
        _ if path.starts_with("method.freematch.") => &["method.base=freematch"],
        _ if path.starts_with("method.flexmatch.") => &["method.base=flexmatch"],
        _ if path.starts_with("method.softmatch.") => &["method.base=softmatch"],
        _ => &[],
    };
    let mut settings: Vec<_> = context.iter().map(|&setting| setting.to_owned()).collect();
    let now = set(context).unwrap().value(path).unwrap().clone();
    let words = |words: &[&str]| words.iter().find(|&&word| now.as_str() != Some(word)).unwrap().to_string();
    let value = match (path, kind) {
        ("augment.size" | "augment.evaluation_resize", _) => "64".into(),
        ("augment.weak.area" | "augment.strong.area", _) => "0.1,0.9".into(),
        (_, Kind::Bool) => (!now.as_bool().unwrap()).to_string(),
        (_, Kind::Int(_)) => (now.as_integer().unwrap() + 1).to_string(),
        (_, Kind::Float | Kind::FloatOr(_)) => (now.as_float().unwrap() * 0.5 + 0.21).to_string(),
        (_, Kind::String | Kind::List(Kind::String, _)) => "other".into(),
        ("network.name", _) => "wrn-10-1".into(),
        (_, Kind::Pattern(_)) => "cuda:3".into(),
        (_, Kind::Enum(all)) => words(&all.iter().map(|word| word.word).collect::<Vec<_>>()),
        (_, Kind::List(_, Some(2))) => "0.5,0.75".into(),
        (_, Kind::List(Kind::Float, _)) => "0.25,0.25,0.25".into(),
        (_, Kind::List(..)) => "7,8,9".into(),
    };
    settings.push(format!("{path}={value}"));
    settings
}

/// Every key, changed alone: the difference names it, and only the keys that must match change the hash.
#[test]
fn every_changed_key_is_a_difference() {
    for (path, field) in leaves(Recipe::fields()) {
        let Shape::Value(kind) = (field.shape)() else { panic!("{path} is not a value") };
        let settings = other(&path, kind);
        let settings: Vec<_> = settings.iter().map(String::as_str).collect();
        let (last, before) = settings.split_last().unwrap();
        let (old, new) =
            (set(before).unwrap(), set(&settings).unwrap_or_else(|error| panic!("{last}: {error}")));
        let found = differences(&old, &new);
        let difference = found.iter().find(|difference| difference.path == path);
        let difference = difference.unwrap_or_else(|| panic!("{last} changes nothing"));
        assert_eq!(difference.may_change, MAY_CHANGE.contains(&path.as_str()), "{path}");
        assert_eq!(Some(&difference.new), new.value(&path));
        assert_eq!(old.hash() == new.hash(), found.iter().all(|difference| difference.may_change), "{path}");
        // Words stand for other values, or switch other keys off; everything else changes alone.
        if !matches!(kind, Kind::Enum(_)) && path != "train.ratio" && field.name != "flip" {
            assert_eq!(found.len(), 1, "{path}: {found:?}");
        }
    }
}

#[test]
fn difference_shows_both_values() {
    let old = Layers::new().recipe("cifar10").resolve().unwrap();
    let new =
        Layers::new().recipe("cifar10").set("train.batch=32").set("loader.workers=3").resolve().unwrap();
    let told: Vec<_> = differences(&old, &new).iter().map(ToString::to_string).collect();
    assert_eq!(told, ["train.batch: 64 → 32, which would make it a different run", "loader.workers: 0 → 3"]);
    assert!(differences(&old, &old).is_empty());
}

/// The format that checkpoints rely on.
#[test]
fn hash_covers_keys_that_must_match() {
    let resolved = Layers::new().recipe("stl10").resolve().unwrap();
    let mut lines: Vec<_> = leaves(Recipe::fields())
        .into_iter()
        .filter(|(path, _)| !MAY_CHANGE.contains(&path.as_str()))
        .map(|(path, _)| match path.as_str() {
            // The names before these were renamed.
            "train.micro_batches" => "train.shards = 0\n".to_owned(),
            "train.batch_norm" => "train.batch_norm = \"shard\"\n".to_owned(),
            _ => format!("{path} = {}\n", resolved.value(&path).unwrap()),
        })
        .collect();
    lines.sort();
    assert!(lines[0].starts_with("augment.cutout.fill = [125, 123, 114]"), "{}", lines[0]);
    assert_eq!(resolved.hash(), blake3::hash(lines.concat().as_bytes()).to_string());
}

/// A value without effect is not a difference.
#[test]
fn hash_ignores_values_without_effect() {
    let [plain, unused] = [&[][..], &["method.softmatch.n_sigma=3"]].map(|settings| set(settings).unwrap());
    assert_eq!(plain.hash(), unused.hash());
    assert_eq!(plain.hash().len(), 64);
    assert!(differences(&plain, &unused).is_empty());
}

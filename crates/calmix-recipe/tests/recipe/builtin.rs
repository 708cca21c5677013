//! The built-in recipes.

use calmix_core::method::BaseLoss;
use calmix_core::preset::{paper, released_code};
use calmix_core::pseudo::{Base, FixMatch, FlexMatch, SoftMatch};
use calmix_core::schedule::LearningRate;
use calmix_data::augment::Augment;
use calmix_data::source::SourceSpec;
use calmix_data::split::{HoldOut, Rule};
use calmix_recipe::network::FirstBlock;
use calmix_recipe::precision::Precision;
use calmix_recipe::step_kind::StepKind;
use calmix_recipe::{Keep, Layers, OrAuto, Recipe, Selection, builtin};

use super::set;

fn recipe(name: &str) -> Recipe {
    Layers::new().recipe(name).resolve().unwrap_or_else(|error| panic!("{name}: {error}")).recipe
}

#[test]
fn every_recipe_is_whole_and_described() {
    let mut descriptions = Vec::new();
    for known in builtin() {
        let resolved =
            Layers::new().recipe(known.name).resolve().unwrap_or_else(|e| panic!("{}: {e}", known.name));
        let expected = usize::from(known.name.ends_with("released-code"));
        assert_eq!(resolved.warnings.len(), expected, "{}: {:?}", known.name, resolved.warnings);
        let description = resolved.recipe.description;
        assert!(description.ends_with('.') && !description.contains('\n'), "{}", known.name);
        assert!(!descriptions.contains(&description), "{}", known.name);
        descriptions.push(description);
    }
}

/// Every file in `recipes/` is a built-in recipe.
#[test]
fn no_recipe_is_forgotten() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../recipes");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| name.strip_suffix(".toml").map(str::to_owned))
        .collect();
    files.sort();
    let mut known: Vec<_> = builtin().iter().map(|recipe| recipe.name.to_owned()).collect();
    known.sort();
    assert_eq!(files, known);
}

/// Every number has its source in a comment, so that readers can check it.
#[test]
fn every_number_of_the_paper_has_its_source() {
    for name in ["cifar10", "cifar100", "svhn", "stl10", "imagenet"] {
        let text = builtin().iter().find(|recipe| recipe.name == name).unwrap().text;
        let mut above = "";
        for line in text.lines() {
            let number = line.split_once(" = ").is_some_and(|(key, value)| {
                value.starts_with(|c: char| c.is_ascii_digit() || c == '[') && key != "size"
            });
            let sourced = line.contains(" # ") || above.starts_with('#') || line.starts_with("std");
            assert!(!number || sourced || line.contains("from = "), "{name}: {line}");
            above = line;
        }
    }
}

#[test]
fn the_papers_numbers() {
    for (name, network, weight_decay, size, count) in [
        ("cifar10", "wrn-28-2", 5e-4, 32, 10),
        ("cifar100", "wrn-28-8", 1e-3, 32, 100),
        ("svhn", "wrn-28-2", 5e-4, 32, 10),
        ("stl10", "wrn-37-2", 5e-4, 96, 10),
        ("imagenet", "resnet50", 3e-4, 224, 1000),
        ("webvision", "resnet50", 3e-4, 224, 1000),
    ] {
        let recipe = recipe(name);
        let Recipe { train, optimiser, labels, .. } = &recipe;
        assert_eq!(recipe.network.name.to_string(), network, "{name}");
        assert_eq!((train.steps, train.batch, train.ratio), (1 << 20, 64, 7), "{name}");
        assert_eq!((optimiser.lr, optimiser.momentum, optimiser.nesterov), (0.03, 0.9, true), "{name}");
        assert_eq!((optimiser.weight_decay, optimiser.clip), (weight_decay, 0.0), "{name}");
        assert_eq!(optimiser.schedule, LearningRate::Cosine, "{name}");
        assert_eq!(
            (recipe.ema.decay, train.step, recipe.network.block),
            (0.999, StepKind::Concat, FirstBlock::Google)
        );
        assert_eq!((recipe.augment.size, recipe.selection), (size, Selection::Last), "{name}");
        let threshold = if count == 1000 { 0.7 } else { 0.95 };
        assert_eq!(recipe.method, paper(Base::FixMatch(FixMatch { threshold })), "{name}");
        let plan = labels.plan();
        let rule = if count == 1000 { Rule::Fraction { share: 0.1 } } else { Rule::PerClass { labels: 4 } };
        assert_eq!(
            (plan.rule, plan.include_labelled, plan.validation),
            (rule, true, HoldOut::NONE),
            "{name}"
        );
    }
    assert_eq!(recipe("svhn").dataset.source_spec(), SourceSpec::Svhn { extra: true });
    assert_eq!(recipe("svhn").labels.plan().unlabelled, ["train", "extra"]);
    assert_eq!(recipe("stl10").labels.plan().unlabelled, ["train", "unlabelled"]);
    // The published values are out of 255.
    let published = [125.3 / 255.0, 123.0 / 255.0, 113.9 / 255.0];
    assert_eq!(recipe("cifar10").dataset.mean, published);
}

/// The defaults are the paper's reading for every base, at every length of a run.
#[test]
fn the_preset_paper_is_that_of_core() {
    for steps in [20, 2000, 2501, 100_000, 1 << 20, (1 << 30) + 7] {
        for (word, base) in [
            ("supervised", Base::Supervised),
            ("fixmatch", Base::FixMatch(FixMatch::default())),
            ("flexmatch", Base::FlexMatch(FlexMatch::default())),
            ("softmatch", Base::SoftMatch(SoftMatch::default())),
        ] {
            let recipe =
                set(&[&format!("method.base={word}"), &format!("train.steps={steps}")]).unwrap().recipe;
            assert_eq!(recipe.method, paper(base), "{word} {steps}");
        }
    }
}

#[test]
fn the_preset_released_code_is_that_of_core() {
    let recipe = recipe("cifar10-released-code");
    assert_eq!(recipe.method, released_code());
    assert_eq!(recipe.method.base_loss, BaseLoss::Twice);
    assert_eq!(
        (recipe.network.block, recipe.train.precision),
        (FirstBlock::Torch, OrAuto::Is(Precision::F16))
    );
    assert_eq!(recipe.selection, Selection::BestTest);
    assert_eq!(recipe.dataset.mean, [0.485, 0.456, 0.406]);
    assert_eq!(recipe.optimiser.weight_decay, 5e-4);
}

#[test]
fn the_families_are_those_of_data() {
    let views = |settings: &[&str]| set(settings).unwrap().recipe.augment.resolve();
    assert_eq!(views(&[]), Augment::usb(32));
    assert_eq!(views(&["augment.size=96"]), Augment::usb(96));
    assert_eq!(views(&["augment.size=28"]), Augment::usb(28));
    assert_eq!(views(&["augment.family=google"]), Augment::google(32, true));
    let digits = ["augment.family=google", "augment.weak.flip=false", "augment.strong.flip=false"];
    let mut google = Augment::google(32, false);
    // Without flips, the order of crop and flip has no effect and is reset.
    for geometry in [&mut google.weak, &mut google.strong.geometry] {
        if let calmix_data::augment::Geometry::Shift { first, .. } = geometry {
            *first = calmix_data::augment::First::Crop;
        }
    }
    assert_eq!(views(&digits), google);
    assert_eq!(views(&["augment.family=imagenet"]), Augment::imagenet());
}

#[test]
fn recipes_for_a_cpu() {
    let fashion = recipe("cpu-fashion-mnist");
    assert_eq!((&*fashion.network.name.to_string(), fashion.labels.count), ("wrn-10-1", 25));
    assert_eq!((fashion.train.batch, fashion.train.ratio, fashion.train.steps), (32, 4, 2000));
    let cifar = recipe("cpu-cifar10");
    assert_eq!((&*cifar.network.name.to_string(), cifar.labels.count), ("wrn-10-2", 25));
    assert_eq!(cifar.train.steps, 2500);
    let folder = recipe("cpu-folder");
    assert_eq!((&*folder.network.name.to_string(), folder.augment.size), ("wrn-10-2", 32));
    assert_eq!((folder.train.batch, folder.train.ratio, folder.train.steps), (16, 4, 1500));
    assert_eq!((folder.labels.keep, folder.labels.validation), (Keep::All, HoldOut::FIFTH));
    let (fixmatch, softmatch) = (Base::FixMatch(FixMatch::default()), Base::SoftMatch(SoftMatch::default()));
    for (recipe, base) in [(fashion, fixmatch), (cifar, fixmatch), (folder, softmatch)] {
        let evaluations = recipe.train.steps / recipe.evaluate.every;
        assert_eq!(evaluations, u64::from(recipe.evaluate.window));
        assert_eq!(recipe.method, paper(base));
        assert_eq!((recipe.ema.decay, recipe.network.norm_momentum), (0.99, 0.01));
        assert_eq!(recipe.train.step, StepKind::Lean);
    }
}

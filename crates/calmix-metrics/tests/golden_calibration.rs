//! The calibration measures against common packages: torchmetrics, netcal, scikit-learn, PyTorch,
//! relplot and uncertainty-calibration.
//!
//! `golden/calibration_measures.py` drew the inputs from the streams of `calmix_core::rng` and recorded what
//! the packages made of them; here the same inputs are drawn again. Agreement therefore also says that the
//! two streams are one.

mod drawn;

use calmix_core::softmax::argmax;
use calmix_metrics::measure::{
    Binning, ClassRows, ClassScores, Counts, Edges, SmoothEce, TopLabel, aurc, brier_score, class_wise_ece,
    debiased_squared_error, ece, nll_from_logits, reliability_bins, smooth_ece,
};

use drawn::{Predictions, Scores};

/// Means of at most 3,000 numbers of order one, summed in different orders of f64, differ by at most
/// 3,000 · 2⁻⁵³ ≈ 3.4e-13; netcal moves confidences by 2⁻⁵², exp and log differ in the last place, and the
/// files have 14 decimals.
const F64: f64 = 1e-12;
/// torchmetrics casts confidences to f32 and sums up to 40 of them there: 40 · 2⁻²⁴ ≈ 2.4e-6.
const F32: f64 = 2.5e-6;

/// The recorded cases by column name; `None` where a package has no answer.
struct Golden {
    names: Vec<&'static str>,
    cases: Vec<Vec<Option<f64>>>,
}

impl Golden {
    fn parse(file: &'static str) -> Self {
        let mut lines = file.lines().skip_while(|line| line.starts_with('#'));
        let names = lines.next().unwrap().split(',').collect();
        let number = |field: &str| (!field.is_empty()).then(|| field.parse().unwrap());
        let cases = lines.map(|line| line.split(',').map(number).collect()).collect();
        Self { names, cases }
    }

    fn get(&self, case: usize, name: &str) -> Option<f64> {
        let column = self.names.iter().position(|n| *n == name).unwrap();
        self.cases[case][column]
    }
}

/// Compares one measure over all cases of a file that have an answer.
fn compare(golden: &Golden, name: &str, tolerance: f64, least_cases: usize, ours: impl Fn(usize) -> f64) {
    let mut compared = 0;
    for case in 0..golden.cases.len() {
        if let Some(theirs) = golden.get(case, name) {
            let ours = ours(case);
            let close = (ours - theirs).abs() <= tolerance;
            assert!(close, "case {case}: {name} is {theirs}, ours {ours}");
            compared += 1;
        }
    }
    assert!(compared >= least_cases, "only {compared} cases of {name}");
}

fn scores() -> Golden {
    Golden::parse(include_str!("golden/calibration_scores.csv"))
}

fn predictions() -> Golden {
    Golden::parse(include_str!("golden/calibration_predictions.csv"))
}

#[test]
fn binned_errors_are_those_of_torchmetrics() {
    let golden = scores();
    let bins = |case| Scores::draw(case).bins(Edges::Torchmetrics);
    compare(&golden, "torchmetrics_l1", F64, 1200, |case| ece(&bins(case)));
}

#[test]
fn binned_errors_are_those_of_torchmetrics_from_probabilities() {
    let golden = predictions();
    let bins = |case| {
        let drawn = Predictions::draw(case);
        let predictions = TopLabel::from_probabilities(drawn.probabilities(), &drawn.labels).unwrap();
        reliability_bins(&predictions, drawn.equal_width(Edges::Torchmetrics))
    };
    compare(&golden, "torchmetrics_f32_l1", F32, 1200, |case| ece(&bins(case)));
}

#[test]
fn binned_errors_are_those_of_netcal() {
    let golden = scores();
    let bins = |case| Scores::draw(case).bins(Edges::LeftClosed);
    compare(&golden, "netcal_ece", F64, 1200, |case| ece(&bins(case)));
}

#[test]
fn binned_errors_of_logits_are_those_of_netcal() {
    compare(&predictions(), "netcal_logits_ece", F64, 1200, |case| {
        let drawn = Predictions::draw(case);
        let predictions = TopLabel::from_logits(drawn.logits(), &drawn.labels, drawn.temperature).unwrap();
        ece(&reliability_bins(&predictions, drawn.equal_width(Edges::LeftClosed)))
    });
}

#[test]
fn right_closed_and_debiased_errors_are_those_of_kumar() {
    let golden = scores();
    let bins = |case| Scores::draw(case).bins(Edges::RightClosed);
    compare(&golden, "kumar_l1", F64, 1200, |case| ece(&bins(case)));
    compare(&golden, "kumar_debiased", F64, 1200, |case| debiased_squared_error(&bins(case)));
}

/// Only where there are no ties and the bins divide the rows: elsewhere packages follow rules of their own.
#[test]
fn bins_of_equal_mass_are_those_of_kumar() {
    compare(&scores(), "kumar_equal_mass", F64, 200, |case| {
        let Scores { predictions, bins } = Scores::draw(case);
        let divisible = predictions.len() - predictions.len() % usize::from(bins.get());
        let confidence = &predictions.confidence()[..divisible];
        let correct = &predictions.correct()[..divisible];
        let predictions = TopLabel::new(confidence.to_vec(), correct.to_vec()).unwrap();
        ece(&reliability_bins(&predictions, Binning::EqualMass { bins }))
    });
}

#[test]
fn smooth_ece_is_that_of_its_authors() {
    let golden = scores();
    let ours: Vec<_> =
        (0..golden.cases.len()).map(|case| smooth_ece(&Scores::draw(case).predictions)).collect();
    compare(&golden, "relplot_bandwidth", 0.0, 1200, |case| ours[case].bandwidth);
    compare(&golden, "relplot_smece", F64, 1200, |case| ours[case].error);
    // Below 0.01 the grid is finer than its least, and has a node in the middle or has none.
    for parity in [0, 1] {
        let fine = |found: &&SmoothEce| {
            let cells = (20.0 / found.bandwidth).round() as usize / 2;
            found.error > 0.0 && found.bandwidth < 0.01 && cells % 2 == parity
        };
        assert!(ours.iter().filter(fine).count() >= 3);
    }
}

#[test]
fn proper_scores_are_those_of_scikit_learn_and_torch() {
    let golden = predictions();
    compare(&golden, "sklearn_brier", F64, 1200, |case| {
        let drawn = Predictions::draw(case);
        brier_score(drawn.probabilities(), &drawn.labels).unwrap()
    });
    compare(&golden, "torch_nll", F64, 1200, |case| {
        let drawn = Predictions::draw(case);
        nll_from_logits(drawn.logits(), &drawn.labels, drawn.temperature).unwrap()
    });
}

fn class_rows(case: usize) -> ClassRows {
    let drawn = Predictions::draw(case);
    let logits = drawn.logits();
    let predicted = logits.iter().map(|row| argmax(row) as u32).collect();
    ClassRows::new(drawn.labels.clone(), predicted, logits.width()).unwrap()
}

/// Classes without rows are common among these cases: scikit-learn leaves them out of the balanced accuracy with a warning, and
/// has F1 = 0 for those that are predicted.
#[test]
fn scores_by_class_are_those_of_scikit_learn() {
    let golden = Golden::parse(include_str!("golden/class_scores.csv"));
    let means = |case: usize| {
        let rows = class_rows(case);
        rows.means(&Counts::once(Predictions::draw(case).labels.len())).unwrap()
    };
    compare(&golden, "sklearn_balanced_accuracy", F64, 100, |case| 1.0 - means(case).balanced_error);
    compare(&golden, "sklearn_macro_f1", F64, 100, |case| means(case).macro_f1);
    let first = |case: usize| class_rows(case).scores(&[], 0.95).unwrap()[0];
    compare(&golden, "sklearn_recall", F64, 90, |case| first(case).recall.unwrap().estimate);
    compare(&golden, "sklearn_precision", F64, 90, |case| first(case).precision.unwrap().estimate);
    compare(&golden, "sklearn_f1", F64, 90, |case| first(case).f1.unwrap());
    let undefined = |name: &str, case| golden.get(case, name).is_none();
    for case in 0..golden.cases.len() {
        let ClassScores { recall, precision, f1 } = first(case);
        assert_eq!(recall.is_none(), undefined("sklearn_recall", case), "{case}");
        assert_eq!(precision.is_none(), undefined("sklearn_precision", case), "{case}");
        assert_eq!(f1.is_none(), undefined("sklearn_f1", case), "{case}");
    }
}

#[test]
fn class_wise_errors_are_means_of_netcals() {
    compare(&predictions(), "netcal_class_wise", F64, 1200, |case| {
        let drawn = Predictions::draw(case);
        let binning = drawn.equal_width(Edges::LeftClosed);
        class_wise_ece(drawn.probabilities(), &drawn.labels, binning).unwrap()
    });
}

#[test]
fn the_area_under_risk_and_coverage_is_the_expected_one() {
    compare(&scores(), "aurc", F64, 1200, |case| aurc(&Scores::draw(case).predictions));
}

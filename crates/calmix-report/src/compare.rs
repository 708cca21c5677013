//! Comparison of settings: which is better, and is the difference significant?
//!
//! Runs that differ in nothing but their seeds are one setting. Settings on the same data are compared run by run, seed by
//! seed: Student's interval of the mean difference, and p-values after Holm's correction for all tests of the comparison.
//! Fewer than [`ENOUGH_PAIRS`] pairs are not tested: with two, the interval is 12.7 standard errors wide to each side.
//!
//! | question | file |
//! |---|---|
//! | which data of a run are compared? | this one: [`ComparedRun`] |
//! | which runs are one setting, and what is it called? | `settings.rs`, `method_words.rs` |
//! | how do two settings differ? | `difference.rs` |
//! | what are the paper's metrics of a setting? | `paper.rs`, from `paper.csv` |
//! | how is it written? | `layout.rs`, then `markdown.rs`, `latex.rs`, `long_csv.rs` |

mod difference;
mod latex;
mod layout;
mod long_csv;
mod markdown;
mod method_words;
mod paper;
mod settings;

use std::collections::BTreeMap;

use calmix_metrics::error::MetricsError;
use calmix_metrics::metrics::{ENOUGH_FOR_ECE, Metrics};
use calmix_metrics::predictions::EvalSet;
use calmix_metrics::stats::{Summary, holm};
use calmix_run::result::HeadName;
use serde::Serialize;

pub use difference::{ENOUGH_PAIRS, PairOutcome, SettingDifference};
pub use paper::{PAPER, PublishedMetrics};
pub use settings::DataColumn;

/// The confidence level of every interval.
pub const LEVEL: f64 = 0.95;

/// The data of a finished run that a comparison uses.
#[derive(Debug, Clone)]
pub struct ComparedRun {
    /// Its name, for notes.
    pub name: String,
    /// Every key that affects training, except the seeds, with its value as text.
    pub settings: BTreeMap<String, String>,
    /// Identifies the dataset's files.
    pub fingerprint: String,
    /// The seed of everything random, and that of which labels are kept.
    pub seeds: (u64, u64),
    /// Whether the paper's tables have a row of this setting.
    pub is_papers: bool,
    /// Whether the model was both selected and evaluated on the test split.
    pub chosen_on_test: bool,
    /// The split of the metrics.
    pub on: EvalSet,
    /// The number of samples in that split.
    pub samples: u64,
    /// Which of its heads, if it has heads.
    pub head: Option<HeadName>,
    /// Its metrics before calibration.
    pub metrics: Metrics,
    /// Its metrics after calibration, if any.
    pub calibrated: Option<Metrics>,
}

/// The metric that is compared: lower is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// The expected calibration error, 15 bins; for at least [`ENOUGH_FOR_ECE`] samples.
    Ece,
    /// The share of wrong predictions.
    Error,
    /// The mean negative log-likelihood, in nats.
    Nll,
    /// The Brier score, summed over classes.
    Brier,
    /// The squared calibration error without its bias.
    Debiased,
    /// The ECE after calibration.
    CalibratedEce,
    /// The negative log-likelihood after calibration.
    CalibratedNll,
    /// The Brier score after calibration.
    CalibratedBrier,
    /// The squared calibration error without its bias, after calibration.
    CalibratedDebiased,
}

/// A setting: runs that differ in nothing but their seeds. Metrics are shares, not per cent.
#[derive(Debug, Clone, Serialize)]
pub struct SettingCell {
    /// The place of its data in [`Comparison::columns`].
    pub column: usize,
    /// The place of its name in [`Comparison::rows`].
    pub row: usize,
    /// Its seeds, `train.seed` and `labels.seed`, in order.
    pub seeds: Vec<(u64, u64)>,
    /// The ECE of 15 bins; `None` with fewer than [`ENOUGH_FOR_ECE`] samples.
    pub ece: Option<Summary>,
    /// The ECE of 10 bins, which the released code of the paper uses.
    pub ece_10: Option<Summary>,
    /// The error.
    pub error: Summary,
    /// The other measures, those that all of its runs have.
    pub measures: BTreeMap<Measure, Summary>,
    /// The head of these metrics; `None` unless the runs have several heads.
    pub head: Option<HeadName>,
    /// The paper's metrics, if it has this setting.
    pub paper: Option<PublishedMetrics>,
    /// Whether the model of at least one run was selected on the test split.
    pub chosen_on_test: bool,
}

/// Settings side by side.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// The data: datasets, and the number of labels that are kept.
    pub columns: Vec<DataColumn>,
    /// The names of the methods.
    pub rows: Vec<String>,
    /// Every setting, column by column.
    pub cells: Vec<SettingCell>,
    /// Every paired difference.
    pub differences: Vec<SettingDifference>,
    /// The number of tests that Holm's correction accounts for.
    pub tests: usize,
    /// The runs that were left out, and why.
    pub notes: Vec<String>,
}

impl Measure {
    /// All, in the order of the tables.
    pub const ALL: [Self; 9] = [
        Self::Ece,
        Self::Error,
        Self::Nll,
        Self::Brier,
        Self::Debiased,
        Self::CalibratedEce,
        Self::CalibratedNll,
        Self::CalibratedBrier,
        Self::CalibratedDebiased,
    ];

    /// The measures whose differences are tested. Only two, since each further test costs power under Holm's correction.
    pub const TESTED: [Self; 2] = [Self::Ece, Self::Error];

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ece => "ECE",
            Self::Error => "Error",
            Self::Nll => "NLL",
            Self::Brier => "Brier",
            Self::Debiased => "debiased squared CE",
            Self::CalibratedEce => "ECE, calibrated",
            Self::CalibratedNll => "NLL, calibrated",
            Self::CalibratedBrier => "Brier, calibrated",
            Self::CalibratedDebiased => "debiased squared CE, calibrated",
        }
    }

    /// The factor of the tables: shares are in per cent, a squared share in per cent squared.
    pub(crate) fn scale(self) -> f64 {
        match self {
            Self::Ece | Self::Error | Self::CalibratedEce => 100.0,
            Self::Debiased | Self::CalibratedDebiased => 1e4,
            Self::Nll | Self::Brier | Self::CalibratedNll | Self::CalibratedBrier => 1.0,
        }
    }

    /// Digits after the decimal point in tables.
    pub(crate) fn digits(self) -> usize {
        if self.scale() == 1.0 { 3 } else { 2 }
    }

    /// The value of a run; `None` with too few samples.
    fn of(self, run: &ComparedRun) -> Option<f64> {
        let enough = run.samples >= ENOUGH_FOR_ECE;
        let calibrated = run.calibrated;
        match self {
            Self::Ece => enough.then_some(run.metrics.ece_15),
            Self::Error => Some(run.metrics.error),
            Self::Nll => Some(run.metrics.nll),
            Self::Brier => Some(run.metrics.brier),
            Self::Debiased => run.metrics.debiased_squared_error.filter(|_| enough),
            Self::CalibratedEce => calibrated.filter(|_| enough).map(|metrics| metrics.ece_15),
            Self::CalibratedNll => calibrated.map(|metrics| metrics.nll),
            Self::CalibratedBrier => calibrated.map(|metrics| metrics.brier),
            Self::CalibratedDebiased => {
                calibrated.filter(|_| enough).and_then(|metrics| metrics.debiased_squared_error)
            }
        }
    }
}

impl SettingCell {
    /// The mean and deviation of a measure; `None` unless all runs have it.
    pub fn measured(&self, measure: Measure) -> Option<Summary> {
        match measure {
            Measure::Ece => self.ece,
            Measure::Error => Some(self.error),
            other => self.measures.get(&other).copied(),
        }
    }

    /// Our mean minus the paper's, in points; for the ECE, ours with 10 bins.
    pub fn beside_paper(&self, measure: Measure) -> Option<f64> {
        let paper = self.paper?;
        match measure {
            Measure::Ece => Some(100.0 * self.ece_10?.mean - paper.ece),
            Measure::Error => Some(100.0 * self.error.mean - paper.error),
            _ => None,
        }
    }
}

impl Comparison {
    /// Compares runs. Each setting is compared with that of the run `against`; if `None`, with the plain base
    /// algorithm of the same name on the same data, or else with the first setting there.
    ///
    /// # Errors
    /// If a metric is not finite.
    pub fn of(runs: Vec<ComparedRun>, against: Option<&str>) -> Result<Self, MetricsError> {
        let settings::Grouped { columns, rows, settings, mut notes } = settings::group(runs);
        let mut cells = Vec::new();
        for setting in &settings {
            let summary = |of: &dyn Fn(&ComparedRun) -> Option<f64>| {
                let metrics: Option<Vec<f64>> = setting.runs.iter().map(of).collect();
                metrics.map(|metrics| Summary::of(&metrics)).transpose()
            };
            let first = &setting.runs[0];
            let mut measures = BTreeMap::new();
            for measure in Measure::ALL.into_iter().filter(|measure| !Measure::TESTED.contains(measure)) {
                measures.extend(summary(&|run| measure.of(run))?.map(|summary| (measure, summary)));
            }
            cells.push(SettingCell {
                column: setting.column,
                row: setting.row,
                seeds: setting.runs.iter().map(|run| run.seeds).collect(),
                ece: summary(&|run| Measure::Ece.of(run))?,
                ece_10: summary(&|run| (run.samples >= ENOUGH_FOR_ECE).then_some(run.metrics.ece_10))?,
                error: Summary::of(&setting.runs.iter().map(|run| run.metrics.error).collect::<Vec<_>>())?,
                measures,
                head: first.head,
                paper: first.is_papers.then(|| paper::find(&first.settings)).flatten(),
                chosen_on_test: setting.runs.iter().any(|run| run.chosen_on_test),
            });
        }
        let mut differences = difference::all(&settings, against, &mut notes)?;
        let tested: Vec<f64> = differences.iter().filter_map(|difference| difference.p_value).collect();
        let mut adjusted = holm(&tested)?.into_iter();
        for difference in differences.iter_mut().filter(|difference| difference.p_value.is_some()) {
            difference.evaluate(adjusted.next());
        }
        Ok(Self { columns, rows, cells, differences, tests: tested.len(), notes })
    }

    /// As Markdown.
    pub fn to_markdown(&self) -> String {
        markdown::write(self)
    }

    /// As LaTeX, with booktabs and multirow.
    pub fn to_latex(&self) -> String {
        latex::write(self)
    }

    /// As CSV: a line for each setting and measure, in per cent.
    pub fn to_csv(&self) -> String {
        long_csv::write(self)
    }

    fn cell(&self, column: usize, row: usize) -> Option<&SettingCell> {
        self.cells.iter().find(|cell| (cell.column, cell.row) == (column, row))
    }
}

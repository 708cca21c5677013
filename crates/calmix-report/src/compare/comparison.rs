//! Settings side by side with their differences.

use std::collections::BTreeMap;

use calmix_metrics::error::MetricsError;
use calmix_metrics::metrics::MIN_SAMPLES_FOR_ECE;
use calmix_metrics::stats::{Summary, holm};
use calmix_run::result::HeadName;
use serde::Serialize;

use super::difference::{self, SettingDifference};
use super::measure::{ComparedRun, Measure};
use super::paper::{self, PublishedMetrics};
use super::settings::{self, DataColumn};

/// A setting: runs that differ only in their seeds. Metrics are shares, not per cent.
#[derive(Debug, Clone, Serialize)]
pub struct SettingCell {
    /// The index of its data in [`Comparison::columns`].
    pub column: usize,
    /// The index of its name in [`Comparison::rows`].
    pub row: usize,
    /// Its seeds, `train.seed` and `labels.seed`, sorted.
    pub seeds: Vec<(u64, u64)>,
    /// The ECE with 15 bins; `None` with fewer than [`MIN_SAMPLES_FOR_ECE`] samples.
    pub ece: Option<Summary>,
    /// The ECE with 10 bins, as in the paper's released code.
    pub ece_10: Option<Summary>,
    pub error: Summary,
    /// The other measures, if all of its runs have them.
    pub measures: BTreeMap<Measure, Summary>,
    /// The head that the metrics belong to; `None` unless the runs have several heads.
    pub head: Option<HeadName>,
    /// The paper's metrics for this setting, if any.
    pub paper: Option<PublishedMetrics>,
    /// Whether the model of at least one run was selected on the test split.
    pub chosen_on_test: bool,
}

#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// The data: datasets, each with the number of labels that are kept.
    pub columns: Vec<DataColumn>,
    pub rows: Vec<String>,
    pub cells: Vec<SettingCell>,
    pub differences: Vec<SettingDifference>,
    /// The number of tests in Holm's correction.
    pub tests: usize,
    /// The runs that were left out, with the reasons.
    pub notes: Vec<String>,
}

impl SettingCell {
    /// Returns the mean and standard deviation of a measure; `None` unless all runs have it.
    pub fn measured(&self, measure: Measure) -> Option<Summary> {
        match measure {
            Measure::Ece => self.ece,
            Measure::Error => Some(self.error),
            other => self.measures.get(&other).copied(),
        }
    }

    /// Returns our mean minus the paper's, in points; for the ECE, ours has 10 bins.
    pub fn minus_paper(&self, measure: Measure) -> Option<f64> {
        let paper = self.paper?;
        match measure {
            Measure::Ece => Some(100.0 * self.ece_10?.mean - paper.ece),
            Measure::Error => Some(100.0 * self.error.mean - paper.error),
            _ => None,
        }
    }
}

impl Comparison {
    /// Compares runs. The baseline is the setting of the run `against`; if `None`, it is the plain base algorithm of the
    /// same name on the same data, or else the first setting there.
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
                ece_10: summary(&|run| (run.samples >= MIN_SAMPLES_FOR_ECE).then_some(run.metrics.ece_10))?,
                error: Summary::of(&setting.runs.iter().map(|run| run.metrics.error).collect::<Vec<_>>())?,
                measures,
                head: first.head,
                paper: first.is_in_paper.then(|| paper::find(&first.settings)).flatten(),
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

    /// Returns the setting with this data and name.
    pub(super) fn cell(&self, column: usize, row: usize) -> Option<&SettingCell> {
        self.cells.iter().find(|cell| (cell.column, cell.row) == (column, row))
    }
}

//! The probabilities of any model with the guarantees that some labels give them.

use anyhow::Result;
use calmix_core::matrix::Matrix;
use calmix_core::softmax::argmax;
use calmix_data::error::DataError;
use calmix_data::source::vectors::label_list::LabelList;
use calmix_formats::error::FormatError;
use calmix_formats::labels::columns::LabelColumns;
use calmix_formats::probability_table::{ProbabilityOptions, ProbabilityTable};
use calmix_metrics::abstention::AnswerThreshold;
use calmix_metrics::held_out::{HeldOut, probability_log_odds};
use calmix_metrics::measure::{TopLabel, nll_from_probabilities};
use calmix_metrics::stats::{Estimate, clopper_pearson};
use serde::Serialize;

use crate::args::guarantees::guard::GuardArgs;
use crate::error::CliError;
use crate::model::options::ModelOptions;
use crate::predict::guarantee::Guarantee;
use crate::predict::prediction_rule::Prediction;

/// Rows of probabilities, of which some have labels that give guarantees for the others.
#[derive(Debug)]
pub(crate) struct GuardedTable {
    table: ProbabilityTable,
    /// For each row, where its probabilities begin; `None` for a row without them.
    starts: Vec<Option<usize>>,
    is_labelled: Vec<bool>,
    labelled: Vec<f32>,
    held_out: HeldOut,
    precisions: Vec<f64>,
    thresholds: Vec<Option<AnswerThreshold>>,
    pub(crate) guarantee: Guarantee,
}

/// How good the predictions of the labelled rows are.
#[derive(Debug)]
pub(crate) struct Quality {
    /// The share of wrong predictions, with its exact 95% confidence interval.
    pub(crate) error: Estimate,
    /// Mean confidence minus accuracy.
    pub(crate) confidence_gap: f64,
    pub(crate) nll: f64,
}

/// One of the precisions that may be chosen.
#[derive(Debug, Serialize)]
pub(crate) struct PrecisionOption {
    pub(crate) precision: f64,
    /// The lowest confidence that is answered; `None` if no threshold reaches the precision.
    pub(crate) confidence: Option<f64>,
    /// The share of the rows that are answered.
    pub(crate) answered: f64,
}

impl GuardedTable {
    /// Reads the files, and computes the guarantees.
    pub(crate) fn read(args: &GuardArgs, options: &ModelOptions) -> Result<Self> {
        let read = ProbabilityOptions { classes: args.classes.clone(), id_column: args.path_column.clone() };
        let table = ProbabilityTable::read(&args.predictions, &read)?;
        let columns = LabelColumns { path: args.path_column.clone(), label: args.label_column.clone() };
        let rows = table.ids.len() as u64;
        let mut list = LabelList::read(&args.labels, &columns, rows)?;
        let width = table.classes.len();
        let mut starts = Vec::with_capacity(table.ids.len());
        let mut start = 0;
        let mut is_labelled = vec![false; table.ids.len()];
        let mut labelled = Vec::new();
        let mut labels = Vec::new();
        let mut groups = Vec::new();
        for (row, id) in table.ids.iter().enumerate() {
            let at = table.is_predicted[row].then_some(start);
            starts.push(at);
            start += if at.is_some() { width } else { 0 };
            let listed = list.take(row as u64, Some(id))?;
            let Some(label) = listed.label else { continue };
            let Some(class) = table.classes.iter().position(|class| *class == label) else {
                let known = table.classes.iter().take(20).map(String::as_str).collect::<Vec<_>>().join(", ");
                let problem =
                    format!("{id:?} has the label {label:?}, but the probabilities are of: {known}");
                let hint = "write labels as the columns are called, or name the columns with `--classes`";
                return Err(FormatError::content(&args.labels, problem).hint(hint).into());
            };
            is_labelled[row] = true;
            if let Some(at) = at.filter(|_| listed.drawn.may_be_held_out()) {
                labelled.extend_from_slice(&table.probabilities[at..at + width]);
                labels.push(class as u32);
                groups.push(listed.group);
            }
        }
        list.finish().map_err(|error: DataError| error)?;
        if labels.is_empty() {
            let message = "no row with probabilities has a label that was drawn at random";
            let hint = "label some rows at random; labels that were chosen give no guarantee";
            return Err(CliError::invalid(message).hint(hint).into());
        }
        let groups = numbered(&groups);
        let matrix = Matrix::new(&labelled, labels.len(), width)?;
        let held_out = HeldOut::of_probabilities(matrix, &labels, &groups)?;
        let thresholds = held_out.answer_thresholds(&args.precision, HeldOut::DELTA)?;
        let first = thresholds.first().copied().flatten();
        let guarantee = Guarantee::of_labels(&held_out, &table.classes, options, first)?;
        let precisions = args.precision.clone();
        Ok(Self { table, starts, is_labelled, labelled, held_out, precisions, thresholds, guarantee })
    }

    pub(crate) fn classes(&self) -> &[String] {
        &self.table.classes
    }

    pub(crate) fn id(&self, row: usize) -> &str {
        self.table.ids.get(row).map_or("", String::as_str)
    }

    /// Returns the number of labels that give the guarantees.
    pub(crate) fn labels(&self) -> u64 {
        self.held_out.len() as u64
    }

    /// Returns the number of groups of these labels; `None` if each is a group of its own.
    pub(crate) fn groups(&self) -> Option<u64> {
        (!self.held_out.group.is_empty()).then(|| self.held_out.group_count() as u64)
    }

    /// Returns the rows without labels.
    pub(crate) fn unlabelled(&self) -> Vec<usize> {
        (0..self.is_labelled.len()).filter(|&row| !self.is_labelled[row]).collect()
    }

    /// Returns the probabilities and classes of the labels that give the guarantees.
    pub(crate) fn labelled(&self) -> (&[f32], &[u32]) {
        (&self.labelled, &self.held_out.label)
    }

    fn probabilities(&self, row: usize) -> Option<&[f32]> {
        let start = self.starts.get(row).copied().flatten()?;
        self.table.probabilities.get(start..start + self.classes().len())
    }

    /// Returns the prediction of a row; `None` without probabilities.
    pub(crate) fn prediction(&self, row: usize) -> Option<Prediction> {
        let probabilities = self.probabilities(row)?;
        let label = argmax(probabilities);
        let confidence = probabilities.get(label).copied().unwrap_or_default();
        let others = probabilities.iter().enumerate().filter(|(class, _)| *class != label);
        let second = others.map(|(_, &p)| p).fold(0.0, f32::max);
        Some(Prediction {
            label,
            confidence,
            margin: confidence - second,
            probabilities: probabilities.to_vec(),
            set: self.guarantee.sets().map(|rule| rule.set(probabilities, row as u64)),
            abstain: self.guarantee.abstains(probability_log_odds(probabilities)),
        })
    }

    /// Measures the predictions of the labels that give the guarantees.
    pub(crate) fn quality(&self) -> Result<Quality> {
        let labels = &self.held_out.label;
        let rows = Matrix::new(&self.labelled, labels.len(), self.classes().len())?;
        let top_label = TopLabel::from_probabilities(rows, labels)?;
        let right = top_label.correct().iter().filter(|&&right| right).count();
        let confidence = top_label.confidence().iter().sum::<f64>() / labels.len() as f64;
        Ok(Quality {
            error: clopper_pearson(labels.len() - right, labels.len(), 0.95)?,
            confidence_gap: confidence - top_label.accuracy(),
            nll: nll_from_probabilities(rows, labels)?,
        })
    }

    /// Returns what each precision would answer of some rows.
    pub(crate) fn precision_options(&self, rows: &[usize]) -> Vec<PrecisionOption> {
        let scores: Vec<f64> =
            rows.iter().filter_map(|&row| self.probabilities(row)).map(probability_log_odds).collect();
        let option = |(&precision, found): (&f64, &Option<AnswerThreshold>)| {
            let answered = |threshold: f64| scores.iter().filter(|&&score| score >= threshold).count();
            let share =
                found.map_or(0.0, |found| answered(found.threshold) as f64 / scores.len().max(1) as f64);
            let confidence = found.map(|found| found.confidence());
            PrecisionOption { precision, confidence, answered: share }
        };
        self.precisions.iter().zip(&self.thresholds).map(option).collect()
    }
}

/// Returns the number of the group of each label; a label without one is a group of its own. Empty if no label has one.
fn numbered(groups: &[Option<String>]) -> Vec<u32> {
    if groups.iter().all(Option::is_none) {
        return Vec::new();
    }
    let mut known = std::collections::BTreeMap::new();
    let mut next = 0;
    let mut numbers = Vec::with_capacity(groups.len());
    for group in groups {
        let number = match group {
            Some(name) => *known.entry(name).or_insert(next),
            None => next,
        };
        next = next.max(number + 1);
        numbers.push(number);
    }
    numbers
}

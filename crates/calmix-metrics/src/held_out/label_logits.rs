//! The calibrated logits of held-out labels, from which guarantees for another mix of classes are computed.

use crate::error::MetricsError;
use crate::groups::select_groups;

use super::class_scores::kept_rows;
use super::{HeldOut, UnseenLabel};

/// Held-out labels with their logits, each calibrated by a calibrator that was fitted without the label.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LabelLogits {
    /// The number of classes.
    pub classes: usize,
    /// One row of logits per label. The logit of a class that the model could not know is [`UNSEEN`](Self::UNSEEN).
    pub logits: Vec<f32>,
    /// The true class of each row.
    pub labels: Vec<u32>,
    /// The [group](crate::groups) of each row; empty if each is a group of its own.
    pub groups: Vec<u32>,
}

impl LabelLogits {
    /// The logit of the true class of an [`UnseenLabel`]: its probability is zero.
    pub const UNSEEN: f32 = -1e30;

    /// Collects labels with the logits of all classes.
    pub(super) fn new(classes: usize, logits: &[f32], labels: &[u32], groups: &[u32]) -> Self {
        Self { classes, logits: logits.to_vec(), labels: labels.to_vec(), groups: groups.to_vec() }
    }

    /// Adds a label of a class that the model could not know.
    pub(super) fn add_unseen(&mut self, unseen: &UnseenLabel, has_groups: bool) {
        let start = self.logits.len();
        self.logits.extend(&unseen.logits);
        if let Some(logit) = self.logits.get_mut(start + unseen.label as usize) {
            *logit = Self::UNSEEN;
        }
        self.labels.push(unseen.label);
        if has_groups {
            self.groups.push(unseen.group);
        }
    }

    /// Draws the rows that a model stores, by their ids.
    pub(super) fn stored(&self, ids: &[u64]) -> Self {
        /// The largest number of logits, 1 MiB.
        const MAX_LOGITS: usize = 1 << 18;
        let max_rows = HeldOut::MAX_LABELS.min(MAX_LOGITS / self.classes.max(1));
        let rows = kept_rows(ids, &self.groups, max_rows);
        let logits = rows.iter().flat_map(|&row| self.row(row)).copied().collect();
        let labels = rows.iter().map(|&row| self.labels[row]).collect();
        Self { classes: self.classes, logits, labels, groups: select_groups(&self.groups, &rows) }
    }

    /// Returns the number of labels.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Returns whether there are no labels.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Returns the logits of a label.
    pub fn row(&self, row: usize) -> &[f32] {
        self.logits.get(row * self.classes..(row + 1) * self.classes).unwrap_or_default()
    }

    /// Checks the lengths of the lists and the range of their numbers, which a file does not guarantee.
    ///
    /// # Errors
    /// If they contradict each other; the error names the row.
    pub fn check(&self) -> Result<(), MetricsError> {
        let n = self.len();
        let logits = crate::checked::matrix("logits of held-out labels", &self.logits, n, self.classes)?;
        crate::checked::logits(logits, &self.labels)?;
        if !self.groups.is_empty() {
            crate::checked::length("groups of held-out labels", n, self.groups.len())?;
        }
        Ok(())
    }
}

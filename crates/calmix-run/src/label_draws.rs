//! How the labels behind a model's guarantees were drawn.

use serde::{Deserialize, Serialize};

/// The number of labels by how they were drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LabelDraws {
    /// Labels of which it is not known. They count as drawn at random.
    pub given: u64,
    /// Labels drawn at random from all samples.
    pub random: u64,
    /// Labels drawn at random from each class, the same number of each.
    pub by_class: u64,
    /// Labels that were chosen: they are trained on, but no guarantee rests on them.
    pub chosen: u64,
    /// Labels of the audit of a certificate, from confident rows only: trained on like chosen ones.
    pub audit: u64,
    /// Predicted labels that were certified: trained on like chosen ones.
    pub certified: u64,
}

impl LabelDraws {
    /// Returns the number of labels that are trained on only.
    pub fn trained_on_only(&self) -> u64 {
        self.chosen + self.audit + self.certified
    }

    /// Returns whether nothing is known of any label.
    pub fn is_unknown(&self) -> bool {
        *self == Self { given: self.given, ..Self::default() }
    }
}

//! The verdict with which a prediction ends: what the guarantees are worth for these samples.

use calmix_io::shown::shown;
use calmix_metrics::shift::{BatchSums, ShiftTests, UnusualRow, Verdict};
use serde::{Deserialize, Serialize};

use super::other_mix::MixSource;
use super::shift_check::ComparedBatch;
use crate::output::format::grouped;

/// The verdict of a batch, as `FILE.predict.json` and `--json` have it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BatchVerdict {
    /// The verdict in one word.
    pub verdict: VerdictWord,
    /// Why the batch was not compared; empty if it was.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The number of rows that were compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// The p-value of the test for samples unlike those of training.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strangeness: Option<f64>,
    /// The p-value of the test for another mix of classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mix: Option<f64>,
    /// The estimated share of samples unlike those of training.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unusual: Option<f64>,
    /// The mix of classes that the predictions are adapted to, if any: known or estimated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapted: Option<MixSource>,
    /// The names of the five strangest rows, the strangest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strangest: Vec<String>,
}

/// The verdicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictWord {
    /// Nothing speaks against the guarantees.
    Applies,
    /// The mix of classes is another one.
    MixDiffers,
    /// The samples are unlike those of training.
    Void,
    /// The batch was not compared.
    NotChecked,
}

impl BatchVerdict {
    /// Describes the verdict of a batch.
    pub fn new(compared: ComparedBatch, sums: Option<&BatchSums>, adapted: Option<MixSource>) -> Self {
        let ComparedBatch { verdict, why_not } = compared;
        let (word, tests) = match verdict {
            Some(Verdict::Applies(tests)) => (VerdictWord::Applies, Some(tests)),
            Some(Verdict::MixDiffers(tests)) => (VerdictWord::MixDiffers, Some(tests)),
            Some(Verdict::Void(tests)) => (VerdictWord::Void, Some(tests)),
            Some(Verdict::NotChecked(_)) | None => (VerdictWord::NotChecked, None),
        };
        let number = |number: fn(&ShiftTests) -> f64| tests.as_ref().map(number);
        let strangest: &[UnusualRow] = sums.filter(|_| tests.is_some()).map_or(&[], |sums| &sums.strangest);
        Self {
            verdict: word,
            why: why_not,
            rows: tests.as_ref().map(|tests| tests.rows),
            strangeness: number(|tests| tests.strangeness),
            mix: number(|tests| tests.mix),
            unusual: number(|tests| tests.unusual),
            adapted,
            strangest: strangest.iter().map(|row| row.name.clone()).collect(),
        }
    }

    /// Describes the verdict in a sentence; `input` is the kind of the inputs, `image` or `vector`.
    pub fn sentence(&self, input: &str) -> String {
        let rows = grouped(self.rows.unwrap_or(0));
        match self.verdict {
            VerdictWord::Applies => match self.adapted {
                None => format!("guarantees apply: these {rows} {input}s are like those that they were shown for"),
                Some(MixSource::Known) => {
                    format!("guarantees apply to these {rows} {input}s, whose mix of classes is as given")
                }
                Some(MixSource::Estimated) => {
                    format!("guarantees are estimates for these {rows} {input}s: their mix of classes is estimated")
                }
            },
            VerdictWord::MixDiffers if self.adapted.is_some() => {
                "the mix of classes differs from the shares of `--mix`, so coverage and precision may too".to_owned()
            }
            VerdictWord::MixDiffers => {
                "the mix of classes differs from that of the held-out labels, so coverage and precision may too: see `--mix`"
                    .to_owned()
            }
            VerdictWord::Void => {
                let share = 100.0 * self.unusual.unwrap_or(0.0);
                let what = if share < 1.0 {
                    format!("these {input}s as a whole are unlike those of training, though few stand out")
                } else {
                    format!("about {share:.0}% of these {input}s are unlike those of training")
                };
                let names: Vec<String> = self.strangest.iter().map(shown).collect();
                format!("guarantees void: {what}; the strangest: {}", names.join(", "))
            }
            VerdictWord::NotChecked => format!("guarantees not checked: {}", self.why),
        }
    }
}

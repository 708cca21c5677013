//! What `calmix monitor` found in the outputs of a model, batch by batch, and its page.

pub mod outcome;

use std::fmt::Write as _;

use calmix_io::text::grouped;

use crate::page::document;
use crate::plot::monitored;

pub use outcome::{ChangeKind, LabelledError, MonitoredBatch, Monitoring};

impl Monitoring {
    /// Describes the outcome in a sentence.
    pub fn headline(&self) -> String {
        let rows: u64 = self.batches.iter().map(|batch| batch.rows).sum();
        let is_void = |batch: &&MonitoredBatch| batch.verdict.as_deref() == Some("void");
        let void = self.batches.iter().filter(is_void).count();
        match (self.alarm, &self.not_compared) {
            (Some(batch), _) => format!(
                "Alarm after batch {batch} of {}: its samples are no longer like those of the reference. {}",
                self.batches.len(),
                match self.changed {
                    Some(ChangeKind::Mean) => "Their mean has moved.",
                    _ => "The distances of single rows from the reference have changed.",
                }
            ),
            (None, Some(why)) => format!("{} rows, not compared with a reference: {why}.", grouped(rows)),
            (None, None) if void > 0 => format!(
                "No alarm, but the verdict on {void} of {} batches alone is void, where one of a hundred is to be expected: see `calmix \
                 predict`.",
                self.batches.len()
            ),
            (None, None) => {
                format!(
                    "No alarm: {} rows in {} batches are like those of the reference.",
                    grouped(rows),
                    self.batches.len()
                )
            }
        }
    }

    /// Describes the error that is estimated without labels, and what that rests on.
    pub fn error_sentence(&self) -> String {
        let rows: u64 = self.batches.iter().map(|batch| batch.rows).sum();
        let wrong = self.batches.iter().map(|batch| batch.rows as f64 * batch.estimated_error.unwrap_or(0.0));
        let mut text = match rows {
            0 => "There are no predictions.".to_owned(),
            rows => format!(
                "Without labels, {:.1}% of the predictions are estimated to be wrong: the mean probability of being wrong, which is right \
                 as long as the probabilities are calibrated for these samples.",
                100.0 * wrong.sum::<f64>() / rows as f64
            ),
        };
        if let Some(LabelledError { labels, wrong, low, high }) = &self.labelled {
            let _ = write!(
                text,
                " Of {} random labels, {} were predicted wrongly: the error is at least {:.1}% and at most {:.1}%, each with 95% \
                 confidence, however often you look.",
                grouped(*labels),
                grouped(*wrong),
                100.0 * low,
                100.0 * high
            );
        }
        text
    }

    /// Writes the page: one HTML file without scripts.
    pub fn page(&self) -> String {
        let title = format!("calmix monitor: {}", self.run);
        let notes = [self.headline(), self.error_sentence()];
        let plots = monitored::views(self);
        document(&title, "calmix monitor", &notes, &plots)
    }
}

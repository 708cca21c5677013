//! What the page gets: a prediction for each row and what the labels say of the error, as one block of little-endian numbers.
//!
//! Ten numbers come first: rows, the kept candidate (its place in [`CANDIDATES`]), labels that the estimate rests on and how many of
//! them are predicted wrong as `u32`; the ends of the 95% interval of the error as `f32`. Then follow the predicted classes as
//! `u32`, their confidences as `f32`, and the margins between the two most likely classes as `f32`.

use calmix_head::fit::Candidate;

/// The heads that are compared, in the order by which the page knows them.
pub const CANDIDATES: [Candidate; 4] =
    [Candidate::LogisticRegression, Candidate::Em, Candidate::BalancedEm, Candidate::LrEm];

/// The predictions of a fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub kept: Candidate,
    pub error: EstimatedError,
    pub predictions: Vec<Prediction>,
}

/// The error of the labels that were drawn at random, each predicted by a head that was fitted without it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct EstimatedError {
    pub labels: u32,
    pub wrong: u32,
    /// The ends of the interval.
    pub low: f32,
    pub high: f32,
}

/// The prediction for a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    pub class: u32,
    /// Calibrated.
    pub confidence: f32,
    /// The difference between the logits of the two most likely classes: the smallest are labelled next.
    pub margin: f32,
}

impl Answer {
    pub fn bytes(&self) -> Vec<u8> {
        let kept =
            CANDIDATES.iter().position(|&candidate| candidate == self.kept).unwrap_or(CANDIDATES.len());
        let EstimatedError { labels, wrong, low, high } = self.error;
        let predictions = &self.predictions;
        let mut words =
            vec![predictions.len() as u32, kept as u32, labels, wrong, low.to_bits(), high.to_bits()];
        words.extend(predictions.iter().map(|prediction| prediction.class));
        words.extend(predictions.iter().map(|prediction| prediction.confidence.to_bits()));
        words.extend(predictions.iter().map(|prediction| prediction.margin.to_bits()));
        words.into_iter().flat_map(u32::to_le_bytes).collect()
    }
}

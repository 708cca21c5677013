//! The answers of several reviews, compared and combined.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::Result;
use calmix_formats::labels::drawn::Drawn;
use calmix_metrics::stats::agreement::Agreement;

use super::merge::upgraded;
use super::review_row::{ReviewFile, ReviewRow};

/// The answers of all reviews.
#[derive(Debug, Default)]
pub(crate) struct CombinedAnswers {
    /// One answer per sample, in the order of the reviews.
    pub(crate) answers: Vec<Answer>,
    /// Samples with several labels, in the order of the reviews.
    pub(crate) disagreements: Vec<Disagreement>,
    /// The agreement of every two reviews that answered the same samples.
    pub(crate) agreements: Vec<ReviewPair>,
    /// The number of rows without an answer, in all reviews.
    pub(crate) unanswered: u64,
}

/// An answer, and the row of the review that it is from.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// The index of the review.
    pub(crate) review: usize,
    pub(crate) row: ReviewRow,
}

/// A sample with several labels.
#[derive(Debug)]
pub(crate) struct Disagreement {
    pub(crate) file: String,
    /// The index of each review that answered, with its label.
    pub(crate) labels: Vec<(usize, String)>,
}

/// The agreement of two reviews, given by their indices.
#[derive(Debug)]
pub(crate) struct ReviewPair {
    pub(crate) first: usize,
    pub(crate) second: usize,
    pub(crate) agreement: Agreement,
}

/// Combines reviews: a sample on which all answers agree has one answer, and a label of one review wins over a skip of another.
pub(crate) fn combine(reviews: &[ReviewFile]) -> Result<CombinedAnswers> {
    let mut combined = CombinedAnswers::default();
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut rows_by_sample: Vec<Vec<(usize, &ReviewRow)>> = Vec::new();
    for (index, review) in reviews.iter().enumerate() {
        for row in &review.rows {
            if !row.is_reviewed() {
                combined.unanswered += 1;
                continue;
            }
            let place = *places.entry(&row.file).or_insert(rows_by_sample.len());
            if place == rows_by_sample.len() {
                rows_by_sample.push(Vec::new());
            }
            rows_by_sample[place].push((index, row));
        }
    }
    for rows in rows_by_sample {
        let labels: BTreeSet<&str> = rows.iter().filter_map(|(_, row)| row.label.as_deref()).collect();
        if labels.len() > 1 {
            let named = rows.iter().filter_map(|(review, row)| Some((*review, row.label.clone()?)));
            let file = rows[0].1.file.clone();
            combined.disagreements.push(Disagreement { file, labels: named.collect() });
            continue;
        }
        let labelled = rows.iter().find(|(_, row)| row.label.is_some());
        let Some((review, row)) = labelled.or(rows.first()) else { continue };
        let mut row = (*row).clone();
        for (_, other) in &rows {
            row.drawn = combined_mark(row.drawn, other.drawn);
        }
        combined.answers.push(Answer { review: *review, row });
    }
    combined.agreements = agreements(reviews)?;
    Ok(combined)
}

/// Returns the mark of a sample that two reviews have: a random draw wins over a chosen one, and any mark over none.
fn combined_mark(mark: Option<Drawn>, other: Option<Drawn>) -> Option<Drawn> {
    match (mark, other) {
        (Some(mark), other) => Some(upgraded(mark, other)),
        (None, other) => other,
    }
}

/// Compares every two reviews on the samples that both answered.
fn agreements(reviews: &[ReviewFile]) -> Result<Vec<ReviewPair>> {
    let mut pairs = Vec::new();
    for first in 0..reviews.len() {
        let answers = labels_of(&reviews[first]);
        for (second, other) in reviews.iter().enumerate().skip(first + 1) {
            let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
            let mut number = |label| {
                let next = numbers.len() as u32;
                *numbers.entry(label).or_insert(next)
            };
            let mut classes = Vec::new();
            let mut other_classes = Vec::new();
            for (file, label) in labels_of(other) {
                if let Some(&answer) = answers.get(file) {
                    classes.push(number(answer));
                    other_classes.push(number(label));
                }
            }
            if !classes.is_empty() {
                let agreement = Agreement::of(&classes, &other_classes)?;
                pairs.push(ReviewPair { first, second, agreement });
            }
        }
    }
    Ok(pairs)
}

/// Returns the label of each answered sample of a review.
fn labels_of(review: &ReviewFile) -> BTreeMap<&str, &str> {
    let answered = review.rows.iter().filter_map(|row| Some((row.file.as_str(), row.label.as_deref()?)));
    answered.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labelling::review_row::RowPlace;

    fn review(rows: &[(&str, &str, Option<Drawn>)]) -> ReviewFile {
        let row = |(line, &(file, label, drawn)): (u64, &(&str, &str, Option<Drawn>))| ReviewRow {
            place: RowPlace::Line(line),
            file: file.into(),
            label: Some(label).filter(|label| !label.is_empty()).map(str::to_owned),
            drawn,
        };
        ReviewFile {
            path: "review.csv".into(),
            part: String::new(),
            rows: (2..).zip(rows).map(row).collect(),
        }
    }

    #[test]
    fn two_people_are_combined() {
        let a = review(&[
            ("same", "cat", Some(Drawn::Chosen)),
            ("other", "cat", Some(Drawn::Random)),
            ("skipped", "", Some(Drawn::Skipped)),
            ("only a", "dog", None),
            ("open", "", Some(Drawn::Random)),
        ]);
        let b = review(&[
            ("other", "dog", Some(Drawn::Random)),
            ("skipped", "dog", Some(Drawn::Random)),
            ("same", "cat", Some(Drawn::ByClass)),
        ]);
        let combined = combine(&[a, b]).unwrap();
        let answers: Vec<_> = combined
            .answers
            .iter()
            .map(|answer| {
                (answer.review, answer.row.file.as_str(), answer.row.label.as_deref(), answer.row.drawn)
            })
            .collect();
        assert_eq!(
            answers,
            [
                (0, "same", Some("cat"), Some(Drawn::ByClass)),
                (1, "skipped", Some("dog"), Some(Drawn::Random)),
                (0, "only a", Some("dog"), None),
            ]
        );
        let [disagreement] = combined.disagreements.as_slice() else { panic!("{combined:?}") };
        assert_eq!(disagreement.file, "other");
        assert_eq!(disagreement.labels, [(0, "cat".to_owned()), (1, "dog".to_owned())]);
        assert_eq!(combined.unanswered, 1);
        let [pair] = combined.agreements.as_slice() else { panic!("{combined:?}") };
        assert_eq!((pair.first, pair.second), (0, 1));
        assert_eq!((pair.agreement.samples, pair.agreement.same), (2, 1));
    }

    #[test]
    fn reviews_of_different_samples_have_no_agreement() {
        let combined = combine(&[review(&[("a", "cat", None)]), review(&[("b", "cat", None)])]).unwrap();
        assert!(combined.agreements.is_empty() && combined.disagreements.is_empty());
        assert_eq!(combined.answers.len(), 2);
    }
}

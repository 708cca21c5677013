//! What the answers of an audit show.

use std::collections::BTreeMap;

use anyhow::Result;
use calmix_io::text::{counted, grouped};
use calmix_metrics::stats::share_sequence::{AuditedRow, ShareOutcome, test_shares};
use serde::{Deserialize, Serialize};

use super::answers::{EffectiveAnswers, LoggedAnswer, effective};
use super::labels_file::LabelsFile;
use super::plan::AuditPlan;

/// What the answers show, computed from the labels, the plan and the log of answers alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AuditResult {
    /// The number of certified rows, the first of `labels.csv`; 0 if nothing is certified.
    pub(crate) certified_rows: u64,
    pub(crate) shares: Vec<ShareResult>,
    /// Answers that a later version of their review changed.
    pub(crate) changed_answers: u64,
    /// Rows with answers of several reviews.
    pub(crate) answered_twice: u64,
    /// Those on which they differ.
    pub(crate) disagreements: u64,
}

/// What the answers show of one share.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShareResult {
    pub(crate) rows: u64,
    /// Answers on its rows in the order of the draw, up to the first unanswered one.
    pub(crate) answers: u64,
    pub(crate) wrong: u64,
    /// The largest share of errors that is still possible, at the level of this share alone.
    pub(crate) highest_error: f64,
    /// After how many answers the limit was shown.
    pub(crate) shown_at: Option<u64>,
    pub(crate) is_certified: bool,
}

impl From<ShareOutcome> for ShareResult {
    fn from(share: ShareOutcome) -> Self {
        Self {
            rows: share.rows,
            answers: share.counts.answers,
            wrong: share.counts.wrong,
            highest_error: share.high,
            shown_at: share.shown_at,
            is_certified: share.is_certified,
        }
    }
}

impl AuditResult {
    /// Computes what the answers show.
    ///
    /// # Errors
    /// If the plan is not one for these labels.
    pub(crate) fn of(labels: &LabelsFile, plan: &AuditPlan, log: &[LoggedAnswer]) -> Result<Self> {
        let (answers, changed_answers) = effective(log);
        let order = audited_order(labels, plan, &answers);
        let shares = test_shares(&plan.shares, &order, plan.error, plan.delta)?;
        let twice = answers.values().filter(|answers| answers.len() > 1);
        let differ = |answers: &&BTreeMap<&str, Option<&str>>| {
            let mut labels = answers.values();
            let first = labels.next();
            labels.any(|label| Some(label) != first)
        };
        let certified = shares.iter().rfind(|share| share.is_certified);
        Ok(Self {
            certified_rows: certified.map_or(0, |share| share.rows),
            changed_answers,
            answered_twice: twice.clone().count() as u64,
            disagreements: twice.filter(differ).count() as u64,
            shares: shares.into_iter().map(ShareResult::from).collect(),
        })
    }

    /// Returns the first share that is not certified.
    pub(crate) fn next_share(&self) -> Option<&ShareResult> {
        self.shares.iter().find(|share| !share.is_certified)
    }

    /// Returns the largest certified share.
    pub(crate) fn certified(&self) -> Option<&ShareResult> {
        self.shares.iter().rfind(|share| share.is_certified)
    }
}

/// Returns the rows of the audit in the order of the draw. A row is right if every auditor who answered it gave the predicted label.
fn audited_order(labels: &LabelsFile, plan: &AuditPlan, answers: &EffectiveAnswers<'_>) -> Vec<AuditedRow> {
    let row = |(place, rank): (u64, u64)| {
        let expected = labels.predicted(rank);
        let is_wrong = answers.get(&place).map(|answers| answers.values().any(|&answer| answer != expected));
        AuditedRow { rank, is_wrong }
    };
    (0..).zip(plan.order()).map(row).collect()
}

/// Returns the rows of the audit with what the log of answers says of them.
pub(crate) fn audited_rows(labels: &LabelsFile, plan: &AuditPlan, log: &[LoggedAnswer]) -> Vec<AuditedRow> {
    audited_order(labels, plan, &effective(log).0)
}

/// Returns what a certificate claims, and what it does not.
pub(crate) fn claims(pool_rows: u64, plan: &AuditPlan, result: &AuditResult) -> [String; 2] {
    let limit = percent(plan.error);
    let confidence = percent(1.0 - plan.delta);
    let claim = match result.certified() {
        Some(share) => format!(
            "At most {limit} of the first {} labels in labels.csv are wrong, with {confidence} confidence: the model labelled {} of \
             the {} of this pool, and an audit of {} drawn at random from these found {} wrong.",
            grouped(share.rows),
            share_of_pool(share.rows, pool_rows),
            counted(pool_rows, "sample"),
            counted(share.answers, "row"),
            grouped(share.wrong),
        ),
        None => format!(
            "Nothing is certified: the audit has not shown that at most {limit} of the labels are wrong."
        ),
    };
    let limits = "The answers of the auditors count as the truth; nothing is claimed of single labels, of single classes or of samples \
                  outside this pool, and this file is not a signature: whoever can change it can write another.";
    [claim, limits.to_owned()]
}

/// Formats the share of the pool that these rows are, rounded down to a tenth of a per cent: 100% is all of it.
pub(crate) fn share_of_pool(rows: u64, pool_rows: u64) -> String {
    percent((1000.0 * rows as f64 / pool_rows.max(1) as f64).floor() / 1000.0)
}

/// Formats an upper bound on a share, rounded up to a tenth of a per cent.
pub(crate) fn upper_bound(share: f64) -> String {
    percent((1000.0 * share).ceil() / 1000.0)
}

/// Formats a share with at most four digits behind the point of a percentage.
pub(crate) fn percent(share: f64) -> String {
    let rounded = (share * 1e6).round() / 1e4;
    // A share below one is not shown as 100%.
    if share < 1.0 && rounded >= 100.0 { "more than 99.99%".to_owned() } else { format!("{rounded}%") }
}

#[cfg(test)]
mod tests {
    use super::super::digest::sha256;
    use super::super::labels_file::LabelRow;
    use super::*;

    fn frozen() -> (LabelsFile, AuditPlan) {
        let row = |id: usize| LabelRow {
            id: format!("{id:04}"),
            predicted: Some(("cat".to_owned(), if id < 500 { 0.995 } else { 0.96 })),
            content: sha256(b""),
        };
        let labels = LabelsFile::new((0..1_000).map(row).collect()).unwrap().0;
        let plan = AuditPlan::of(&labels, 0.05, 0.05);
        (labels, plan)
    }

    fn answers(
        labels: &LabelsFile,
        plan: &AuditPlan,
        count: usize,
        label: impl Fn(u64) -> Option<&'static str>,
    ) -> Vec<LoggedAnswer> {
        let order = plan.order();
        let answer = |place: usize| LoggedAnswer {
            place: place as u64,
            id: labels.rows[order[place] as usize].id.clone(),
            review: "anna".to_owned(),
            label: label(place as u64).map(str::to_owned),
            time: String::new(),
        };
        (0..count).map(answer).collect()
    }

    #[test]
    fn right_answers_certify_and_skipped_ones_are_wrong() {
        let (labels, plan) = frozen();
        assert_eq!(plan.shares.len(), 3);
        let log = answers(&labels, &plan, 300, |_| Some("cat"));
        let result = AuditResult::of(&labels, &plan, &log).unwrap();
        assert_eq!(result.certified_rows, plan.shares[2]);
        assert!(result.next_share().is_none());
        let [claim, _] = claims(2_000, &plan, &result);
        assert!(claim.starts_with("At most 5% of the first "), "{claim}");
        let log = answers(&labels, &plan, 300, |place| (place % 5 > 0).then_some("cat"));
        let result = AuditResult::of(&labels, &plan, &log).unwrap();
        assert_eq!((result.certified_rows, result.shares[2].wrong), (0, 60));
        assert!(claims(2_000, &plan, &result)[0].starts_with("Nothing is certified"));
    }

    #[test]
    fn second_auditor_who_disagrees_makes_a_row_wrong() {
        let (labels, plan) = frozen();
        let mut log = answers(&labels, &plan, 80, |_| Some("cat"));
        let mut other = answers(&labels, &plan, 10, |place| Some(if place == 3 { "dog" } else { "cat" }));
        for answer in &mut other {
            answer.review = "ben".to_owned();
        }
        log.extend(other);
        let result = AuditResult::of(&labels, &plan, &log).unwrap();
        assert_eq!((result.answered_twice, result.disagreements), (10, 1));
        assert_eq!((result.shares[2].answers, result.shares[2].wrong), (80, 1));
    }

    #[test]
    fn percentages_are_short() {
        let texts = [0.05, 0.07, 0.999_999_9, 1.0, 0.333_333].map(percent);
        assert_eq!(texts, ["5%", "7%", "more than 99.99%", "100%", "33.3333%"]);
        assert_eq!([share_of_pool(882, 1_797), share_of_pool(9_999, 10_000)], ["49%", "99.9%"]);
        assert_eq!([0.029_478, 0.05, 1.0].map(upper_bound), ["3%", "5%", "100%"]);
    }
}

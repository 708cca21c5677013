//! Recomputes a certificate.

use std::collections::HashMap;
use std::path::Path;

use anyhow::Result;
use calmix_io::shown::shown;

use super::contents::{image_content, vector_contents};
use super::document::{Certificate, PoolKind};
use super::labels_file::LabelsFile;
use super::plan::{AuditPlan, check_error};
use super::result::{AuditResult, claims};

/// What a verification found. It has no problems if everything is as the certificate says.
#[derive(Debug, Default)]
pub(crate) struct Verification {
    pub(crate) problems: Vec<String>,
}

impl Verification {
    /// Recomputes everything that does not need the pool itself.
    ///
    /// # Errors
    /// If the plan is not one that calmix makes, so that nothing can be computed from it.
    pub(crate) fn of(certificate: &Certificate, is_intact: bool, labels: &LabelsFile) -> Result<Self> {
        let mut found = Self::default();
        found.check(is_intact, "the hash of certificate.json is not that of its content");
        let is_same = labels.sha256 == certificate.labels_sha256;
        found.check(is_same, "labels.csv is not the file that was certified: its hash is another one");
        let pool = &certificate.pool;
        found.check(
            labels.rows.len() as u64 == pool.rows,
            "labels.csv has another number of rows than the pool",
        );
        found.check(labels.fingerprint() == pool.fingerprint, "the fingerprint of the pool is another one");
        let plan = &certificate.plan;
        let is_possible = check_error(plan.error).is_ok() && plan.delta > 0.0 && plan.delta < 1.0;
        found.check(is_possible, "the limit or its confidence is impossible");
        if !is_possible {
            return Ok(found);
        }
        let expected = AuditPlan::of(labels, plan.error, plan.delta);
        found.check(expected.shares == plan.shares, "the shares are not those of the scores");
        found.check(expected.seed == plan.seed, "the seed is not the hash of pool, labels and plan");
        found.check(expected.order_sha256 == plan.order_sha256, "the order is not that of the seed");
        found.check_answers(certificate, labels, &expected);
        let result = AuditResult::of(labels, &expected, &certificate.answers)?;
        found.check(result == certificate.result, "the answers show something else than the result says");
        let claims = claims(pool.rows, &expected, &result);
        found.check(claims[..] == certificate.claims[..], "the claims are not what the answers show");
        Ok(found)
    }

    fn check(&mut self, is_right: bool, problem: &str) {
        if !is_right {
            self.problems.push(problem.to_owned());
        }
    }

    /// Checks that every answer is about the row at its place in the order.
    fn check_answers(&mut self, certificate: &Certificate, labels: &LabelsFile, plan: &AuditPlan) {
        let order = plan.order();
        for answer in &certificate.answers {
            let rank = usize::try_from(answer.place).ok().and_then(|place| order.get(place));
            let row = rank.and_then(|&rank| labels.rows.get(rank as usize));
            if row.is_none_or(|row| row.id != answer.id) {
                let id = shown(&answer.id);
                self.problems.push(format!("place {} of the order is not {id}", answer.place));
            }
        }
    }
}

/// Compares the content of every row of `labels.csv` with the pool; returns what differs. `on_row` is called with the number of
/// rows so far; verification ends early if it returns `false`.
///
/// # Errors
/// If vectors cannot be read at all.
pub(crate) fn verify_contents(
    kind: PoolKind,
    data: &Path,
    vector_column: Option<&str>,
    labels: &LabelsFile,
    on_row: &mut dyn FnMut(usize) -> bool,
) -> Result<Vec<String>> {
    let vectors = match kind {
        PoolKind::Vectors => vector_contents(data, vector_column)?,
        PoolKind::Images => HashMap::new(),
    };
    let mut problems = Vec::new();
    for (index, row) in labels.rows.iter().enumerate() {
        if !on_row(index) {
            break;
        }
        let found = match kind {
            PoolKind::Vectors => vectors.get(&row.id).cloned().ok_or_else(|| "is missing".to_owned()),
            PoolKind::Images => image_content(data, &row.id).map_err(|error| error.to_string()),
        };
        match found {
            Ok(content) if content == row.content => {}
            Ok(_) => problems.push(format!("{} has changed", shown(&row.id))),
            Err(problem) => problems.push(format!("{}: {}", shown(&row.id), shown(problem))),
        }
    }
    Ok(problems)
}

#[cfg(test)]
mod tests;

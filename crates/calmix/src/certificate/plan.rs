//! What is audited: nested shares of the most confident rows, and a random order of the largest.

use anyhow::Result;
use calmix_core::rng::{Domain, Seed};
use serde::{Deserialize, Serialize};

use super::digest::sha256;
use super::labels_file::LabelsFile;

/// The mean predicted errors of the shares, as parts of the limit.
const PARTS: [f64; 3] = [0.2, 1.0 / 3.0, 0.5];
/// A smaller share than this part of the next one is left out: its answers would be too rare among those of the next.
const MIN_PART_OF_NEXT: f64 = 0.1;
/// The hexadecimal digits of the seed, the first of a hash.
const SEED_DIGITS: usize = 16;

/// The limit, the shares and the draw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AuditPlan {
    /// At most this share of the certified labels may be wrong.
    pub(crate) error: f64,
    /// The probability with which a certificate may be false.
    pub(crate) delta: f64,
    /// The number of rows of each share: the first rows of `labels.csv`, increasing.
    pub(crate) shares: Vec<u64>,
    /// 16 hexadecimal digits.
    pub(crate) seed: String,
    /// SHA-256 of the ids in the order of the draw, each followed by a line feed.
    pub(crate) order_sha256: String,
}

impl AuditPlan {
    /// Plans the audit of frozen labels. There are no shares if the model is not confident enough.
    pub(crate) fn of(labels: &LabelsFile, error: f64, delta: f64) -> Self {
        let shares = shares(labels, error);
        let sizes: Vec<String> = shares.iter().map(u64::to_string).collect();
        let committed =
            format!("{}\n{}\n{error}\n{delta}\n{}\n", labels.sha256, labels.fingerprint(), sizes.join(","));
        let mut seed = sha256(committed.as_bytes());
        seed.truncate(SEED_DIGITS);
        let mut plan = Self { error, delta, shares, seed, order_sha256: String::new() };
        let mut ids = String::new();
        for rank in plan.order() {
            ids.extend([labels.rows[rank as usize].id.as_str(), "\n"]);
        }
        plan.order_sha256 = sha256(ids.as_bytes());
        plan
    }

    /// Returns the ranks of the largest share in the order of the draw: sorted by a random number of each.
    pub(crate) fn order(&self) -> Vec<u64> {
        let seed = Seed(u64::from_str_radix(&self.seed, 16).unwrap_or_default());
        let rows = self.shares.last().copied().unwrap_or_default();
        let mut order: Vec<u64> = (0..rows).collect();
        order.sort_by_cached_key(|&rank| (seed.stream(Domain::AuditOrder, 0, rank).next_u64(), rank));
        order
    }
}

/// Returns the number of rows of each share: as many as have a mean predicted error of at most a part of the limit.
fn shares(labels: &LabelsFile, error: f64) -> Vec<u64> {
    let mut sizes = [0; PARTS.len()];
    let mut sum = 0.0;
    let predicted = labels.rows.iter().filter_map(|row| row.predicted.as_ref());
    for (rows, (_, score)) in (1_u64..).zip(predicted) {
        sum += 1.0 - score;
        for (size, part) in sizes.iter_mut().zip(PARTS) {
            if sum <= part * error * rows as f64 {
                *size = rows;
            }
        }
    }
    let mut shares: Vec<u64> = Vec::new();
    for size in sizes.into_iter().rev().filter(|&size| size > 0) {
        let is_kept =
            shares.first().is_none_or(|&next| size < next && size as f64 >= MIN_PART_OF_NEXT * next as f64);
        if is_kept {
            shares.insert(0, size);
        }
    }
    shares
}

/// Refuses a limit that no audit of an ordinary size could show, or that says nothing.
pub(crate) fn check_error(error: f64) -> Result<(), String> {
    if (0.001..=0.5).contains(&error) {
        Ok(())
    } else {
        Err("expected a share from 0.001 to 0.5, such as 0.05".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::super::labels_file::LabelRow;
    use super::*;

    fn labels(scores: impl IntoIterator<Item = f64>) -> LabelsFile {
        let row = |(id, score): (usize, f64)| LabelRow {
            id: format!("{id:04}"),
            predicted: Some(("cat".to_owned(), score)),
            content: sha256(b""),
        };
        LabelsFile::new(scores.into_iter().enumerate().map(row).collect()).unwrap().0
    }

    #[test]
    fn shares_have_the_predicted_error_of_their_part() {
        // The score falls from 1 by 0.0001 per row: the mean error of n rows is (n − 1)/20,000.
        let labels = labels((0..2_000).map(|n| 1.0 - 0.0001 * f64::from(n)));
        let plan = AuditPlan::of(&labels, 0.06, 0.05);
        for (share, part) in plan.shares.iter().zip(PARTS) {
            let expected = part * 0.06 * 20_000.0 + 1.0;
            assert!((*share as f64 - expected).abs() <= 1.0, "{share} {expected}");
        }
        let mut order = plan.order();
        assert_ne!(order[..20], (0..20).collect::<Vec<_>>());
        order.sort_unstable();
        assert_eq!(order, (0..plan.shares[2]).collect::<Vec<_>>());
        // Another limit is another draw.
        assert_ne!(AuditPlan::of(&labels, 0.05, 0.05).seed, plan.seed);
    }

    #[test]
    fn small_and_equal_shares_are_left_out() {
        // Three certain rows, and then only such as the largest share takes.
        let few = labels((0..1_000).map(|n| if n < 3 { 1.0 } else { 0.975 }));
        assert_eq!(AuditPlan::of(&few, 0.05, 0.05).shares, [1_000]);
        assert_eq!(AuditPlan::of(&labels([1.0; 50]), 0.05, 0.05).shares, [50]);
        assert_eq!(AuditPlan::of(&labels([0.5; 50]), 0.05, 0.05).shares, [0; 0]);
        assert!(check_error(0.05).is_ok() && check_error(0.0).is_err() && check_error(f64::NAN).is_err());
    }

    /// The order is a part of certificates.
    #[test]
    fn order_does_not_change() {
        let plan = AuditPlan {
            error: 0.05,
            delta: 0.05,
            shares: vec![6],
            seed: "0123456789abcdef".to_owned(),
            order_sha256: String::new(),
        };
        // Computed by the verifier in tests/cli/verify_certificate.py.
        assert_eq!(plan.order(), [1, 5, 3, 4, 0, 2]);
    }
}

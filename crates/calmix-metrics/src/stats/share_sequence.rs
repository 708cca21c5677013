//! Nested shares of a pool, tested from the smallest to the largest on the answers of one audit.
//!
//! The rows of a pool are ranked; a share is its first so many rows. One random order of the largest share is answered. The rows of
//! a smaller share among them are in a random order too, so each share has a [`LimitTest`] of its own on its own rows, up to its
//! first unanswered one. Each is tested at the same δ, and a larger share only counts if the smaller ones are certified. The first
//! share with too many errors is then certified with probability at most δ, and a later one not without it: the whole sequence
//! is certified falsely with probability at most δ.

use super::anytime_bound::{AnswerCounts, ErrorBound, LimitTest};
use crate::checked;
use crate::error::MetricsError;

/// One row of the random order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditedRow {
    /// The rank of the row in the pool, from zero.
    pub rank: u64,
    /// Whether the prediction is wrong; `None` before the answer.
    pub is_wrong: Option<bool>,
}

/// What the answers say of one share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShareOutcome {
    /// The number of rows of the share.
    pub rows: u64,
    /// The answers on its rows, up to the first unanswered one.
    pub counts: AnswerCounts,
    /// The largest share of errors that is still possible, at the level of this test alone.
    pub high: f64,
    /// After how many of these answers its own test showed the limit.
    pub shown_at: Option<u64>,
    /// Whether this share and all smaller ones have shown the limit.
    pub is_certified: bool,
}

/// Tests shares of a pool for having at most a share `limit` of errors. `sizes` are the numbers of rows of the shares, increasing.
///
/// ```
/// use calmix_metrics::stats::share_sequence::{AuditedRow, test_shares};
///
/// // Of 1,000 rows every second one belongs to the smaller share; nothing is wrong.
/// let order: Vec<AuditedRow> =
///     (0..200).map(|row| AuditedRow { rank: row % 2 * 500 + row, is_wrong: Some(false) }).collect();
/// let shares = test_shares(&[500, 1_000], &order, 0.05, 0.05)?;
/// assert!(shares[0].is_certified && shares[1].is_certified);
/// assert_eq!((shares[0].counts.answers, shares[1].counts.answers), (100, 200));
/// # Ok::<(), calmix_metrics::error::MetricsError>(())
/// ```
///
/// # Errors
/// If the sizes do not increase from at least 1, an audited row is not in the largest share, or the limit or delta is not
/// between 0 and 1.
pub fn test_shares(
    sizes: &[u64],
    order: &[AuditedRow],
    limit: f64,
    delta: f64,
) -> Result<Vec<ShareOutcome>, MetricsError> {
    let mut smaller = 0;
    for &rows in sizes {
        checked::parameter("size of a share", rows as f64, "larger than the one before", |_| rows > smaller)?;
        smaller = rows;
    }
    if let Some(row) = order.iter().find(|row| row.rank >= smaller) {
        let allowed = "below the size of the largest share";
        return Err(MetricsError::Parameter { what: "rank of a row", value: row.rank as f64, allowed });
    }
    let mut shares = Vec::with_capacity(sizes.len());
    let mut is_certified = true;
    for &rows in sizes {
        let mut test = LimitTest::new(Some(rows), limit, delta)?;
        let mut bound = ErrorBound::new(Some(rows), delta)?;
        for row in order.iter().filter(|row| row.rank < rows) {
            let Some(is_wrong) = row.is_wrong else { break };
            test.observe(is_wrong)?;
            bound.observe(is_wrong)?;
        }
        is_certified &= test.shown_at().is_some();
        let outcome = ShareOutcome {
            rows,
            counts: test.counts(),
            high: bound.high(),
            shown_at: test.shown_at(),
            is_certified,
        };
        shares.push(outcome);
    }
    Ok(shares)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(rows: impl IntoIterator<Item = (u64, Option<bool>)>) -> Vec<AuditedRow> {
        rows.into_iter().map(|(rank, is_wrong)| AuditedRow { rank, is_wrong }).collect()
    }

    #[test]
    fn each_share_ends_at_its_own_unanswered_row() {
        // Row 700 belongs to the larger share only, so the smaller one goes on after it.
        let rows = (0..200).map(|row| (row, Some(false))).chain([(700, None)]);
        let rows = rows.chain((200..300).map(|row| (row, Some(false))));
        let shares = test_shares(&[500, 1_000], &order(rows), 0.05, 0.05).unwrap();
        assert_eq!((shares[0].counts.answers, shares[1].counts.answers), (300, 200));
    }

    #[test]
    fn larger_share_needs_the_smaller_one() {
        // Every tenth row of the smaller share is wrong, no other one.
        let rows = (0..1_000).map(|row| (row, Some(row < 100 && row % 10 == 0)));
        let shares = test_shares(&[100, 1_000], &order(rows), 0.05, 0.05).unwrap();
        assert!(shares[0].shown_at.is_none() && shares[1].shown_at.is_some());
        assert!(!shares[0].is_certified && !shares[1].is_certified);
        // All rows are answered: the bound is what they say.
        assert_eq!((shares[0].high, shares[1].high), (0.1, 0.01));
    }

    #[test]
    fn wrong_sizes_and_ranks_are_refused() {
        assert!(test_shares(&[10, 10], &[], 0.05, 0.05).is_err());
        assert!(test_shares(&[0, 10], &[], 0.05, 0.05).is_err());
        assert!(test_shares(&[10], &order([(10, None)]), 0.05, 0.05).is_err());
        assert!(test_shares(&[10], &[], 0.0, 0.05).is_err());
        assert_eq!(test_shares(&[], &[], 0.05, 0.05).unwrap(), []);
    }
}

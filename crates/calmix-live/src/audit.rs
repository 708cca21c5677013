//! What the answers of an audit show so far, computed as `calmix certify` will.
//!
//! A request has the number of shares and that of rows as `u32`, the limit and δ as `f64`, the size of each share as `u32`, and for each
//! row of the random order its rank and its answer as `u32`: 0 for right, 1 for wrong, 2 for none yet. The answer has five `f64` for
//! each share: its rows, the answers on them, how many are wrong, the largest share of errors that is still possible, and 1 if the
//! share is certified.

use calmix_metrics::stats::share_sequence::{AuditedRow, test_shares};

/// The words before the sizes of the shares: two numbers, and two of twice the size.
const HEADER: usize = 6;
/// Rows in memory, so that a size that a damaged page claims is refused.
const MAX_ROWS: usize = 1 << 24;

/// An audit that the page asks about.
#[derive(Debug, Clone, PartialEq)]
pub struct Audit {
    pub limit: f64,
    pub delta: f64,
    /// The number of rows of each share, increasing.
    pub sizes: Vec<u64>,
    pub order: Vec<AuditedRow>,
}

impl Audit {
    /// Reads a request.
    ///
    /// # Errors
    /// If its sizes contradict its length, or an answer is none of the three.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let words: Vec<u32> = bytes
            .chunks_exact(4)
            .map(|word| match word {
                [a, b, c, d] => u32::from_le_bytes([*a, *b, *c, *d]),
                _ => 0,
            })
            .collect();
        let (Some((header, rest)), true) =
            (words.split_first_chunk::<HEADER>(), bytes.len().is_multiple_of(4))
        else {
            return Err(format!("{} bytes are no request about an audit", bytes.len()));
        };
        let [shares, rows, limit_low, limit_high, delta_low, delta_high] = *header;
        let [shares, rows] = [shares, rows].map(|count| count as usize);
        if shares.max(rows) > MAX_ROWS || rest.len() != shares + 2 * rows {
            return Err(format!(
                "{} bytes, but {shares} shares and {rows} rows have another length",
                bytes.len()
            ));
        }
        let (sizes, pairs) = rest.split_at(shares);
        let row = |pair: &[u32]| match *pair {
            [rank, 0] => Ok(AuditedRow { rank: rank.into(), is_wrong: Some(false) }),
            [rank, 1] => Ok(AuditedRow { rank: rank.into(), is_wrong: Some(true) }),
            [rank, 2] => Ok(AuditedRow { rank: rank.into(), is_wrong: None }),
            _ => Err(format!("{pair:?} cannot be a row of an audit")),
        };
        Ok(Self {
            limit: join(limit_low, limit_high),
            delta: join(delta_low, delta_high),
            sizes: sizes.iter().map(|&size| size.into()).collect(),
            order: pairs.chunks_exact(2).map(row).collect::<Result<_, _>>()?,
        })
    }

    /// Tests the shares.
    ///
    /// # Errors
    /// If there is no such audit.
    pub fn answer(&self) -> Result<Vec<u8>, String> {
        let shares = test_shares(&self.sizes, &self.order, self.limit, self.delta)
            .map_err(|error| error.to_string())?;
        let numbers = shares.into_iter().flat_map(|share| {
            let [rows, answers, wrong] =
                [share.rows, share.counts.answers, share.counts.wrong].map(|count| count as f64);
            [rows, answers, wrong, share.high, f64::from(u8::from(share.is_certified))]
        });
        Ok(numbers.flat_map(f64::to_le_bytes).collect())
    }
}

fn join(low: u32, high: u32) -> f64 {
    f64::from_bits(u64::from(low) | u64::from(high) << 32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::respond;

    /// 70 answers on the first of two shares, one of them wrong, and an unanswered row, as the page writes them.
    fn words() -> Vec<u32> {
        let mut words = vec![1, 2, 71];
        for number in [0.05_f64, 0.05] {
            words.extend([number.to_bits() as u32, (number.to_bits() >> 32) as u32]);
        }
        words.extend([500, 1_000]);
        words.extend((0..70).flat_map(|rank| [rank, u32::from(rank == 69)]));
        words.extend([600, 2]);
        words
    }

    fn bytes(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn answer_is_that_of_the_test() {
        let answer = respond(&bytes(&words())).unwrap();
        let numbers: Vec<f64> =
            answer.chunks_exact(8).map(|number| f64::from_le_bytes(number.try_into().unwrap())).collect();
        let order: Vec<AuditedRow> = (0..70)
            .map(|rank| AuditedRow { rank, is_wrong: Some(rank == 69) })
            .chain([AuditedRow { rank: 600, is_wrong: None }])
            .collect();
        let shares = test_shares(&[500, 1_000], &order, 0.05, 0.05).unwrap();
        assert!(shares[0].is_certified, "66 right answers suffice, and the wrong one comes later");
        assert_eq!(numbers[..5], [500.0, 70.0, 1.0, shares[0].high, 1.0]);
        assert_eq!(numbers[5..], [1_000.0, 70.0, 1.0, shares[1].high, 1.0]);
    }

    #[test]
    fn requests_that_contradict_themselves_are_refused() {
        let whole = bytes(&words());
        for length in 0..whole.len() {
            assert!(respond(&whole[..length]).is_err(), "{length}");
        }
        assert!(respond(&[&whole[..], &[0]].concat()).is_err());
        // Kind, counts, limit, sizes, a rank, an answer.
        for (place, value) in
            [(0, 2), (1, u32::MAX), (2, u32::MAX), (4, u32::MAX), (7, 1_000), (9, 1_000), (10, 3)]
        {
            let mut damaged = words();
            damaged[place] = value;
            assert!(respond(&bytes(&damaged)).is_err(), "{place}");
        }
    }
}

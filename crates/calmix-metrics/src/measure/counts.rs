//! Counts of rows: once each, or as often as they were drawn.

/// The count of each row of a set: one in the set itself, the number of draws in a resampled one.
///
/// A measure that is computed on many resampled sets prepares its rows once and is then computed for any counts of
/// these rows. The measure of the set itself counts every row once.
///
/// ```
/// use calmix_metrics::measure::Counts;
///
/// let mut counts = Counts::once(3);
/// assert_eq!(counts.mean(&[0.5, 1.0, 3.0]), 1.5);
/// counts.draw(&[2, 0, 2, 2]);
/// assert_eq!(counts.total(), 4.0);
/// assert_eq!(counts.share(&[true, true, false]), 0.25);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Counts {
    /// Whole numbers, as f64 because they are multiplied with f64.
    of_row: Vec<f64>,
    total: f64,
}

impl Counts {
    /// Counts every row once.
    pub fn once(rows: usize) -> Self {
        Self { of_row: vec![1.0; rows], total: rows as f64 }
    }

    /// Counts each row as often as it is among the `drawn`.
    ///
    /// # Panics
    /// If a drawn row does not exist.
    pub fn draw(&mut self, drawn: &[usize]) {
        self.of_row.fill(0.0);
        for &row in drawn {
            self.of_row[row] += 1.0;
        }
        self.total = drawn.len() as f64;
    }

    /// Returns the sum of all counts.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// Returns the weighted mean of one number per row; zero if the total is zero.
    pub fn mean(&self, of_row: &[f64]) -> f64 {
        let sum: f64 = self.of_row.iter().zip(of_row).map(|(count, x)| count * x).sum();
        sum / self.total.max(1.0)
    }

    /// Returns the weighted share of marked rows; zero if the total is zero.
    pub fn share(&self, marked: &[bool]) -> f64 {
        let rows = self.of_row.iter().zip(marked);
        let sum = rows.fold(0.0, |sum, (count, &marked)| sum + count * f64::from(u8::from(marked)));
        sum / self.total.max(1.0)
    }

    /// Returns the count of every row, a whole number.
    pub(super) fn of_row(&self) -> &[f64] {
        &self.of_row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undrawn_rows_do_not_count() {
        let mut counts = Counts::once(3);
        counts.draw(&[1, 1]);
        assert_eq!((counts.of_row(), counts.total()), (&[0.0, 2.0, 0.0][..], 2.0));
        assert_eq!(counts.mean(&[7.0, 3.0, 7.0]), 3.0);
        assert_eq!(counts.share(&[true, false, true]), 0.0);
    }

    #[test]
    fn no_rows_have_mean_zero() {
        let mut counts = Counts::once(2);
        counts.draw(&[]);
        assert_eq!((counts.mean(&[1.0, 1.0]), counts.share(&[true, true])), (0.0, 0.0));
        assert_eq!((Counts::once(0).mean(&[]), Counts::once(0).share(&[])), (0.0, 0.0));
    }
}

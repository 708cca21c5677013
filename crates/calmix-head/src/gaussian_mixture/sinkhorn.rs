//! Sinkhorn's algorithm (1967): rows stay distributions, columns reach given sums.

use crate::error::HeadError;
use crate::progress::FitProgress;

/// The number of rounds, each of which scales columns, then rows. The rows are exact afterwards, the columns nearly so.
const ROUNDS: usize = 5;

/// Balances rows of probabilities in place, so that the mean of each column comes near its share of `shares`.
///
/// A column without any probability stays as it is. The sums are in f64, row by row.
///
/// # Errors
/// If the fit has to stop.
pub(crate) fn balance(
    probabilities: &mut [f32],
    shares: &[f64],
    progress: &FitProgress<'_>,
) -> Result<(), HeadError> {
    let classes = shares.len().max(1);
    let rows = (probabilities.len() / classes) as f64;
    let mut sums = vec![0.0_f64; classes];
    let mut factors = vec![1.0_f32; classes];
    for _ in 0..ROUNDS {
        progress.check_stop()?;
        sums.fill(0.0);
        for row in probabilities.chunks_exact(classes) {
            sums.iter_mut().zip(row).for_each(|(sum, &p)| *sum += f64::from(p));
        }
        for ((factor, sum), share) in factors.iter_mut().zip(&sums).zip(shares) {
            *factor = if *sum > 0.0 { (share * rows / sum) as f32 } else { 1.0 };
        }
        for row in probabilities.chunks_exact_mut(classes) {
            row.iter_mut().zip(&factors).for_each(|(p, factor)| *p *= factor);
            let sum: f32 = row.iter().sum();
            // A row may have had all its probability in a class whose share is zero.
            if sum > 0.0 && sum.is_finite() {
                for p in row {
                    *p /= sum;
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn sinkhorn_reaches_the_marginals() {
        let classes = 4;
        let shares = [0.4, 0.3, 0.2, 0.1];
        let number = |n: usize| 0.05 + ((n * 7_919 + 13) % 101) as f32 / 101.0;
        let mut rows: Vec<f32> = (0..300 * classes).map(number).collect();
        for row in rows.chunks_exact_mut(classes) {
            let sum: f32 = row.iter().sum();
            for p in row {
                *p /= sum;
            }
        }
        balance(&mut rows, &shares, &FitProgress::new(&AtomicBool::new(false))).unwrap();
        for row in rows.chunks_exact(classes) {
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-6);
        }
        for (class, share) in shares.iter().enumerate() {
            let mean = rows.iter().skip(class).step_by(classes).sum::<f32>() / 300.0;
            assert!((f64::from(mean) - share).abs() < 2e-3, "{class}: {mean}");
        }
    }

    #[test]
    fn sinkhorn_of_an_empty_column_is_finite() {
        let mut rows = [1.0, 0.0, 1.0, 0.0];
        let stop = AtomicBool::new(false);
        balance(&mut rows, &[0.5, 0.5], &FitProgress::new(&stop)).unwrap();
        assert_eq!(rows, [1.0, 0.0, 1.0, 0.0]);
        balance(&mut [], &[0.5, 0.5], &FitProgress::new(&stop)).unwrap();
    }
}

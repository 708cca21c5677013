//! Holm's correction for several tests on the same data.

use crate::error::MetricsError;

/// p-values adjusted so that rejecting those below α errs at all with probability at most α.
///
/// Holm, "A simple sequentially rejective multiple test procedure", 1979. The answers are in the order of
/// `p_values`, never below them, and never above one. No p-values give no answers.
///
/// ```
/// assert_eq!(calmix_metrics::stats::holm(&[0.25, 0.0625, 0.125])?, [0.25, 0.1875, 0.25]);
/// # Ok::<(), calmix_metrics::error::MetricsError>(())
/// ```
///
/// # Errors
/// If a p-value is not in [0, 1].
pub fn holm(p_values: &[f64]) -> Result<Vec<f64>, MetricsError> {
    if let Some(index) = p_values.iter().position(|p| !(0.0..=1.0).contains(p)) {
        return Err(MetricsError::Argument {
            what: "p-value",
            index,
            value: p_values[index],
            allowed: "in [0, 1]",
        });
    }
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut largest = 0.0_f64;
    for (smaller, &i) in order.iter().enumerate() {
        let remaining = (p_values.len() - smaller) as f64;
        largest = largest.max((remaining * p_values[i]).min(1.0));
        adjusted[i] = largest;
    }
    Ok(adjusted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_pays_for_all() {
        assert_eq!(holm(&[]), Ok(vec![]));
        assert_eq!(holm(&[0.5]), Ok(vec![0.5]));
        assert_eq!(holm(&[0.5, 0.75]), Ok(vec![1.0, 1.0]));
        assert_eq!(holm(&[0.25, 0.25, 0.0]), Ok(vec![0.5, 0.5, 0.0]));
        for bad in [-0.1, 1.1, f64::NAN] {
            assert!(holm(&[0.5, bad]).is_err());
        }
    }
}

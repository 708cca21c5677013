//! The squared calibration error without the bias of sampling noise.

use crate::measure::ReliabilityBin;

/// Squared calibration error with its plug-in bias removed, `Σ n_b/n · (gap_b² − a_b(1 − a_b)/(n_b − 1))`.
///
/// The accuracy of a small bin scatters around its true value, and the square of a gap counts that scatter as
/// error: even a perfectly calibrated classifier measures above zero, the more so the fewer predictions a bin
/// has. Subtracting the estimated variance leaves an unbiased estimate (Kumar, Liang and Ma, "Verified
/// uncertainty calibration", 2019), which can be negative. It still depends on the bins: they hide what
/// cancels within them.
///
/// The variance of a bin with one prediction cannot be estimated: it counts as zero, as in the authors' code.
pub fn debiased_squared_error(bins: &[ReliabilityBin]) -> f64 {
    let total: usize = bins.iter().map(|bin| bin.count).sum();
    let sum: f64 = bins
        .iter()
        .filter(|bin| bin.count > 1)
        .map(|bin| {
            let n = bin.count as f64;
            let scatter = bin.accuracy * (1.0 - bin.accuracy) / (n - 1.0);
            n * (bin.gap() * bin.gap() - scatter)
        })
        .sum();
    sum / total.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use calmix_core::rng::{Domain, Seed};

    use crate::measure::{Binning, TopLabel, reliability_bins};

    #[test]
    fn the_bias_of_a_calibrated_classifier_is_removed() {
        let mut plug_in = 0.0;
        let mut debiased = 0.0;
        let repetitions = 400;
        for repetition in 0..repetitions {
            let mut stream = Seed(3).stream(Domain::Bootstrap, 0, repetition);
            // Whole bins of one confidence, so that calibration within bins is exact.
            let confidence: Vec<f64> = (0..150).map(|i| (f64::from(i % 15) + 0.5) / 15.0).collect();
            let correct = confidence.iter().map(|&c| stream.uniform() < c).collect();
            let bins = reliability_bins(&TopLabel::new(confidence, correct).unwrap(), Binning::default());
            let squares: f64 = bins.iter().map(|bin| bin.count as f64 * bin.gap() * bin.gap()).sum();
            plug_in += squares / 150.0 / repetitions as f64;
            debiased += debiased_squared_error(&bins) / repetitions as f64;
        }
        // Bins of ten: the plug-in expectation is the mean of c(1 − c)/10 = 0.01663. One repetition of the
        // mean of 15 squared gaps scatters by about 0.006, so the mean of 400 by 0.0003; three of those.
        assert!((plug_in - 0.016_63).abs() < 0.001, "{plug_in}");
        assert!(debiased.abs() < 0.001, "{debiased}");
    }

    #[test]
    fn chance_alone_can_make_it_negative() {
        let bin = ReliabilityBin { lower: 0.0, upper: 1.0, count: 4, confidence: 0.5, accuracy: 0.5 };
        assert!((debiased_squared_error(&[bin]) + 0.25 / 3.0).abs() < 1e-16);
        assert_eq!(debiased_squared_error(&[ReliabilityBin { count: 1, ..bin }]), 0.0);
        assert_eq!(debiased_squared_error(&[]), 0.0);
    }
}

//! The average of two classifiers: the mean of their log-probabilities.

/// The mean of two rows of numbers, each divided by its temperature.
///
/// Of logits it is the mean of the log-probabilities, up to a number that all classes share; of the weights of two linear
/// heads it is the head of these logits.
pub(crate) fn average(first: &[f32], second: &[f32], temperatures: [f64; 2]) -> Vec<f32> {
    let [first_scale, second_scale] = temperatures.map(|temperature| 0.5 / temperature);
    let pairs = first.iter().zip(second);
    pairs.map(|(&a, &b)| (f64::from(a) * first_scale + f64::from(b) * second_scale) as f32).collect()
}

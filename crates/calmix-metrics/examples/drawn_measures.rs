//! Draws predictions and prints them with their measures, one JSON object per line and every number as its bits:
//! `cargo run -p calmix-metrics --example drawn_measures CASES`
//!
//! Other implementations and bindings compare themselves with these lines; the tests of the Python package do.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::num::NonZeroU16;

use calmix_core::matrix::{MatrixOf, Scalar};
use calmix_core::rng::{Domain, Seed, Stream};
use calmix_metrics::calibrator::temperature::Temperature;
use calmix_metrics::measure::{
    Binned, Binning, Edges, TopLabel, aurc, brier_score, class_wise_ece, confidence_gap,
    debiased_squared_error, ece, nll_from_logits, nll_from_probabilities, reliability_bins, smooth_ece,
};
use calmix_metrics::metrics::Resampling;
use serde_json::{Value, json};

const BINS: [u16; 6] = [1, 5, 10, 15, 20, 64];
/// Every how many cases ECE has an interval, which takes a thousand replicates.
const INTERVAL_EVERY: u64 = 25;

/// A case before its numbers are rounded to their type.
struct Case {
    classes: usize,
    are_logits: bool,
    numbers: Vec<f64>,
    labels: Vec<u32>,
    bins: NonZeroU16,
    by_mass: bool,
    right: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let cases = std::env::args().nth(1).map_or(Ok(1_000), |count| count.parse())?;
    for number in 0..cases {
        let case = Case::draw(number);
        let line = if number % 2 == 0 {
            case.measured::<f32>(number, |x| x.to_bits().into())?
        } else {
            case.measured::<f64>(number, f64::to_bits)?
        };
        println!("{line}");
    }
    Ok(())
}

impl Case {
    fn draw(number: u64) -> Self {
        let stream = &mut Seed(29).stream(Domain::Bootstrap, 0, number);
        let rows = 2 + below(stream, 80);
        let classes = 2 + below(stream, 12);
        let are_logits = number % 4 >= 2;
        // Multiples of a twentieth lie on edges of bins, and tie.
        let on_edges = !are_logits && below(stream, 3) == 0;
        let scale = [1.0, 6.0, 60.0][below(stream, 3)];
        let mut numbers = Vec::new();
        let mut labels = Vec::new();
        for _ in 0..rows {
            let row = if on_edges { twentieths(stream, classes) } else { logits(stream, classes, scale) };
            let label = if below(stream, 2) == 0 { highest(&row) } else { below(stream, classes) };
            labels.push(label as u32);
            numbers.extend(if are_logits || on_edges { row } else { softmax(&row) });
        }
        let bins = NonZeroU16::new(BINS[below(stream, BINS.len())]).unwrap_or(NonZeroU16::MIN);
        let by_mass = below(stream, 4) == 0;
        let right = below(stream, 2) == 0;
        Self { classes, are_logits, numbers, labels, bins, by_mass, right }
    }

    fn measured<T: Scalar>(&self, number: u64, bits: fn(T) -> u64) -> Result<Value, Box<dyn Error>> {
        let numbers: Vec<T> = self.numbers.iter().map(|&x| T::from_f64(x)).collect();
        let rows = self.labels.len();
        let matrix = MatrixOf::new(&numbers, rows, self.classes)?;
        let labels = &self.labels;
        let softmax = if self.are_logits { Temperature::IDENTITY.probabilities(matrix) } else { Vec::new() };
        let probabilities =
            if self.are_logits { MatrixOf::new(&softmax, rows, self.classes)? } else { matrix };
        let top_label = if self.are_logits {
            TopLabel::from_logits(matrix, labels, 1.0)?
        } else {
            TopLabel::from_probabilities(matrix, labels)?
        };
        let nll = if self.are_logits {
            nll_from_logits(matrix, labels, 1.0)?
        } else {
            nll_from_probabilities(matrix, labels)?
        };
        let edges = if self.right { Edges::RightClosed } else { Edges::LeftClosed };
        let by_width = Binning::EqualWidth { bins: self.bins, edges };
        let binning = if self.by_mass { Binning::EqualMass { bins: self.bins } } else { by_width };
        let bins = reliability_bins(&top_label, binning);
        // The binding has no bins for the gap: it takes its default ones.
        let default_bins = reliability_bins(&top_label, Binning::default());
        let wrong = top_label.correct().iter().filter(|&&right| !right).count();
        let measures = [
            ("ece", ece(&bins)),
            ("debiased_squared_error", debiased_squared_error(&bins)),
            ("confidence_gap", confidence_gap(&default_bins)),
            ("class_wise_ece", class_wise_ece(probabilities, labels, by_width)?),
            ("smooth_ece", smooth_ece(&top_label).error),
            ("error", wrong as f64 / rows as f64),
            ("nll", nll),
            ("brier_score", brier_score(probabilities, labels)?),
            ("aurc", aurc(&top_label)),
        ];
        let measures: Vec<Value> =
            measures.iter().map(|&(name, value)| json!([name, value.to_bits()])).collect();
        let interval = if number.is_multiple_of(INTERVAL_EVERY) {
            let binned = Binned::new(&top_label, binning);
            let of = |counts: &_| ece(&binned.bins(counts));
            let interval = Resampling::default().interval(rows, Seed(number), of)?;
            json!([interval.low.to_bits(), interval.high.to_bits()])
        } else {
            Value::Null
        };
        Ok(json!({
            "classes": self.classes,
            "are_logits": self.are_logits,
            "width": 8 * size_of::<T>(),
            "numbers": numbers.into_iter().map(bits).collect::<Vec<_>>(),
            "labels": labels,
            "bins": self.bins,
            "binning": if self.by_mass { "mass" } else { "width" },
            "edges": if self.right { "right" } else { "left" },
            "measures": measures,
            "ece_interval": interval,
            "reliability_bins": bins
                .iter()
                .filter(|bin| bin.count > 0)
                .map(|bin| json!([bin.count, bin.confidence.to_bits(), bin.accuracy.to_bits()]))
                .collect::<Vec<_>>(),
        }))
    }
}

fn below(stream: &mut Stream, bound: usize) -> usize {
    (stream.uniform() * bound as f64) as usize
}

fn logits(stream: &mut Stream, classes: usize, scale: f64) -> Vec<f64> {
    (0..classes).map(|_| (stream.uniform() - 0.5) * scale).collect()
}

fn twentieths(stream: &mut Stream, classes: usize) -> Vec<f64> {
    let mut cuts: Vec<usize> = (1..classes).map(|_| below(stream, 21)).collect();
    cuts.extend([0, 20]);
    cuts.sort_unstable();
    cuts.windows(2).map(|cut| (cut[1] - cut[0]) as f64 / 20.0).collect()
}

fn softmax(row: &[f64]) -> Vec<f64> {
    let exponentials: Vec<f64> = row.iter().map(|&z| z.exp()).collect();
    let sum: f64 = exponentials.iter().sum();
    exponentials.into_iter().map(|e| e / sum).collect()
}

fn highest(row: &[f64]) -> usize {
    (1..row.len()).fold(0, |best, class| if row[class] > row[best] { class } else { best })
}

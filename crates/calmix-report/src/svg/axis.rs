//! An axis with a label, a range and ticks.

use calmix_io::text::grouped;

/// An axis with its unit in the label.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// The quantity, with its unit.
    pub label: String,
    pub range: (f64, f64),
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    /// Makes an axis for shares from 0 to 100%.
    pub fn share(label: &str) -> Self {
        Self::share_up_to(label, 1.0)
    }

    /// Makes an axis for shares from 0 to at least `max`, which is at most 1, in per cent.
    pub fn share_up_to(label: &str, max: f64) -> Self {
        let per_cent = Self::linear(label, 0.0, (100.0 * max).clamp(1.0, 100.0));
        let ticks = per_cent.ticks.into_iter().map(|(at, text)| (at / 100.0, text)).collect();
        Self { range: (0.0, per_cent.range.1 / 100.0), ticks, ..per_cent }
    }

    pub fn counts(label: &str, min: u64, max: u64) -> Self {
        let axis = Self::linear(label, min as f64, max.max(min + 1) as f64);
        let integers = axis.ticks.into_iter().filter(|(at, _)| at.fract() == 0.0);
        let ticks = integers.map(|(at, _)| (at, grouped(at.max(0.0) as u64))).collect();
        Self { ticks, range: (min as f64, axis.range.1), ..axis }
    }

    /// Makes an axis for numbers from `low` to `high`, with about five ticks at round numbers.
    pub fn linear(label: &str, low: f64, high: f64) -> Self {
        let span = (high - low).max(1e-9);
        let decade = libm::pow(10.0, libm::floor(libm::log10(span / 4.0)));
        let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|m| m * decade).into_iter().find(|step| span / step <= 5.0);
        let step = step.unwrap_or(10.0 * decade);
        let digits = if step >= 1.0 && step.fract() == 0.0 { 0 } else { (2.0 - libm::log10(step)) as usize };
        let first = libm::floor(low / step + 1e-9) as i64;
        let last = libm::ceil(high / step - 1e-9) as i64;
        let tick = |n: i64| {
            let at = n as f64 * step;
            let text = format!("{at:.digits$}");
            let text = if digits > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
            (at, text.replace('-', "−"))
        };
        let ticks: Vec<_> = (first..=last).map(tick).collect();
        let range = (first as f64 * step, last as f64 * step);
        Self { label: label.to_owned(), range, ticks }
    }

    /// Returns the position of a value on this axis, from 0 to 1.
    pub(super) fn place(&self, value: f64) -> f64 {
        let (from, to) = self.range;
        ((value - from) / (to - from).max(f64::MIN_POSITIVE)).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_and_hold_the_range() {
        let share = Axis::share("confidence, %");
        assert_eq!((share.range, texts(&share)), ((0.0, 1.0), vec!["0", "20", "40", "60", "80", "100"]));
        let few = Axis::share_up_to("error, %", 0.034);
        assert_eq!(texts(&few), ["0", "1", "2", "3", "4"]);
        assert!((few.range.1 - 0.04).abs() < 1e-12);
        assert_eq!(texts(&Axis::counts("step", 0, 2_000)), ["0", "500", "1,000", "1,500", "2,000"]);
        assert_eq!(texts(&Axis::linear("margin", -3.0, 9.5)), ["−5", "−2.5", "0", "2.5", "5", "7.5", "10"]);
        assert_eq!(texts(&Axis::linear("margin", 0.0, 0.9)), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        assert_eq!(texts(&Axis::counts("step", 0, 2)), ["0", "1", "2"]);
        assert_eq!(few.place(9.0), 1.0);
    }
}

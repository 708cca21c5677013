//! Measurements, as a table and as JSON.

use serde_json::{Value, json};

/// The unit of a measurement.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Unit {
    /// Milliseconds per item: lower is better.
    Milliseconds {
        /// The number of items per repetition, on both sides.
        per_repetition: f64,
    },
    /// Items per second: higher is better.
    Rate {
        name: &'static str,
        /// The number of items per repetition, on both sides.
        per_repetition: f64,
    },
}

impl Unit {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Milliseconds { .. } => "ms",
            Self::Rate { name, .. } => name,
        }
    }

    pub(crate) fn value(self, seconds: f64) -> f64 {
        match self {
            Self::Milliseconds { per_repetition } => seconds * 1e3 / per_repetition,
            Self::Rate { per_repetition, .. } => per_repetition / seconds,
        }
    }
}

/// The measurement of a pair, in median seconds per repetition of both sides.
#[derive(Debug, Clone)]
pub(crate) struct Measurement {
    pub(crate) bench: &'static str,
    pub(crate) case: &'static str,
    pub(crate) unit: Unit,
    pub(crate) ours: f64,
    pub(crate) theirs: Option<f64>,
}

impl Measurement {
    /// Returns how much better calmix is: above one if it is better, whatever the unit. Both sides do the same work.
    fn ratio(&self) -> Option<f64> {
        self.theirs.map(|theirs| theirs / self.ours)
    }

    /// Formats one line of JSON; `theirs` and `ratio` are null without a peer.
    pub(crate) fn json(&self) -> String {
        let value = |seconds| self.unit.value(seconds);
        json_line([
            ("bench", json!(self.bench)),
            ("case", json!(self.case)),
            ("unit", json!(self.unit.name())),
            ("ours", json!(value(self.ours))),
            ("theirs", json!(self.theirs.map(value))),
            ("ratio", json!(self.ratio())),
        ])
    }
}

/// Returns the median; `None` of an empty list.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    if values.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = *values.get(values.len() / 2 - 1)?;
    Some(f64::midpoint(lower, upper))
}

/// Formats a table of pairs, with a heading.
pub(crate) fn pairs_table(measurements: &[Measurement]) -> String {
    let heading = ["case", "unit", "ours", "theirs", "ratio"].map(str::to_owned).into();
    let rows = measurements.iter().map(|measured| {
        let value = |seconds| four_digits(measured.unit.value(seconds));
        vec![
            measured.case.to_owned(),
            measured.unit.name().to_owned(),
            value(measured.ours),
            measured.theirs.map_or_else(absent, value),
            measured.ratio().map_or_else(absent, |ratio| format!("{ratio:.2}")),
        ]
    });
    table(heading, rows, 2)
}

/// Formats aligned columns: the first `left` to the left, the others to the right.
pub(crate) fn table(heading: Vec<String>, rows: impl Iterator<Item = Vec<String>>, left: usize) -> String {
    let columns = heading.len();
    let rows: Vec<_> = std::iter::once(heading).chain(rows).collect();
    let width = |n: usize| rows.iter().filter_map(|row| row.get(n)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|n| width(n).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(widths.iter().copied()).enumerate();
        let cells =
            cells.map(|(n, (cell, w))| if n < left { format!("{cell:<w$}") } else { format!("{cell:>w$}") });
        cells.collect::<Vec<_>>().join("  ")
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Returns the cell of a missing value.
pub(crate) fn absent() -> String {
    "-".to_owned()
}

/// Formats a JSON object in one line, with its fields in this order.
pub(crate) fn json_line<const N: usize>(fields: [(&str, Value); N]) -> String {
    let fields = fields.map(|(name, value)| format!("\"{name}\":{value}"));
    format!("{{{}}}", fields.join(","))
}

/// Formats a number with about four digits, with a power of ten if that is shorter.
pub(crate) fn four_digits(value: f64) -> String {
    match value.abs() {
        size if size != 0.0 && !(1e-3..1e4).contains(&size) => format!("{value:.3e}"),
        size if size >= 100.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.3}"),
        _ => format!("{value:.5}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 100.0]), Some(3.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 100.0]), Some(3.0));
        assert_eq!(median(vec![]), None);
    }

    fn measurement(unit: Unit, theirs: Option<f64>) -> Measurement {
        Measurement { bench: "b", case: "c \"quoted\"", unit, ours: 0.5, theirs }
    }

    const TIME: Unit = Unit::Milliseconds { per_repetition: 1.0 };
    const RATE: Unit = Unit::Rate { name: "things/s", per_repetition: 100.0 };

    #[test]
    fn a_ratio_above_one_means_that_ours_is_better_in_either_unit() {
        // Ours takes half a second and theirs a whole one.
        assert_eq!(measurement(TIME, Some(1.0)).ratio(), Some(2.0));
        assert_eq!(measurement(RATE, Some(1.0)).ratio(), Some(2.0));
        assert_eq!(measurement(RATE, Some(0.25)).ratio(), Some(0.5));
    }

    #[test]
    fn json_is_one_line_with_the_guaranteed_keys() {
        let line = measurement(RATE, Some(1.0)).json();
        assert!(!line.contains('\n'));
        let value: Value = serde_json::from_str(&line).expect("JSON");
        let expected = json!({
            "bench": "b", "case": "c \"quoted\"", "unit": "things/s",
            "ours": 200.0, "theirs": 100.0, "ratio": 2.0,
        });
        assert_eq!(value, expected);
        let alone: Value = serde_json::from_str(&measurement(TIME, None).json()).expect("JSON");
        assert_eq!((&alone["unit"], &alone["ours"]), (&json!("ms"), &json!(500.0)));
        let fields = alone.as_object().expect("an object");
        assert_eq!((fields.get("theirs"), fields.get("ratio")), (Some(&json!(null)), Some(&json!(null))));
    }

    #[test]
    fn columns_line_up() {
        let lines = pairs_table(&[measurement(RATE, Some(1.0)), measurement(TIME, None)]);
        let expected = "\
case        unit       ours  theirs  ratio
c \"quoted\"  things/s  200.0   100.0   2.00
c \"quoted\"  ms        500.0       -      -";
        assert_eq!(lines, expected);
    }
}

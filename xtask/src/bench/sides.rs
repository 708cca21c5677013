//! The sides of one case: their measurements, and the ratios between them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use anyhow::{Context, Result};
use serde_json::json;

use super::catalogue::{Case, Ratio, Wanted};
use super::measurement::{Unit, absent, four_digits, json_line, median, table};
use crate::bench::worker::Turns;

/// All measurements of a case.
#[derive(Debug)]
pub(crate) struct Comparison {
    bench: &'static str,
    case: &'static str,
    unit: Unit,
    sides: Vec<Side>,
    found: Vec<Found>,
}

#[derive(Debug)]
struct Side {
    name: &'static str,
    /// The median time of a repetition.
    seconds: f64,
    peak: Option<u64>,
    /// The medians of its other metrics.
    metrics: BTreeMap<String, f64>,
}

/// A measured ratio with its limit.
#[derive(Debug)]
struct Found {
    side: &'static str,
    against: &'static str,
    wanted: Ratio,
    /// The ratio; `None` if the system does not provide the measurement.
    ratio: Option<f64>,
    /// The lowest and the highest ratio in a single round.
    rounds: Option<[f64; 2]>,
}

impl Comparison {
    pub(crate) fn new(
        bench: &'static str,
        case: &Case,
        names: &[&'static str],
        turns: &[Turns],
        wanted: &[Wanted],
    ) -> Result<Self> {
        let side = |(&name, turns): (&&'static str, &Turns)| {
            let seconds = median(turns.seconds.clone());
            let seconds =
                seconds.with_context(|| format!("{}: there is no measurement of {name}", case.name))?;
            let metric = |(name, all): (&String, &Vec<f64>)| Some((name.clone(), median(all.clone())?));
            let metrics = turns.metrics.iter().filter_map(metric).collect();
            Ok(Side { name, seconds, peak: turns.peak, metrics })
        };
        let sides = names.iter().zip(turns).map(side).collect::<Result<Vec<_>>>()?;
        let place = |name| {
            let found = names.iter().position(|known| *known == name);
            found.with_context(|| format!("{} has no side {name}", case.name))
        };
        let found = wanted.iter().map(|line| {
            let (side, other) = (place(line.side)?, place(line.against)?);
            let times = |above: usize, below: usize| {
                let rounds = turns[above].seconds.iter().zip(&turns[below].seconds).map(|(a, b)| a / b);
                let start = [f64::INFINITY, 0.0];
                let range = rounds.fold(start, |[low, high], ratio| [low.min(ratio), high.max(ratio)]);
                (Some(sides[above].seconds / sides[below].seconds), Some(range))
            };
            let (ratio, rounds) = match line.ratio {
                Ratio::Speed(_) => times(other, side),
                Ratio::Time(_) => times(side, other),
                Ratio::Memory(_) => {
                    let peaks = sides[side].peak.zip(sides[other].peak);
                    (peaks.map(|(peak, other)| peak as f64 / other as f64), None)
                }
            };
            Ok(Found { side: line.side, against: line.against, wanted: line.ratio, ratio, rounds })
        });
        let found = found.collect::<Result<Vec<_>>>()?;
        Ok(Self { bench, case: case.name, unit: case.unit, sides, found })
    }

    /// Formats one line of JSON.
    pub(crate) fn json(&self) -> String {
        let sides = self.sides.iter().map(|side| {
            json!({
                "side": side.name, "value": self.unit.value(side.seconds), "peak_mib": side.peak.map(mebibytes),
                "metrics": side.metrics,
            })
        });
        let ratios = self.found.iter().map(|found| {
            let (quantity, limit, _) = found.goal();
            json!({
                "side": found.side, "against": found.against, "of": quantity, "ratio": found.ratio,
                "rounds": found.rounds, "wanted": limit, "met": found.met(),
            })
        });
        json_line([
            ("bench", json!(self.bench)),
            ("case", json!(self.case)),
            ("unit", json!(self.unit.name())),
            ("sides", sides.collect()),
            ("ratios", ratios.collect()),
        ])
    }
}

impl Found {
    /// Returns the name of the measure, the limit of the ratio, and whether it is a minimum.
    fn goal(&self) -> (&'static str, f64, bool) {
        match self.wanted {
            Ratio::Speed(min) => ("speed", min, true),
            Ratio::Time(max) => ("time", max, false),
            Ratio::Memory(max) => ("memory", max, false),
        }
    }

    fn met(&self) -> Option<bool> {
        let (_, limit, is_min) = self.goal();
        self.ratio.map(|ratio| if is_min { ratio >= limit } else { ratio <= limit })
    }

    fn cells(&self) -> Vec<String> {
        let (quantity, limit, is_min) = self.goal();
        let bound = if is_min { "at least" } else { "at most" };
        let missed = if self.met() == Some(false) { ", missed" } else { "" };
        vec![
            format!("{} / {}, {quantity}", self.side, self.against),
            self.ratio.map_or_else(absent, |ratio| format!("{ratio:.2}")),
            self.rounds.map_or_else(absent, |[low, high]| format!("{low:.2} to {high:.2}")),
            format!("{bound} {limit}{missed}"),
        ]
    }
}

impl fmt::Display for Comparison {
    /// Formats a table of the sides and one of the ratios.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: BTreeSet<&String> = self.sides.iter().flat_map(|side| side.metrics.keys()).collect();
        let sides = self.sides.iter().map(|side| {
            let peak = side.peak.map_or_else(absent, |bytes| format!("{:.0}", mebibytes(bytes)));
            let metrics =
                names.iter().map(|&name| side.metrics.get(name).map_or_else(absent, |&n| four_digits(n)));
            let cells = [side.name.to_owned(), four_digits(self.unit.value(side.seconds)), peak];
            cells.into_iter().chain(metrics).collect()
        });
        let heading = [self.case, self.unit.name(), "peak MiB"].into_iter();
        let heading = heading.chain(names.iter().map(|name| name.as_str())).map(str::to_owned).collect();
        let ratios = self.found.iter().map(Found::cells);
        let wanted = ["ratio", "median", "rounds", "wanted"].map(str::to_owned).into();
        let tables = [table(heading, sides, 1), table(wanted, ratios, 1)];
        f.write_str(&tables.join("\n\n"))
    }
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::Sides;
    use super::*;

    const WANTED: &[Wanted] = &[
        Wanted { side: "lean", against: "joint", ratio: Ratio::Speed(1.3) },
        Wanted { side: "lean", against: "joint", ratio: Ratio::Time(0.4) },
        Wanted { side: "lean", against: "joint", ratio: Ratio::Memory(0.5) },
    ];
    const CASE: Case = Case {
        name: "a case",
        sides: Sides::Named { sides: &[], wanted: WANTED },
        unit: Unit::Milliseconds { per_repetition: 2.0 },
        files: None,
        extra: None,
    };

    fn compared(peak: Option<u64>) -> Comparison {
        let turns = [
            Turns { seconds: vec![0.8, 1.2, 1.0], peak: Some(4 << 20), ..Turns::default() },
            Turns {
                seconds: vec![0.5, 0.4, 0.8],
                peak,
                metrics: BTreeMap::from([("sent".to_owned(), vec![1.0, 5.0, 3.0])]),
            },
        ];
        Comparison::new("b", &CASE, &["joint", "lean"], &turns, WANTED).expect("both sides")
    }

    #[test]
    fn sides_and_ratios_line_up() {
        let expected = "\
a case     ms  peak MiB   sent
joint   500.0         4      -
lean    250.0         3  3.000

ratio                 median        rounds               wanted
lean / joint, speed     2.00  1.25 to 3.00         at least 1.3
lean / joint, time      0.50  0.33 to 0.80  at most 0.4, missed
lean / joint, memory    0.75             -  at most 0.5, missed";
        assert_eq!(compared(Some(3 << 20)).to_string(), expected);
        assert!(compared(None).to_string().ends_with("     -             -          at most 0.5"));
    }

    #[test]
    fn json_is_one_line_with_the_guaranteed_keys() {
        let line = compared(Some(1 << 20)).json();
        assert!(!line.contains('\n'));
        let value: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(
            (&value["bench"], &value["case"], &value["unit"]),
            (&json!("b"), &json!("a case"), &json!("ms"))
        );
        assert_eq!(
            value["sides"][1],
            json!({"side": "lean", "value": 250.0, "peak_mib": 1.0, "metrics": {"sent": 3.0}})
        );
        let expected = json!({
            "side": "lean", "against": "joint", "of": "memory", "ratio": 0.25, "rounds": null, "wanted": 0.5,
            "met": true,
        });
        assert_eq!(value["ratios"][2], expected);
    }

    #[test]
    fn a_side_that_is_not_there_is_an_error() {
        assert!(Comparison::new("b", &CASE, &["joint"], &[], WANTED).is_err());
    }
}

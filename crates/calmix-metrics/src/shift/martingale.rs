//! A conformal test martingale: evidence that samples are no longer like those of a reference, which may be looked at after every
//! batch.
//!
//! Each row is ranked by its score among the reference and all earlier rows; while all of them are exchangeable, these ranks are
//! independent and uniform. A fixed reference would not do: its own sampling error repeats in every row, and rejects in the end.
//! A gambler bets against uniform ranks, and starts with a capital of 1. The capital ever reaches 100 with a probability of at
//! most 1% (Ville's inequality), however often it is looked at, so [`ALARM`] is an alarm with this rate of false ones over the
//! whole time (Vovk, Petej, Nouretdinov, Ahlberg, Carlsson, Gammerman: "Retrain or not retrain: conformal test martingales for
//! change-point detection", 2021, whose Composite Jumper the bets follow).
//!
//! Scores count in cells whose edges are fixed numbers and not quantiles of the reference, so the state stays small, and ranks stay
//! exact; equal cells are ranked at random. Within a batch, rows count in a random order: a batch may be sorted by class or time.
//!
//! ```
//! use calmix_core::rng::Seed;
//! use calmix_metrics::shift::martingale::TestMartingale;
//!
//! let reference: Vec<f64> = (0..500).map(|n| f64::from(n % 100)).collect();
//! let mut martingale = TestMartingale::new(&reference, Seed(0))?;
//! let usual: Vec<f64> = (0..200).map(|n| f64::from((37 * n) % 100)).collect();
//! martingale.update(&usual)?;
//! assert!(!martingale.is_alarm());
//! martingale.update(&[150.0; 60])?;
//! assert!(martingale.is_alarm());
//! # Ok::<(), calmix_metrics::error::MetricsError>(())
//! ```

use std::collections::BTreeMap;

use calmix_core::rng::{Domain, Seed};
use serde::{Deserialize, Serialize};

use super::capital::{BETS, Capital, RATES};
use crate::checked;
use crate::error::MetricsError;

pub use super::capital::ALARM;

/// The smallest reference. With fewer scores, ranks say little about a change.
pub const MIN_REFERENCE: usize = 50;

/// The shares of capital that move to other bets with every row. The bets are none, on high scores, on low ones, on both ends, on
/// the middle.
const MOVED: [f64; RATES] = [1e-4, 1e-3, 1e-2];

/// The largest number of rows that are counted, so that counts are exact in f64.
const MAX_ROWS: u64 = 1 << 53;

/// A test martingale with its state, which can be stored between batches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TestMartingale {
    seed: Seed,
    /// The number of scores of the reference and of all rows in each cell.
    cells: BTreeMap<i64, u64>,
    reference: u64,
    rows: u64,
    batches: u64,
    #[serde(flatten)]
    capital: Capital,
    alarm_row: Option<u64>,
}

impl TestMartingale {
    /// Starts with the scores of the reference. `seed` decides the order of rows in a batch and of equal scores.
    ///
    /// # Errors
    /// If a score is not finite, or there are fewer than [`MIN_REFERENCE`].
    pub fn new(reference: &[f64], seed: Seed) -> Result<Self, MetricsError> {
        checked::finite("score", reference)?;
        if reference.len() < MIN_REFERENCE {
            return Err(MetricsError::TooFew { needed: MIN_REFERENCE, got: reference.len() });
        }
        let mut cells = BTreeMap::new();
        for &score in reference {
            *cells.entry(cell(score)).or_insert(0) += 1;
        }
        Ok(Self {
            seed,
            cells,
            reference: reference.len() as u64,
            rows: 0,
            batches: 0,
            capital: Capital::new(),
            alarm_row: None,
        })
    }

    /// Bets on the rows of a batch.
    ///
    /// # Errors
    /// If a score is not finite; the state is then unchanged.
    pub fn update(&mut self, scores: &[f64]) -> Result<(), MetricsError> {
        checked::finite("score", scores)?;
        let mut batch: Vec<i64> = scores.iter().map(|&score| cell(score)).collect();
        self.seed.stream(Domain::Monitor, 0, self.batches).shuffle(&mut batch);
        let mut counts = CellCounts::new(&self.cells, &batch);
        for &cell in &batch {
            let (equal, higher) = counts.add(cell);
            let mut stream = self.seed.stream(Domain::Monitor, 1, self.rows);
            let n = (self.reference + self.rows + 1) as f64;
            let rank = (higher as f64 + stream.uniform() * equal as f64) / n;
            self.bet(rank);
            *self.cells.entry(cell).or_insert(0) += 1;
        }
        self.batches += 1;
        Ok(())
    }

    /// Bets on the rank of a row: 0 for the highest of all scores, 1 for the lowest.
    fn bet(&mut self, rank: f64) {
        let slope = 1.0 - 2.0 * rank;
        // −½ in the middle, 1 at both ends; its mean is zero.
        let ends = 1.5 * slope * slope - 0.5;
        let factors: [f64; BETS] = [1.0, 1.0 + slope, 1.0 - slope, 1.0 + 0.9 * ends, 1.0 - 0.9 * ends];
        self.capital.bet(MOVED, factors);
        self.rows += 1;
        if self.alarm_row.is_none() && self.is_alarm() {
            self.alarm_row = Some(self.rows);
        }
    }

    /// Returns the natural logarithm of the capital now; zero at the start.
    pub fn ln_capital(&self) -> f64 {
        self.capital.ln()
    }

    /// Returns the natural logarithm of the highest capital so far.
    pub fn ln_highest(&self) -> f64 {
        self.capital.ln_highest()
    }

    /// Returns whether the capital has ever reached [`ALARM`].
    pub fn is_alarm(&self) -> bool {
        self.capital.is_alarm()
    }

    /// Returns the number of the row that raised the alarm, from 1 and in the order of the bets; `None` without an alarm.
    pub fn alarm_row(&self) -> Option<u64> {
        self.alarm_row
    }

    /// Returns the number of rows so far, without the reference.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the number of scores of the reference.
    pub fn reference(&self) -> u64 {
        self.reference
    }

    /// Returns the number of batches so far.
    pub fn batches(&self) -> u64 {
        self.batches
    }

    /// Returns whether the numbers can be those of a martingale, which a file does not guarantee.
    pub fn is_sound(&self) -> bool {
        let counted = self.cells.values().try_fold(0_u64, |sum, &count| sum.checked_add(count));
        let rows = self.reference.checked_add(self.rows);
        counted == rows
            && rows.is_some_and(|rows| rows <= MAX_ROWS)
            && self.reference >= MIN_REFERENCE as u64
            && self.capital.is_sound()
            && self.alarm_row.is_some() == self.is_alarm()
            && self.alarm_row.is_none_or(|row| row <= self.rows)
    }
}

/// Returns the cell of a score: its sign, exponent and eight bits of its mantissa, in the order of the scores.
fn cell(score: f64) -> i64 {
    // −0 and 0 are equal scores.
    let bits = (score + 0.0).to_bits().cast_signed();
    let magnitude = (bits & i64::MAX) >> (52 - 8);
    if bits < 0 { -magnitude } else { magnitude }
}

/// Counts of scores in cells, with sums over all higher cells in logarithmic time (a Fenwick tree).
struct CellCounts {
    /// All cells that a batch needs, descending.
    cells: Vec<i64>,
    counts: Vec<u64>,
    tree: Vec<u64>,
}

impl CellCounts {
    fn new(known: &BTreeMap<i64, u64>, batch: &[i64]) -> Self {
        let mut cells: Vec<i64> = known.keys().chain(batch).copied().collect();
        cells.sort_unstable_by(|a, b| b.cmp(a));
        cells.dedup();
        let mut counts = Self { counts: vec![0; cells.len()], tree: vec![0; cells.len() + 1], cells };
        for (&cell, &count) in known {
            counts.add_many(cell, count);
        }
        counts
    }

    fn add_many(&mut self, cell: i64, count: u64) -> usize {
        let at = self.cells.partition_point(|&other| other > cell);
        self.counts[at] += count;
        let mut node = at + 1;
        while node < self.tree.len() {
            self.tree[node] += count;
            node += node & node.wrapping_neg();
        }
        at
    }

    /// Adds a score; returns how many are in its cell, with itself, and how many in higher cells.
    fn add(&mut self, cell: i64) -> (u64, u64) {
        let at = self.add_many(cell, 1);
        let mut higher = 0;
        let mut node = at;
        while node > 0 {
            higher += self.tree[node];
            node &= node - 1;
        }
        (self.counts[at], higher)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOKS: u64 = 100;

    fn normals(draw: u64, batch: u64, n: usize, shift: f64) -> Vec<f64> {
        let mut stream = Seed(11).stream(Domain::Bootstrap, batch, draw);
        (0..n).map(|_| stream.normal() + shift).collect()
    }

    #[test]
    fn cells_keep_the_order_of_scores() {
        let scores = [-1e300, -2.0, -1.99, -1e-300, 0.0, 1e-300, 0.5, 0.502, 1.0, 3.0, 1e300];
        assert!(scores.windows(2).all(|pair| cell(pair[0]) < cell(pair[1])));
        assert_eq!(cell(-0.0), cell(0.0));
        // 2⁻⁸ of a score is one cell.
        assert_eq!(cell(1.0), cell(1.003));
    }

    #[test]
    fn ranks_count_all_earlier_rows() {
        let known = BTreeMap::from([(1, 4), (5, 2)]);
        let mut counts = CellCounts::new(&known, &[3, 5, 1]);
        assert_eq!(counts.add(3), (1, 2));
        assert_eq!(counts.add(5), (3, 0));
        assert_eq!(counts.add(1), (5, 4));
    }

    /// The mean of each factor over uniform ranks is 1, and none is negative.
    #[test]
    fn bets_are_fair() {
        let reference = normals(0, 0, MIN_REFERENCE, 0.0);
        let start = TestMartingale::new(&reference, Seed(0)).unwrap();
        let n = 10_000;
        let after = (0..n).map(|at| {
            let mut martingale = start.clone();
            martingale.bet((f64::from(at) + 0.5) / f64::from(n));
            assert!(martingale.capital.is_sound());
            martingale.capital.total()
        });
        // The midpoint rule is off by a relative 1/n² for the squares.
        assert!((after.sum::<f64>() / f64::from(n) - 1.0).abs() < 1e-7);
    }

    /// 500 streams of 100 batches of 10 rows beside a reference of 100. At most 1% may ever raise an alarm; two standard errors
    /// more are 9. Against a fixed reference, in the same bets, it is more: at 1%, more than 3 of 50 have a probability of 0.2%.
    #[test]
    fn false_alarms_stay_below_one_percent() {
        let draws = 500;
        let mut alarms = 0;
        let mut alarms_of_fixed = 0;
        for draw in 0..draws {
            let reference = normals(draw, 0, 100, 0.0);
            let mut martingale = TestMartingale::new(&reference, Seed(draw)).unwrap();
            let mut fixed = martingale.clone();
            for look in 1..=LOOKS {
                let mut batch = normals(draw, look, 10, 0.0);
                // The order within a batch is the caller's.
                batch.sort_by(f64::total_cmp);
                martingale.update(&batch).unwrap();
                if draw < 50 {
                    for score in batch {
                        let higher = reference.iter().filter(|&&other| other > score).count();
                        fixed.bet((higher as f64 + 0.5) / 101.0);
                    }
                }
            }
            alarms += u32::from(martingale.is_alarm());
            alarms_of_fixed += u32::from(fixed.is_alarm());
        }
        assert!(alarms <= 9, "{alarms} of {draws}");
        assert!(alarms_of_fixed > 3, "{alarms_of_fixed} of 50");
    }

    /// A shift by half a standard deviation, or a wider distribution, after fifty batches without a change.
    #[test]
    fn late_change_raises_an_alarm() {
        for (shift, scale) in [(0.5, 1.0), (-0.5, 1.0), (0.0, 2.0)] {
            let mut rows = Vec::new();
            for draw in 0..20 {
                let mut martingale = TestMartingale::new(&normals(draw, 0, 500, 0.0), Seed(draw)).unwrap();
                for look in 1..=50 {
                    martingale.update(&normals(draw, look, 100, 0.0)).unwrap();
                }
                assert!(!martingale.is_alarm());
                for look in 51..=70 {
                    let batch = normals(draw, look, 100, 0.0).into_iter().map(|z| scale * z + shift);
                    martingale.update(&batch.collect::<Vec<_>>()).unwrap();
                }
                rows.push(martingale.alarm_row().unwrap_or(u64::MAX) - 5_000);
            }
            rows.sort_unstable();
            assert!(rows[10] < 500 && rows[19] < 2_000, "{shift} {scale}: {rows:?}");
        }
    }

    #[test]
    fn stored_state_continues_with_the_same_bits() {
        let mut whole = TestMartingale::new(&normals(1, 0, 100, 0.0), Seed(4)).unwrap();
        whole.update(&normals(1, 1, 30, 0.0)).unwrap();
        let stored = serde_json::to_string(&whole).unwrap();
        let mut resumed: TestMartingale = serde_json::from_str(&stored).unwrap();
        assert!(resumed.is_sound() && resumed == whole);
        for batch in 2..40 {
            whole.update(&normals(1, batch, 30, 9.0)).unwrap();
            resumed.update(&normals(1, batch, 30, 9.0)).unwrap();
        }
        assert_eq!(resumed, whole);
        assert!(whole.is_sound() && whole.is_alarm(), "{}", whole.ln_highest());
        assert_eq!((whole.rows(), whole.batches(), whole.reference()), (1_170, 39, 100));
    }

    /// 2¹⁵⁰⁰ would overflow without the unit.
    #[test]
    fn capital_of_many_strange_rows_is_finite() {
        let mut martingale = TestMartingale::new(&normals(1, 0, 100, 0.0), Seed(4)).unwrap();
        (0..1_500).for_each(|_| martingale.bet(0.0));
        let highest = 1_500.0 * core::f64::consts::LN_2;
        // All but the first fifth of a third of the capital doubles; a share of 1e-4 moves to other bets.
        assert!((martingale.ln_capital() - highest).abs() < 5.0, "{}", martingale.ln_capital());
        (0..10_000).for_each(|_| martingale.bet(1.0 / 3.0));
        assert!(martingale.ln_capital().is_finite() && martingale.ln_highest() > 1_000.0);
    }

    #[test]
    fn unsound_states_and_scores_are_refused() {
        let reference = normals(1, 0, 100, 0.0);
        assert!(TestMartingale::new(&reference[..49], Seed(0)).is_err());
        assert!(TestMartingale::new(&[f64::NAN; 60], Seed(0)).is_err());
        let mut sound = TestMartingale::new(&reference, Seed(0)).unwrap();
        let before = sound.clone();
        assert!(sound.update(&[0.0, f64::INFINITY]).is_err() && sound == before);
        let mut overflow = sound.clone();
        overflow.cells.insert(1, u64::MAX);
        let unsound = [
            TestMartingale { rows: 1, ..sound.clone() },
            TestMartingale { capital: Capital::of(0.0, 0.0, 0.0), ..sound.clone() },
            TestMartingale { capital: Capital::of(f64::NAN, 0.0, 0.0), ..sound.clone() },
            TestMartingale { capital: Capital::of(1.0, 0.0, 5.0), ..sound.clone() },
            TestMartingale { capital: Capital::of(1.0, f64::INFINITY, 0.0), ..sound.clone() },
            overflow,
        ];
        assert!(unsound.iter().all(|state| !state.is_sound()));
    }
}

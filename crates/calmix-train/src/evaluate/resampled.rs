//! Figures of resampled rows, without touching the logits again.
//!
//! A replicate of the bootstrap gives every row a count. All figures are sums over rows, over runs of rows in the
//! order of confidence, or over (class, bin) cells; so what a row adds is computed once, and a replicate costs
//! O(n) and, for the class-wise error, O(n·C) additions. The smooth error is left out: it convolves anew for every
//! replicate, which costs more than all others together.

use calmix_core::calibration::temperature::Temperature;
use calmix_core::calibration::{Binning, CalibrationError, TopLabel, reliability_bins};
use calmix_core::matrix::Matrix;
use calmix_core::softmax::negative_log_likelihood;

use super::figures::{EDGES, FIFTEEN, TEN, TOP, all, rank};

/// How many figures a replicate has.
pub(super) const COUNT: usize = 9;

/// What each row adds, in the ascending order of confidence.
pub(super) struct Rows {
    /// Where row `i` of the predictions stands here.
    place: Vec<usize>,
    wrong: Vec<f64>,
    missed: Vec<f64>,
    nll: Vec<f64>,
    brier: Vec<f64>,
    /// Confidence minus one where right, minus zero where wrong.
    residual: Vec<f64>,
    /// Where each run of equal confidences ends.
    ties: Vec<usize>,
    /// Where each of ten bins ends, and each of fifteen.
    bins: [Vec<usize>; 2],
    class_wise: Cells,
}

/// What each row adds to the cells of the class-wise error.
///
/// Most probabilities are in the lowest bin of a class that is not the true one: these are a dense matrix, which
/// vector units like; the few others are a list.
struct Cells {
    classes: usize,
    bins: usize,
    low: Vec<f32>,
    others: Vec<(u32, f64)>,
    /// Where the others of each row end.
    ends: Vec<usize>,
}

impl Rows {
    pub(super) fn new(
        logits: Matrix<'_>,
        labels: &[u32],
        temperature: Temperature,
    ) -> Result<Self, CalibrationError> {
        let said = TopLabel::from_logits(logits, labels, temperature.value())?;
        let probabilities = temperature.probabilities(logits);
        let probabilities = all(&probabilities, logits)?;
        let mut order: Vec<usize> = (0..said.len()).collect();
        order.sort_by(|&i, &j| said.confidence()[i].total_cmp(&said.confidence()[j]));
        let mut place = vec![0; order.len()];
        for (at, &row) in order.iter().enumerate() {
            place[row] = at;
        }
        let ordered = |of: &dyn Fn(usize) -> f64| order.iter().map(|&row| of(row)).collect::<Vec<f64>>();
        let confidence = ordered(&|row| said.confidence()[row]);
        let mark = |is: bool| f64::from(u8::from(is));
        let label = |row: usize| labels[row] as usize;
        let brier = |row: usize| {
            let miss = |(class, &p): (usize, &f32)| f64::from(p) - mark(class == label(row));
            probabilities.row(row).iter().enumerate().map(miss).map(|miss| miss * miss).sum()
        };
        let ends = |bins| {
            let edges = reliability_bins(&said, Binning::EqualWidth { bins, edges: EDGES });
            let upper = edges.iter().skip(1).map(|bin| confidence.partition_point(|&c| c < bin.lower));
            upper.chain([confidence.len()]).collect()
        };
        let changes = (1..confidence.len()).filter(|&i| confidence[i - 1] != confidence[i]);
        Ok(Self {
            wrong: ordered(&|row| mark(!said.correct()[row])),
            missed: ordered(&|row| mark(rank(logits.row(row), label(row)) >= TOP)),
            nll: ordered(&|row| negative_log_likelihood(logits.row(row), label(row), temperature.value())),
            brier: ordered(&brier),
            residual: ordered(&|row| said.confidence()[row] - mark(said.correct()[row])),
            ties: changes.chain([confidence.len()]).collect(),
            bins: [ends(TEN), ends(FIFTEEN)],
            class_wise: Cells::new(probabilities, labels, &order),
            place,
        })
    }

    /// Turns drawn rows into a count of every row, in this order.
    pub(super) fn count(&self, drawn: &[usize], counts: &mut [f64]) {
        counts.fill(0.0);
        for &row in drawn {
            counts[self.place[row]] += 1.0;
        }
    }

    /// The figures when every row counts as often as `counts` says: all but the smooth error, in the order of
    /// [`Figures`](super::Figures).
    pub(super) fn figures(&self, counts: &[f64]) -> [f64; COUNT] {
        let n = counts.iter().sum::<f64>().max(1.0);
        let mean = |of: &[f64]| counts.iter().zip(of).map(|(count, x)| count * x).sum::<f64>() / n;
        let [ten, fifteen] = &self.bins;
        [
            mean(&self.wrong),
            mean(&self.missed),
            self.binned(counts, ten) / n,
            self.binned(counts, fifteen) / n,
            self.equal_mass(counts, n) / n,
            self.class_wise.error(counts) / n,
            mean(&self.nll),
            mean(&self.brier),
            self.aurc(counts) / n,
        ]
    }

    fn binned(&self, counts: &[f64], ends: &[usize]) -> f64 {
        runs(ends).map(|(from, to)| weighted(&counts[from..to], &self.residual[from..to]).abs()).sum()
    }

    /// Bins as core assigns them: equal confidences take the bin of the middle of their ranks.
    fn equal_mass(&self, counts: &[f64], n: f64) -> f64 {
        let twice_n = 2 * n as u64;
        let bins = u64::from(FIFTEEN.get());
        // Ranks are compared with the end of the bin: a division for every run would cost the most here.
        let (mut first, mut end) = (0, 0);
        let (mut error, mut inside) = (0.0, 0.0_f64);
        for (from, to) in runs(&self.ties) {
            let here: f64 = counts[from..to].iter().sum();
            if here == 0.0 {
                continue;
            }
            let next = first + here as u64;
            let middle = (first + next - 1) * bins;
            if middle >= end {
                error += inside.abs();
                inside = 0.0;
                end = (middle / twice_n + 1) * twice_n;
            }
            inside += weighted(&counts[from..to], &self.residual[from..to]);
            first = next;
        }
        error + inside.abs()
    }

    /// The sum over k of the risk of the k most confident rows; ties as if broken by chance.
    fn aurc(&self, counts: &[f64]) -> f64 {
        let (mut kept, mut wrong, mut area) = (0.0, 0.0, 0.0);
        for (from, to) in runs(&self.ties).rev() {
            let here: f64 = counts[from..to].iter().sum();
            let wrong_here = weighted(&counts[from..to], &self.wrong[from..to]);
            if here == 0.0 {
                continue;
            }
            let each = wrong_here / here;
            for taken in 1..=here as u64 {
                let taken = taken as f64;
                area += (wrong + each * taken) / (kept + taken);
            }
            kept += here;
            wrong += wrong_here;
        }
        area
    }
}

impl Cells {
    fn new(probabilities: Matrix<'_>, labels: &[u32], order: &[usize]) -> Self {
        let bins = usize::from(FIFTEEN.get());
        let edge = |bin: usize| bin as f64 / bins as f64;
        let edges: Vec<f64> = (1..bins).map(edge).collect();
        let mut cells = Self {
            classes: probabilities.width(),
            bins,
            low: vec![0.0; probabilities.data().len()],
            others: Vec::new(),
            ends: Vec::with_capacity(order.len()),
        };
        for (low, &row) in cells.low.chunks_exact_mut(probabilities.width().max(1)).zip(order) {
            for (class, (&p, low)) in probabilities.row(row).iter().zip(low).enumerate() {
                let bin = edges.partition_point(|&edge| edge <= f64::from(p));
                let happened = labels[row] as usize == class;
                if bin == 0 && !happened {
                    *low = p;
                } else {
                    let residual = f64::from(p) - f64::from(u8::from(happened));
                    cells.others.push(((class * bins + bin) as u32, residual));
                }
            }
            cells.ends.push(cells.others.len());
        }
        cells
    }

    /// The sum over cells of |Σ count·(probability − happened)|, over the classes.
    fn error(&self, counts: &[f64]) -> f64 {
        let mut low = vec![0.0_f64; self.classes];
        let mut cells = vec![0.0_f64; self.classes * self.bins];
        let rows = self.low.chunks_exact(self.classes.max(1)).zip(runs(&self.ends));
        for ((row, (from, to)), &count) in rows.zip(counts).filter(|(_, count)| **count > 0.0) {
            for (sum, &p) in low.iter_mut().zip(row) {
                *sum += count * f64::from(p);
            }
            for &(cell, residual) in &self.others[from..to] {
                cells[cell as usize] += count * residual;
            }
        }
        for (cells, low) in cells.chunks_exact_mut(self.bins).zip(low) {
            cells[0] += low;
        }
        cells.iter().map(|cell| cell.abs()).sum::<f64>() / self.classes.max(1) as f64
    }
}

fn weighted(counts: &[f64], of: &[f64]) -> f64 {
    counts.iter().zip(of).map(|(count, x)| count * x).sum()
}

/// The beginnings and ends of runs that follow each other.
fn runs(ends: &[usize]) -> impl DoubleEndedIterator<Item = (usize, usize)> + '_ {
    (0..ends.len()).map(|i| (if i == 0 { 0 } else { ends[i - 1] }, ends[i]))
}

//! Bounds on a share of errors that hold after every answer: the share may be looked at, and the audit ended, at any time.
//!
//! Rows are answered in a random order, each *right* or *wrong*. The rows are finite in number (a pool, drawn without
//! replacement) or endless (a stream). To show that fewer than a limit are wrong, the probability of the answers so far under a
//! mixture of smaller numbers of errors is divided by their probability at the limit: a mixture likelihood ratio. At the limit
//! the ratio is a martingale that begins at one, so it ever reaches 1/δ with probability at most δ (Ville's inequality). Above
//! the limit it is smaller still: every wrong answer lowers it.
//!
//! With N rows of which M are wrong, e wrong ones among the first n answers have the likelihood
//!
//! L(M) = M·(M−1)⋯(M−e+1) · (N−M)⋯(N−M−(n−e)+1) / (N·(N−1)⋯(N−n+1)),
//!
//! and without end, with the share p of errors, L(p) = pᵉ(1−p)ⁿ⁻ᵉ. Both follow from the order of the rows alone.
//!
//! The mixture for a limit of p₀ = m₀/N: weight 0.3 on no error at all, and weight 0.7 on a beta-binomial distribution with the
//! parameters a = 10·p₀ and b = 30 − a (mean p₀/3) that is cut off at m₀ and normalised. Its sums are closed forms but for one
//! tail, because the beta-binomial is conjugate. Waudby-Smith and Ramdas, "Confidence sequences for sampling without
//! replacement", 2020, is the same idea with one prior for all limits.

use super::incomplete_beta;
use crate::checked;
use crate::error::MetricsError;

/// The weight of no error at all in the mixture.
const ZERO_WEIGHT: f64 = 0.3;
/// The number of answers that the mixture's beta distribution counts for.
const CONCENTRATION: f64 = 30.0;
/// The mean of the beta distribution, as a share of the limit.
const MEAN: f64 = 1.0 / 3.0;
/// Bisections of a share between 0 and 1: a bound is exact to 2⁻³⁰.
const BISECTIONS: u32 = 30;
/// The largest number of rows. One evaluation sums over as many terms as there may be errors.
const MAX_ROWS: u64 = 10_000_000;

/// Answers so far: how many, and how many of them are wrong.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AnswerCounts {
    /// The number of rows that were answered.
    pub answers: u64,
    /// The number of these on which the prediction is wrong.
    pub wrong: u64,
}

impl AnswerCounts {
    /// Counts one more answer.
    pub fn observe(&mut self, is_wrong: bool) {
        self.answers += 1;
        self.wrong += u64::from(is_wrong);
    }

    fn right(self) -> u64 {
        self.answers - self.wrong
    }
}

/// The test of one limit: whether fewer rows are wrong than the limit allows.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitTest {
    null: Null,
    /// ln(1/δ): the evidence that rejects.
    needed: f64,
    counts: AnswerCounts,
    /// The number of answers at which the limit was first shown.
    shown_at: Option<u64>,
}

impl LimitTest {
    /// Prepares the test that more than a share `limit` of the rows is wrong, which is wrongly rejected with probability at most
    /// `delta`. `rows` is `None` for a stream without end; there the hypothesis is a share of at least `limit`.
    ///
    /// ```
    /// use calmix_metrics::stats::anytime_bound::LimitTest;
    ///
    /// let mut test = LimitTest::new(Some(6_000), 0.05, 0.05)?;
    /// let mut answers = 0;
    /// while test.shown_at().is_none() {
    ///     test.observe(false)?;
    ///     answers += 1;
    /// }
    /// assert_eq!(answers, 65);
    /// # Ok::<(), calmix_metrics::error::MetricsError>(())
    /// ```
    ///
    /// # Errors
    /// If the limit or delta is not between 0 and 1, or there are no rows or more than ten million.
    pub fn new(rows: Option<u64>, limit: f64, delta: f64) -> Result<Self, MetricsError> {
        checked::probability("limit", limit)?;
        checked::probability("delta", delta)?;
        let null = match rows {
            Some(rows) => {
                check_rows(rows)?;
                // At most this many errors satisfy the limit; one more is the hypothesis.
                let allowed = (limit * rows as f64).floor() as u64;
                Null::at_least(Errors::Count { errors: allowed + 1, rows })
            }
            None => Null::at_least(Errors::Share(limit)),
        };
        Ok(Self { null, needed: -libm::log(delta), counts: AnswerCounts::default(), shown_at: None })
    }

    /// Takes the answer on the next row of the random order.
    ///
    /// # Errors
    /// If all rows have been answered.
    pub fn observe(&mut self, is_wrong: bool) -> Result<(), MetricsError> {
        check_left(self.null.errors.rows(), self.counts.answers)?;
        self.counts.observe(is_wrong);
        // A wrong answer lowers the evidence, so only a right one can be the first to suffice.
        if self.shown_at.is_none() && !is_wrong && self.ln_evidence() >= self.needed {
            self.shown_at = Some(self.counts.answers);
        }
        Ok(())
    }

    /// Returns the answers so far.
    pub fn counts(&self) -> AnswerCounts {
        self.counts
    }

    /// Returns after how many answers the limit was shown; `None` if it is not shown yet. Later answers do not take it back.
    pub fn shown_at(&self) -> Option<u64> {
        self.shown_at
    }

    /// Returns the natural logarithm of the likelihood ratio against the hypothesis, now.
    pub fn ln_evidence(&self) -> f64 {
        self.null.ln_evidence(self.counts)
    }
}

/// The smallest and the largest share of errors that are still possible.
///
/// Each side holds on its own, for all answers at once, except with probability δ: a bound found at any time may be kept, so both
/// only get narrower.
#[derive(Debug, Clone, PartialEq)]
pub struct ErrorBound {
    rows: Option<u64>,
    needed: f64,
    counts: AnswerCounts,
    low: f64,
    high: f64,
}

impl ErrorBound {
    /// Prepares the bounds of the share of errors among `rows`, or of a stream without end (`None`).
    ///
    /// ```
    /// use calmix_metrics::stats::anytime_bound::ErrorBound;
    ///
    /// let mut bound = ErrorBound::new(None, 0.05)?;
    /// for answer in 0..100 {
    ///     bound.observe(answer % 20 == 19)?;
    /// }
    /// assert!(bound.low() < 0.05 && bound.high() > 0.05 && bound.high() < 0.16);
    /// # Ok::<(), calmix_metrics::error::MetricsError>(())
    /// ```
    ///
    /// # Errors
    /// If delta is not between 0 and 1, or there are no rows or more than ten million.
    pub fn new(rows: Option<u64>, delta: f64) -> Result<Self, MetricsError> {
        checked::probability("delta", delta)?;
        rows.map_or(Ok(()), check_rows)?;
        Ok(Self { rows, needed: -libm::log(delta), counts: AnswerCounts::default(), low: 0.0, high: 1.0 })
    }

    /// Takes the answer on the next row of the random order.
    ///
    /// # Errors
    /// If all rows have been answered.
    pub fn observe(&mut self, is_wrong: bool) -> Result<(), MetricsError> {
        check_left(self.rows, self.counts.answers)?;
        self.counts.observe(is_wrong);
        if is_wrong {
            self.low = self.low.max(self.lowest());
        } else {
            self.high = self.high.min(self.highest());
        }
        Ok(())
    }

    /// Returns the answers so far.
    pub fn counts(&self) -> AnswerCounts {
        self.counts
    }

    /// Returns the smallest share of errors that is still possible.
    pub fn low(&self) -> f64 {
        self.low
    }

    /// Returns the largest share of errors that is still possible.
    pub fn high(&self) -> f64 {
        self.high
    }

    fn highest(&self) -> f64 {
        let is_shown = |errors| Null::at_least(errors).ln_evidence(self.counts) >= self.needed;
        let Some(rows) = self.rows else {
            let mut low = 0.0;
            let mut high = self.high;
            for _ in 0..BISECTIONS {
                let share = f64::midpoint(low, high);
                if is_shown(Errors::Share(share)) { high = share } else { low = share }
            }
            return high;
        };
        // So many errors are possible, because so many were found; and so many are excluded by earlier answers.
        let mut low = self.counts.wrong;
        let mut high = (self.high * rows as f64).round() as u64 + 1;
        while low + 1 < high {
            let errors = low.midpoint(high);
            if is_shown(Errors::Count { errors, rows }) { high = errors } else { low = errors }
        }
        (high - 1) as f64 / rows as f64
    }

    fn lowest(&self) -> f64 {
        let is_shown = |errors| Null::at_most(errors).ln_evidence(self.counts) >= self.needed;
        let Some(rows) = self.rows else {
            let mut low = self.low;
            let mut high = 1.0;
            for _ in 0..BISECTIONS {
                let share = f64::midpoint(low, high);
                if is_shown(Errors::Share(share)) { low = share } else { high = share }
            }
            return low;
        };
        // So many errors are certain if all other rows are right, and no fewer by earlier answers.
        let mut high = rows - self.counts.right();
        let mut low = ((self.low * rows as f64).round() as u64).max(self.counts.wrong).min(high);
        if low == high || !is_shown(Errors::Count { errors: low, rows }) {
            return low as f64 / rows as f64;
        }
        while low + 1 < high {
            let errors = low.midpoint(high);
            if is_shown(Errors::Count { errors, rows }) { low = errors } else { high = errors }
        }
        high as f64 / rows as f64
    }
}

fn check_rows(rows: u64) -> Result<(), MetricsError> {
    checked::parameter("number of rows", rows as f64, "from 1 to 10,000,000", |_| {
        (1..=MAX_ROWS).contains(&rows)
    })
}

fn check_left(rows: Option<u64>, answers: u64) -> Result<(), MetricsError> {
    let allowed = "at most the number of rows";
    checked::parameter("number of answers", answers as f64 + 1.0, allowed, |_| {
        rows.is_none_or(|rows| answers < rows)
    })
}

/// Errors at the edge of a hypothesis.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Errors {
    /// Of a finite number of rows.
    Count { errors: u64, rows: u64 },
    /// Without end.
    Share(f64),
}

impl Errors {
    fn rows(self) -> Option<u64> {
        match self {
            Self::Count { rows, .. } => Some(rows),
            Self::Share(_) => None,
        }
    }

    fn share(self) -> f64 {
        match self {
            Self::Count { errors, rows } => errors as f64 / rows as f64,
            Self::Share(share) => share,
        }
    }

    /// ln L of the answers if exactly these rows are wrong.
    fn ln_likelihood(self, counts: AnswerCounts) -> f64 {
        match self {
            Self::Count { errors, rows } => {
                if counts.wrong > errors || counts.right() > rows - errors {
                    return f64::NEG_INFINITY;
                }
                ln_falling(errors, counts.wrong) + ln_falling(rows - errors, counts.right())
                    - ln_falling(rows, counts.answers)
            }
            Self::Share(share) => times_ln(counts.wrong, share) + times_ln(counts.right(), 1.0 - share),
        }
    }
}

/// The side of a hypothesis.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Side {
    /// The hypothesis is so many errors or more; the mixture has fewer.
    AtLeast,
    /// The hypothesis is so many errors or fewer; the mixture has more.
    AtMost,
}

/// A hypothesis about the number of errors, with the mixture that it is tested against.
#[derive(Debug, Clone, PartialEq)]
struct Null {
    errors: Errors,
    side: Side,
    a: f64,
    b: f64,
    /// ln of the mass of the uncut beta-binomial beyond the hypothesis.
    ln_mass: f64,
}

impl Null {
    fn at_least(errors: Errors) -> Self {
        Self::new(errors, Side::AtLeast, MEAN * errors.share())
    }

    /// The mixture has its mean at three times the hypothesis, but at most half way from there to one.
    fn at_most(errors: Errors) -> Self {
        let share = errors.share();
        Self::new(errors, Side::AtMost, (share / MEAN).min(f64::midpoint(share, 1.0)))
    }

    fn new(errors: Errors, side: Side, mean: f64) -> Self {
        let a = CONCENTRATION * mean;
        let b = CONCENTRATION - a;
        let mut null = Self { errors, side, a, b, ln_mass: 0.0 };
        null.ln_mass = null.ln_tail(AnswerCounts::default());
        null
    }

    /// ln of the posterior mass of the uncut beta-binomial on the side of the mixture.
    fn ln_tail(&self, counts: AnswerCounts) -> f64 {
        let a = self.a + counts.wrong as f64;
        let b = self.b + counts.right() as f64;
        match (self.errors, self.side) {
            (Errors::Share(share), Side::AtLeast) => libm::log(incomplete_beta::regularised(a, b, share)),
            (Errors::Share(share), Side::AtMost) => {
                libm::log(incomplete_beta::regularised(b, a, 1.0 - share))
            }
            (Errors::Count { errors, rows }, Side::AtLeast) => {
                ln_beta_binomial_below(errors - counts.wrong, rows - counts.answers, a, b)
            }
            // More than so many wrong means fewer than the rest right.
            (Errors::Count { errors, rows }, Side::AtMost) => {
                ln_beta_binomial_below(rows - errors - counts.right(), rows - counts.answers, b, a)
            }
        }
    }

    /// ln of the likelihood ratio of the mixture against the edge of the hypothesis.
    fn ln_evidence(&self, counts: AnswerCounts) -> f64 {
        let at_edge = self.errors.ln_likelihood(counts);
        if at_edge == f64::NEG_INFINITY {
            // The answers exclude the edge: they have more errors than it, or more right rows than it leaves.
            let Errors::Count { errors, .. } = self.errors else { return f64::INFINITY };
            let has_more = counts.wrong > errors;
            let is_excluded = has_more == (self.side == Side::AtMost);
            return if is_excluded { f64::INFINITY } else { f64::NEG_INFINITY };
        }
        let prior =
            ln_beta(self.a + counts.wrong as f64, self.b + counts.right() as f64) - ln_beta(self.a, self.b);
        let mixed = prior + self.ln_tail(counts) - self.ln_mass;
        match self.side {
            Side::AtMost => mixed - at_edge,
            Side::AtLeast => {
                let mixed = libm::log(1.0 - ZERO_WEIGHT) + mixed;
                // Without an error, the answers are certain if there is none.
                let zero = if counts.wrong == 0 { libm::log(ZERO_WEIGHT) } else { f64::NEG_INFINITY };
                ln_add(mixed, zero) - at_edge
            }
        }
    }
}

/// ln of x·(x−1)⋯ with `factors` factors.
fn ln_falling(x: u64, factors: u64) -> f64 {
    libm::lgamma(x as f64 + 1.0) - libm::lgamma((x - factors) as f64 + 1.0)
}

/// n·ln(x), which is zero for n = 0.
fn times_ln(n: u64, x: f64) -> f64 {
    if n == 0 { 0.0 } else { n as f64 * libm::log(x) }
}

/// ln(eˣ + eʸ)
fn ln_add(x: f64, y: f64) -> f64 {
    let high = x.max(y);
    if high == f64::NEG_INFINITY { high } else { high + libm::log1p(libm::exp(x.min(y) - high)) }
}

fn ln_beta(a: f64, b: f64) -> f64 {
    libm::lgamma(a) + libm::lgamma(b) - libm::lgamma(a + b)
}

/// ln of the probability that fewer than `end` of `n` rows are wrong under the beta-binomial distribution.
fn ln_beta_binomial_below(end: u64, n: u64, a: f64, b: f64) -> f64 {
    /// Sums are scaled by it before they overflow.
    const SCALE: f64 = 1e250;
    if end > n {
        return 0.0;
    }
    if end == 0 {
        return f64::NEG_INFINITY;
    }
    let rows = n as f64;
    // Each term from the one before it; the first is one, and its logarithm is added at the end.
    let mut ln_first = ln_beta(a, b + rows) - ln_beta(a, b);
    let mut term = 1.0;
    let mut sum = 1.0;
    for k in 0..end - 1 {
        let k = k as f64;
        term *= (rows - k) / (k + 1.0) * ((a + k) / (b + rows - k - 1.0));
        sum += term;
        if sum > SCALE {
            term /= SCALE;
            sum /= SCALE;
            ln_first += libm::log(SCALE);
        }
    }
    ln_first + libm::log(sum)
}

#[cfg(test)]
mod tests;

//! The capital of a gambler who divides it among bets, from which evidence follows that can be looked at at any time.

use serde::{Deserialize, Serialize};

/// The capital that is an alarm: if no bet pays on average, it is ever reached with a probability of at most 1% (Ville's inequality).
pub const ALARM: f64 = 100.0;

/// The number of bets, the first of which is none.
pub(super) const BETS: usize = 5;

/// The number of rates at which capital moves between bets.
pub(super) const RATES: usize = 3;

/// A capital, which starts as 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Capital {
    /// The capital of each bet for each rate, in units of e to the power of `ln_unit`.
    #[serde(rename = "capital")]
    bets: [[f64; BETS]; RATES],
    ln_unit: f64,
    ln_highest: f64,
}

impl Capital {
    pub(super) fn new() -> Self {
        let share = 1.0 / (BETS * RATES) as f64;
        Self { bets: [[share; BETS]; RATES], ln_unit: 0.0, ln_highest: 0.0 }
    }

    /// Moves a share of each capital to the other bets, one share per rate, and multiplies each bet by its factor. A low rate keeps
    /// its capital over many usual outcomes, a high one follows a change after few outcomes.
    pub(super) fn bet(&mut self, rates: [f64; RATES], factors: [f64; BETS]) {
        for (capital, rate) in self.bets.iter_mut().zip(rates) {
            let moved = rate * capital.iter().sum::<f64>() / BETS as f64;
            for (capital, factor) in capital.iter_mut().zip(factors) {
                *capital = ((1.0 - rate) * *capital + moved) * factor;
            }
        }
        let total = self.total();
        if !(1e-100..1e100).contains(&total) {
            self.bets.iter_mut().flatten().for_each(|capital| *capital /= total);
            self.ln_unit += libm::log(total);
        }
        self.ln_highest = self.ln_highest.max(self.ln());
    }

    /// Returns the sum over the bets in units of e to the power of `ln_unit`.
    pub(super) fn total(&self) -> f64 {
        self.bets.iter().map(|capital| capital.iter().sum::<f64>()).sum()
    }

    /// Returns the natural logarithm of the capital now; zero at the start.
    pub(super) fn ln(&self) -> f64 {
        self.ln_unit + libm::log(self.total())
    }

    /// Returns the natural logarithm of the highest capital so far.
    pub(super) fn ln_highest(&self) -> f64 {
        self.ln_highest
    }

    /// Returns whether the capital has ever reached [`ALARM`].
    pub(super) fn is_alarm(&self) -> bool {
        self.ln_highest >= libm::log(ALARM)
    }

    /// Returns whether the numbers can be those of a capital, which a file does not guarantee.
    pub(super) fn is_sound(&self) -> bool {
        let is_capital = |capital: &f64| capital.is_finite() && *capital >= 0.0;
        self.bets.iter().flatten().all(is_capital)
            && self.total() > 0.0
            && self.ln_unit.is_finite()
            && self.ln_highest >= 0.0
            && self.ln_highest.is_finite()
    }
}

#[cfg(test)]
impl Capital {
    /// A capital of these bets, whether it is sound or not.
    pub(super) fn of(capital: f64, ln_unit: f64, ln_highest: f64) -> Self {
        Self { bets: [[capital; BETS]; RATES], ln_unit, ln_highest }
    }
}

//! Statistics of a few runs and of many samples: means, intervals, and a correction for several tests.
//!
//! Every result includes its number of samples `n`. Zero samples are an error, and one sample has a mean but neither a
//! deviation nor an interval.

mod bootstrap;
mod clopper_pearson;
mod holm;
mod incomplete_beta;
pub mod student_t;
mod summary;

use std::{error, fmt};

pub use bootstrap::{Bootstrap, PairedBootstrap, bootstrap, paired_bootstrap, percentile_interval, resample};
pub use clopper_pearson::{clopper_pearson, share_at_least};
pub use holm::holm;
pub use summary::{Estimate, PairedTest, Summary, paired_t_test};

/// The reason why a statistic could not be computed.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum StatsError {
    /// Fewer samples than the statistic needs.
    TooFew {
        /// The smallest number of samples that is enough.
        needed: usize,
        /// The number of samples that was given.
        got: usize,
    },
    /// The two sides of a paired test have different numbers of samples.
    Unpaired {
        /// The number of samples on the first side.
        first: usize,
        /// The number of samples on the second side.
        second: usize,
    },
    /// A number is outside its range.
    Value {
        /// What the number is.
        what: &'static str,
        /// Its position, from zero; zero for a single number.
        index: usize,
        /// The number.
        value: f64,
        /// What it may be.
        allowed: &'static str,
    },
}

impl fmt::Display for StatsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFew { needed, got } => write!(f, "at least {needed} samples are needed, got {got}"),
            Self::Unpaired { first, second } => {
                write!(f, "{first} samples cannot be paired with {second}")
            }
            Self::Value { what, index, value, allowed } => {
                write!(f, "{what} {index} is {value}, which is not {allowed}")
            }
        }
    }
}

impl error::Error for StatsError {}

fn check_finite(what: &'static str, numbers: &[f64]) -> Result<(), StatsError> {
    match numbers.iter().position(|x| !x.is_finite()) {
        Some(index) => Err(StatsError::Value { what, index, value: numbers[index], allowed: "finite" }),
        None => Ok(()),
    }
}

/// Checks that a number is between zero and one, both excluded.
fn check_level(what: &'static str, value: f64) -> Result<(), StatsError> {
    if value > 0.0 && value < 1.0 {
        Ok(())
    } else {
        Err(StatsError::Value { what, index: 0, value, allowed: "between 0 and 1" })
    }
}

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

use crate::error::MetricsError;

pub use bootstrap::{Bootstrap, PairedBootstrap, bootstrap, paired_bootstrap, percentile_interval, resample};
pub use clopper_pearson::{clopper_pearson, share_at_least};
pub use holm::holm;
pub use summary::{Estimate, PairedTest, Summary, paired_t_test};

fn check_finite(what: &'static str, numbers: &[f64]) -> Result<(), MetricsError> {
    match numbers.iter().position(|x| !x.is_finite()) {
        Some(index) => Err(MetricsError::Argument { what, index, value: numbers[index], allowed: "finite" }),
        None => Ok(()),
    }
}

/// Checks that a number is between zero and one, both excluded.
fn check_level(what: &'static str, value: f64) -> Result<(), MetricsError> {
    if value > 0.0 && value < 1.0 {
        Ok(())
    } else {
        Err(MetricsError::Argument { what, index: 0, value, allowed: "between 0 and 1" })
    }
}

//! Statistics of a few runs and of many samples: means, intervals, and a correction for several tests.
//!
//! Every result includes its number of samples `n`. Zero samples are an error, and one sample has a mean but neither a
//! deviation nor an interval.

pub mod agreement;
pub mod anytime_bound;
mod bootstrap;
mod clopper_pearson;
pub mod f_distribution;
mod incomplete_beta;
pub mod share_sequence;
pub mod student_t;
mod summary;

pub use bootstrap::{percentile_interval, resample};
pub use clopper_pearson::{clopper_pearson, share_at_least};
pub use summary::{Estimate, PairedTest, Summary, holm, paired_t_test};

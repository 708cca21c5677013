//! A fitted temperature, as `result.json` has it.

use calmix_core::calibration::temperature::Temperature;
use serde::{Deserialize, Serialize};

use crate::calibration_map::FittedOn;

/// A temperature with the labels it rests on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scaling {
    /// The temperature.
    pub temperature: Temperature,
    /// On what it was fitted.
    pub fitted_on: FittedOn,
    /// On how many samples.
    pub samples: u64,
}

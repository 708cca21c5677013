//! Options for loading a model and for its predictions.

use calmix_metrics::held_out::SetRule;
use calmix_recipe::device::Device;

/// Options for loading a model and for its predictions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelOptions {
    /// The device that the model runs on; `None` for the CPU.
    pub device: Option<Device>,
    /// The number of CPU threads; `None` for one per core. Results do not depend on it.
    pub threads: Option<usize>,
    /// Whether a head of an earlier version may read features in f32 although it was trained on another precision.
    pub accept_f32: bool,
    /// The number of images in memory at a time; fewer are used if they are large. Results do not depend on it.
    pub batch: usize,
    /// The probability with which a prediction set must contain the true class, between 0 and 1.
    pub coverage: f64,
    /// The rule that forms prediction sets.
    pub sets: SetRule,
    /// The share of the answers that must be right, between 0 and 1; the model abstains from less confident ones.
    pub precision: f64,
}

impl Default for ModelOptions {
    fn default() -> Self {
        Self {
            device: None,
            threads: None,
            accept_f32: false,
            batch: 256,
            coverage: 0.9,
            sets: SetRule::default(),
            precision: 0.9,
        }
    }
}

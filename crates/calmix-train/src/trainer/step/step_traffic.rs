//! The number of bytes that a process sends per step: a formula, which a test compares with the measured traffic.

use calmix_engine::network::Network;
use calmix_recipe::Recipe;
use calmix_recipe::model_spec::ModelSpec;

use super::step_stats::tally_width;
use crate::trainer::ranks::sync::Heartbeat;

/// The traffic of one of W processes in a step with guided mixup, with one group (`train.groups = 1`) of W micro-batches.
///
/// With x labelled and u unlabelled rows per micro-batch, C classes, D features, N sums for the base algorithm per micro-batch,
/// and P numbers in the sum (the parameters, two running statistics per channel of a BatchNorm, the losses and the tally), it
/// sends
///
/// | what | bytes |
/// |---|---|
/// | the gather: heartbeat 25, status 24, sums 8N, labelled ids and margins 16x, a list's length 8 each | (W−1)·(49 + 40 + 8N + 16x) |
/// | in the same gather, its rows: ids, logits, features; labels; APM | (W−1)·(64 + (8+4C+4D)·(x+u) + 4x + 4u) |
/// | views that others mix: three bytes per pixel | image·v |
/// | the sum: each stretch to its owner, then the sum of the own stretch to all | 4·(P − ⌈P/W⌉) + 4·(W−1)·⌈P/W⌉ = 8·P·(W−1)/W |
///
/// where v is the number of its rows that other processes mix: at most one for each of their labelled rows. The traffic does not
/// depend on the number of samples, and only the sum depends on the size of the network. With more groups, the rows are gathered
/// in a separate message, among fewer processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepTraffic {
    processes: u64,
    /// The numbers of labelled and unlabelled rows of this process.
    rows: [u64; 2],
    classes: u64,
    features: u64,
    /// The number of sums for the base algorithm per micro-batch.
    sums: u64,
    /// The number of numbers in the sum.
    numbers: u64,
    /// The size of an image in bytes.
    image: u64,
}

impl StepTraffic {
    /// Creates the traffic of a recipe with a number of processes.
    pub fn new(recipe: &Recipe, classes: usize, processes: usize) -> Self {
        let network = Network::new(&ModelSpec::from(recipe), classes);
        let layout = network.layout();
        let channels: usize = layout.statistics.iter().map(|layer| layer.channels).sum();
        // The classifier is the only matrix, with a row per class.
        let features = layout.parameters.iter().find_map(|parameter| match parameter.shape[..] {
            [_, features] => Some(features),
            _ => None,
        });
        let processes = processes.max(1) as u64;
        let method = recipe.method;
        let metrics = method.loss_terms().len() + 1 + tally_width(&method, classes);
        Self {
            processes,
            rows: [recipe.train.batch, recipe.unlabelled()].map(|rows| u64::from(rows) / processes),
            classes: classes as u64,
            features: features.unwrap_or(0) as u64,
            sums: method.base.sums_width(classes) as u64,
            numbers: (layout.len() + 2 * channels + metrics) as u64,
            image: 3 * u64::from(recipe.augment.size).pow(2),
        }
    }

    /// Returns the bytes sent for the sum over all processes.
    pub fn of_sum(&self) -> u64 {
        let stretch = self.numbers.div_ceil(self.processes);
        4 * (self.numbers - stretch) + 4 * (self.processes - 1) * stretch
    }

    /// Returns the bytes sent in the gather.
    pub fn of_gather(&self) -> u64 {
        let [x, u] = self.rows;
        let world = Heartbeat::BYTES as u64 + 24 + 40 + 8 * self.sums + 16 * x;
        let rows = 64 + (8 + 4 * self.classes + 4 * self.features) * (x + u) + 4 * x + 4 * u;
        (self.processes - 1) * (world + rows)
    }

    /// Returns the bytes of the views that other processes mix.
    pub fn of_views(&self, views: u64) -> u64 {
        self.image * views
    }

    /// Returns the mean bytes sent per step: each labelled row is mixed once, with a partner on any process with equal
    /// probability.
    pub fn mean(&self) -> u64 {
        let views = self.rows[0] * (self.processes - 1) / self.processes;
        self.of_sum() + self.of_gather() + self.of_views(views)
    }
}

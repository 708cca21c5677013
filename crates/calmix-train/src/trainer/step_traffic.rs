//! How many bytes a process sends in a step: the formula, which a test compares with what is sent.

use calmix_engine::network::Network;

use crate::recipe::Recipe;

/// A step of FixMatch or plain supervision with a guided mixup, as the first of W processes sees it that share one group
/// (`train.groups = 1`) in as many parts.
///
/// With x labelled and u unlabelled rows here, C classes, D features and P numbers to be added up (the parameters, two
/// running statistics for each channel of a BatchNorm, four losses), it sends
///
/// | what | bytes |
/// |---|---|
/// | the sum: stretches to their owners, then the sum of one's own stretch to all | 4·(P − ⌈P/W⌉) + 4·(W−1)·⌈P/W⌉ = 8·P·(W−1)/W |
/// | a word before the step, and how many samples were seen | 34·(W−1) |
/// | one's rows of the batch to all: ids, epochs, logits, features, labels | (W−1)·(80 + (16+4C+4D)·(x+u) + 4x) |
/// | margins to the owners of labelled samples, their AUM back, and that to all | 24·(W−1) + 16·a + 8·b + 8x·(W−1) |
/// | logits to the owners of unlabelled samples, their APM back, and that to all | 24·(W−1) + (12+4C)·c + 8·d + 8u·(W−1) |
///
/// where a and c rows of this process belong to others, and b and d rows of others belong to it: about (W−1)/W of x and u.
/// Nothing depends on how many samples there are, and but for the sum nothing on the size of the network.
///
/// FlexMatch adds 8 to 12 bytes a row for the labels it remembers, SoftMatch two numbers a group. More groups gather
/// among fewer processes each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepTraffic {
    processes: u64,
    /// Labelled and unlabelled rows of this process.
    rows: [u64; 2],
    classes: u64,
    features: u64,
    /// Numbers that are added up.
    numbers: u64,
}

/// Rows that are not where their memory is, labelled and unlabelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Away {
    /// Rows of this process whose samples belong to others.
    pub asked: [u64; 2],
    /// Rows of others whose samples belong to this process.
    pub answered: [u64; 2],
}

impl StepTraffic {
    /// Of a recipe on so many processes.
    pub fn new(recipe: &Recipe, classes: usize, processes: usize) -> Self {
        let network = Network::new(recipe.network.name, recipe.network.block, classes);
        let layout = network.layout();
        let channels: usize = layout.statistics.iter().map(|layer| layer.channels).sum();
        // The classifier is the only matrix: a row for each class.
        let features = layout.parameters.iter().find_map(|parameter| match parameter.shape[..] {
            [_, features] => Some(features),
            _ => None,
        });
        let processes = processes.max(1) as u64;
        Self {
            processes,
            rows: [recipe.train.batch, recipe.unlabelled()].map(|rows| u64::from(rows) / processes),
            classes: classes as u64,
            features: features.unwrap_or(0) as u64,
            numbers: (layout.len() + 2 * channels + 4) as u64,
        }
    }

    /// Bytes of the sum over all processes.
    pub fn of_sum(&self) -> u64 {
        let stretch = self.numbers.div_ceil(self.processes);
        4 * (self.numbers - stretch) + 4 * (self.processes - 1) * stretch
    }

    /// Bytes of everything else, which the plan needs.
    pub fn of_plan(&self, away: Away) -> u64 {
        let (others, [x, u]) = (self.processes - 1, self.rows);
        let words = 34 * others;
        let row = 16 + 4 * self.classes + 4 * self.features;
        let batch = others * (80 + row * (x + u) + 4 * x);
        let owners = |rows: u64, width: u64, n: usize| {
            24 * others + (8 + width) * away.asked[n] + 8 * away.answered[n] + 8 * rows * others
        };
        words + batch + owners(x, 8, 0) + owners(u, 4 * self.classes + 4, 1)
    }

    /// Bytes of a step in the mean.
    pub fn mean(&self) -> u64 {
        let away = self.rows.map(|rows| rows * (self.processes - 1) / self.processes);
        self.of_sum() + self.of_plan(Away { asked: away, answered: away })
    }
}

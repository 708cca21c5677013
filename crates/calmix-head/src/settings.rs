//! The settings of a head and of its training.

use calmix_core::method::{BaseLoss, Method};
use calmix_core::mixup::pair::Space;
use calmix_core::rng::Seed;
use calmix_core::schedule::{LearningRate, Start};

use crate::error::HeadError;

/// The heads that are trained and compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Candidates {
    /// The configured head, and the one on the labels alone if requested.
    #[default]
    Method,
    /// The candidates for samples of one vector each, without weak and strong views: logistic regression on the labels alone, two
    /// mixtures of Gaussians and the average of both kinds; with neighbours a head on them, and its average with logistic
    /// regression. None of them is trained step by step: only the folds and the seed of
    /// the settings apply. A head on pseudo-labels with dropout as the strong view was tried and left out: it was slower by an
    /// order of magnitude, and its out-of-fold NLL was far below that on test images.
    OneVector,
}

/// The settings of a head and of its training.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeadSettings {
    /// The base algorithm and the mixup term.
    pub method: Method,
    /// The number of units of a hidden layer; `None` for a linear head.
    pub hidden: Option<usize>,
    /// The number of steps; not used with [`Candidates::OneVector`].
    pub steps: u64,
    /// The number of labelled rows per step.
    pub batch: usize,
    /// The number of unlabelled rows per step; zero for supervised training.
    pub unlabelled_batch: usize,
    /// The initial learning rate.
    pub lr: f64,
    /// The schedule of the learning rate.
    pub schedule: LearningRate,
    /// The momentum of SGD.
    pub momentum: f64,
    /// Whether the momentum is Nesterov's.
    pub nesterov: bool,
    /// The decay of matrices; biases are not decayed.
    pub weight_decay: f64,
    /// The norm to which a larger gradient is clipped; `None` for no clipping.
    pub clip: Option<f64>,
    /// The decay of the exponential moving average of the weights, per step.
    pub ema_decay: f64,
    /// The number of folds that give out-of-fold predictions; 0 for none.
    pub folds: usize,
    /// The heads that are trained and compared.
    pub candidates: Candidates,
    /// Whether a head on the labels alone is trained too. With [`Candidates::OneVector`] it always is.
    pub labels_alone: bool,
    /// Whether heads on neighbours are among the candidates, if there are not too many samples; only with
    /// [`Candidates::OneVector`].
    pub neighbours: bool,
    /// The number of steps between two entries of the training log; 0 for none.
    pub log_every: u64,
    /// The seed of all random draws.
    pub seed: Seed,
}

impl HeadSettings {
    /// Returns the settings for this number of labels: without mixup if there are too many for it.
    pub(crate) fn for_labels(&self, labels: usize, classes: usize) -> Self {
        let mut settings = *self;
        if !self.method.mixup.applies_to(labels, classes) {
            settings.method.mixup.start = Start::at(u64::MAX);
        }
        settings
    }

    /// Checks that the settings apply to heads.
    ///
    /// # Errors
    /// If the method needs two full passes or pixels, or a number is out of range.
    pub fn check(&self) -> Result<(), HeadError> {
        if self.method.base_loss == BaseLoss::Twice {
            return Err(HeadError::Setting(
                "method.base_loss = \"twice\" does not apply to a head: its two passes differ only by BatchNorm; use \"once\"",
            ));
        }
        if self.method.similarity_space() == Some(Space::Pixel) {
            return Err(HeadError::Setting(
                "a head sees vectors, not pixels: choose the similarity space \"feature\" or \"logit\"",
            ));
        }
        // The model file would be read with a hidden layer that none of these heads has.
        if self.candidates == Candidates::OneVector && self.hidden.is_some() {
            return Err(HeadError::Setting(
                "network.head = \"hidden\" does not apply to one vector per sample: its heads are linear; use \"linear\"",
            ));
        }
        let has_steps = self.steps > 0 || self.candidates == Candidates::OneVector;
        if self.batch == 0 || !has_steps || self.hidden == Some(0) {
            return Err(HeadError::Setting("steps, rows of a batch and hidden units are at least 1"));
        }
        Ok(())
    }
}

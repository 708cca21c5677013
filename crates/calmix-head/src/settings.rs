//! The settings of a head and of its training.

use calmix_core::method::{BaseLoss, Method};
use calmix_core::pair::Space;
use calmix_core::rng::Seed;
use calmix_core::schedule::LearningRate;

use crate::error::HeadError;

/// Which heads are trained and compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Candidates {
    /// The head of the settings, and the one on the labels alone if they request it.
    #[default]
    Method,
    /// Those for samples of one vector each, without weak and strong views: logistic regression on the labels alone,
    /// two mixtures of Gaussians, the average of both kinds, and the head of the settings.
    OneVector,
}

/// The settings of a head and of its training.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeadSettings {
    /// The base algorithm and the mixup term.
    pub method: Method,
    /// The number of units of a hidden layer; `None` for a linear head.
    pub hidden: Option<usize>,
    /// The number of steps.
    pub steps: u64,
    /// Labelled rows of a step.
    pub batch: usize,
    /// Unlabelled rows of a step; zero for supervised training.
    pub unlabelled_batch: usize,
    /// The initial learning rate.
    pub lr: f64,
    /// The learning rate of biases relative to that of matrices. A number of a vector of unit length is small, so the same
    /// rate moves a bias much faster than the weights of a class: too fast for pseudo-labels of a few labels.
    pub bias_rate: f64,
    /// How the learning rate changes.
    pub schedule: LearningRate,
    /// The momentum of SGD.
    pub momentum: f64,
    /// Whether it is Nesterov's.
    pub nesterov: bool,
    /// The decay of matrices; biases are not decayed.
    pub weight_decay: f64,
    /// The norm to which a larger gradient is clipped; `None` for no clipping.
    pub clip: Option<f64>,
    /// The decay of the exponential moving average of the weights, per step.
    pub ema_decay: f64,
    /// The number of folds that give out-of-fold predictions; 0 for none.
    pub folds: usize,
    /// Which heads are trained and compared.
    pub candidates: Candidates,
    /// Whether a head that is trained on the labels alone is tried too. With [`Candidates::OneVector`] it always is.
    pub labels_alone: bool,
    /// The probability with which a number of a vector is dropped to make a strong view of samples that have no views;
    /// 0 to train on the vector itself.
    pub dropout: f64,
    /// The number of first steps in which only the labels have a loss. From few labels and without views, the first
    /// pseudo-labels are those of a random head, and may pull all samples into one class.
    pub warm_up: u64,
    /// The number of steps between two entries of the training log; 0 for none.
    pub log_every: u64,
    /// The seed of everything that is drawn.
    pub seed: Seed,
}

impl HeadSettings {
    /// The same settings for samples of one vector each. From 4 labels per class, features of an image classifier ended in
    /// a single class without the warm-up and the slower biases.
    #[must_use]
    pub fn for_one_vector(self) -> Self {
        let candidates = Candidates::OneVector;
        Self { candidates, dropout: 0.5, warm_up: self.steps / 10, bias_rate: 0.01, ..self }
    }

    /// Refuses what does not apply to heads.
    ///
    /// # Errors
    /// If the method needs two whole passes or pixels, or a number is out of range.
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
        if self.batch == 0 || self.steps == 0 || self.hidden == Some(0) {
            return Err(HeadError::Setting("steps, rows of a batch and hidden units are at least 1"));
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return Err(HeadError::Setting("the dropout of a head is at least 0 and below 1"));
        }
        Ok(())
    }
}

//! A recipe: the typed configuration of everything that determines the result of a run.
//!
//! It is built from layers, each overriding the previous one: the defaults, a built-in recipe (`recipes/`), a file, the
//! environment (`CALMIX_TRAIN__STEPS=2000`), and settings on the command line (`train.steps=2000`). Every value has an
//! origin; an unknown key is refused with a suggestion of the nearest one; every value and every combination is checked
//! before anything starts, and all problems are listed at once.
//!
//! ```
//! use calmix_recipe::Layers;
//!
//! let resolved = Layers::new().recipe("cifar10").set("labels.count=25").resolve()?;
//! assert_eq!((resolved.recipe.train.batch, resolved.recipe.train.ratio), (64, 7));
//! assert_eq!(resolved.origin("labels.count").to_string(), "--set 1");
//!
//! let typo = Layers::new().recipe("cifar10").set("train.stpes=2000").resolve().unwrap_err();
//! assert_eq!(typo.to_string(), "--set 1: there is no key `train.stpes`; did you mean `train.steps`?");
//! # Ok::<(), calmix_recipe::RecipeError>(())
//! ```
//!
//! The resolved recipe is stored with the run as TOML; reading it gives the same recipe, which is enough to repeat the run.
//! [`differences`] lists what a resumed run would change, and whether it may. A [`sweep`] is a file that describes many
//! runs.
//!
//! The names of networks, devices and precisions are defined here too, without libtorch; `calmix-engine` implements them.
#![forbid(unsafe_code)]

mod builtin;
pub mod device;
mod keys;
mod layers;
pub mod model_spec;
mod nearest;
pub mod network;
mod origin;
pub mod precision;
mod problem;
mod renamed;
mod resume;
mod source_format;
pub mod step_kind;
pub mod sweep;
mod value;

pub use builtin::published::{SEEDS, is_in_paper};
pub use builtin::{
    Builtin, CPU_RECIPE, GPU_RECIPE, HEAD_RECIPE, VECTORS_RECIPE, builtin, builtin_sweeps, is_for_folders,
    recipe_for,
};
pub use calmix_core::method::Method;
pub use calmix_core::settings as field;
pub use calmix_metrics::evaluate::Selection;
pub use keys::augment::{Augment, Cutout, CutoutRule, Family, Frame, Geometry, RandAugment, RandAugmentRule};
pub use keys::data::{ClassWeight, Data, Keep, Labels, LayoutName, OrderName, SourceName};
pub use keys::loader::{CorruptPolicy, LoaderSection};
pub use keys::observe::{CheckpointSection, Evaluate, Log, OnFailure};
pub use keys::or_auto::{Auto, OrAuto};
pub use keys::reference::reference;
pub use keys::schema::schema;
pub use keys::train::{BatchNorm, Ema, NetworkSection, NonFinite, Optimiser, Train, TrainedPart};
pub use layers::rules::uneven_rows;
pub use layers::{Layers, MAX_RECIPE_BYTES, Resolved};
pub use nearest::nearest;
pub use origin::Origin;
pub use problem::{Problem, RecipeError, Warning, What};
pub use resume::{Difference, differences, may_change, must_match};
pub use source_format::{detect_source, is_own_format};

use calmix_core::pseudo::Base;
use field::{Field, SettingType, Shape, choice, section};

section! {
    /// Everything that determines the result of a run.
    Recipe {
        /// What the recipe is for, in one line.
        free description: String = String::new();
        /// The reading of the paper that fills in what the recipe does not set.
        fixed preset: Preset = Preset::Paper;
        /// Which evaluated model becomes the result.
        fixed selection: Selection = Selection::Last;
        /// The dataset.
        part dataset: Data;
        /// Which labels are kept.
        part labels: Labels;
        /// The network.
        part network: NetworkSection;
        /// The method.
        part method: Method;
        /// The length of the run, its batches, and the device.
        part train: Train;
        /// Stochastic gradient descent.
        part optimiser: Optimiser;
        /// The exponential moving average (EMA) of the network's weights.
        part ema: Ema;
        /// The weak, strong and evaluation views of an image.
        part augment: Augment;
        /// The data loader.
        part loader: LoaderSection;
        /// When and how models are evaluated.
        part evaluate: Evaluate;
        /// When the state of the run is saved.
        part checkpoint: CheckpointSection;
        /// What the run logs while it trains.
        part log: Log;
    }
}

choice! {
    /// A reading of the paper, or what was found better.
    Preset {
        /// The paper's text; where it leaves a choice open, the more likely reading.
        Paper = "paper",
        /// The behaviour of the code that the authors released. It exists only for SoftMatch.
        ReleasedCode = "released-code",
        /// What the study in `docs/study` found best calibrated for heads on frozen features, by the number of labels per class.
        Calibrated = "calibrated",
    }
}

impl Recipe {
    /// Returns every key of a recipe.
    pub fn fields() -> &'static [Field] {
        match Self::shape() {
            Shape::Section(fields) => fields,
            Shape::Value(_) => &[],
        }
    }

    /// Returns whether a head is trained on a frozen backbone.
    pub fn has_head(&self) -> bool {
        self.network.train == TrainedPart::Head
    }

    /// Returns whether a head is trained on the user's own vectors, without images and without a backbone.
    pub fn has_vectors(&self) -> bool {
        self.dataset.source == SourceName::Vectors
    }

    /// Returns whether the backbone of a head is an ONNX encoder instead of a network of calmix itself.
    pub fn has_encoder(&self) -> bool {
        self.has_head() && !self.has_vectors() && !self.network.output.is_empty()
    }

    /// Returns whether a head has one vector per sample, without weak and strong views.
    pub fn has_one_vector(&self) -> bool {
        self.has_head() && self.network.weak_views + self.network.strong_views == 0
    }

    /// Returns the number of training steps; 0 if the heads are trained in one go, on one vector per sample.
    pub fn steps(&self) -> u64 {
        if self.has_one_vector() { 0 } else { self.train.steps }
    }

    /// Returns the number of unlabelled samples to train on, of the `all` that are available.
    pub fn unlabelled_samples(&self, all: u64) -> u64 {
        match (self.unlabelled(), self.labels.unlabelled_count) {
            (0, _) => 0,
            (_, 0) => all,
            (_, most) => all.min(most),
        }
    }

    /// Returns the number of unlabelled images per batch; 0 if the method uses labelled images only.
    pub fn unlabelled(&self) -> u32 {
        if self.method.base == Base::Supervised {
            0
        } else {
            self.train.batch.saturating_mul(self.train.ratio)
        }
    }
}

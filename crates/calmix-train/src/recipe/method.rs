//! The method: a base algorithm, the mixup term, and how targets are smoothed.
//!
//! Every question that the paper leaves open is a key here. What the words mean is documented, with the paper's
//! sentences, in [`calmix_core`], whose [`Method`](calmix_core::method::Method) a recipe
//! [comes to](Method::resolve).

mod mixup;

use calmix_core::method::{BaseLoss, Method as CoreMethod};
use calmix_core::pseudo::{self, FixMatch, FlexMatch, SoftMatch};
use calmix_core::smoothing::Smoothing;

pub use mixup::{Mixup, PairingName, Start, StartRule};

use super::field::limit::from;
use super::field::{choice, section};

section! {
    /// The method.
    Method {
        /// The algorithm underneath.
        fixed base: BaseName = BaseName::FixMatch;
        /// λ_U: the weight of the unlabelled loss.
        #[when(base is not BaseName::Supervised)]
        fixed unlabelled_weight: f64 = 1.0, from(0.0);
        /// How often the base loss counts while the mixup term is on.
        #[when(mixup.pairing is not PairingName::None)]
        fixed base_loss: BaseLoss = BaseLoss::Once;
        /// How all targets are smoothed: labelled, pseudo-labelled and mixed.
        fixed smoothing: Smoothing;
        /// FixMatch's settings.
        #[when(base is BaseName::FixMatch)]
        part fixmatch: FixMatch;
        /// FlexMatch's settings.
        #[when(base is BaseName::FlexMatch)]
        part flexmatch: FlexMatch;
        /// SoftMatch's settings.
        #[when(base is BaseName::SoftMatch)]
        part softmatch: SoftMatch;
        /// The mixup term.
        #[when(mixup.pairing is not PairingName::None)]
        part mixup: Mixup;
    }
}

choice! {
    /// The algorithm underneath.
    BaseName {
        /// Labelled samples only.
        Supervised = "supervised",
        /// A fixed threshold on the confidence.
        FixMatch = "fixmatch",
        /// A threshold per class that follows how well the class is learnt.
        FlexMatch = "flexmatch",
        /// A weight that falls off smoothly below the mean confidence.
        SoftMatch = "softmatch",
    }
}

impl Method {
    /// Resolves to core's method, for a run of `steps` steps.
    pub fn resolve(&self, steps: u64) -> CoreMethod {
        CoreMethod {
            base: match self.base {
                BaseName::Supervised => pseudo::Base::Supervised,
                BaseName::FixMatch => pseudo::Base::FixMatch(self.fixmatch),
                BaseName::FlexMatch => pseudo::Base::FlexMatch(self.flexmatch),
                BaseName::SoftMatch => pseudo::Base::SoftMatch(self.softmatch),
            },
            mixup: self.mixup.resolve(steps),
            smoothing: self.smoothing,
            unlabelled_weight: self.unlabelled_weight,
            base_loss: self.base_loss,
        }
    }
}

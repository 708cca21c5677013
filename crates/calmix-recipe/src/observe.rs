//! How a run is watched and kept: evaluation, checkpoints, log, and which model is the result.

use crate::field::limit::{SOME, from};
use crate::field::{choice, section};

section! {
    /// When and how models are evaluated.
    Evaluate {
        /// Steps from one evaluation to the next; there is always one after the last step.
        fixed every: u64 = 5120, SOME;
        /// How many of the last evaluations the median is taken of.
        fixed window: u32 = 20, SOME;
        /// Images at a time.
        free batch: u32 = 256, SOME.to(65_536.0);
        /// Resamples for confidence intervals; 0 for none.
        free bootstrap: u32 = 1000, from(0.0).to(1_000_000.0);
        /// How many of the last evaluations keep their predictions; those of the result always stay. 0 for all.
        free keep_predictions: u32 = 20, from(0.0);
        /// Whether the network itself is evaluated as well as its average.
        fixed online: bool = false;
        /// Whether the network labels all unlabelled samples once more at the end, where their classes are known, to count the
        /// wrong ones.
        free pseudo_labels: bool = true;
    }
}

section! {
    /// When the state of a run is kept.
    CheckpointSection {
        /// Steps from one checkpoint to the next.
        free every: u64 = 1024, SOME;
        /// How many are kept.
        free keep: u32 = 2, SOME;
        /// What happens when one cannot be written.
        free on_failure: OnFailure = OnFailure::Stop;
    }
}

choice! {
    /// What happens when a checkpoint cannot be written.
    OnFailure {
        /// The run stops; the checkpoint before is intact.
        Stop = "stop",
        /// The run goes on and says so with every event, until one can be written again.
        GoOn = "go-on",
    }
}

section! {
    /// What a run tells while it trains.
    Log {
        /// Steps from one line to the next.
        free every: u64 = 64, SOME;
        /// Whether events are written for TensorBoard as well.
        free tensorboard: bool = false;
    }
}

//! The keys of evaluation, checkpoints and the log.

use crate::field::limit::{AT_LEAST_ONE, from};
use crate::field::{choice, section};

section! {
    /// When and how models are evaluated.
    Evaluate {
        /// Steps between evaluations; the model is always evaluated after the last step too.
        fixed every: u64 = 5120, AT_LEAST_ONE;
        /// The number of last evaluations over which `selection = "median"` takes the median.
        fixed window: u32 = 20, AT_LEAST_ONE;
        /// Images per batch during evaluation.
        free batch: u32 = 256, AT_LEAST_ONE.to(65_536.0);
        /// Bootstrap resamples for confidence intervals; 0 for no intervals.
        free bootstrap: u32 = 1000, from(0.0).to(1_000_000.0);
        /// The number of last evaluations whose predictions are kept; 0 for all. The predictions of the result are always
        /// kept.
        free keep_predictions: u32 = 20, from(0.0);
        /// Whether to evaluate the network itself as well as its averaged (EMA) copy.
        fixed online: bool = false;
        /// Whether to pseudo-label the unlabelled samples once more at the end of the run, if their classes are known, and
        /// count the wrong ones. A network does so with at most 100,000 of them, evenly spread.
        free pseudo_labels: bool = true;
    }
}

section! {
    /// When the state of a run is saved.
    CheckpointSection {
        /// Steps between checkpoints.
        free every: u64 = 1024, AT_LEAST_ONE;
        /// The number of checkpoints to keep.
        free keep: u32 = 2, AT_LEAST_ONE;
        /// What happens if a checkpoint cannot be written.
        free on_failure: OnFailure = OnFailure::Stop;
    }
}

choice! {
    /// What happens if a checkpoint cannot be written.
    OnFailure {
        /// The run stops; the previous checkpoint is intact.
        Stop = "stop",
        /// The run continues and warns with every event, until a checkpoint can be written again.
        GoOn = "go-on",
    }
}

section! {
    /// What a run logs while it trains.
    Log {
        /// Steps between log lines.
        free every: u64 = 64, AT_LEAST_ONE;
        /// Whether to write TensorBoard event files as well.
        free tensorboard: bool = false;
    }
}

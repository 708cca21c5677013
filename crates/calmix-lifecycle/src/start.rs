//! From a dataset to a run that is ready to start: all decisions of `calmix train --data photos` and `calmix train --features
//! vectors.npz`, as one typed pipeline.
//!
//! [`Draft`] chooses the recipe and resolves it. [`prepare_run`] claims the folder of the run, opens or prepares the dataset,
//! draws the split, chooses a pretrained backbone, and resolves the recipe again with these; [`prepare_vectors`] does the same
//! for the user's own vectors. Then `calmix-heads` trains a head, or `calmix-train` a whole network. The command `calmix train`
//! and the workers of `calmix sweep` both use this pipeline.

mod backbone;
mod dataset_settings;
mod draft;
mod prepare;
mod pretrained_layer;

pub use crate::error::StartError;
pub use crate::start_context::{InsteadOfTest, StartContext, StartNotice};
pub use backbone::BackboneChoice;
pub use calmix_run::run_folder::{RunFolder, RunPlace};
pub use draft::{CompletedDraft, Draft, trains_head};
pub use prepare::{FILE_CONTENTS, PreparedRun, prepare_run, prepare_vectors, view_settings};
pub use pretrained_layer::with_pretrained;

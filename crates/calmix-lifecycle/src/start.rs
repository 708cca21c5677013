//! From a dataset to a run that is ready to start: everything that `calmix train --data photos` and
//! `calmix train --features vectors.npz` decide, as one typed pipeline.
//!
//! [`Draft`] chooses the recipe and resolves it; [`prepare_run`] claims the folder of the run, opens or makes the table of the
//! dataset, draws the split, chooses a pretrained backbone and resolves the recipe again with what it found. `calmix-heads` trains
//! a head, and `calmix-train` a whole network. [`prepare_vectors`] is the same for vectors that the user already has. The
//! command `calmix train` and the workers of `calmix sweep` go this way.

mod backbone;
mod draft;
pub(crate) mod error;
mod folder_recipe;
mod images;
mod prepared_run;
mod pretrained_layer;
mod table_settings;
mod vectors;

pub use crate::start_notice::{InsteadOfTest, StartNotice};
pub use backbone::BackboneChoice;
pub use calmix_run::run_folder::{RunFolder, RunPlace};
pub use draft::{CompletedDraft, Draft, trains_head};
pub use error::StartError;
pub use images::prepare_run;
pub use prepared_run::{PreparedRun, StartContext};
pub use pretrained_layer::with_pretrained;
pub use vectors::{FILE_CONTENTS, prepare_vectors, view_settings};

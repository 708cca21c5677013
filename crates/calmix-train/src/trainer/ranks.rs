//! The cooperation of a run's ranks: which micro-batches each runs, staying in step, sharing results and errors, stopping
//! together, and agreeing on a checkpoint.

pub(super) mod collect_results;
pub(super) mod eval_stop;
pub(super) mod find_checkpoint;
pub(super) mod layout;
pub(super) mod step_signals;
pub(super) mod sync;
pub(super) mod wire;

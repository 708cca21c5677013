//! How the ranks of a run cooperate: which micro-batches each runs, how they stay in step, share results and errors, stop
//! together and agree on a checkpoint.

pub(super) mod collect_results;
pub(super) mod eval_stop;
pub(super) mod find_checkpoint;
pub(super) mod layout;
pub(super) mod step_signals;
pub(super) mod sync;
pub(super) mod wire;

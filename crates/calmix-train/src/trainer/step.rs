//! One step of training and its parts: the network, the plan and its exchange between ranks, the statistics.

pub(super) mod checkpoint_weights;
pub(super) mod engine_settings;
pub(super) mod exchange;
pub(super) mod memory;
pub(super) mod partners;
pub(super) mod step_stats;
pub(super) mod step_traffic;
pub(super) mod stepper;
pub(super) mod visits;

//! A run that trains a head on frozen features: from its vectors to a calibrated model, without checkpoints.

pub(super) mod evaluate_head;
pub(super) mod head_settings;
pub(super) mod run_head;

//! Evaluations of a network, while a run trains, at its end, and later from its folder.

pub(super) mod evaluate;
pub(super) mod reevaluate;
pub(super) mod report_files;

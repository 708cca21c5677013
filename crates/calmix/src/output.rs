//! Texts about runs, recipes and data that the commands print.

pub mod format;
mod guarantee_basis;
pub mod head_table;
mod learning_curve;
pub mod metric_table;
pub mod preparation;
pub mod run_files;
pub mod run_outcome;
pub mod run_summary;
pub mod verdict;
pub mod warnings;

//! What the commands say of runs, recipes and data.

pub mod data_warnings;
pub mod format;
pub mod head_table;
pub mod metric_table;
pub mod moved_data;
pub mod notice_printer;
pub mod quicker;
pub mod recipe_warnings;
pub mod replaced_table;
pub mod run_files;
pub mod run_list;
pub mod run_outcome;
pub mod run_summary;
pub mod start_notice;
pub mod verdict;
pub mod weights_hint;

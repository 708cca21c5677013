//! The binary from outside: whole commands, what they print, which files they leave, how they exit.
//!
//! Texts are compared with the files in `crates/calmix/tests/cli/golden`; `CALMIX_BLESS=1 cargo test -p calmix-torch cli::`
//! rewrites them.

mod calibrate;
mod cluster_templates;
mod compare;
mod errors;
mod evaluate_on;
mod export;
mod export_pytorch;
mod first_steps;
mod fixture;
mod flipped;
mod folder_contents;
mod folder_layouts;
mod formulas;
mod head;
#[cfg(target_os = "linux")]
mod head_signals;
mod help;
#[cfg(target_os = "linux")]
mod hostile;
#[cfg(target_os = "linux")]
mod hostile_head;
#[cfg(target_os = "linux")]
mod hostile_outputs;
#[cfg(target_os = "linux")]
mod hostile_predict;
#[cfg(target_os = "linux")]
mod hostile_scene;
mod inspect;
mod json;
#[cfg(target_os = "linux")]
mod killed_calls;
#[cfg(target_os = "linux")]
mod killed_prepare;
mod labels_csv;
#[cfg(target_os = "linux")]
mod library;
#[cfg(target_os = "linux")]
mod measured;
mod metrics;
mod model;
mod moved_dataset;
mod near;
mod one_clean_view;
mod outage;
mod parquet;
mod parquet_dataset;
mod predict;
mod predict_features;
#[cfg(target_os = "linux")]
mod predict_shards;
mod predict_waits;
mod prepared_tables;
mod processes;
#[cfg(target_arch = "x86_64")]
mod processor;
#[cfg(feature = "https")]
mod push;
mod report;
#[cfg(target_os = "linux")]
mod rounds;
#[cfg(target_os = "linux")]
mod shared_cache;
mod shrink;
mod signals;
mod sweep;
mod together;
mod train;
mod train_folder;
mod unlabelled_list;
mod version;
mod weights;

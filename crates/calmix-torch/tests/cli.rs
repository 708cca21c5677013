//! The binary from outside: whole commands, what they print, which files they leave, how they exit.
//!
//! Texts are compared with the files in `crates/calmix/tests/cli/golden`; `CALMIX_BLESS=1 cargo test -p calmix-torch --test
//! cli` rewrites them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "cli/calibrate.rs"]
mod calibrate;
#[path = "cli/cluster_templates.rs"]
mod cluster_templates;
#[path = "cli/compare.rs"]
mod compare;
#[path = "cli/errors.rs"]
mod errors;
#[path = "cli/evaluate_on.rs"]
mod evaluate_on;
#[path = "cli/export.rs"]
mod export;
#[path = "cli/export_pytorch.rs"]
mod export_pytorch;
#[path = "cli/first_steps.rs"]
mod first_steps;
#[path = "cli/fixture.rs"]
mod fixture;
#[path = "cli/flipped.rs"]
mod flipped;
#[path = "cli/folder_contents.rs"]
mod folder_contents;
#[path = "cli/folder_layouts.rs"]
mod folder_layouts;
#[path = "cli/formulas.rs"]
mod formulas;
#[path = "cli/head.rs"]
mod head;
#[cfg(target_os = "linux")]
#[path = "cli/head_signals.rs"]
mod head_signals;
#[path = "cli/help.rs"]
mod help;
#[cfg(target_os = "linux")]
#[path = "cli/hostile.rs"]
mod hostile;
#[cfg(target_os = "linux")]
#[path = "cli/hostile_head.rs"]
mod hostile_head;
#[cfg(target_os = "linux")]
#[path = "cli/hostile_outputs.rs"]
mod hostile_outputs;
#[cfg(target_os = "linux")]
#[path = "cli/hostile_predict.rs"]
mod hostile_predict;
#[cfg(target_os = "linux")]
#[path = "cli/hostile_scene.rs"]
mod hostile_scene;
#[path = "cli/inspect.rs"]
mod inspect;
#[path = "cli/json.rs"]
mod json;
#[cfg(target_os = "linux")]
#[path = "cli/killed_calls.rs"]
mod killed_calls;
#[cfg(target_os = "linux")]
#[path = "cli/killed_prepare.rs"]
mod killed_prepare;
#[path = "cli/labels_csv.rs"]
mod labels_csv;
#[cfg(target_os = "linux")]
#[path = "cli/library.rs"]
mod library;
#[cfg(target_os = "linux")]
#[path = "cli/measured.rs"]
mod measured;
#[path = "cli/metrics.rs"]
mod metrics;
#[path = "cli/model.rs"]
mod model;
#[path = "cli/moved_dataset.rs"]
mod moved_dataset;
#[path = "cli/near.rs"]
mod near;
#[path = "cli/one_clean_view.rs"]
mod one_clean_view;
#[path = "cli/outage.rs"]
mod outage;
#[path = "cli/parquet.rs"]
mod parquet;
#[path = "cli/parquet_dataset.rs"]
mod parquet_dataset;
#[path = "cli/predict.rs"]
mod predict;
#[path = "cli/predict_features.rs"]
mod predict_features;
#[cfg(target_os = "linux")]
#[path = "cli/predict_shards.rs"]
mod predict_shards;
#[path = "cli/predict_waits.rs"]
mod predict_waits;
#[path = "cli/prepared_tables.rs"]
mod prepared_tables;
#[path = "cli/processes.rs"]
mod processes;
#[cfg(target_arch = "x86_64")]
#[path = "cli/processor.rs"]
mod processor;
#[path = "cli/program.rs"]
mod program;
#[cfg(feature = "https")]
#[path = "cli/push.rs"]
mod push;
#[path = "cli/report.rs"]
mod report;
#[cfg(target_os = "linux")]
#[path = "cli/rounds.rs"]
mod rounds;
#[cfg(target_os = "linux")]
#[path = "cli/shared_cache.rs"]
mod shared_cache;
#[path = "cli/shrink.rs"]
mod shrink;
#[path = "cli/signals.rs"]
mod signals;
#[path = "cli/sweep.rs"]
mod sweep;
#[path = "cli/together.rs"]
mod together;
#[path = "cli/train.rs"]
mod train;
#[path = "cli/train_folder.rs"]
mod train_folder;
#[path = "cli/unlabelled_list.rs"]
mod unlabelled_list;
#[path = "cli/version.rs"]
mod version;
#[path = "cli/weights.rs"]
mod weights;
#[path = "cli/workspace.rs"]
mod workspace;

//! The binary from outside, without libtorch: whole commands, what they print, which files they leave, how they exit. Commands
//! that train networks, or use what was trained, are tested in the crate `calmix-torch`.
//!
//! Texts are compared with the files in `crates/calmix/tests/cli/golden`; `CALMIX_BLESS=1 cargo test -p calmix -p calmix-torch
//! cli::` rewrites them.

mod certify;
mod errors;
mod first_steps;
mod folder_contents;
mod folder_layouts;
mod guard;
mod help;
mod inspect;
mod json;
#[cfg(target_os = "linux")]
mod killed_prepare;
mod label;
mod label_studio;
mod labels_csv;
mod monitor;
#[cfg(target_os = "linux")]
mod prepared_tables;
#[cfg(target_arch = "x86_64")]
mod processor;
#[cfg(feature = "https")]
mod push;
mod report;
mod review;
mod review_live;
mod together;

use calmix_testkit::workspace::Workspace;

use crate::planted;

/// A workspace whose commands find no `calmix-torch`.
fn new_workspace() -> Workspace {
    Workspace::new(env!("CARGO_BIN_EXE_calmix").into()).without_libtorch()
}

/// A workspace with the finished run `run` of a head on vectors.
fn with_run() -> Workspace {
    let workspace = new_workspace();
    planted::write_npy(&workspace.path("vectors.npy"), 0..300, false);
    planted::write_labels(&workspace.path("labels.csv"), 0, 60);
    let train = ["train", "--features", "vectors.npy", "--labels", "labels.csv", "--run-dir", "run"];
    let quick = ["--set", "network.folds=3", "--threads", "1", "--quiet"];
    workspace.run(&[&train[..], &quick].concat()).with_code(0);
    workspace
}

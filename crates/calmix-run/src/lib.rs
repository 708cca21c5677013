//! What a run leaves behind: its folder, and every file in it. Reads and writes files; knows neither libtorch nor the
//! trainer.
//!
//! | question | module |
//! |---|---|
//! | what is in a run's folder, and who may write there? | [`run`] |
//! | how does a run survive a kill, a full disk, a torn file? | [`checkpoint`], with the state of samples in [`sample_files`] |
//! | what happened, step by step? | [`events`] |
//! | where do events go, and in which format? | [`sink`]: JSON lines, TensorBoard, a terminal |
//! | what did a network say of every sample of a split? | [`predictions_file`] |
//! | how do several workers share the runs of a sweep? | [`sweep_folder`] |
//! | what do pretrained weights say about themselves? | [`pretrained_config`] |
//! | which predictions are worth looking at? | [`examples`] |
//! | how is a table written for spreadsheets? | [`csv_line`] |
//! | whose metrics does a finished run have? | [`measured`] |
//! | what is a run, and what is its result? | [`read`], [`summary`], [`result`], [`model_info`]; of many runs, [`overview`] |
//!
//! Libraries never print: a sink writes to whatever writer it is given.
#![forbid(unsafe_code)]

pub mod checkpoint;
pub mod collectives;
pub mod csv_line;
pub mod events;
pub mod examples;
pub mod measured;
pub mod model_info;
pub mod overview;
pub mod predictions_file;
pub mod pretrained_config;
pub mod read;
pub mod result;
pub mod run;
pub mod sample_files;
pub mod sink;
pub mod summary;
pub mod sweep_folder;
mod tensors;

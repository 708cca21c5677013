//! What a run leaves behind: its folder, and every file in it. Reads and writes files; knows neither libtorch nor the
//! trainer.
//!
//! | question | module |
//! |---|---|
//! | what is in a run's folder, and who may write there? | [`run`] |
//! | how does a run survive a kill, a full disk, a torn file? | [`checkpoint`], with the state of samples in [`sample_files`] |
//! | what happened, step by step? | [`events`] |
//! | where do events go, and in which format? | [`sink`]: JSON lines, TensorBoard, a terminal |
//! | how good is a network, and how true its confidence? | [`evaluate`]: figures from predictions |
//! | how do several workers share the runs of a sweep? | [`sweep_folder`] |
//! | which map calibrates a model, and which labels fitted it? | [`calibration_map`] |
//! | what do pretrained weights say about themselves? | [`pretrained_config`] |
//! | which predictions are worth looking at, and how easy were the samples? | [`examples`], [`margin_histogram`] |
//! | how is a table written for spreadsheets? | [`csv_line`] |
//! | whose metrics does a finished run have? | [`measured`] |
//! | what is a run, and what is its result? | [`read`], [`summary`], [`result`], [`model_info`], [`held_out`]; of many runs, [`overview`] |
//!
//! Libraries never print: a sink writes to whatever writer it is given.
#![forbid(unsafe_code)]

pub mod calibration_map;
pub mod checkpoint;
pub mod collectives;
pub mod csv_line;
pub mod evaluate;
pub mod events;
pub mod examples;
pub mod held_out;
pub mod margin_histogram;
pub mod measured;
pub mod model_info;
pub mod overview;
pub mod pretrained_config;
pub mod read;
pub mod result;
pub mod run;
pub mod sample_files;
pub mod sink;
pub mod summary;
pub mod sweep_folder;
mod tensors;

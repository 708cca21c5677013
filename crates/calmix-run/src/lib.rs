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
//! | which map calibrates a model, and which labels fitted it? | [`calibration_map`] |
//! | how is a file in a folder opened that came from somebody else? | [`safe_open`] |
//! | what is a run, and what is its result? | [`read`], [`summary`], [`result`], [`model_info`], [`held_out`]; of many runs, [`overview`] |
//!
//! Libraries never print: a sink writes to whatever writer it is given.
#![forbid(unsafe_code)]

pub mod calibration_map;
pub mod checkpoint;
pub mod collectives;
pub mod error;
pub mod evaluate;
pub mod events;
pub mod held_out;
pub mod model_info;
pub mod overview;
pub mod read;
pub mod result;
pub mod run;
pub mod safe_open;
pub mod sample_files;
pub mod sink;
pub mod summary;
mod tensors;

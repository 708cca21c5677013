//! The run folder and its files. This crate reads and writes them, independent of libtorch and the trainer.
//!
//! | question | module |
//! |---|---|
//! | what is in a run folder, and which process may write there? | [`run`] |
//! | how does a run survive a kill, a full disk, a torn file? | [`checkpoint`], with the state of samples in [`tensor_files::sample_files`] |
//! | what happened, step by step? | [`events`] |
//! | where is a new run? | [`run_folder`] |
//! | how are events, predictions and files written while a run trains? | [`event_writer`] |
//! | where do events go, and in which format? | [`sink`]: JSON lines, TensorBoard, a terminal |
//! | what did a network predict for every sample of a split? | [`tensor_files::predictions_file`] |
//! | how do several workers share the runs of a sweep? | [`sweep_folder`] |
//! | which pretrained weights are available? | [`pretrained::weights_folder`], each a [`pretrained::weights_file`] with its [`pretrained::config`] |
//! | what is the state of a run? | [`read::inspect`] |
//! | which predictions are shown as examples? | [`tensor_files::examples`] |
//! | how is a table written for spreadsheets? | [`csv_line`] |
//! | what was trained, how did it end, and what is the result? | [`read`], [`summary`], [`result`], [`model_info`]; of many runs, [`read::overview`] |
//!
//! Every failure is a [`RunError`](error::RunError), which says what to do about it.
//!
//! Libraries never print: a sink writes to the writer that it is given.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod checkpoint;
pub mod csv_line;
pub mod error;
pub mod event_writer;
pub mod events;
pub mod label_draws;
pub mod model_info;
pub mod pretrained;
pub mod read;
pub mod result;
pub mod run;
pub mod run_folder;
pub mod sink;
pub mod summary;
pub mod sweep_folder;
pub mod tensor_files;

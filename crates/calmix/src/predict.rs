//! The common part of all predictions: logits in, rows with calibrated confidence out.
//!
//! A source yields [`LogitBatch`](input::LogitBatch)es, which are plain data; a [`PredictJob`](job::PredictJob) turns them into
//! rows.

pub mod batch_verdict;
pub mod guarantee;
pub(crate) mod image_batches;
#[doc(hidden)]
pub mod input;
#[doc(hidden)]
pub mod job;
pub(crate) mod list_reader;
pub(crate) mod mix_choice;
pub mod other_mix;
pub(crate) mod out_path;
#[doc(hidden)]
pub mod output;
mod parquet;
mod part_folder;
pub mod prediction_rule;
#[doc(hidden)]
pub mod row;
mod row_file;
pub mod shift_check;
pub mod sums_journal;
#[doc(hidden)]
pub mod vector_batches;

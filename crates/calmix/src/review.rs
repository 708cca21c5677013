//! `calmix review`: the samples to label or to check next, and the files in which the answers are given.
//!
//! A review mixes three kinds of rows. *Chosen* rows are worth most for training: typical samples while there is no model, then
//! labels that look wrong, or samples that the model is unsure of. *Random* rows follow one order of the whole pool, and are shown
//! without a prediction: guarantees rest on them alone. The answers come back through [`calmix label`](crate::args).

mod label_studio;
mod pool;
mod review_csv;
mod rows;
mod sample_texts;
mod suspects;
mod thumbnails;

pub(crate) use label_studio::{LabelStudioTasks, labelling_interface};
pub(crate) use pool::Pool;
#[cfg(test)]
pub(crate) use pool::PoolSample;
pub(crate) use review_csv::to_csv;
pub(crate) use rows::{Reason, ReviewRow, RowCounts, RowPlan};
pub(crate) use sample_texts::SampleTexts;
pub(crate) use suspects::{conflicting_copies, held_out_predictions, least_certain};
pub(crate) use thumbnails::thumbnail;

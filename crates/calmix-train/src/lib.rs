//! Training runs: the folder that keeps one, and the checkpoints it resumes from.
//!
//! | question | room |
//! |---|---|
//! | what is in a run's folder, and who may write there? | [`run`] |
//! | how does a run survive a kill, a full disk, a torn file? | [`checkpoint`] |
#![forbid(unsafe_code)]

pub mod checkpoint;
pub mod run;

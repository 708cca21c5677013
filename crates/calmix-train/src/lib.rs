//! Training runs: from a dataset and a recipe to a calibrated model, and everything in between that can go wrong.
//!
//! | question | room |
//! |---|---|
//! | what is trained, on what, for how long? | [`recipe`] |
//! | how does it train, and how does a run go on where it was stopped? | [`trainer`] |
//! | what is in a run's folder, and who may write there? | [`run`] |
//! | how does a run survive a kill, a full disk, a torn file? | [`checkpoint`] |
//! | how far is a run, and what came of it? | [`inspect`] |
//! | what happened, step by step? | [`events`] |
//! | who is told, and in which format? | [`sink`]: JSON lines, TensorBoard, a terminal |
//! | who are the processes of a run, as their launcher says? | [`launch`] |
//! | how good is the network, and how true its confidence? | [`evaluate`] |
//!
//! Libraries never print: a sink writes to whatever writer it is given.
#![forbid(unsafe_code)]

pub mod checkpoint;
pub mod evaluate;
pub mod events;
pub mod inspect;
pub mod recipe;
pub mod run;
pub mod sink;
mod tensors;
pub mod trainer;

pub use calmix_dist::launch;

//! Runs: what a training run tells about itself, and how good its network is.
//!
//! | question | room |
//! |---|---|
//! | What happened, step by step? | [`events`] |
//! | Who is told, and in which format? | [`sink`]: JSON lines, TensorBoard, a terminal |
//! | How good is the network, and how true its confidence? | [`evaluate`] |
//!
//! Libraries never print: a sink writes to whatever writer it is given.
#![forbid(unsafe_code)]

pub mod evaluate;
pub mod events;
pub mod sink;

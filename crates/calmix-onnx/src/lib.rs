//! ONNX files of calibrated models, without libtorch: pixels or vectors in, calibrated predictions out.
//!
//! | question | module |
//! |---|---|
//! | what does a file contain, from input to outputs? | [`model`] |
//! | how do pixels become a network's input? | [`pixels`] |
//! | how is a network's `forward` recorded, and which graph runs it alone? | [`network`] |
//! | how does a model of another program become an encoder of images? | [`foreign`] |
//! | how does a head read features? | [`head`] |
//! | how does a calibrator become nodes? | [`calibrator`] |
//! | how are labels, prediction sets and abstention computed? | [`decision`] |
//! | what is a graph, and how is it serialised? | [`graph`], [`tensor`] |
//! | what can go wrong? | [`error`] |
#![forbid(unsafe_code)]

pub mod calibrator;
pub mod decision;
pub mod error;
pub mod foreign;
pub mod graph;
pub mod head;
pub mod model;
pub mod network;
pub mod pixels;
pub mod tensor;

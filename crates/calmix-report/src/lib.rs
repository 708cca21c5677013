//! Run folders to tables, diagrams and pages. Reads what a run left behind; knows neither libtorch nor the trainer.
//!
//! | question | module |
//! |---|---|
//! | which data does a report hold? | [`report`] |
//! | what does each plot show, and of which numbers? | [`plot`] |
//! | how is a plot drawn? | [`svg`] |
//! | how does it become one file that a browser shows? | [`page`] |
//! | which setting is better by more than chance? | [`compare`] |
//!
//! Libraries never print, and this one writes no files: it returns their bytes.
#![forbid(unsafe_code)]

pub mod compare;
pub mod error;
pub mod page;
pub mod plot;
pub mod report;
pub mod svg;

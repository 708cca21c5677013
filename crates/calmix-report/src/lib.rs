//! Turns run folders into tables, diagrams and pages. It reads the files of runs, and depends neither on libtorch nor on the
//! trainer.
//!
//! | question | module |
//! |---|---|
//! | which data does a report hold? | [`report`] |
//! | what does each plot show, and of which numbers? | [`plot`] |
//! | how is a plot drawn? | [`svg`] |
//! | how does it become one file that a browser shows? | [`page`] |
//! | how does a user review labels in a browser? | [`review_page`] |
//! | what does a certificate of labels say to a reader? | [`certificate_page`] |
//! | how did the outputs of a model change over time? | [`monitoring`] |
//! | which setting is better by more than chance? | [`compare`] |
//!
//! Libraries never print, and this one writes no files: it returns their content.
#![forbid(unsafe_code)]

pub mod certificate_page;
pub mod compare;
pub mod error;
pub mod monitoring;
pub mod page;
pub mod plot;
pub mod report;
pub mod review_page;
pub mod svg;

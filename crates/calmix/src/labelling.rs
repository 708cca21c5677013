//! Answers of reviews, and the lists of labels that they are merged into.
//!
//! A review is a CSV with a row per sample ([`review_file`]), or an export of Label Studio ([`label_studio`]). Several reviews are compared ([`reviewers`]) before they are merged
//! row by row ([`merge`]) into the lists of a dataset ([`lists`], [`label_file`]).

pub(crate) mod class_names;
pub(crate) mod date;
pub(crate) mod label_file;
pub(crate) mod label_studio;
pub(crate) mod lists;
pub(crate) mod merge;
pub(crate) mod review_file;
pub(crate) mod review_row;
pub(crate) mod reviewers;
pub(crate) mod vector_rows;

//! The events of the preparation of a run.

use std::path::Path;

use calmix_data::prepare::Findings;

/// An event of the preparation of a run.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartNotice<'a> {
    /// The files of the dataset are about to be read.
    Reading {
        /// The folder of the dataset.
        folder: &'a Path,
    },
    /// Files were read.
    Read {
        /// Files so far.
        files: u64,
        /// All files, once they are counted.
        total: Option<u64>,
    },
    /// The files have been read, or reading them has ended.
    ReadingEnded,
    /// The table of an earlier run, or of `calmix prepare`, serves this run too.
    SharedTable {
        /// Where it was found.
        table: &'a Path,
        /// Where this run has it.
        own: &'a Path,
    },
    /// The scan of a new table found problems.
    Scanned {
        /// What it found.
        findings: &'a Findings,
        /// The table, which has the whole list.
        table: &'a Path,
    },
    /// The dataset has no test split.
    NoTestSplit {
        /// What the model is evaluated on instead.
        evaluated_on: InsteadOfTest,
    },
}

/// What a model is evaluated on if the dataset has no test split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InsteadOfTest {
    /// The split `val`, which also fits the calibrator.
    ValidationSplit,
    /// Every label, by a head that was trained without it.
    OutOfFold,
    /// Labels that are held out from training.
    HeldOut,
}

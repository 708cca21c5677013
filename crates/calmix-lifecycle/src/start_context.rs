//! The context of preparing a run: its stop flag, and the receivers of its warnings and events.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use calmix_data::loader::Warn;
use calmix_data::prepare::Findings;

pub struct StartContext<'a> {
    pub stop: &'a AtomicBool,
    /// Receives warnings immediately, while the preparation waits for storage. Called from any thread.
    pub warn: Warn,
    pub notify: Box<dyn FnMut(StartNotice<'_>) + 'a>,
}

impl<'a> StartContext<'a> {
    /// Creates a context that discards warnings and events.
    pub fn quiet(stop: &'a AtomicBool) -> Self {
        Self { stop, warn: Arc::new(|_| {}), notify: Box::new(|_| {}) }
    }
}

/// An event of the preparation of a run.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartNotice<'a> {
    /// The files of the dataset are about to be read.
    Reading {
        folder: &'a Path,
    },
    Read {
        files: u64,
        total: Option<u64>,
    },
    /// The files have been read, or reading them has ended.
    ReadingEnded,
    /// This run uses the prepared dataset of an earlier run, or of `calmix prepare`.
    SharedPrepared {
        found: &'a Path,
        /// The folder in which this run has links to it.
        linked: &'a Path,
    },
    /// The scan of the files found problems.
    Scanned {
        findings: &'a Findings,
        /// The prepared dataset, which contains the full list.
        prepared: &'a Path,
    },
    NoTestSplit {
        evaluated_on: InsteadOfTest,
    },
}

/// The samples that a model is evaluated on in place of a missing test split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InsteadOfTest {
    /// The split `val`, which also fits the calibrator.
    ValidationSplit,
    /// All labels, each predicted by a head that was trained without it.
    OutOfFold,
    /// Labels that are held out from training.
    HeldOut,
}

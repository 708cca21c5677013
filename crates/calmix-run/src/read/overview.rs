//! An overview of the runs in a folder, with state, progress and metrics. Checkpoints are not verified, so it only takes the
//! time to read small files.

use std::cmp::Reverse;
use std::fs;
use std::path::{Path, PathBuf};

use calmix_io::error::FileError;
use calmix_io::lock::is_held_locally;
use calmix_io::safe_open;
use calmix_metrics::predictions::{EvalModel, EvalSet};
use serde::Serialize;

use crate::checkpoint;
use crate::events::Event;
use crate::read;
use crate::run::Paths;
use crate::summary::RunSummary;

/// The overview of a run.
#[derive(Debug)]
pub struct RunOverview {
    /// The folder of the run.
    pub folder: PathBuf,
    /// Its dataset, method and network; `None` if the run has not started or cannot be read.
    pub summary: Option<RunSummary>,
    /// The step of its newest checkpoint, without verifying it.
    pub step: Option<u64>,
    /// The metrics in its result, or in its latest evaluation.
    pub metrics: Option<OverviewMetrics>,
    /// Its state.
    pub state: RunState,
}

/// The metrics of a run in the overview, for the EMA model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct OverviewMetrics {
    /// The evaluated split: the test split if any.
    pub split: EvalSet,
    /// The number of samples.
    pub samples: u64,
    /// The share of wrong predictions.
    pub error: f64,
    /// The expected calibration error, 15 bins.
    pub ece_15: f64,
}

/// The state of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunState {
    /// The run has a result.
    Finished,
    /// A process on this machine is training it.
    Running,
    /// The run has no result, and no process on this machine is training it.
    Unfinished,
    /// The run stopped before it wrote its recipe.
    NotBegun,
    /// The files of the run cannot be read, for this reason.
    Unreadable(String),
}

impl RunState {
    /// Returns the name of the state for tables and JSON.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Running => "running",
            Self::Unfinished => "unfinished",
            Self::NotBegun => "not begun",
            Self::Unreadable(_) => "unreadable",
        }
    }
}

/// Lists the runs in a folder in natural order: `cpu-folder-2` comes before `cpu-folder-10`.
pub fn runs_in(folder: &Path) -> Result<Vec<PathBuf>, FileError> {
    let entries = fs::read_dir(folder).map_err(|error| FileError::new(folder, error))?;
    let mut runs: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| is_run(path)).collect();
    runs.sort_by_cached_key(|run| {
        let name = run.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let words = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let number: Option<u64> = name.get(words.len()..).and_then(|digits| digits.parse().ok());
        (words.to_owned(), number, Reverse(name.len()))
    });
    Ok(runs)
}

/// Returns whether a folder contains a run.
pub fn is_run(folder: &Path) -> bool {
    folder.is_dir() && safe_open::exists(&Paths::new(folder).marker())
}

/// Reads the overview of a run. A failure becomes its state.
pub fn overview(folder: &Path) -> RunOverview {
    let nothing = RunOverview {
        folder: folder.to_owned(),
        summary: None,
        step: None,
        metrics: None,
        state: RunState::NotBegun,
    };
    if !read::has_begun(folder) {
        return nothing;
    }
    read_overview(folder)
        .unwrap_or_else(|error| RunOverview { state: RunState::Unreadable(error.to_string()), ..nothing })
}

fn read_overview(folder: &Path) -> Result<RunOverview, FileError> {
    let paths = Paths::new(folder);
    let summary = read::summary(folder)?;
    let saved = paths.checkpoints();
    let step = if saved.exists() { checkpoint::steps(&saved)?.last().copied() } else { None };
    let result = read::result(folder)?;
    let (metrics, state) = match result {
        Some(result) => {
            let selected = result.finished.selected.get(&result.selection);
            let metrics = selected.map(|selected| OverviewMetrics {
                split: selected.on,
                samples: selected.samples,
                error: selected.metrics.error,
                ece_15: selected.metrics.ece_15,
            });
            (metrics, RunState::Finished)
        }
        None if is_held_locally(&paths.lock()) => (latest(folder)?, RunState::Running),
        None => (latest(folder)?, RunState::Unfinished),
    };
    Ok(RunOverview { folder: folder.to_owned(), summary: Some(summary), step, metrics, state })
}

/// Reads the metrics of the latest evaluation, on the test split if any.
fn latest(folder: &Path) -> Result<Option<OverviewMetrics>, FileError> {
    if !safe_open::exists(&Paths::new(folder).events()) {
        return Ok(None);
    }
    let events = read::latest_evaluations(folder, |evaluation| {
        evaluation.model == EvalModel::Ema && evaluation.split.is_evaluated()
    })?;
    let evaluations = events.iter().filter_map(|event| match event {
        Event::Evaluation(evaluation) => Some(evaluation),
        _ => None,
    });
    Ok(evaluations.max_by_key(|evaluation| evaluation.split.precedence()).map(|evaluation| OverviewMetrics {
        split: evaluation.split,
        samples: evaluation.samples,
        error: evaluation.metrics.error,
        ece_15: evaluation.metrics.ece_15,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Run;

    #[test]
    fn runs_are_listed_by_name_and_number() {
        let temp = tempfile::tempdir().unwrap();
        for name in ["b-10", "b-2", "a", "b-1"] {
            Run::create(temp.path().join(name)).unwrap();
        }
        fs::create_dir(temp.path().join("photos")).unwrap();
        fs::write(temp.path().join("notes.txt"), "").unwrap();
        let runs = runs_in(temp.path()).unwrap();
        let names: Vec<_> = runs.iter().map(|run| run.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["a", "b-1", "b-2", "b-10"]);
        assert_eq!(overview(&runs[0]).state, RunState::NotBegun);
        fs::write(runs[0].join("recipe.toml"), "").unwrap();
        assert_eq!(overview(&runs[0]).state.word(), "unreadable");
    }
}

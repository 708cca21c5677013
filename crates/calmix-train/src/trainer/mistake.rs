//! Whether an error is a mistake of the user. Then the same command fails again until the user corrects it, its recipe or its
//! dataset, so a launcher should not repeat it. Nothing has started by then.

use calmix_core::samples::StateError;
use calmix_data::loader::LoadError;
use calmix_dist::DistError;
use calmix_engine::error::EngineError;
use calmix_run::checkpoint::CheckpointError;

use super::error::TrainError;

impl TrainError {
    /// Whether it is a mistake of the user. Everything else may pass by itself, or happens during training, when the run has
    /// checkpoints to resume from.
    pub fn is_mistake(&self) -> bool {
        match self {
            Self::Recipe(_)
            | Self::Start(_)
            | Self::NotBegun { .. }
            | Self::Changed { .. }
            | Self::OtherDataset { .. }
            | Self::OtherSplit { .. }
            | Self::UnreadableMessage(_)
            | Self::DifferentRun { .. }
            | Self::Uneven { .. }
            | Self::Memory { .. }
            | Self::Unsupported(_) => true,
            Self::Run(error) => error.is_mistake(),
            Self::Data(error) => error.is_mistake(),
            Self::Pretrained(error) => !error.is_transient(),
            Self::Checkpoint(error) => {
                matches!(error, CheckpointError::Name { .. } | CheckpointError::OtherFormat { .. })
            }
            // What the loader finds before its first batch; a sample that cannot be read is found on the way.
            Self::Load(error) => matches!(
                error,
                LoadError::NoSamples { .. }
                    | LoadError::UnequalShards { .. }
                    | LoadError::FewerThanShards { .. }
                    | LoadError::TooLarge { .. }
            ),
            Self::Samples(error) => matches!(error, StateError::Memory { .. }),
            Self::Engine(error) => matches!(error, EngineError::Device(_) | EngineError::Settings(_)),
            Self::Processes(error) => matches!(error, DistError::NoNccl | DistError::Taken { .. }),
            Self::RemoteError { mistake, .. } | Self::AsText { mistake, .. } => *mistake,
            Self::File(_)
            | Self::Plan(_)
            | Self::Sink(_)
            | Self::Predictions(_)
            | Self::Calibration(_)
            | Self::State { .. }
            | Self::OtherNetwork { .. }
            | Self::TooManySkips { .. }
            | Self::Diverged { .. }
            | Self::Backlog { .. }
            | Self::PreparationStopped
            | Self::Abandoned => false,
        }
    }

    /// The same error as text, for the other processes.
    pub(super) fn as_text(&self) -> Self {
        Self::AsText { text: self.to_string(), mistake: self.is_mistake() }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, ErrorKind};
    use std::path::PathBuf;
    use std::time::Duration;

    use calmix_core::plan::PlanError;
    use calmix_data::error::{DataError, DataProblem};
    use calmix_dist::Operation;
    use calmix_engine::device;
    use calmix_io::error::{FileError, FileProblem};
    use calmix_recipe::device::Device;
    use calmix_run::run::RunError;
    use calmix_run::sink::SinkError;

    use super::super::StateProblem;
    use super::*;
    use crate::start::StartError;
    use calmix_recipe::Layers;

    fn path() -> PathBuf {
        PathBuf::from("here")
    }

    fn io(kind: ErrorKind) -> io::Error {
        kind.into()
    }

    fn file(kind: ErrorKind) -> FileError {
        FileError::new(path(), io(kind))
    }

    fn data(problem: impl Into<DataProblem>) -> TrainError {
        DataError::new(path(), problem).into()
    }

    /// Mistakes: repeating the command does not help.
    fn mistakes() -> Vec<TrainError> {
        let words = "wrong".to_owned();
        let mut mistakes = vec![
            Layers::new().set("train.stpes=1").resolve().unwrap_err().into(),
            StartError::Nothing.into(),
            RunError::Exists { path: path() }.into(),
            RunError::NotEmpty { path: path(), found: words.clone() }.into(),
            RunError::NoRun { path: path() }.into(),
            RunError::NoLocks { path: path(), source: io(ErrorKind::Unsupported) }.into(),
            data(DataProblem::Content(words.clone())),
            data(DataProblem::Format(words.clone())),
            data(DataProblem::Limit(words.clone())),
            data(DataProblem::Changed(words.clone())),
            CheckpointError::Name { path: path() }.into(),
            CheckpointError::OtherFormat { path: path(), format: 9 }.into(),
            LoadError::NoSamples { stream: "labelled", rows: 1 }.into(),
            LoadError::UnequalShards { stream: "labelled", rows: 3, shards: 2 }.into(),
            LoadError::FewerThanShards { samples: 1, shards: 2 }.into(),
            LoadError::TooLarge { rows: 1, bytes: 1 }.into(),
            StateError::Memory { samples: 1, classes: 1, bytes: 1 }.into(),
            EngineError::Device(device::check(Device::Cuda(4095)).unwrap_err()).into(),
            EngineError::Settings(words.clone()).into(),
            DistError::NoNccl.into(),
            DistError::Taken { rank: 0, size: 2, place: words.clone() }.into(),
            TrainError::NotBegun { path: path() },
            TrainError::Changed { path: path(), changes: Vec::new() },
            TrainError::OtherDataset { path: path(), before: words.clone(), now: words.clone() },
            TrainError::OtherSplit { path: path() },
            TrainError::UnreadableMessage(None),
            TrainError::DifferentRun {
                process: 1,
                what: "recipe",
                here: words.clone(),
                there: words.clone(),
            },
            TrainError::Uneven { processes: 3, groups: 1, shards: 2 },
            TrainError::Memory { samples: 1, classes: 1, state: 1, network: 1, needed: 1, available: 1 },
            TrainError::Pretrained(file(ErrorKind::NotFound)),
            TrainError::Pretrained(FileError::new(path(), FileProblem::Content(words.clone()))),
            TrainError::Unsupported(words),
        ];
        let kinds = [
            ErrorKind::NotFound,
            ErrorKind::PermissionDenied,
            ErrorKind::ReadOnlyFilesystem,
            ErrorKind::NotADirectory,
            ErrorKind::IsADirectory,
        ];
        mistakes.extend(kinds.map(|kind| data(io(kind))));
        mistakes.extend(kinds.map(|kind| RunError::File(file(kind)).into()));
        mistakes
    }

    /// Failures: they may pass, or the run can be resumed.
    fn failures() -> Vec<TrainError> {
        let words = || "wrong".to_owned();
        let damage = || FileError::new(path(), FileProblem::Changed(words()));
        vec![
            RunError::Locked { path: path(), holder: words() }.into(),
            RunError::Foreign { path: path(), holder: words() }.into(),
            RunError::File(file(ErrorKind::StorageFull)).into(),
            RunError::File(damage()).into(),
            data(io(ErrorKind::StorageFull)),
            data(io(ErrorKind::TimedOut)),
            file(ErrorKind::PermissionDenied).into(),
            damage().into(),
            CheckpointError::File(damage()).into(),
            CheckpointError::NoneUsable { folder: path(), skipped: Vec::new() }.into(),
            CheckpointError::Unreadable(damage()).into(),
            CheckpointError::Exists { path: path() }.into(),
            LoadError::Sample { id: 1, error: Box::new(DataError::new(path(), io(ErrorKind::NotFound))) }
                .into(),
            LoadError::View { id: 1, problem: DataProblem::Limit(words()) }.into(),
            LoadError::NoLabel { id: 1 }.into(),
            LoadError::Panicked { id: 1, message: words() }.into(),
            LoadError::NoReplacement { id: 1, tried: 1 }.into(),
            LoadError::Stalled { ids: Vec::new(), after: Duration::ZERO }.into(),
            LoadError::Interrupted.into(),
            LoadError::NoWorkers { step: 1 }.into(),
            LoadError::Thread(io(ErrorKind::OutOfMemory)).into(),
            PlanError::State(StateError::NotKept { what: "margins" }).into(),
            StateError::UnknownSample { sample: 1 }.into(),
            StateError::Damaged { what: "margins" }.into(),
            EngineError::NothingLabelled.into(),
            EngineError::NotFinite { step: 1, what: "gradient" }.into(),
            SinkError { what: "a file", source: io(ErrorKind::StorageFull) }.into(),
            DistError::Broken { rank: 0, operation: Operation::Barrier }.into(),
            DistError::Argument { rank: 0, operation: Operation::Barrier, what: words() }.into(),
            TrainError::State {
                step: 1,
                problem: StateProblem::Json(serde_json::from_str::<u8>("").unwrap_err()),
            },
            TrainError::OtherNetwork { step: 1, bytes: 1, network: words(), least: 1 },
            TrainError::TooManySkips { step: 1, problem: words(), skips: 1 },
            TrainError::Diverged { step: 1, what: "step", processes: vec![1], of: 2 },
            TrainError::Backlog { bytes: 1, problem: damage() },
            TrainError::Pretrained(file(ErrorKind::TimedOut)),
            TrainError::PreparationStopped,
            TrainError::Abandoned,
        ]
    }

    #[test]
    fn every_error_is_a_mistake_or_a_failure() {
        for (errors, expected) in [(mistakes(), true), (failures(), false)] {
            for error in errors {
                assert_eq!(error.is_mistake(), expected, "{error:?}");
                let text = error.as_text();
                assert_eq!((text.is_mistake(), text.to_string()), (expected, error.to_string()));
                let remote =
                    TrainError::RemoteError { process: 1, problem: text.to_string(), mistake: expected };
                assert_eq!(remote.is_mistake(), expected);
            }
        }
    }
}

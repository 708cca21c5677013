//! Writes the journal and predictions of a run, and passes its events to the sinks.
//!
//! Lines and predictions go through a queue, which stays empty while the disk accepts writes. If the recipe lets a run
//! continue with a full disk, the queue grows up to a limit, and no checkpoint is made before it has been written.

use std::collections::VecDeque;
use std::fmt::Display;
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use calmix_io::confined_path::ConfinedPath;
use calmix_io::error::FileError;
use calmix_io::safe_open;
use calmix_metrics::predictions::Predictions;
use calmix_recipe::{OnFailure, Recipe};
use toml::Value;

use crate::error::RunError;
use crate::events::{Event, Note, Pace};
use crate::run::{Journal, Mark, Run, RunFile};
use crate::sink::{Hyperparameter, PaceLines, Sink, TensorBoard, WorkProgress};
use crate::tensor_files::predictions_file;

/// The journal, predictions and sinks of a run in training.
pub struct EventWriter<'a> {
    /// `None` on ranks other than 0, which write nothing.
    files: Option<RunFiles>,
    /// Sinks for the user; a closed terminal or a pipe without a reader does not end a run.
    progress_sinks: Vec<Box<dyn Sink + 'a>>,
    /// Sinks to files in the run's folder that depend on the clock.
    sinks: Vec<Box<dyn Sink + 'a>>,
    queue: VecDeque<Pending>,
    max_queued_bytes: usize,
    on_failure: OnFailure,
    failure: Option<String>,
}

/// The maximum number of queued bytes: days of events, or the predictions of an evaluation of ImageNet.
const MAX_QUEUED_BYTES: usize = 512 << 20;

/// The journal and the predictions of a run.
struct RunFiles {
    run: Run,
    journal: Journal,
}

enum Pending {
    Line(String),
    Predictions(String, Vec<u8>),
}

impl<'a> EventWriter<'a> {
    /// Continues the journal at `mark` after `step` steps; clock-dependent output goes to separate files.
    pub fn new(
        run: Run,
        mark: &Mark,
        step: u64,
        recipe: &Recipe,
        progress_sinks: Vec<Box<dyn Sink + 'a>>,
    ) -> Result<Self, RunError> {
        let timing = safe_open::append(run.paths().timing()).map_err(RunError::of_run_file)?;
        let mut sinks: Vec<Box<dyn Sink>> = vec![Box::new(PaceLines(timing))];
        if recipe.log.tensorboard {
            sinks.push(Box::new(tensorboard(&run.paths().tensorboard(), step, recipe)?));
        }
        let journal = run.journal(mark).map_err(RunError::of_run_file)?;
        let files = Some(RunFiles { run, journal });
        Ok(Self { files, progress_sinks, sinks, ..Self::silent(recipe) })
    }

    /// Makes a writer for a rank that writes nothing and has no sinks.
    pub fn silent(recipe: &Recipe) -> Self {
        Self {
            files: None,
            progress_sinks: Vec::new(),
            sinks: Vec::new(),
            queue: VecDeque::new(),
            max_queued_bytes: MAX_QUEUED_BYTES,
            on_failure: recipe.checkpoint.on_failure,
            failure: None,
        }
    }

    /// Writes an event to the journal and passes it to the sinks.
    ///
    /// # Errors
    /// If the journal cannot be written and the recipe makes this end the run, or the queue is full.
    pub fn event(&mut self, event: &Event) -> Result<(), RunError> {
        let Some(files) = &self.files else { return Ok(()) };
        let line = event.to_line().map_err(|error| io::Error::other(error.to_string()));
        let path = files.run.paths().events();
        let line = line.map_err(|error| RunError::of_run_file(FileError::new(path, error)))?;
        self.queue.push_back(Pending::Line(line));
        self.write_or_keep()?;
        self.for_each_sink(|sink| sink.event(event))
    }

    /// Passes a note only to the sinks, because it is not reproducible in a repetition of the run.
    ///
    /// # Errors
    /// If a clock-dependent file cannot be written, and the recipe makes this end the run.
    pub fn notify_sinks_only(&mut self, note: Note) -> Result<(), RunError> {
        let note = Event::Note(note);
        self.for_each_sink(|sink| sink.event(&note))
    }

    /// Passes the pace to the sinks, and retries queued writes.
    pub fn pace(&mut self, pace: &Pace) -> Result<(), RunError> {
        if let Some(failure) = self.failure.clone() {
            let hint =
                "the run continues; free some space, or it can only be resumed from an older checkpoint"
                    .to_owned();
            self.notify_sinks_only(Note { step: pace.step, text: failure, hint })?;
        }
        self.for_each_sink(|sink| sink.pace(pace))
    }

    /// Passes the first step of the run, or of its resumption, to the user's sinks.
    pub fn started(&mut self, step: u64) {
        self.progress_sinks.iter_mut().for_each(|sink| drop(sink.started(step)));
    }

    /// Passes the pace between two intervals to the user's sinks.
    pub fn current_pace(&mut self, pace: &Pace) {
        self.progress_sinks.iter_mut().for_each(|sink| drop(sink.current_pace(pace)));
    }

    /// Passes the progress of work other than training steps to the user's sinks.
    pub fn work(&mut self, progress: &WorkProgress) {
        self.progress_sinks.iter_mut().for_each(|sink| drop(sink.work(progress)));
    }

    /// Writes the predictions of a model.
    pub fn predictions(&mut self, predictions: &Predictions) -> Result<(), RunError> {
        if self.files.is_none() {
            return Ok(());
        }
        let &Predictions { step, split, model, .. } = predictions;
        let name = predictions_file::file_name(step, split, model);
        self.queue.push_back(Pending::Predictions(name, predictions_file::to_bytes(predictions)?));
        self.write_or_keep()
    }

    /// Removes predictions of old evaluations. A failure is only a warning.
    pub fn remove_old_predictions(&mut self, step: u64, keep: u32) -> Result<(), RunError> {
        let Some(files) = self.files.as_ref().filter(|_| keep > 0 && self.queue.is_empty()) else {
            return Ok(());
        };
        let Err(error) = files.run.remove_old_predictions(step, keep as usize) else { return Ok(()) };
        let text = format!("old predictions could not be removed: {error}");
        self.notify_sinks_only(Note { step, text, hint: "the run continues; delete them by hand".to_owned() })
    }

    /// Writes a file at the end of the run, after the whole queue.
    pub fn write_final_file(&mut self, file: RunFile<'_>, bytes: &[u8]) -> Result<(), RunError> {
        let written = self.write_queue().and_then(|()| match &self.files {
            Some(files) => files.run.write(file, bytes),
            None => Ok(()),
        });
        written.map_err(RunError::of_run_file)
    }

    /// Writes the queue, and returns the end of the journal once everything before it is on disk.
    pub fn mark(&mut self) -> Result<Mark, FileError> {
        self.write_queue()?;
        self.files.as_mut().map_or_else(|| Ok(Mark::start()), |files| files.journal.mark())
    }

    /// Handles a failed write: the run either ends or continues with a warning.
    ///
    /// # Errors
    /// The given error, if the recipe makes it end the run.
    pub fn handle_failure<E: Display>(&mut self, error: E) -> Result<(), E> {
        match self.on_failure {
            OnFailure::Stop => Err(error),
            OnFailure::GoOn => {
                self.failure = Some(error.to_string());
                Ok(())
            }
        }
    }

    /// Clears the last failure, because writes succeed again.
    pub fn clear_failure(&mut self) {
        self.failure = None;
    }

    /// Flushes the sinks.
    pub fn flush(&mut self) -> Result<(), RunError> {
        self.for_each_sink(|sink| sink.flush())
    }

    fn write_or_keep(&mut self) -> Result<(), RunError> {
        match self.write_queue() {
            Ok(()) => Ok(()),
            Err(error) if self.queued_bytes() > self.max_queued_bytes => {
                let bytes = self.queued_bytes();
                Err(RunError::Backlog { bytes, problem: error })
            }
            Err(error) => self.handle_failure(RunError::of_run_file(error)),
        }
    }

    /// Returns the number of queued bytes.
    fn queued_bytes(&self) -> usize {
        let length = |pending: &Pending| match pending {
            Pending::Line(line) => line.len(),
            Pending::Predictions(_, bytes) => bytes.len(),
        };
        self.queue.iter().map(length).sum()
    }

    fn write_queue(&mut self) -> Result<(), FileError> {
        let Some(files) = &mut self.files else { return Ok(()) };
        while let Some(first) = self.queue.front() {
            match first {
                Pending::Line(line) => files.journal.append(line)?,
                Pending::Predictions(name, bytes) => files.run.write(RunFile::Predictions(name), bytes)?,
            }
            self.queue.pop_front();
        }
        Ok(())
    }

    fn for_each_sink(
        &mut self,
        notify: impl Fn(&mut dyn Sink) -> Result<(), RunError>,
    ) -> Result<(), RunError> {
        for sink in &mut self.progress_sinks {
            let _ = notify(sink.as_mut());
        }
        for sink in 0..self.sinks.len() {
            let outcome = self.sinks.get_mut(sink).map_or(Ok(()), |sink| notify(sink.as_mut()));
            if let Err(error) = outcome.or_else(RunError::unless_transient) {
                self.handle_failure(error)?;
            }
        }
        Ok(())
    }
}

/// Creates a new file for every process, whose name sorts after those of existing files.
fn tensorboard(folder: &ConfinedPath, step: u64, recipe: &Recipe) -> Result<impl Sink + use<>, RunError> {
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    safe_open::create_folder_if_missing(folder).map_err(RunError::of_run_file)?;
    let name = format!("events.out.tfevents.{:010}.calmix-{}", clock().as_secs(), std::process::id());
    let file = safe_open::append(folder.join(name)).map_err(RunError::of_run_file)?;
    let mut sink = TensorBoard::new(file, clock, (step > 0).then_some(step))?;
    let settings = recipe.hyperparameters()?.into_iter().map(|(path, value)| (path, hyperparameter(value)));
    sink.hyperparameters(&settings.collect::<Vec<_>>())?;
    Ok(sink)
}

fn hyperparameter(value: Value) -> Hyperparameter {
    match value {
        Value::Integer(number) => Hyperparameter::Number(number as f64),
        Value::Float(number) => Hyperparameter::Number(number),
        Value::Boolean(flag) => Hyperparameter::Flag(flag),
        Value::String(text) => Hyperparameter::Text(text),
        other => Hyperparameter::Text(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use calmix_io::disk::Disk;

    use super::*;

    /// A disk that rejects writes while it is full.
    #[derive(Debug, Default)]
    struct FullDisk(AtomicBool);

    impl Disk for FullDisk {
        fn write(&self, file: &mut std::fs::File, bytes: &[u8]) -> io::Result<()> {
            if self.0.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            io::Write::write_all(file, bytes)
        }
    }

    #[test]
    fn queue_for_a_full_disk_is_limited() {
        let temp = tempfile::tempdir().unwrap();
        let folder: PathBuf = temp.path().join("run");
        let disk = Arc::new(FullDisk::default());
        let run = Run::create_on(&folder, Arc::clone(&disk) as Arc<dyn Disk>).unwrap();
        let mut recipe = Recipe::default();
        recipe.checkpoint.on_failure = OnFailure::GoOn;
        let mut writer = EventWriter::new(run, &Mark::start(), 0, &recipe, Vec::new()).unwrap();
        writer.max_queued_bytes = 1_000;
        let note = |step| Event::Note(Note { step, text: "so it is".to_owned(), hint: "do this".to_owned() });
        disk.0.store(true, Ordering::Relaxed);
        let failed = (0..1_000).find_map(|step| Some((step, writer.event(&note(step)).err()?)));
        let (step, error) = failed.unwrap();
        assert!((10..20).contains(&step), "{step}");
        assert!(error.to_string().contains("free some space and resume"), "{error}");
        disk.0.store(false, Ordering::Relaxed);
        // Nothing was lost in the meantime.
        writer.event(&note(step + 1)).unwrap();
        let lines = std::fs::read_to_string(folder.join("events.jsonl")).unwrap();
        assert_eq!(lines.lines().count() as u64, step + 2);
    }
}

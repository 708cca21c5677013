//! What a run writes besides its checkpoints, in the order in which it happened, and whom it tells.
//!
//! Lines and predictions queue up behind each other. While the disk takes everything, the queue is empty; where a
//! recipe lets a run go on without, it waits, and no checkpoint is made before everything that came first is there.

use std::collections::VecDeque;
use std::fmt::Display;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use calmix_run::error::FileError;

use super::error::TrainError;
use crate::recipe::{OnFailure, Recipe};
use calmix_run::evaluate::Predictions;
use calmix_run::events::{Event, Note, Pace};
use calmix_run::run::{Journal, Mark, Run, RunFile};
use calmix_run::sink::{JsonLines, Sink, SinkError, TensorBoard};

pub(super) struct EventWriter<'a> {
    /// None with processes that leave the writing to the first one.
    book: Option<Book>,
    sinks: Vec<Box<dyn Sink + 'a>>,
    waiting: VecDeque<Pending>,
    on_failure: OnFailure,
    trouble: Option<String>,
}

/// Where a run is written down.
struct Book {
    run: Run,
    journal: Journal,
}

enum Pending {
    Line(String),
    Predictions(String, Vec<u8>),
}

impl<'a> EventWriter<'a> {
    /// Goes on behind `mark` after `step` steps; what depends on the clock goes into files of its own.
    pub(super) fn new(
        run: Run,
        mark: &Mark,
        step: u64,
        recipe: &Recipe,
        mut sinks: Vec<Box<dyn Sink + 'a>>,
    ) -> Result<Self, TrainError> {
        let timing = append(&run.paths().timing())?;
        sinks.push(Box::new(JsonLines::new(io::sink(), timing)));
        if recipe.log.tensorboard {
            sinks.push(Box::new(tensorboard(&run.paths().tensorboard(), step)?));
        }
        let journal = run.journal(mark)?;
        let on_failure = recipe.checkpoint.on_failure;
        let book = Some(Book { run, journal });
        Ok(Self { book, sinks, waiting: VecDeque::new(), on_failure, trouble: None })
    }

    /// Writes nothing, and has no sinks.
    pub(super) fn silent(recipe: &Recipe) -> Self {
        let on_failure = recipe.checkpoint.on_failure;
        Self { book: None, sinks: Vec::new(), waiting: VecDeque::new(), on_failure, trouble: None }
    }

    /// Writes an event into the journal and passes it to the sinks.
    pub(super) fn event(&mut self, event: &Event) -> Result<(), TrainError> {
        let Some(book) = &self.book else { return Ok(()) };
        let line = event.to_line().map_err(|error| io::Error::other(error.to_string()));
        let line = line.map_err(|error| FileError::new(book.run.paths().events(), error))?;
        self.waiting.push_back(Pending::Line(line));
        self.settle()?;
        self.each(|sink| sink.event(event))
    }

    /// Passes a note to the sinks only: it is not the same in every repetition of the run.
    pub(super) fn aside(&mut self, note: Note) -> Result<(), TrainError> {
        let note = Event::Note(note);
        self.each(|sink| sink.event(&note))
    }

    /// Passes the pace to the sinks, and repeats what still cannot be written.
    pub(super) fn pace(&mut self, pace: &Pace) -> Result<(), TrainError> {
        if let Some(trouble) = self.trouble.clone() {
            let hint = "the run goes on; make room, or it will have to be resumed from an older checkpoint"
                .to_owned();
            self.aside(Note { step: pace.step, text: trouble, hint })?;
        }
        self.each(|sink| sink.pace(pace))
    }

    /// Keeps what a network said.
    pub(super) fn predictions(&mut self, predictions: &Predictions) -> Result<(), TrainError> {
        if self.book.is_none() {
            return Ok(());
        }
        let Predictions { step, split, model, .. } = predictions;
        let name = format!("step-{step:09}-{}-{}.safetensors", split.name(), model.name());
        self.waiting.push_back(Pending::Predictions(name, predictions.to_bytes()?));
        self.settle()
    }

    /// Writes a file of the run's end, for which everything before must be there.
    pub(super) fn last(&mut self, file: RunFile<'_>, bytes: &[u8]) -> Result<(), TrainError> {
        self.write_waiting()?;
        self.book.as_ref().map_or(Ok(()), |book| Ok(book.run.write(file, bytes)?))
    }

    /// Where the journal ends, once everything that came first is on the disk.
    pub(super) fn mark(&mut self) -> Result<Mark, FileError> {
        self.write_waiting()?;
        self.book.as_mut().map_or_else(|| Ok(Mark::start()), |book| book.journal.mark())
    }

    /// Something could not be written: the end of the run, or a worry that it goes on with.
    pub(super) fn failed(&mut self, error: impl Into<TrainError> + Display) -> Result<(), TrainError> {
        match self.on_failure {
            OnFailure::Stop => Err(error.into()),
            OnFailure::GoOn => {
                self.trouble = Some(error.to_string());
                Ok(())
            }
        }
    }

    /// Everything is written again.
    pub(super) fn recovered(&mut self) {
        self.trouble = None;
    }

    pub(super) fn flush(&mut self) -> Result<(), TrainError> {
        self.each(|sink| sink.flush())
    }

    fn settle(&mut self) -> Result<(), TrainError> {
        match self.write_waiting() {
            Ok(()) => Ok(()),
            Err(error) => self.failed(error),
        }
    }

    fn write_waiting(&mut self) -> Result<(), FileError> {
        let Some(book) = &mut self.book else { return Ok(()) };
        while let Some(first) = self.waiting.front() {
            match first {
                Pending::Line(line) => book.journal.append(line)?,
                Pending::Predictions(name, bytes) => book.run.write(RunFile::Predictions(name), bytes)?,
            }
            self.waiting.pop_front();
        }
        Ok(())
    }

    fn each(&mut self, tell: impl Fn(&mut dyn Sink) -> Result<(), SinkError>) -> Result<(), TrainError> {
        for sink in 0..self.sinks.len() {
            let outcome = self.sinks.get_mut(sink).map_or(Ok(()), |sink| tell(sink.as_mut()));
            if let Err(error) = outcome {
                self.failed(error)?;
            }
        }
        Ok(())
    }
}

fn append(path: &Path) -> Result<File, FileError> {
    File::options().create(true).append(true).open(path).map_err(|error| FileError::new(path, error))
}

/// A new file for every process, after those that are there.
fn tensorboard(folder: &Path, step: u64) -> Result<impl Sink + use<>, TrainError> {
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    std::fs::create_dir_all(folder).map_err(|error| FileError::new(folder, error))?;
    let name = format!("events.out.tfevents.{:010}.calmix-{}", clock().as_secs(), std::process::id());
    let file = append(&folder.join(name))?;
    Ok(TensorBoard::new(file, clock, (step > 0).then_some(step))?)
}

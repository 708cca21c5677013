//! The request to train or resume a run: sinks of events, stop flag, warnings, and whether to take over a run from another
//! machine.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use calmix_data::loader::Warn;
use calmix_io::disk::{Disk, RealDisk, WarningDisk};
use calmix_io::transient::BackOff;
use calmix_run::error::RunError;
use calmix_run::read;
use calmix_run::run::{Build, Run};
use calmix_run::sink::Sink;

use crate::error::LifecycleError;

/// A request to train or to resume a run; both trainers take it.
pub struct RunRequest<'a> {
    pub stop: &'a AtomicBool,
    pub warn: Warn,
    pub sinks: Vec<Box<dyn Sink + 'a>>,
    /// The disk that the files of the run are written to.
    pub disk: Arc<dyn Disk>,
    pub build: Build,
    takes_over: bool,
}

impl<'a> RunRequest<'a> {
    /// Makes a request without sinks. The run stops soon after `stop` becomes true.
    pub fn new(stop: &'a AtomicBool) -> Self {
        Self {
            stop,
            warn: Arc::new(|_| {}),
            sinks: Vec::new(),
            disk: Arc::new(RealDisk),
            build: Build::default(),
            takes_over: false,
        }
    }

    /// Sets the receiver of urgent warnings: that the storage of the dataset or of the run's folder does not respond, and that it
    /// responds again. It is called from any thread.
    #[must_use]
    pub fn warning(self, warn: impl Fn(&str) + Send + Sync + 'static) -> Self {
        let warn: Warn = Arc::new(warn);
        Self { disk: Arc::new(WarningDisk(Arc::clone(&warn))), warn, ..self }
    }

    /// Sets the disk that the files of the run are written to.
    #[must_use]
    pub fn on_disk(self, disk: Arc<dyn Disk>) -> Self {
        Self { disk, ..self }
    }

    /// Adds a sink, beside the events in the run's folder, which are always written. An error of the sink does not end the run: a
    /// terminal or a pipe may be closed.
    #[must_use]
    pub fn sink(mut self, sink: impl Sink + 'a) -> Self {
        self.sinks.push(Box::new(sink));
        self
    }

    /// Sets the build of the program, which a new run records.
    #[must_use]
    pub fn built_from(self, build: Build) -> Self {
        Self { build, ..self }
    }

    /// Sets whether to open a run that a process of another machine has not closed; the caller knows that it has ended.
    #[must_use]
    pub fn taking_over(self, takes_over: bool) -> Self {
        Self { takes_over, ..self }
    }

    /// Claims a folder that does not exist, is empty, or has a run that was killed before it began.
    pub fn claim(&self, folder: &Path) -> Result<Run, RunError> {
        match Run::create_on(folder, Arc::clone(&self.disk)) {
            Err(RunError::Exists { .. }) if !read::has_begun(folder) => {
                Run::take_over(folder, Arc::clone(&self.disk))
            }
            run => run,
        }
    }

    /// Opens the folder of a run that has begun.
    pub fn open(&self, folder: &Path) -> Result<Run, LifecycleError> {
        let disk = Arc::clone(&self.disk);
        let run = if self.takes_over { Run::take_over(folder, disk)? } else { Run::open_on(folder, disk)? };
        if !read::has_begun(folder) {
            return Err(LifecycleError::NotBegun { path: folder.to_owned() });
        }
        Ok(run)
    }

    /// Opens the data of the run. Waits while its storage is temporarily unavailable, unless the run has to stop.
    ///
    /// # Errors
    /// The error of `open`, if it is not transient.
    pub fn open_when_available<T>(
        &self,
        open: impl Fn() -> Result<T, LifecycleError>,
    ) -> Result<T, LifecycleError> {
        let mut back_off = BackOff::default();
        loop {
            let error = match open() {
                Err(LifecycleError::Data(error)) if error.is_transient() => error,
                opened => return opened,
            };
            let wait = back_off.next().filter(|_| !self.stop.load(Ordering::Relaxed));
            let Some(wait) = wait else { return Err(error.into()) };
            if back_off.should_warn(wait) {
                let longest = BackOff::MAX_TOTAL_WAIT.as_secs();
                (self.warn)(&format!("{error}; waiting for the storage, up to {longest} s"));
            }
            thread::sleep(wait);
        }
    }
}

impl std::fmt::Debug for RunRequest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunRequest").field("sinks", &self.sinks.len()).finish_non_exhaustive()
    }
}

/// Returns the number of threads: 0 in a recipe is one for each core, shared among the processes of a machine. A run stores the
/// number, since the last bits of a result depend on it.
pub fn threads(requested: u32, processes: usize) -> u32 {
    if requested > 0 {
        return requested;
    }
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    u32::try_from((cores / processes.max(1)).max(1)).unwrap_or(1)
}

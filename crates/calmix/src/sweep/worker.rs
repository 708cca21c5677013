//! A worker of a sweep, which claims and trains one run after another.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use calmix_io::error::ErrorKind;
use calmix_io::shown::shown;
use calmix_recipe::Recipe;
use calmix_run::error::RunError;
use calmix_run::read::overview::overview;
use calmix_run::result::Outcome;
use calmix_run::sweep_folder::{CellState, SweepFolder};

use super::results::write_results;
use super::sweep_run::SweepRun;
use crate::args::options::recipe::RecipeArgs;
use crate::error::exit::Exit;
use crate::error::sentence;
use crate::output::format::{counted, percent, rough_time, shell_quoted};
use crate::process::stop::{POLL_INTERVAL, Stop};
use crate::terminal::{clear_line, print, status, warn};
use anyhow::{Error, Result};

/// The number of attempts that may end with a killed process before a run counts as failed.
const MAX_ATTEMPTS: u32 = 3;

/// The time between two checks of a waiting worker whether a run has become free.
const CLAIM_POLL_INTERVAL: Duration = Duration::from_secs(2);

pub(crate) struct SweepWorker<'a> {
    pub(crate) folder: SweepFolder,
    pub(crate) cells: Vec<SweepRun<'a>>,
    pub(crate) overrides: &'a RecipeArgs,
    pub(crate) retry: bool,
    pub(crate) wait: bool,
    /// The command that continues the sweep.
    pub(crate) again: String,
}

/// The number of cells in each state.
#[derive(Debug, Default)]
struct CellCounts {
    finished: usize,
    failed: Vec<(String, String)>,
    /// The total steps of the cells that are neither finished nor failed.
    steps_left: u64,
    left: usize,
}

/// Returns the steps of a run. A run that is not trained in steps counts as one.
fn step_count(recipe: &Recipe) -> u64 {
    recipe.steps().max(1)
}

/// Returns whether an error is due to the files of a run, not to the storage.
fn is_of_run(error: &Error) -> bool {
    error.downcast_ref().is_some_and(|error: &RunError| error.kind() != ErrorKind::Transient)
}

/// Returns whether an error means that another process trains the run.
fn is_locked(error: &Error) -> bool {
    matches!(error.downcast_ref(), Some(RunError::Locked { .. }))
}

/// The speed of this worker, measured over whole runs including their start and end.
#[derive(Debug, Default)]
struct WorkerPace {
    runs: u64,
    steps: u64,
    time: Duration,
}

impl SweepWorker<'_> {
    /// Trains runs until none is left for this worker.
    pub(crate) fn run(&self) -> Result<Exit> {
        for planned in &self.cells {
            let checked = planned.check_unchanged(&self.folder.run(&planned.cell.name));
            // A run with damaged files fails in its own attempt; the others are not affected.
            if let Err(error) = checked
                && !is_of_run(&error)
            {
                return Err(error);
            }
        }
        let stop = Stop::listen()?.announced();
        for planned in self.cells.iter().filter(|_| self.retry) {
            // If another worker has claimed it, that worker tries it again.
            if let Some(_claim) = self.folder.claim(&planned.cell.name)? {
                self.folder.forget_failure(&planned.cell.name)?;
                self.folder.end_attempt(&planned.cell.name)?;
            }
        }
        let mut pace = WorkerPace::default();
        loop {
            let before = pace.runs;
            let with_others = self.train_unclaimed_runs(&stop, &mut pace)?;
            if stop.flag().load(Ordering::Relaxed) {
                break;
            }
            // Meanwhile, a run of another worker may have become free.
            if pace.runs > before && with_others > 0 {
                continue;
            }
            if with_others == 0 || !self.wait {
                return self.end(with_others, stop);
            }
            let asleep = Instant::now();
            while asleep.elapsed() < CLAIM_POLL_INTERVAL && !stop.flag().load(Ordering::Relaxed) {
                thread::sleep(POLL_INTERVAL);
            }
        }
        clear_line();
        let exit = stop.exit();
        self.show_stopped()?;
        Ok(exit)
    }

    fn show_stopped(&self) -> Result<()> {
        let counts = self.counts()?;
        let left = counted(counts.left as u64, "run");
        status(&format!("stopped, {left} left\nnext: {}", self.again));
        Ok(())
    }

    /// Records that the process survived the attempt, before a signal ends it.
    fn record_survival(&self, name: &str) {
        clear_line();
        let ended = self.folder.end_attempt(name).map_err(Error::from).and_then(|()| self.show_stopped());
        if let Err(error) = ended {
            warn(&sentence(&error));
        }
    }

    /// Trains every run that no other worker has claimed; returns the number of runs that others have claimed.
    fn train_unclaimed_runs(&self, stop: &Stop, pace: &mut WorkerPace) -> Result<usize> {
        let mut with_others = 0;
        for number in self.order()? {
            let Some(planned) = self.cells.get(number) else { continue };
            let name = &planned.cell.name;
            if self.folder.state(name)? != CellState::Open {
                continue;
            }
            let Some(_claim) = self.folder.claim(name)? else {
                with_others += 1;
                continue;
            };
            // Another worker may have finished it before this one claimed it.
            if self.folder.state(name)? != CellState::Open {
                continue;
            }
            let attempts = self.folder.unfinished_attempts(name)?;
            if attempts >= MAX_ATTEMPTS {
                let why = format!(
                    "its process ended {attempts} times without an error message: killed, or out of memory"
                );
                warn(&format!("{name} failed: {why}"));
                self.folder.record_failure(name, &why)?;
                continue;
            }
            if !self.overrides.quiet {
                status(&self.headline(number, name, with_others, pace)?);
            }
            self.folder.begin_attempt(name)?;
            let begun = Instant::now();
            let train = || planned.train(&self.folder.run(name), self.overrides, stop);
            // A head has no checkpoint to wait for.
            let outcome = if planned.recipe().has_head() {
                stop.ending_soon(|| self.record_survival(name), train)
            } else {
                train()
            };
            clear_line();
            // The process has survived the attempt, whatever its outcome.
            self.folder.end_attempt(name)?;
            if stop.flag().load(Ordering::Relaxed) && !matches!(outcome, Ok(Outcome::Finished(_))) {
                return Ok(with_others);
            }
            match outcome {
                Ok(_) => {
                    pace.runs += 1;
                    pace.steps += step_count(planned.recipe());
                    pace.time += begun.elapsed();
                    status(&self.finished(name));
                }
                // Another process has resumed the run outside of the sweep.
                Err(error) if is_locked(&error) => with_others += 1,
                Err(error) => {
                    let why = sentence(&error);
                    warn(&format!("{name} failed: {why}"));
                    self.folder.record_failure(name, &why)?;
                }
            }
            if stop.flag().load(Ordering::Relaxed) {
                return Ok(with_others);
            }
        }
        Ok(with_others)
    }

    /// Returns the order in which cells are tried. Those that ended a process come last, so that one bad cell does not keep the
    /// others from being trained.
    fn order(&self) -> Result<Vec<usize>> {
        let attempts = self.cells.iter().map(|planned| self.folder.unfinished_attempts(&planned.cell.name));
        let attempts = attempts.collect::<Result<Vec<_>, _>>()?;
        let mut order: Vec<usize> = (0..self.cells.len()).collect();
        order.sort_by_key(|&number| attempts[number]);
        Ok(order)
    }

    /// Describes the next run, the progress of the sweep, and the remaining time.
    fn headline(&self, number: usize, name: &str, with_others: usize, pace: &WorkerPace) -> Result<String> {
        let counts = self.counts()?;
        let mut about = vec![format!("{} finished", counts.finished)];
        if !counts.failed.is_empty() {
            about.push(format!("{} failed", counts.failed.len()));
        }
        if with_others > 0 {
            about.push(format!("{with_others} with other workers"));
        }
        if pace.steps > 0 {
            let workers = (with_others + 1) as f64;
            let left = pace.time.as_secs_f64() / pace.steps as f64 * counts.steps_left as f64 / workers;
            about.push(format!("{} left", rough_time(left)));
        }
        Ok(format!("run {} of {}: {name} ({})", number + 1, self.cells.len(), about.join(", ")))
    }

    fn finished(&self, name: &str) -> String {
        let metrics = overview(&self.folder.run(name)).metrics;
        let error = metrics.map(|metrics| format!(", error {}", percent(metrics.error, None)));
        format!("finished {name}{}", error.unwrap_or_default())
    }

    fn counts(&self) -> Result<CellCounts> {
        let mut counts = CellCounts::default();
        for planned in &self.cells {
            match self.folder.state(&planned.cell.name)? {
                CellState::Finished => counts.finished += 1,
                CellState::Failed(why) => counts.failed.push((planned.cell.name.clone(), why)),
                CellState::Open => {
                    counts.left += 1;
                    counts.steps_left += step_count(planned.recipe());
                }
            }
        }
        Ok(counts)
    }

    /// Shows the state of the sweep; writes the results if no run is left.
    fn end(&self, with_others: usize, stop: Stop) -> Result<Exit> {
        // Ends the announcements about stopping.
        let _ = stop.exit();
        let counts = self.counts()?;
        let all = counted(self.cells.len() as u64, "run");
        let written = if counts.left > 0 {
            format!(", {with_others} with other workers\n")
        } else {
            let [csv, json] = write_results(&self.folder, &self.cells)?;
            format!("\nwritten: {}, {}\n", shown(csv.display()), shown(json.display()))
        };
        let failed = counts.failed.iter().map(|(name, why)| format!("failed: {name}: {why}\n"));
        let failed = failed.collect::<Vec<_>>().concat();
        let next = match counts.failed.len() {
            0 => format!("next: calmix compare {}\n", shell_quoted(&self.folder.runs())),
            _ => format!("next: {} --retry\n", self.again),
        };
        print(&format!("{} of {all} finished{written}{failed}{next}", counts.finished))?;
        Ok(if counts.failed.is_empty() { Exit::Done } else { Exit::Failed })
    }
}

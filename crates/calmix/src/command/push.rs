//! `calmix push`: sends the figures of a run to a tracking server.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Result;
use calmix::core::shown::shown;
use calmix::run::events::Event;
use calmix::run::run::{Paths, RunError};
use calmix::run::sink::numbers;
use calmix::run::{read, safe_open};
use calmix::train::inspect;
use calmix::train::recipe::SEEDS;
use clap::Args;

use super::compare::settings;
use crate::error::CliError;
use crate::exit::Exit;
use crate::format::counted;
use crate::mlflow::{MetricPoint, ServerAddress, TrackedRun};
use crate::stop::Stop;
use crate::terminal::{print, status};

/// How often a run that goes on is looked at.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Send the recipe, losses and figures of a run to an MLflow server
///
/// During the run, after it, or both; from any folder that holds the run or a copy of it. The server has one run for it, found by the
/// tag calmix_run (the hash of the recipe and of the dataset), and every point once: a push sends what the server lacks, so
/// it can be killed and repeated. The server's address begins with http://; there is no https.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PushArgs {
    /// Folder of the run
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Address of the tracking server
    #[arg(long, value_name = "URL")]
    mlflow: String,
    /// Experiment on the server; created if there is none
    #[arg(long, value_name = "NAME", default_value = "calmix")]
    experiment: String,
    /// Keep sending until the run is finished
    #[arg(long)]
    follow: bool,
}

const EXAMPLES: &str = "\
Examples:
  calmix push runs/cpu-fashion-mnist-1 --mlflow http://127.0.0.1:5000
  calmix push runs/cpu-fashion-mnist-1 --mlflow http://127.0.0.1:5000 --follow";

impl PushArgs {
    pub(crate) fn run(self) -> Result<Exit> {
        let server = ServerAddress::read(&self.mlflow)?;
        if !read::has_begun(&self.run) {
            return Err(RunError::NoRun { path: self.run }.into());
        }
        let (recipe, summary) = (inspect::recipe(&self.run)?, read::summary(&self.run)?);
        let mut params = settings(&recipe);
        params
            .extend(SEEDS.iter().filter_map(|key| Some(((*key).to_owned(), recipe.value(key)?.to_string()))));
        let identity = format!("{}-{}", summary.recipe, read::environment(&self.run)?.dataset);
        if !identity.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
            let message =
                format!("{}: the hash of its recipe or dataset is not one", shown(self.run.display()));
            return Err(CliError::failed(message).into());
        }
        let name = std::path::absolute(&self.run)?;
        let name = name.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut tracked = TrackedRun::find_or_create(server, &self.experiment, &identity, &name, now())?;
        tracked.send_params(&params)?;
        let stop = Stop::listen()?;
        let mut sent = 0;
        loop {
            let (points, is_finished) = points(&self.run)?;
            let new = tracked.send_metrics(&points)?;
            sent += new;
            if is_finished {
                tracked.finish(now())?;
            }
            let is_stopped = || stop.flag().load(Ordering::Relaxed);
            if !self.follow || is_finished || is_stopped() {
                break;
            }
            if new > 0 {
                status(&format!("{} sent", counted(sent as u64, "point")));
            }
            let begun = Instant::now();
            while begun.elapsed() < LOOK_AGAIN && !is_stopped() {
                thread::sleep(Duration::from_millis(100));
            }
        }
        print(&format!(
            "{} sent to run {} of {}, experiment {}",
            counted(sent as u64, "point"),
            shown(&tracked.id),
            shown(&self.mlflow),
            shown(&self.experiment)
        ))?;
        Ok(Exit::Done)
    }
}

/// Every number of a run's events, and whether the run is finished.
fn points(run: &Path) -> Result<(Vec<MetricPoint>, bool)> {
    // A run that has just begun has no events yet.
    let events = if safe_open::exists(&Paths::new(run).events()) { read::events(run)? } else { Vec::new() };
    let is_finished = matches!(events.last(), Some(Event::Finished(_)));
    let mut points = Vec::new();
    for event in &events {
        let step = event.step();
        let of_event = numbers(event)?.into_iter();
        points.extend(of_event.map(|(key, value)| MetricPoint { key, step, value }));
    }
    Ok((points, is_finished))
}

/// Milliseconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

//! `calmix push`: sends the metrics of a run, and its model, to a tracking server.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use calmix_io::safe_open;
use calmix_io::shown::shown;
use calmix_recipe::SEEDS;
use calmix_run::error::RunError;
use calmix_run::events::Event;
use calmix_run::read;
use calmix_run::read::inspect;
use calmix_run::run::{Paths, RunFile};
use calmix_run::sink::numbers;

use crate::args::predict::check_shares;
use crate::args::push::PushArgs;
use crate::command::compare::settings;
use crate::error::CliError;
use crate::error::exit::Exit;
use crate::export::{self, Export, Purpose};
use crate::model::folder::with_model;
use crate::model::loaded_model::LoadedModel;
use crate::model::options::ModelOptions;
use crate::output::format::counted;
use crate::process::stop::{POLL_INTERVAL, Stop};
use crate::remote::mlflow::{MetricPoint, Server, TrackedRun};
use crate::terminal::{print, status, warn};

/// The time between two reads of a run that is still training.
const RUN_POLL_INTERVAL: Duration = Duration::from_secs(5);

impl PushArgs {
    /// Sends on a separate thread, so that signals are handled while a server does not respond. The next push does not send
    /// points again that have arrived by then.
    pub fn run(self) -> Result<Exit> {
        check_shares(self.coverage, self.precision)?;
        let stop = Arc::new(Stop::listen()?);
        let (sender, ended) = mpsc::channel();
        let while_sending = Arc::clone(&stop);
        let sending = thread::spawn(move || {
            // After a signal, the receiver is gone.
            let _ = sender.send(self.send(&while_sending));
        });
        loop {
            match ended.recv_timeout(POLL_INTERVAL) {
                Ok(sent) => return sent.map(|()| Exit::Done),
                Err(RecvTimeoutError::Timeout) if stop.flag().load(Ordering::Relaxed) => {
                    status("stopped; the same command sends the rest");
                    return Ok(if stop.is_by_term() { Exit::Requeue } else { Exit::Interrupted });
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    // The thread ended without a result, so it panicked: continue the panic here.
                    if let Err(panic) = sending.join() {
                        std::panic::resume_unwind(panic);
                    }
                    return Ok(Exit::Failed);
                }
            }
        }
    }

    /// Sends the points that the server does not have; with `--follow` until the run is finished.
    fn send(&self, stop: &Stop) -> Result<()> {
        let server = Server::new(&self.mlflow)?;
        if self.model && !self.follow {
            with_model(&self.run, "push --model", &[])?;
        }
        if !read::has_begun(&self.run) {
            return Err(RunError::NoRun { path: self.run.clone() }.into());
        }
        let recipe = inspect::recipe(&self.run)?;
        let summary = read::summary(&self.run)?;
        let mut params = settings(&recipe);
        params
            .extend(SEEDS.iter().filter_map(|key| Some(((*key).to_owned(), recipe.value(key)?.to_string()))));
        let identity = format!("{}-{}", summary.recipe, read::environment(&self.run)?.dataset);
        if !identity.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
            let message =
                format!("{}: the hash of its recipe or dataset is not valid", shown(self.run.display()));
            return Err(CliError::failed(message).into());
        }
        let name = std::path::absolute(&self.run)?;
        let name = name.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // The time of the split is the start of the run: it is drawn before the first step and never written again.
        let mut tracked = TrackedRun::find_or_create(
            server,
            &self.experiment,
            &identity,
            &name,
            written(&self.run, RunFile::Split),
        )?;
        tracked.send_params(&params)?;
        let mut sent = 0;
        loop {
            let (points, is_finished) = points(&self.run)?;
            let new = tracked.send_metrics(&points)?;
            sent += new;
            if is_finished {
                tracked.send_params(&model_head(&self.run)?)?;
                tracked.finish(written(&self.run, RunFile::Result))?;
            }
            if !self.follow || is_finished {
                break;
            }
            if new > 0 {
                status(&format!("{} sent", counted(sent as u64, "point")));
            }
            thread::sleep(RUN_POLL_INTERVAL);
        }
        print(&format!(
            "{} sent to run {} of {}, experiment {}",
            counted(sent as u64, "point"),
            shown(&tracked.id),
            shown(&tracked.server.address),
            shown(&self.experiment)
        ))?;
        if self.model { self.send_model(&tracked, &name, stop) } else { Ok(()) }
    }

    /// Exports the model of the run, and logs it unless the server has the same one.
    fn send_model(&self, tracked: &TrackedRun, name: &str, stop: &Stop) -> Result<()> {
        let run = with_model(&self.run, "push --model", &[])?;
        let options =
            ModelOptions { coverage: self.coverage, precision: self.precision, ..ModelOptions::default() };
        let Some(model) = LoadedModel::load(run, &options, stop)? else { return Ok(()) };
        for sentence in model.rule().guarantee().missing() {
            warn(&sentence);
        }
        let (input, logits) = model.example()?;
        let purpose = Purpose { mlflow: true, hub: None };
        let rule = model.rule();
        let check = model.shift_check();
        let export = Export { name, run, rule, check, options: &options, purpose };
        let files = export::files(&export, (&input, &logits))?;
        let logged = tracked.log_model(&files, name)?;
        let uri = format!("models:/{}", shown(&logged.id));
        let what = if logged.is_new { "model sent" } else { "the server has this model" };
        print(&format!("{what}: {uri}\nserve it: mlflow models serve -m {uri} --env-manager local"))
    }
}

/// Returns all metrics of a run's events, and whether the run is finished.
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

/// Returns the head that the final metrics belong to, for a run with several heads.
fn model_head(run: &Path) -> Result<BTreeMap<String, String>> {
    let kept = read::result(run)?.and_then(|result| result.heads).and_then(|heads| heads.kept());
    Ok(kept.map(|head| ("model.head".to_owned(), head.in_words().to_owned())).into_iter().collect())
}

/// Returns when a file of a run was written, in milliseconds since 1970; the current time if that is unknown. The run itself
/// stores no times, so copies should preserve those of its files (`cp -a`).
fn written(run: &Path, file: RunFile<'_>) -> i64 {
    let path = Paths::new(run).file(file).ok();
    let modified = path.and_then(|path| std::fs::symlink_metadata(&path).ok()?.modified().ok());
    let time = modified.unwrap_or_else(SystemTime::now);
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

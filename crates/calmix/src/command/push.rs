//! `calmix push`: sends the metrics of a run to a tracking server.

#[cfg(feature = "mlflow")]
mod send;

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::exit::Exit;

/// Send the recipe, losses and metrics of a run to an MLflow server
///
/// During the run, after it, or both; from any folder that holds the run or a copy of it. The server has one run for it, found by the
/// tag calmix_run (the hash of the recipe and of the dataset), and every point once: a push sends what the server lacks, so
/// it can be killed and repeated. A password or token comes from MLflow's own environment variables:
/// MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PushArgs {
    /// Folder of the run
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Address of the tracking server, https:// or http://
    #[arg(long, value_name = "URL", env = "MLFLOW_TRACKING_URI", hide_env_values = true)]
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
  MLFLOW_TRACKING_URI=https://mlflow.example.com calmix push runs/cpu-fashion-mnist-1 --follow";

impl PushArgs {
    #[cfg(not(feature = "mlflow"))]
    #[expect(clippy::unused_self, reason = "as with the feature")]
    pub(crate) fn run(self) -> Result<Exit> {
        Err(crate::error::CliError::invalid(
            "this calmix was built without its feature `mlflow`, which push needs",
        )
        .hint("cargo install --path crates/calmix --features mlflow")
        .into())
    }

    /// Sends on a thread of its own, so that a signal is heard while a server does not answer. Whatever of a request has
    /// arrived by then is not sent again by the next push.
    #[cfg(feature = "mlflow")]
    pub(crate) fn run(self) -> Result<Exit> {
        use std::sync::atomic::Ordering;
        use std::sync::mpsc::{self, RecvTimeoutError};
        use std::thread;

        use crate::stop::{POLL_INTERVAL, Stop};
        use crate::terminal::status;

        let stop = Stop::listen()?;
        let (sender, ended) = mpsc::channel();
        let sending = thread::spawn(move || {
            // Nobody receives it after a signal.
            let _ = sender.send(self.send());
        });
        loop {
            match ended.recv_timeout(POLL_INTERVAL) {
                Ok(sent) => return sent.map(|()| Exit::Done),
                Err(RecvTimeoutError::Timeout) if stop.flag().load(Ordering::Relaxed) => {
                    status("stopped; the same command sends the rest");
                    return Ok(stop.exit());
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    // It ended without a result: a panic, which goes on here.
                    if let Err(panic) = sending.join() {
                        std::panic::resume_unwind(panic);
                    }
                    return Ok(Exit::Failed);
                }
            }
        }
    }
}

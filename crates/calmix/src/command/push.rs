//! `calmix push`: sends the metrics of a run to a tracking server.

#[cfg(feature = "https")]
mod send;

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::exit::Exit;

/// Send the recipe, losses and metrics of a run to an MLflow server
///
/// Works during the run, after it, or both, from any folder that holds the run or a copy of it. On the server it is one
/// run, found by the tag calmix_run (the hash of the recipe and of the dataset). A push sends only the points that the
/// server lacks, so you can kill and repeat it. A password or token is read from MLflow's own environment variables:
/// MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PushArgs {
    /// Folder of the run
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Address of the tracking server, https:// or http://
    #[arg(long, value_name = "URL", env = "MLFLOW_TRACKING_URI", hide_env_values = true)]
    mlflow: String,
    /// Experiment on the server; created if it does not exist
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
    #[cfg(not(feature = "https"))]
    #[expect(clippy::unused_self, reason = "as with the feature")]
    pub fn run(self) -> Result<Exit> {
        Err(crate::error::CliError::without_https("calmix push").into())
    }

    /// Sends on a thread of its own, so that a signal is handled while a server does not answer. The next push does not
    /// send again what has arrived by then.
    #[cfg(feature = "https")]
    pub fn run(self) -> Result<Exit> {
        use std::sync::atomic::Ordering;
        use std::sync::mpsc::{self, RecvTimeoutError};
        use std::thread;

        use crate::stop::{POLL_INTERVAL, Stop};
        use crate::terminal::status;

        let stop = Stop::listen()?;
        let (sender, ended) = mpsc::channel();
        let sending = thread::spawn(move || {
            // After a signal, the receiver is gone.
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
                    // The thread ended without a result, so it panicked: continue the panic here.
                    if let Err(panic) = sending.join() {
                        std::panic::resume_unwind(panic);
                    }
                    return Ok(Exit::Failed);
                }
            }
        }
    }
}

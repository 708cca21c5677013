//! The arguments of `calmix push`.

use std::path::PathBuf;

use clap::Args;

use crate::model::options::ModelOptions;

/// Send the recipe, losses, metrics and model of a run to an MLflow server
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
    pub(crate) run: PathBuf,
    /// Address of the tracking server, https:// or http://
    #[arg(long, value_name = "URL", env = "MLFLOW_TRACKING_URI", hide_env_values = true)]
    pub(crate) mlflow: String,
    /// Experiment on the server; created if it does not exist
    #[arg(long, value_name = "NAME", default_value = "calmix")]
    pub(crate) experiment: String,
    /// Keep sending until the run is finished
    #[arg(long)]
    pub(crate) follow: bool,
    /// Also log the model of the finished run, as `calmix export --mlflow` writes it; needs a server of MLflow 3
    #[arg(long)]
    pub(crate) model: bool,
    /// Probability with which a prediction set of the model must contain the true class
    #[arg(long, requires = "model", default_value_t = ModelOptions::default().coverage)]
    pub(crate) coverage: f64,
    /// Share of the model's answers that must be right; it abstains from less confident ones
    #[arg(long, requires = "model", default_value_t = ModelOptions::default().precision)]
    pub(crate) precision: f64,
}

const EXAMPLES: &str = "\
Examples:
  calmix push runs/cpu-fashion-mnist-1 --mlflow http://127.0.0.1:5000
  calmix push runs/cpu-fashion-mnist-1 --mlflow http://127.0.0.1:5000 --model
  MLFLOW_TRACKING_URI=https://mlflow.example.com calmix push runs/cpu-fashion-mnist-1 --follow";

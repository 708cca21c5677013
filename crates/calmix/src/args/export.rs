//! The arguments of `calmix export`.

use std::path::PathBuf;

use clap::Args;

use crate::args::predict::{SetKind, check_shares};
use crate::error::CliError;
use crate::export::export_folder;
use crate::export::metadata::check_rule;
use crate::model::options::ModelOptions;

/// Export a model as ONNX: pixels or vectors in, calibrated answers out
///
/// Writes a new folder with `model.onnx`, a model card, and an example with its outputs. The graph has the normalisation, the
/// network or the head, the calibrator, and the thresholds of prediction sets and answers in it: nothing is left to configure.
/// Resizing stays outside, because runtimes disagree about it; the model card has the lines that do it. Beside it are the weights
/// for PyTorch: as timm loads them, or with a module in plain PyTorch, `model.py`. With --mlflow, the folder is an MLflow model too.
#[derive(Debug, Args)]
#[command(after_long_help = OUTPUTS)]
pub struct ExportArgs {
    /// Folder of the run
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// New folder for the files
    #[arg(long, value_name = "FOLDER")]
    pub to: PathBuf,
    /// Probability with which a prediction set must contain the true class
    #[arg(long, default_value_t = ModelOptions::default().coverage)]
    pub coverage: f64,
    /// How prediction sets are formed; aps cannot be exported
    #[arg(long, value_enum, default_value = "lac")]
    pub sets: SetKind,
    /// Share of the answers that must be right; the model abstains from less confident ones
    #[arg(long, default_value_t = ModelOptions::default().precision)]
    pub precision: f64,
    /// Also make the folder an MLflow model: MLmodel with a signature, pinned requirements and an input example
    #[arg(long)]
    pub mlflow: bool,
    /// Also write what a repository of the Hugging Face Hub shows: a licence, the reliability diagram, config.json
    #[arg(long)]
    pub hub: bool,
    /// Licence of the model on the Hub, by its identifier there, such as apache-2.0
    #[arg(long, value_name = "ID", requires = "hub", default_value = "unknown", value_parser = licence)]
    pub licence: String,
    /// Threads for the network, which computes the example [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub threads: Option<u16>,
}

/// Reads the identifier of a licence, in the characters that the Hub's have.
fn licence(id: &str) -> Result<String, String> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
    if (1..=64).contains(&id.len()) && id.bytes().all(is_plain) {
        return Ok(id.to_owned());
    }
    Err("not an identifier of a licence, such as mit, apache-2.0, cc-by-4.0, other".to_owned())
}

const OUTPUTS: &str = "\
Input:
  images         u8, N × side × side × 3: resized images, red, green and blue from 0 to 255
  vectors        float32, N × width, for a run on vectors

Outputs:
  logits         float32, N × C: before calibration
  probabilities  float32, N × C: calibrated
  label          int64, N: number of the most probable class
  confidence     float32, N: its calibrated probability
  set            bool, N × C: classes of the prediction set, for --coverage
  abstain        bool, N: whether the confidence is too low for --precision

`set` and `abstain` need labels that were held out from training. The names of the classes, the
thresholds and the hashes of the weights are in the metadata of the file.";

impl ExportArgs {
    /// Returns the options of the model.
    ///
    /// # Errors
    /// If an option is out of range, or the folder exists already.
    pub fn options(&self) -> Result<ModelOptions, CliError> {
        check_shares(self.coverage, self.precision)?;
        let sets = self.sets.rule();
        check_rule(sets)?;
        export_folder::check(&self.to)?;
        Ok(ModelOptions {
            threads: self.threads.map(usize::from),
            coverage: self.coverage,
            sets,
            precision: self.precision,
            ..ModelOptions::default()
        })
    }
}

//! The arguments of `calmix weights check`.

use clap::Args;

/// Show what calmix understands of an image encoder, and how fast it runs here
///
/// The encoder is an ONNX file, or a folder as on the Hub: `model.onnx` or `onnx/model.onnx` with `preprocessor_config.json`, or
/// timm's `config.json`. It runs once, in a process of its own with limits of memory and time. Name the same path as
/// network.weights to train a head on it.
#[derive(Debug, Args)]
#[command(after_long_help = FIELDS)]
pub struct CheckArgs {
    /// ONNX file, or folder that has one
    pub(crate) file: String,
    /// Set a recipe key such as network.output, network.pooling, augment.size, dataset.mean or dataset.std
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// CPU threads [default: one per core]
    #[arg(long)]
    pub(crate) threads: Option<u32>,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

const FIELDS: &str = "\
Fields of --json:
  file              the model
  output, pooling   the output with the features, and how it becomes one vector per image
  features          the length of that vector
  size, resize      pixels per side, and of the shorter side before the crop (0: as size)
  filter, mean, std how images are resized and scaled
  bytes, blake3     of the model with all its weights
  views_per_second  on that many threads";

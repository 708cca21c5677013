//! The arguments of `calmix weights`.

pub mod check;
pub mod get;

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Download, list, add or check pretrained weights
///
/// A run can start from the weights of a network that was trained on a million images: `--set network.weights=NAME`, where
/// NAME is listed here or is the path of a file. The weights folder is $CALMIX_WEIGHTS, otherwise calmix/weights in
/// $XDG_DATA_HOME or ~/.local/share.
#[derive(Debug, Args)]
pub struct WeightsArgs {
    #[command(subcommand)]
    pub(crate) action: WeightsAction,
}

#[derive(Debug, Subcommand)]
pub enum WeightsAction {
    Get(get::GetArgs),
    List(ListArgs),
    Add(AddArgs),
    Check(check::CheckArgs),
    /// What `encoder_trial` starts.
    #[command(hide = true)]
    TryEncoder,
}

/// List the weights in the weights folder
#[derive(Debug, Args)]
#[command(after_long_help = FIELDS)]
pub struct ListArgs {
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// Check a file of weights and copy it into the weights folder
///
/// The file must be safetensors with timm's tensor names. A `config.json` and a `LICENSE` beside it are copied, too;
/// `config.json` describes the images that the network expects. Nothing is copied unless names and shapes match a network
/// that calmix supports.
#[derive(Debug, Args)]
#[command(after_long_help = FIELDS)]
pub struct AddArgs {
    /// File of weights: model.safetensors from a model hub, or a file that you converted
    pub(crate) file: PathBuf,
    /// Name of the weights [default: the name of the file; for model.safetensors, the network]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

const FIELDS: &str = "\
Fields of --json:
  folder   the weights folder
  weights  list of name, network, parameters (without a classifier), size (pixels per side),
           licence, blake3 and file; size and licence are null if unknown
  encoders list of name and file of the ONNX encoders (`list` only)";

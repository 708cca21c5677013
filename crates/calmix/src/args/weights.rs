//! The arguments of `calmix weights`.

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
    Get(GetArgs),
    List(ListArgs),
    Add(AddArgs),
    Check(CheckArgs),
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

/// Show what calmix understands of an image encoder, and how fast it runs here
///
/// The encoder is an ONNX file, or a folder as on the Hub: `model.onnx` or `onnx/model.onnx` with `preprocessor_config.json`, or
/// timm's `config.json`. It runs once, in a process of its own with limits of memory and time. Name the same path as
/// network.weights to train a head on it.
#[derive(Debug, Args)]
#[command(after_long_help = CHECK_FIELDS)]
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

const CHECK_FIELDS: &str = "\
Fields of --json:
  file              the model
  output, pooling   the output with the features, and how it becomes one vector per image
  features          the length of that vector
  size, resize      pixels per side, and of the shorter side before the crop (0: as size)
  filter, mean, std how images are resized and scaled
  bytes, blake3     of the model with all its weights
  views_per_second  on that many threads";

/// Download a model of the Hugging Face Hub into the weights folder
///
/// Takes safetensors of a network that calmix builds, or else the ONNX model of the repository with its configuration and its
/// licence. Every file is compared with the hash that the Hub lists; `origin.json` beside the model keeps repository, commit and
/// hashes. Pickles are never downloaded. The same command continues a download that was interrupted.
///
/// Reads the variables of huggingface_hub: HF_ENDPOINT, HF_HOME, HF_HUB_CACHE, HF_TOKEN, HF_HUB_OFFLINE and
/// HF_HUB_DOWNLOAD_TIMEOUT; also https_proxy, no_proxy and SSL_CERT_FILE. The token goes to the Hub alone.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{GET_FIELDS}"))]
pub struct GetArgs {
    /// Repository on the Hub; a branch, a tag or a commit may follow an @ [default: main]
    #[arg(value_name = "OWNER/NAME[@REVISION]")]
    pub(crate) repository: String,
    /// Name of the weights [default: NAME of the repository]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Model file of the repository, such as onnx/model_fp16.onnx [default: model.safetensors, onnx/vision_model.onnx or onnx/model.onnx]
    #[arg(long)]
    pub(crate) file: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  calmix weights get timm/tf_efficientnet_lite0.in1k
  calmix weights get onnx-community/dinov2-small --name dinov2";

const GET_FIELDS: &str = "\
Fields of --json:
  name, folder  the value for network.weights, and where its files are
  was_there     whether the same commit was there before
  origin        as in origin.json: endpoint, repository, revision, commit, licence (null if unknown)
                and files, a list of path (in the repository), file, bytes and sha256";

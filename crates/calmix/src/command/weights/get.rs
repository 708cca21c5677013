//! `calmix weights get`: downloads a model of the Hugging Face Hub into the weights folder.

#[cfg(feature = "https")]
mod fetch;

use anyhow::Result;
use calmix_run::pretrained::weights_folder::WeightsFolder;
use clap::Args;

use crate::exit::Exit;

/// Download a model of the Hugging Face Hub into the weights folder
///
/// Takes safetensors of a network that calmix builds, or else the ONNX model of the repository with its configuration and its
/// licence. Every file is compared with the hash that the Hub lists; `origin.json` beside the model keeps repository, commit and
/// hashes. Pickles are never downloaded. The same command continues a download that was interrupted.
///
/// Reads the variables of huggingface_hub: HF_ENDPOINT, HF_HOME, HF_HUB_CACHE, HF_TOKEN, HF_HUB_OFFLINE and
/// HF_HUB_DOWNLOAD_TIMEOUT; also https_proxy, no_proxy and SSL_CERT_FILE. The token goes to the Hub alone.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{FIELDS}"))]
pub(super) struct GetArgs {
    /// Repository on the Hub; a branch, a tag or a commit may follow an @ [default: main]
    #[arg(value_name = "OWNER/NAME[@REVISION]")]
    repository: String,
    /// Name of the weights [default: NAME of the repository]
    #[arg(long)]
    name: Option<String>,
    /// Model file of the repository, such as onnx/model_fp16.onnx [default: model.safetensors, onnx/vision_model.onnx or onnx/model.onnx]
    #[arg(long)]
    file: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  calmix weights get timm/tf_efficientnet_lite0.in1k
  calmix weights get onnx-community/dinov2-small --name dinov2";

const FIELDS: &str = "\
Fields of --json:
  name, folder  the value for network.weights, and where its files are
  was_there     whether the same commit was there before
  origin        as in origin.json: endpoint, repository, revision, commit, licence (null if unknown)
                and files, a list of path (in the repository), file, bytes and sha256";

impl GetArgs {
    #[cfg(not(feature = "https"))]
    #[expect(clippy::unused_self, reason = "as with the feature")]
    pub(super) fn run(self, _: &WeightsFolder) -> Result<Exit> {
        Err(crate::error::CliError::without_https("calmix weights get").into())
    }

    #[cfg(feature = "https")]
    pub(super) fn run(self, folder: &WeightsFolder) -> Result<Exit> {
        use std::sync::atomic::Ordering;

        use crate::stop::Stop;
        use crate::terminal::status;

        let stop = Stop::listen()?;
        let stopped = || status("interrupted; the same command continues");
        // A signal may arrive while a server does not answer. What has arrived by then stays.
        let done = stop.ending_soon(stopped, || self.fetch(folder, stop.flag()));
        match done {
            Err(_) if stop.flag().load(Ordering::Relaxed) => {
                stopped();
                Ok(stop.exit())
            }
            Err(error) => Err(error),
            Ok(got) => {
                self.show(&got)?;
                Ok(Exit::Done)
            }
        }
    }
}

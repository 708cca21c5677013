//! `calmix weights`: downloads, lists, adds and checks pretrained weights.

mod check;
mod get;

use std::path::PathBuf;

use anyhow::{Error, Result};
use calmix_io::error::FileError;
use calmix_io::shown::shown;
use calmix_run::pretrained::weights_folder::{StoredWeights, WeightsFolder};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::encoder_trial;
use crate::error::CliError;
use crate::exit::Exit;
use crate::format::{counted, shell_quoted};
use crate::terminal::{print, print_json, warn};
use crate::weights_hint;

/// Download, list, add or check pretrained weights
///
/// A run can start from the weights of a network that was trained on a million images: `--set network.weights=NAME`, where
/// NAME is listed here or is the path of a file. The weights folder is $CALMIX_WEIGHTS, otherwise calmix/weights in
/// $XDG_DATA_HOME or ~/.local/share.
#[derive(Debug, Args)]
pub struct WeightsArgs {
    #[command(subcommand)]
    action: WeightsAction,
}

#[derive(Debug, Subcommand)]
enum WeightsAction {
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
struct ListArgs {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Check a file of weights and copy it into the weights folder
///
/// The file must be safetensors with timm's tensor names. A `config.json` and a `LICENSE` beside it are copied, too;
/// `config.json` describes the images that the network expects. Nothing is copied unless names and shapes match a network
/// that calmix supports.
#[derive(Debug, Args)]
#[command(after_long_help = FIELDS)]
struct AddArgs {
    /// File of weights: model.safetensors from a model hub, or a file that you converted
    file: PathBuf,
    /// Name of the weights [default: the name of the file; for model.safetensors, the network]
    #[arg(long)]
    name: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

const FIELDS: &str = "\
Fields of --json:
  folder   the weights folder
  weights  list of name, network, parameters (without a classifier), size (pixels per side),
           licence, blake3 and file; size and licence are null if unknown
  encoders list of name and file of the ONNX encoders (`list` only)";

impl WeightsArgs {
    pub fn run(self) -> Result<Exit> {
        let folder = WeightsFolder::of_user();
        match self.action {
            WeightsAction::Get(arguments) => arguments.run(&folder),
            WeightsAction::List(arguments) => arguments.run(&folder),
            WeightsAction::Add(arguments) => arguments.run(&folder),
            WeightsAction::Check(arguments) => arguments.run(&folder),
            WeightsAction::TryEncoder => encoder_trial::serve().map(|()| Exit::Done),
        }
    }
}

impl ListArgs {
    fn run(self, folder: &WeightsFolder) -> Result<Exit> {
        let mut stored = Vec::new();
        for name in folder.names().map_err(refused)? {
            match folder.stored(&name) {
                Ok(weights) => stored.push(weights),
                Err(error) => warn(&format!("left out: {error}")),
            }
        }
        let mut encoders = Vec::new();
        for name in folder.encoder_names().map_err(refused)? {
            encoders.extend(folder.find_encoder(&name).map(|file| (name, file)));
        }
        if self.json {
            let mut listed = document(folder, &stored);
            let encoders = encoders
                .iter()
                .map(|(name, file)| json!({ "name": name, "file": file.display().to_string() }));
            listed["encoders"] = encoders.collect();
            print_json(&listed)?;
            return Ok(Exit::Done);
        }
        if stored.is_empty() && encoders.is_empty() {
            let text = format!("{}\n{}", weights_hint::none_in(folder), weights_hint::why_and_how());
            print(&format!("{text}\n\nnext: {}", weights_hint::GET))?;
            return Ok(Exit::Done);
        }
        let place = shown(folder.path().display());
        let networks = stored.iter().map(line);
        let encoders = encoders
            .iter()
            .map(|(name, file)| format!("{}: an ONNX encoder\n  {}\n", shown(name), shown(file.display())));
        let lines = networks.chain(encoders).collect::<String>();
        print(&format!(
            "{lines}\nyour own weights go into {place}\nnext: calmix train --data FOLDER --set network.weights=NAME"
        ))?;
        Ok(Exit::Done)
    }
}

impl AddArgs {
    fn run(self, folder: &WeightsFolder) -> Result<Exit> {
        if let Some(encoder) = folder.find_encoder(&self.file.to_string_lossy()) {
            let message = format!("{}: an ONNX encoder is used where it is", shown(encoder.display()));
            let hint =
                format!("calmix train --data FOLDER --set network.weights={}", shell_quoted(&self.file));
            return Err(CliError::invalid(message).hint(hint).into());
        }
        let added = folder.add(&self.file, self.name.as_deref()).map_err(refused)?;
        if self.json {
            print_json(&document(folder, std::slice::from_ref(&added)))?;
            return Ok(Exit::Done);
        }
        let next = format!("calmix train --data FOLDER --set network.weights={}", added.name);
        print(&format!("{}\nnext: {next}", line(&added)))?;
        Ok(Exit::Done)
    }
}

/// Weights that cannot be used are a mistake, unless their storage does not answer.
fn refused(error: FileError) -> Error {
    if error.is_transient() { error.into() } else { CliError::invalid(error.to_string()).into() }
}

/// Describes weights in two lines.
fn line(weights: &StoredWeights) -> String {
    let StoredWeights { name, path, network, parameters, size, licence, blake3 } = weights;
    let size = size.map_or("images of any size".to_owned(), |size| format!("images of {size} pixels"));
    let licence = licence.as_deref().map_or("licence unknown".to_owned(), shown);
    let hash: String = blake3.chars().take(12).collect();
    format!(
        "{}: {network}, {} without its classifier, {size}, {licence}\n  {} ({hash})\n",
        shown(name),
        counted(*parameters as u64, "parameter"),
        shown(path.display()),
    )
}

fn document(folder: &WeightsFolder, stored: &[StoredWeights]) -> Value {
    let weights = |weights: &StoredWeights| {
        let StoredWeights { name, path, network, parameters, size, licence, blake3 } = weights;
        json!({
            "name": name,
            "network": network.to_string(),
            "parameters": parameters,
            "size": size,
            "licence": licence,
            "blake3": blake3,
            "file": path.display().to_string(),
        })
    };
    let folder = folder.path().display().to_string();
    json!({ "folder": folder, "weights": stored.iter().map(weights).collect::<Vec<_>>() })
}

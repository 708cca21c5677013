//! `calmix weights`: downloads, lists, adds and checks pretrained weights.

mod check;
mod get;

use anyhow::{Error, Result};
use calmix_io::error::FileError;
use calmix_io::shown::shown;
use calmix_run::pretrained::weights_folder::{StoredWeights, WeightsFolder};
use serde_json::{Value, json};

use crate::args::weights::{AddArgs, ListArgs, WeightsAction, WeightsArgs};
use crate::error::CliError;
use crate::error::exit::Exit;
use crate::model::encoder_trial;
use crate::output::format::{counted, shell_quoted};
use crate::output::weights_hint;
use crate::terminal::{print, print_json, warn};

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

//! `calmix weights`: downloads, lists, adds and checks pretrained weights.

#[cfg(feature = "https")]
mod get;

use anyhow::{Error, Result};
use calmix_heads::images::backbone::Backbone;
use calmix_io::error::FileError;
use calmix_io::shown::shown;
use calmix_lifecycle::LifecycleError;
use calmix_lifecycle::pretrained::EncoderFile;
use calmix_lifecycle::request::threads;
use calmix_lifecycle::start::with_pretrained;
use calmix_recipe::model_spec::EncoderSpec;
use calmix_recipe::{Layers, Resolved};
use calmix_run::pretrained::weights_folder::{StoredWeights, WeightsFolder};
use serde_json::{Value, json};

use crate::args::weights::{AddArgs, CheckArgs, ListArgs, WeightsAction, WeightsArgs};
use crate::error::CliError;
use crate::error::exit::Exit;
use crate::model::encoder_trial;
use crate::output::format::{counted, shell_quoted, short_hash};
use crate::output::preparation::{GET_WEIGHTS_COMMAND, no_weights_in, weights_hint};
use crate::terminal::{print, print_json, warn};

impl WeightsArgs {
    pub fn run(self) -> Result<Exit> {
        let folder = WeightsFolder::of_user();
        match self.action {
            #[cfg(feature = "https")]
            WeightsAction::Get(arguments) => arguments.run(&folder),
            #[cfg(not(feature = "https"))]
            WeightsAction::Get(_) => Err(CliError::without_https("calmix weights get").into()),
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
            let text = format!("{}\n{}", no_weights_in(folder), weights_hint());
            print(&format!("{text}\n\nnext: {GET_WEIGHTS_COMMAND}"))?;
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

/// Returns the error for weights that cannot be used: a mistake, unless their storage does not respond.
fn refused(error: FileError) -> Error {
    if error.is_transient() { error.into() } else { CliError::invalid(error.to_string()).into() }
}

/// Describes weights in two lines.
fn line(weights: &StoredWeights) -> String {
    let StoredWeights { name, path, network, parameters, size, licence, blake3 } = weights;
    let size = size.map_or("images of any size".to_owned(), |size| format!("images of {size} pixels"));
    let licence = licence.as_deref().map_or("licence unknown".to_owned(), shown);
    let hash = short_hash(blake3);
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

impl CheckArgs {
    fn run(self, folder: &WeightsFolder) -> Result<Exit> {
        let Some(path) = folder.find_encoder(&self.file) else {
            let message = format!(
                "{}: neither an ONNX file nor a folder with model.onnx or onnx/model.onnx",
                shown(&self.file)
            );
            let hint = "`calmix weights add FILE` checks and adds a safetensors file";
            return Err(CliError::invalid(message).hint(hint).into());
        };
        if !path.is_file() {
            return Err(CliError::invalid(format!("{}: does not exist", shown(path.display()))).into());
        }
        let layers = Layers::new().recipe("head-folder").set_to("network.weights", self.file.clone());
        let layers = self.set.iter().fold(layers, |layers, setting| layers.set(setting));
        let resolved = with_pretrained(layers, folder).map_err(LifecycleError::pretrained)?.resolve()?;
        let Backbone::Encoder(spec, file) = Backbone::read(&resolved.recipe)? else {
            return Err(CliError::failed("this is not an encoder").into());
        };
        let threads = threads(self.threads.unwrap_or(0), 1);
        let trial = encoder_trial::first_run(&file, &spec, threads as usize, true)?;
        let speed = trial.views_per_second.unwrap_or_default();
        if self.json {
            print_json(&check_document(&resolved, &spec, &file, trial.width, speed))?;
            return Ok(Exit::Done);
        }
        let keys = [("output", "network.output"), ("pooling", "network.pooling"), ("size", "augment.size")];
        let keys = keys.into_iter().chain([
            ("resize", "augment.evaluation_resize"),
            ("filter", "augment.filter"),
            ("mean", "dataset.mean"),
            ("std", "dataset.std"),
        ]);
        let lines = keys.map(|(name, key)| {
            let value = resolved.value(key).map(ToString::to_string).unwrap_or_default();
            let value = value.trim_matches('"');
            format!("  {name:<9} {}  ({key}: {})\n", shown(value), resolved.origin(key))
        });
        let hash = short_hash(&file.hash);
        print(&format!(
            "{}: an encoder of {} MB ({hash}), {} features per image\n{}  speed     {speed:.1} views per second on {}\n\n\
             next: calmix train --data FOLDER --set network.weights={}",
            shown(file.path.display()),
            file.bytes().len() >> 20,
            trial.width,
            lines.collect::<String>(),
            counted(threads.into(), "thread"),
            shown(&self.file),
        ))?;
        Ok(Exit::Done)
    }
}

fn check_document(
    resolved: &Resolved,
    spec: &EncoderSpec,
    file: &EncoderFile,
    width: usize,
    speed: f64,
) -> Value {
    let augment = &resolved.recipe.augment;
    json!({
        "file": file.path.display().to_string(),
        "output": spec.output,
        "pooling": spec.pooling,
        "features": width,
        "size": spec.size,
        "resize": augment.evaluation_resize,
        "filter": augment.filter.to_string(),
        "mean": spec.mean,
        "std": spec.std,
        "bytes": file.bytes().len(),
        "blake3": file.hash,
        "views_per_second": speed,
    })
}

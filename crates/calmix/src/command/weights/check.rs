//! `calmix weights check`: what calmix understands of a file of weights, and how fast it runs here.

use anyhow::Result;
use calmix_heads::images::backbone::Backbone;
use calmix_io::shown::shown;
use calmix_lifecycle::LifecycleError;
use calmix_lifecycle::pretrained::encoder_file::EncoderFile;
use calmix_lifecycle::start::with_pretrained;
use calmix_lifecycle::threads::threads;
use calmix_recipe::encoder_spec::EncoderSpec;
use calmix_recipe::{Layers, Resolved};
use calmix_run::pretrained::weights_folder::WeightsFolder;
use serde_json::{Value, json};

use crate::args::weights::check::CheckArgs;
use crate::error::CliError;
use crate::error::exit::Exit;
use crate::model::encoder_trial;
use crate::output::format::counted;
use crate::terminal::{print, print_json};

impl CheckArgs {
    pub(super) fn run(self, folder: &WeightsFolder) -> Result<Exit> {
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
            print_json(&document(&resolved, &spec, &file, trial.width, speed))?;
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
        let hash: String = file.hash.chars().take(12).collect();
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

fn document(resolved: &Resolved, spec: &EncoderSpec, file: &EncoderFile, width: usize, speed: f64) -> Value {
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

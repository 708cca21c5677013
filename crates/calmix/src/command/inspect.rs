//! `calmix inspect`: shows a run, a folder of runs, a checkpoint, a recipe or a dataset.

mod dataset;
mod run;
mod runs;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Error, Result};
use calmix_data::dataset::Dataset;
use calmix_formats::vectors::VectorSource;
use calmix_io::shown::shown;
use calmix_lifecycle::prepared_dataset::prepared_folder;
use calmix_metrics::measure::TopLabel;
use calmix_metrics::predictions::Predictions;
use calmix_recipe::{Layers, RecipeError, Resolved};
use calmix_run::checkpoint::Checkpoint;
use calmix_run::error::RunError;
use calmix_run::read::{self, inspect};
use calmix_run::run::Paths;
use serde_json::{Value, json};

use crate::args::inspect::InspectArgs;
use crate::error::CliError;
use crate::error::exit::Exit;
use crate::model::folder::runs_of_sweep;
use crate::output::format::{bytes, counted, grouped, percent, shell_quoted, short_hash};
use crate::output::run_files;
use crate::terminal::Output;

pub(super) use dataset::document as dataset_json;

impl InspectArgs {
    pub fn run(self) -> Result<Exit> {
        let what = self.what.as_path();
        let has = |name: &str| what.join(name).exists();
        let inspection = if has("run.json") {
            run::inspect(what)?
        } else if has("MANIFEST") {
            checkpoint(what)?
        } else if has("manifest.json") && has("samples.bin") {
            dataset::prepared(what)?
        } else if let Some(runs) = runs_of_sweep(what) {
            match runs::inspect(&runs)? {
                Some(table) => table,
                None => {
                    return Err(CliError::invalid(format!(
                        "{}: no run of this sweep has begun",
                        shown(what.display())
                    ))
                    .into());
                }
            }
        } else if what.is_dir() {
            match runs::inspect(what)? {
                Some(table) if runs::are_alone_in(what)? => table,
                // A folder of runs and other folders is a dataset with runs in it, unless the other folders contain no images.
                Some(table) => dataset::raw(what).unwrap_or(table),
                None => dataset::raw(what)?,
            }
        } else if what.is_file() && what.parent().is_some_and(|folder| folder.ends_with("predictions")) {
            predictions(what)?
        } else if what.is_file() && VectorSource::is_named(what) {
            dataset::raw(what)?
        } else if what.is_file() {
            recipe_file(what)?
        } else {
            named(what)?
        };
        inspection.print(self.json)?;
        Ok(Exit::Done)
    }
}

/// Inspects the built-in recipe of this name, since no file or folder has it.
fn named(what: &Path) -> Result<Output> {
    let name = what.to_string_lossy();
    named_recipe(&name).map_err(|error| {
        let message = format!("{name}: no such file or folder, and {error}");
        CliError::invalid(message)
            .hint(format!("`calmix recipes` lists the recipes; {}", run_files::find_runs()))
            .into()
    })
}

/// Verifies and shows the checkpoint in `folder`, whether or not there are newer ones.
fn checkpoint(folder: &Path) -> Result<Output> {
    let folder = folder.canonicalize()?;
    let checkpoint = Checkpoint::open(&folder).map_err(|error| match error {
        RunError::File(_) => Error::from(error).context(format!("{}: damaged", shown(folder.display()))),
        // Nothing is resumed here, so a checkpoint of another version is a failure, not a mistake.
        RunError::OtherFormat { .. } => CliError::failed(error.to_string()).into(),
        error => error.into(),
    })?;
    let manifest = checkpoint.manifest();
    let files = manifest.files.iter().map(|file| format!("  {:<22} {}\n", file.name, bytes(file.length)));
    let files = files.collect::<Vec<_>>().concat();
    let run = folder.parent().and_then(Path::parent).unwrap_or(&folder);
    let text = format!(
        "checkpoint after {}; checksums match\n\
         hash      {}\nrecipe    {}\ndata      {}\n\nfiles\n{files}\nnext: calmix resume {}\n",
        counted(checkpoint.step(), "step"),
        short_hash(checkpoint.hash()),
        short_hash(&manifest.identity.recipe),
        short_hash(&manifest.identity.dataset),
        shell_quoted(run),
    );
    let json = json!({
        "kind": "checkpoint",
        "folder": folder.display().to_string(),
        "hash": checkpoint.hash(),
        "manifest": manifest,
    });
    Ok(Output { text, json })
}

/// Shows the predictions in a file of a run.
fn predictions(file: &Path) -> Result<Output> {
    let file = file.canonicalize()?;
    let run = file.parent().and_then(Path::parent).unwrap_or(Path::new("")).to_owned();
    // The dataset itself need not exist.
    let prepared = prepared_folder(&inspect::recipe(&run)?.recipe, &Paths::new(&run));
    let dataset = Dataset::open(&prepared, &prepared)?;
    let predictions = read::predictions(&file, dataset.len(), dataset.classes().len())?;
    let top = TopLabel::from_logits(predictions.matrix()?, &predictions.labels, 1.0)?;
    let class = |label: usize| predictions.classes.get(label).map_or("", String::as_str);
    let width = predictions.classes.len().max(1);
    let mut rows = Vec::with_capacity(predictions.ids.len());
    for (row, (&id, &label)) in predictions.ids.iter().zip(&predictions.labels).enumerate() {
        let logits = predictions.logits.iter().skip(row * width).take(width);
        // Of equal logits the first wins, as everywhere.
        let best = logits.enumerate().fold((0, f32::NEG_INFINITY), |best, (label, &logit)| {
            if logit > best.1 { (label, logit) } else { best }
        });
        rows.push(json!({
            "sample": dataset.sample_name(id)?,
            "label": class(label as usize),
            "predicted": class(best.0),
            "confidence": top.confidence().get(row),
        }));
    }
    let json = json!({
        "kind": "predictions",
        "file": file.display().to_string(),
        "step": predictions.step,
        "split": predictions.split,
        "model": predictions.model,
        "predictions": rows,
    });
    Ok(Output { text: predictions_table(&predictions, &json), json })
}

fn predictions_table(predictions: &Predictions, json: &Value) -> String {
    let rows = json["predictions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |row: &Value, key: &str| shown(row[key].as_str().unwrap_or_default());
    let wrong = rows.iter().filter(|row| row["label"] != row["predicted"]).count() as u64;
    let line = |row: &Value| {
        let label = text(row, "label");
        let predicted = text(row, "predicted");
        let outcome =
            if label == predicted { "correct".to_owned() } else { format!("wrong, the label is {label}") };
        let confidence = percent(row["confidence"].as_f64().unwrap_or_default(), None);
        format!("  {}  {predicted}, {confidence}: {outcome}\n", text(row, "sample"))
    };
    let all = counted(rows.len() as u64, "prediction");
    let step = grouped(predictions.step);
    format!(
        "{all} after step {step}\n{} wrong; the confidence is uncalibrated\n\n{}",
        grouped(wrong),
        rows.iter().map(line).collect::<String>()
    )
}

/// Inspects a built-in recipe.
fn named_recipe(name: &str) -> Result<Output, RecipeError> {
    let resolved = Layers::new().recipe(name).resolve()?;
    let next = format!("calmix train {name} --data FOLDER");
    Ok(recipe_output(&format!("recipe {name}"), ("name", name), &resolved, &next))
}

/// Inspects a recipe in a file.
fn recipe_file(path: &Path) -> Result<Output> {
    let resolved = Layers::new().file(path).resolve()?;
    let next = format!("calmix train --file {}", shell_quoted(path));
    let file = path.display().to_string();
    Ok(recipe_output(&format!("recipe in {}", shown(&file)), ("file", &file), &resolved, &next))
}

/// Formats a recipe as TOML, with everything else in comments, so that the output is a valid recipe file.
fn recipe_output(title: &str, (key, named): (&str, &str), resolved: &Resolved, next: &str) -> Output {
    let warnings: Vec<String> = resolved.warnings.iter().map(ToString::to_string).collect();
    let commented =
        warnings.iter().map(|warning| format!("# warning: {warning}\n")).collect::<Vec<_>>().concat();
    let hash = resolved.hash();
    let keys = resolved.to_toml_with_origins();
    let text = format!(
        "# {title} ({}): every key with its value, its origin and its comment\n{commented}\n{keys}\n# next: {next}\n",
        short_hash(&hash)
    );
    let origins = resolved.origins().into_iter().map(|(path, origin)| (path, origin.to_string()));
    let json = json!({
        "kind": "recipe",
        key: named,
        "hash": hash,
        "recipe": resolved.to_json(),
        "origins": origins.collect::<BTreeMap<_, _>>(),
        "comments": resolved.comments(),
        "warnings": warnings,
    });
    Output { text, json }
}

//! The file of a sweep, and which of its runs train heads.

use std::path::Path;

use anyhow::{Context, Result};
use calmix_io::shown::shown;
use calmix_recipe::sweep::{Sweep, SweepCell};
use calmix_recipe::{VECTORS_RECIPE, builtin_sweeps};

use crate::args::options::recipe::RecipeArgs;
use crate::args::sweep::SweepArgs;
use crate::error::CliError;

/// The maximum size of a sweep file in bytes.
const MAX_SWEEP_BYTES: u64 = 1 << 20;

/// Returns whether all runs of a sweep train heads. An invalid file counts as such: either program can report the error.
pub(crate) fn has_only_heads(args: &SweepArgs) -> bool {
    read(args).map_or(true, |sweep| sweep.cells.iter().all(|cell| trains_head(cell, &args.overrides)))
}

/// Returns whether a run of a sweep trains a head.
fn trains_head(cell: &SweepCell, overrides: &RecipeArgs) -> bool {
    let layers = || overrides.apply(cell.layers());
    is_on_vectors(cell) || layers().is_ok_and(|layers| layers.word("network.train") == Some("head"))
}

/// Returns whether a run of a sweep is on vectors.
pub(crate) fn is_on_vectors(cell: &SweepCell) -> bool {
    match cell.settings.get("dataset.source") {
        Some(source) => source.as_str() == Some("vectors"),
        None => cell.recipe == VECTORS_RECIPE,
    }
}

/// Reads a sweep file, or the built-in sweep of this name.
pub(crate) fn read(args: &SweepArgs) -> Result<Sweep> {
    let name = args.sweep.to_str().unwrap_or_default();
    let builtin = builtin_sweeps().iter().find(|sweep| sweep.name == name && !args.sweep.exists());
    let text = match builtin {
        Some(sweep) => sweep.text.to_owned(),
        None => read_text(&args.sweep)?,
    };
    Sweep::read(&args.sweep, &text).map_err(|error| CliError::invalid(error.to_string()).into())
}

fn read_text(path: &Path) -> Result<String> {
    use std::io::Read;
    let names: Vec<_> = builtin_sweeps().iter().map(|sweep| sweep.name).collect();
    let file = std::fs::File::open(path).map_err(|error| {
        let message = format!("{}: {error}", shown(path.display()));
        CliError::invalid(message).hint(format!("name a file, or one of {}", names.join(", ")))
    })?;
    let mut text = String::new();
    let read = file.take(MAX_SWEEP_BYTES + 1).read_to_string(&mut text);
    read.with_context(|| shown(path.display()))?;
    if text.len() as u64 > MAX_SWEEP_BYTES {
        return Err(CliError::invalid(format!(
            "{}: longer than {MAX_SWEEP_BYTES} bytes",
            shown(path.display())
        ))
        .into());
    }
    Ok(text)
}

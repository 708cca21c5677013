//! A checkpoint: its files, verified.

use std::path::Path;

use anyhow::{Error, Result};
use calmix_io::shown::shown;
use calmix_run::checkpoint::Checkpoint;
use calmix_run::error::RunError;
use serde_json::json;

use super::inspect_output::InspectOutput;
use crate::error::CliError;
use crate::output::format::{bytes, counted, shell_quoted};

/// Verifies and shows the checkpoint in `folder`, also if there are newer ones.
pub(super) fn inspect(folder: &Path) -> Result<InspectOutput> {
    let folder = folder.canonicalize()?;
    let checkpoint = Checkpoint::open(&folder).map_err(|error| match error {
        RunError::File(_) => Error::from(error).context(format!("{}: damaged", shown(folder.display()))),
        // No run is resumed here, so the format of another version is a failure.
        RunError::OtherFormat { .. } => CliError::failed(error.to_string()).into(),
        error => error.into(),
    })?;
    let manifest = checkpoint.manifest();
    let files = manifest.files.iter().map(|file| format!("  {:<22} {}\n", file.name, bytes(file.length)));
    let files = files.collect::<Vec<_>>().concat();
    let short = |hash: &str| hash.chars().take(12).collect::<String>();
    let run = folder.parent().and_then(Path::parent).unwrap_or(&folder);
    let text = format!(
        "checkpoint after {}; checksums match\n\
         hash      {}\nrecipe    {}\ndata      {}\n\nfiles\n{files}\nnext: calmix resume {}\n",
        counted(checkpoint.step(), "step"),
        short(checkpoint.hash()),
        short(&manifest.identity.recipe),
        short(&manifest.identity.dataset),
        shell_quoted(run),
    );
    let json = json!({
        "kind": "checkpoint",
        "folder": folder.display().to_string(),
        "hash": checkpoint.hash(),
        "manifest": manifest,
    });
    Ok(InspectOutput { text, json })
}

//! A checkpoint: what it holds, and whether it is whole.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use calmix::train::checkpoint::newest;

use crate::failure::Mistake;
use crate::number::{bytes, counted, typed};

/// The checkpoint in `folder`. It is looked at alone, for among others only the newest one that is whole counts.
pub(super) fn shown(folder: &Path) -> Result<String> {
    let folder = folder.canonicalize()?;
    let name = folder.file_name().unwrap_or_default();
    let temp = tempfile::tempdir()?;
    let copy = temp.path().join(name);
    fs::create_dir(&copy)?;
    for entry in fs::read_dir(&folder)? {
        let entry = entry?;
        fs::copy(entry.path(), copy.join(entry.file_name()))?;
    }
    let found = newest(temp.path()).with_context(|| format!("{}: damaged", folder.display()))?;
    let found = found.ok_or_else(|| {
        Mistake::new(format!("{}: a checkpoint is called step-000000120 or alike", folder.display()))
    })?;
    let checkpoint = found.checkpoint;
    let manifest = checkpoint.manifest();
    let files = manifest.files.iter().map(|file| format!("  {:<22} {}\n", file.name, bytes(file.length)));
    let files = files.collect::<Vec<_>>().concat();
    let short = |hash: &str| hash.chars().take(12).collect::<String>();
    let run = folder.parent().and_then(Path::parent).unwrap_or(&folder);
    Ok(format!(
        "checkpoint after {}, every byte as it was written\n\
         hash      {}\nrecipe    {}\ndata      {}\n\nfiles\n{files}\nnext: calmix resume {}\n",
        counted(checkpoint.step(), "step"),
        short(checkpoint.hash()),
        short(&manifest.identity.recipe),
        short(&manifest.identity.dataset),
        typed(run),
    ))
}

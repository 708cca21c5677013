//! `cargo xtask man`: the manual pages of the binary, for packages.

use anyhow::{Context, Result, ensure};

use crate::workspace;

/// Writes `calmix.1` and a page for each command into a folder.
pub(crate) fn write(folder: &str) -> Result<()> {
    // Paths are relative to the user's working folder, not to the workspace.
    let folder = std::path::absolute(folder).with_context(|| format!("{folder:?} is not a folder name"))?;
    // Use a separate build, because the released binary does not contain the code that renders the pages.
    let build = ["run", "--quiet", "--locked", "-p", "calmix", "--no-default-features", "--features", "man"];
    let status = workspace::cargo().args(build).args(["--", "man"]).arg(&folder).status();
    ensure!(status.context("cannot start cargo")?.success(), "the manual pages could not be written");
    println!("man: written to {}", folder.display());
    Ok(())
}

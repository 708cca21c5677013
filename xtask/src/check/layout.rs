//! The rules about files and dependencies that neither cargo-deny nor clippy can check.
//!
//! Each rule is a function from plain data to a list of sentences, one for each violation.

mod cycles;
mod files;
mod words;

use anyhow::{Result, bail};

use crate::workspace;

/// Checks all rules, and names every violation.
pub(crate) fn check() -> Result<()> {
    let root = workspace::root();
    let files = files::read(&root)?;
    let core = files::core_dependencies()?;
    let crates = cycles::read(&root)?;
    let mut breaches = [
        files::length(&files),
        files::folder_size(&files),
        files::golden_size(&files),
        files::small_core(&core),
        cycles::cycles(&crates),
    ]
    .concat();
    breaches.extend(words::avoided(&root, &files)?);
    println!("   {} files, calmix-core needs {} external crates", files.len(), core.len());
    if !breaches.is_empty() {
        bail!("the layout breaks its rules:\n  {}", breaches.join("\n  "));
    }
    Ok(())
}

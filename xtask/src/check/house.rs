//! The rules of this repository that no other tool knows.
//!
//! Each rule is a function from plain data to a list of sentences, one for each breach.

mod files;
mod graph;
mod uses;

use anyhow::{Result, bail};

use crate::workspace;

/// Checks every rule and names every breach.
pub(crate) fn check() -> Result<()> {
    let packages = graph::packages(&workspace::metadata()?)?;
    let core = graph::outside(&packages, "calmix-core");
    let files = files::read(&workspace::root())?;
    let breaches = [
        uses::arrows(&packages),
        uses::libtorch(&packages),
        uses::small_core(&core),
        files::length(&files),
        files::module_names(&files),
        files::unsafe_places(&files),
        files::golden_size(&files),
    ]
    .concat();
    if !breaches.is_empty() {
        bail!("the rules of the house are broken:\n  {}", breaches.join("\n  "));
    }
    println!(
        "   {} packages of ours, {} files, {} crates from outside under core",
        graph::members(&packages).count(),
        files.len(),
        core.len()
    );
    Ok(())
}

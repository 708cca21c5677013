//! The database of security advisories (RustSec) that `deny` compares dependencies with, where one is at hand.
//!
//! The check never fetches: what it says depends on the commit and the database alone. A machine with internet gets the
//! database with `cargo deny fetch db`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::workspace;

/// Names a folder that contains `advisory-db-…`, a clone as cargo-deny keeps it.
const VARIABLE: &str = "CALMIX_ADVISORIES";

/// The folder with the database: the one that the user names, or cargo-deny's own.
pub(super) fn folder() -> Result<Option<PathBuf>> {
    if let Some(named) = std::env::var_os(VARIABLE).filter(|name| !name.is_empty()) {
        let folder = PathBuf::from(named);
        ensure!(has_database(&folder), "{VARIABLE}={} has no advisory-db-… in it", folder.display());
        return Ok(Some(folder));
    }
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    Ok(home.map(|home| home.join("advisory-dbs")).filter(|folder| has_database(folder)))
}

fn has_database(folder: &Path) -> bool {
    let names = fs::read_dir(folder).into_iter().flatten().flatten();
    names.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().starts_with("advisory-db-"))
}

/// A copy of `deny.toml` that knows the folder: cargo-deny takes it from nowhere else.
pub(super) fn config(folder: &Path) -> Result<PathBuf> {
    let root = workspace::root();
    let text = fs::read_to_string(root.join("deny.toml")).context("cannot read deny.toml")?;
    let target = root.join("target");
    fs::create_dir_all(&target).with_context(|| format!("cannot create {}", target.display()))?;
    let path = target.join("deny-with-advisories.toml");
    fs::write(&path, with_database(&text, folder)?)
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

fn with_database(text: &str, folder: &Path) -> Result<String> {
    const SECTION: &str = "[advisories]\n";
    let folder = std::path::absolute(folder)?;
    let folder = serde_json::to_string(folder.to_str().context("the folder is not named in UTF-8")?)?;
    let (before, after) = text.split_once(SECTION).context("deny.toml has no section [advisories]")?;
    Ok(format!("{before}{SECTION}db-path = {folder}\n{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_database_is_named_in_a_copy() {
        let text = "[graph]\nall-features = true\n[advisories]\nignore = []\n";
        let copy = with_database(text, Path::new("/a \"b\"")).expect("a copy");
        assert_eq!(
            copy,
            "[graph]\nall-features = true\n[advisories]\ndb-path = \"/a \\\"b\\\"\"\nignore = []\n"
        );
        assert!(with_database("[graph]\n", Path::new("/a")).is_err());
    }
}

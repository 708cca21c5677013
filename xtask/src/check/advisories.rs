//! The database of security advisories (RustSec) that `deny` compares dependencies with.
//!
//! The check never downloads anything: its result depends on the commit and the database alone. `cargo deny fetch db` downloads
//! the database. Without it, the comparison is skipped with a message; in CI, where the message would be overlooked, it is an
//! error.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::workspace;

/// The variable with a folder that contains `advisory-db-…`, a clone in cargo-deny's layout.
const VARIABLE: &str = "CALMIX_ADVISORIES";

/// Returns the folder with the database: the user's, or cargo-deny's own. `None` if there is none, except in CI.
pub(super) fn folder() -> Result<Option<PathBuf>> {
    folder_by(|name| std::env::var_os(name).filter(|value| !value.is_empty()), std::env::home_dir())
}

fn folder_by(variable: impl Fn(&str) -> Option<OsString>, home: Option<PathBuf>) -> Result<Option<PathBuf>> {
    if let Some(named) = variable(VARIABLE) {
        let folder = PathBuf::from(named);
        ensure!(has_database(&folder), "{VARIABLE}={} contains no advisory-db-…", folder.display());
        return Ok(Some(folder));
    }
    let home = variable("CARGO_HOME").map(PathBuf::from).or_else(|| Some(home?.join(".cargo")));
    let found = home.map(|home| home.join("advisory-dbs")).filter(|folder| has_database(folder));
    // Build services set `CI` to `true` or `1`.
    let is_ci = variable("CI").is_some_and(|value| value != "false" && value != "0");
    ensure!(
        found.is_some() || !is_ci,
        "there is no database of security advisories, which is an error if CI is set in the environment: run \
         `cargo deny fetch db`, or set {VARIABLE} to the folder of a clone"
    );
    Ok(found)
}

fn has_database(folder: &Path) -> bool {
    let names = fs::read_dir(folder).into_iter().flatten().flatten();
    names.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().starts_with("advisory-db-"))
}

/// Writes a copy of `deny.toml` with the folder, which cargo-deny accepts in no other way.
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
    let folder = serde_json::to_string(folder.to_str().context("the name of the folder is not UTF-8")?)?;
    let (before, after) = text.split_once(SECTION).context("deny.toml has no section [advisories]")?;
    Ok(format!("{before}{SECTION}db-path = {folder}\n{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_database_fails_only_in_ci() {
        let home = std::env::temp_dir().join(format!("calmix-xtask-advisories-{}", std::process::id()));
        let found = |ci: Option<&str>| {
            let variable = |name: &str| (name == "CI").then_some(ci?.into());
            folder_by(variable, Some(home.clone()))
        };
        for outside in [None, Some("false"), Some("0")] {
            assert_eq!(found(outside).expect("skipped"), None);
        }
        for inside in ["true", "1"] {
            let refused = found(Some(inside)).expect_err("missing").to_string();
            assert!(refused.contains("cargo deny fetch db") && refused.contains(VARIABLE), "{refused}");
        }
        let databases = home.join(".cargo/advisory-dbs");
        fs::create_dir_all(databases.join("advisory-db-0")).expect("a database");
        assert_eq!(found(Some("true")).expect("there"), Some(databases));
        fs::remove_dir_all(home).expect("cleans up");
    }

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

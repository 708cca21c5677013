//! The cache of tools, Python environments and weights: outside of the repository, shared by all clones.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::workspace::empty_folder;

/// Returns the folder: `$CALMIX_CACHE`, or `calmix` in `$XDG_CACHE_HOME` or in `~/.cache`. `.ci/run` uses the same rule.
pub(crate) fn folder() -> Result<PathBuf> {
    folder_by(|name| std::env::var_os(name), std::env::home_dir())
}

fn folder_by(variable: impl Fn(&str) -> Option<OsString>, home: Option<PathBuf>) -> Result<PathBuf> {
    if let Some(named) = variable("CALMIX_CACHE").filter(|name| !name.is_empty()) {
        return std::path::absolute(&named)
            .with_context(|| format!("CALMIX_CACHE={} is not a folder name", named.display()));
    }
    // The XDG specification requires that relative paths are ignored.
    let xdg = variable("XDG_CACHE_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let caches = xdg.or_else(|| Some(home?.join(".cache")));
    let caches = caches.context("there is no home folder; set CALMIX_CACHE to a folder for tools")?;
    Ok(caches.join("calmix"))
}

/// An installation in its own folder, whose name contains the version.
///
/// The file `complete` is written last, so an interrupted installation is repeated and never used.
pub(crate) struct Installed {
    pub(crate) folder: PathBuf,
}

impl Installed {
    pub(crate) fn named(name: &str) -> Result<Self> {
        Ok(Self { folder: folder()?.join(name) })
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.folder.join("complete").is_file()
    }

    /// Installs with `install` unless that was done before; returns whether it installed anything.
    pub(crate) fn ensure(&self, install: impl FnOnce(&Path) -> Result<()>) -> Result<bool> {
        if self.is_complete() {
            return Ok(false);
        }
        empty_folder(&self.folder)?;
        install(&self.folder)?;
        fs::write(self.folder.join("complete"), "")
            .with_context(|| format!("cannot write into {}", self.folder.display()))?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_folder_follows_calmix_then_xdg_then_home() {
        let found = |set: &[(&str, &str)], home: Option<&str>| {
            let value = |name: &str| set.iter().find(|(set, _)| *set == name).map(|(_, value)| value.into());
            folder_by(value, home.map(PathBuf::from)).map(|folder| folder.display().to_string())
        };
        let both = [("CALMIX_CACHE", "/own"), ("XDG_CACHE_HOME", "/xdg")];
        assert_eq!(found(&both, Some("/home/a")).expect("named"), "/own");
        assert_eq!(found(&both[1..], Some("/home/a")).expect("XDG"), "/xdg/calmix");
        // Empty and relative values count as unset.
        let unset = [("CALMIX_CACHE", ""), ("XDG_CACHE_HOME", "relative")];
        assert_eq!(found(&unset, Some("/home/a")).expect("home"), "/home/a/.cache/calmix");
        assert!(found(&unset, None).is_err());
    }

    #[test]
    fn an_interrupted_installation_is_repeated_and_a_complete_one_is_not() {
        let folder = std::env::temp_dir().join(format!("calmix-xtask-cache-{}", std::process::id()));
        let installed = Installed { folder: folder.clone() };
        let interrupted = installed.ensure(|inside| {
            fs::write(inside.join("half"), "")?;
            anyhow::bail!("interrupted")
        });
        assert!(interrupted.is_err() && !installed.is_complete());
        let leftover_is_gone = |inside: &Path| {
            anyhow::ensure!(!inside.join("half").exists());
            Ok(())
        };
        assert!(installed.ensure(leftover_is_gone).expect("installs"));
        assert!(!installed.ensure(|_| anyhow::bail!("must not run")).expect("is there"));
        fs::remove_dir_all(folder).expect("cleans up");
    }
}

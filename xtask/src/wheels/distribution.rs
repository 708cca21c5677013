//! The files of one wheel in a folder. The Python package `wheel` packs them: it writes the list of hashes, sorts the entries and
//! keeps modes, which would take a ZIP writer and SHA-256 here.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::build::tool;
use crate::setup::venv;
use crate::workspace::empty_folder;

/// The mode of a program or a shared library.
pub(super) const EXECUTABLE: u32 = 0o755;
/// The mode of any other file.
pub(super) const FILE: u32 = 0o644;
/// The time of all files in a wheel, the earliest that a ZIP archive can store, so that the same files give the same bytes.
const TIME: &str = "315532800";

/// A wheel before it is packed.
pub(super) struct Distribution {
    folder: PathBuf,
    name: String,
    version: String,
}

impl Distribution {
    /// Creates an empty distribution in a folder of `stage`.
    pub(super) fn new(stage: &Path, name: &str, version: &str) -> Result<Self> {
        let folder = stage.join(format!("{}-{version}", name.replace('-', "_")));
        empty_folder(&folder)?;
        Ok(Self { folder, name: name.to_owned(), version: version.to_owned() })
    }

    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// Returns its name as a Python module name.
    pub(super) fn module(&self) -> String {
        self.name.replace('-', "_")
    }

    /// Returns the path of a metadata file of the distribution.
    pub(super) fn info(&self, file: &str) -> String {
        format!("{}-{}.dist-info/{file}", self.module(), self.version)
    }

    pub(super) fn path(&self, place: &str) -> PathBuf {
        self.folder.join(place)
    }

    pub(super) fn copy(&self, from: &Path, place: &str, mode: u32) -> Result<()> {
        let to = self.made(place)?;
        fs::copy(from, &to).with_context(|| format!("cannot copy {}", from.display()))?;
        fs::set_permissions(&to, fs::Permissions::from_mode(mode))?;
        Ok(())
    }

    pub(super) fn write(&self, place: &str, text: &str) -> Result<()> {
        let to = self.made(place)?;
        fs::write(&to, text).with_context(|| format!("cannot write {}", to.display()))?;
        fs::set_permissions(&to, fs::Permissions::from_mode(FILE))?;
        Ok(())
    }

    /// Copies the files below a folder, without Python's compiled files.
    pub(super) fn copy_folder(&self, from: &Path) -> Result<()> {
        for place in files(from)?.iter().filter(|place| !place.contains("__pycache__")) {
            self.copy(&from.join(place), place, FILE)?;
        }
        Ok(())
    }

    /// Copies the licence files below a folder.
    pub(super) fn copy_licences(&self, from: &Path, prefix: &str) -> Result<()> {
        for place in files(from)? {
            let to = self.info(&format!("licenses/{prefix}{place}"));
            self.copy(&from.join(&place), &to, FILE)?;
        }
        Ok(())
    }

    /// Writes the metadata, which name all licence files.
    pub(super) fn write_metadata(&self, metadata: &str) -> Result<()> {
        let mut named = String::new();
        for licence in files(&self.path(&self.info("licenses")))? {
            let line = format!("License-File: {licence}\n");
            if !metadata.contains(&line) {
                named += &line;
            }
        }
        self.write(&self.info("METADATA"), &with_fields(metadata, &named))
    }

    /// Writes the tag, such as `py3-none-any`, packs the wheel into a folder and returns its path.
    pub(super) fn pack(&self, dist: &Path, tag: &str) -> Result<PathBuf> {
        let is_pure = tag.ends_with("-any");
        let wheel =
            format!("Wheel-Version: 1.0\nGenerator: calmix-xtask\nRoot-Is-Purelib: {is_pure}\nTag: {tag}\n");
        self.write(&self.info("WHEEL"), &wheel)?;
        let stem = format!("{}-{}-", self.module(), self.version);
        // pip would prefer an earlier wheel for a newer system to this one.
        for old in wheels(dist, &stem)?.iter().filter(|old| system(&old.to_string_lossy()) == system(tag)) {
            fs::remove_file(old).with_context(|| format!("cannot remove {}", old.display()))?;
        }
        venv::run(
            Command::new(tool("wheel")?)
                .env("SOURCE_DATE_EPOCH", TIME)
                .arg("pack")
                .arg(&self.folder)
                .arg("--dest-dir")
                .arg(dist),
        )?;
        let packed = dist.join(format!("{stem}{tag}.whl"));
        ensure!(packed.is_file(), "{} was not packed", packed.display());
        Ok(packed)
    }

    fn made(&self, place: &str) -> Result<PathBuf> {
        let to = self.path(place);
        let folder = to.parent().context("a file of a wheel is in a folder")?;
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(to)
    }
}

/// Inserts lines into metadata before the description, which follows the first empty line, if any.
pub(super) fn with_fields(metadata: &str, lines: &str) -> String {
    match metadata.split_once("\n\n") {
        Some((fields, description)) => format!("{fields}\n{lines}\n{description}"),
        None => format!("{}\n{lines}", metadata.trim_end()),
    }
}

/// Returns the system and the processor in a tag or the name of a wheel, without versions: `manylinux_x86` or `win_amd64`.
fn system(tag: &str) -> String {
    let platform = tag.trim_end_matches(".whl").rsplit('-').next().unwrap_or_default();
    let words = platform.split('_').filter(|word| word.parse::<u32>().is_err());
    words.collect::<Vec<_>>().join("_")
}

/// Returns the wheels in a folder whose names begin with `stem`.
fn wheels(folder: &Path, stem: &str) -> Result<Vec<PathBuf>> {
    let names = files(folder)?.into_iter().filter(|name| name.starts_with(stem));
    let paths = names.map(|name| folder.join(name));
    Ok(paths.filter(|path| path.extension().is_some_and(|ending| ending == "whl")).collect())
}

/// Returns the paths of the files below a folder, relative to it, sorted.
fn files(folder: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().into_string().ok().context("a file name is not UTF-8")?;
        if entry.file_type()?.is_dir() {
            found.extend(files(&entry.path())?.iter().map(|below| format!("{name}/{below}")));
        } else {
            found.push(name);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_one_system_differ_in_versions() {
        let earlier = "calmix-1.2.3-cp310-abi3-manylinux_2_34_x86_64.whl";
        assert_eq!(system(earlier), system("cp310-abi3-manylinux_2_28_x86_64"));
        let others =
            ["manylinux_2_34_aarch64", "macosx_10_12_x86_64", "macosx_11_0_arm64", "win_amd64", "any"];
        assert!(others.iter().all(|tag| system(tag) != system(earlier)));
    }
}

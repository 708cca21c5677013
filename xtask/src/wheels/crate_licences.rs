//! The licences of the crates that are compiled into a program, which must be distributed with it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::platform::Platform;
use crate::workspace;

/// The prefixes of the names of licence files.
const NAMES: [&str; 5] = ["licen", "copying", "copyright", "notice", "unlicense"];

/// Returns the licences of everything that these workspace packages link on a platform, without duplicates.
pub(super) fn text(packages: &[&str], platform: &Platform) -> Result<String> {
    let mut names = BTreeSet::new();
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in linked(packages, platform)? {
        let name = format!("{} {}", field(&package, "name")?, field(&package, "version")?);
        let licence = package["license"].as_str().unwrap_or("see below");
        names.insert(format!("{name}: {licence}"));
        let manifest = Path::new(field(&package, "manifest_path")?);
        for file in licence_files(manifest.parent().context("a package is in a folder")?)? {
            let text = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
            let text = String::from_utf8_lossy(&text).replace("\r\n", "\n").trim().to_owned();
            texts.entry(text).or_default().insert(name.clone());
        }
    }
    let mut parts = vec![names.into_iter().collect::<Vec<_>>().join("\n")];
    for (text, owners) in texts {
        let owners = owners.into_iter().collect::<Vec<_>>().join(", ");
        parts.push(format!("{}\n{owners}\n\n{text}", "=".repeat(80)));
    }
    Ok(format!("{}\n", parts.join("\n\n")))
}

/// Returns the packages outside of the workspace that these packages link on a platform.
fn linked(packages: &[&str], platform: &Platform) -> Result<Vec<Value>> {
    let output = workspace::cargo()
        .args(["metadata", "--format-version=1", "--locked", "--filter-platform", platform.triple])
        .output()
        .context("cannot start cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let nodes = list(&metadata["resolve"]["nodes"])?;
    let described = list(&metadata["packages"])?;
    let mut waiting = Vec::new();
    for name in packages {
        let package = described.iter().find(|package| package["name"] == *name);
        waiting.push(field(package.with_context(|| format!("there is no package {name}"))?, "id")?);
    }
    let mut visited = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        if !visited.insert(id) {
            continue;
        }
        let node =
            nodes.iter().find(|node| node["id"] == id).context("cargo metadata names no such package")?;
        for dependency in list(&node["deps"])? {
            // Other dependencies run at compile time or in tests.
            if list(&dependency["dep_kinds"])?.iter().any(|kind| kind["kind"].is_null()) {
                waiting.push(field(dependency, "pkg")?);
            }
        }
    }
    let is_linked = |package: &&Value| {
        package["id"].as_str().is_some_and(|id| visited.contains(id)) && !package["source"].is_null()
    };
    Ok(described.iter().filter(is_linked).cloned().collect())
}

/// Returns the licence files of a package, including those of bundled C libraries in its folders.
fn licence_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            let inside = fs::read_dir(&path)?.collect::<Result<Vec<_>, _>>()?;
            found.extend(inside.into_iter().map(|entry| entry.path()).filter(|path| is_licence(path)));
        } else if is_licence(&path) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn is_licence(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_lowercase();
    let is_source = [".rs", ".c", ".h", ".py", ".sh"].iter().any(|ending| name.ends_with(ending));
    path.is_file() && !is_source && NAMES.iter().any(|start| name.starts_with(start))
}

fn field<'a>(value: &'a Value, name: &str) -> Result<&'a str> {
    value[name].as_str().with_context(|| format!("cargo metadata has no `{name}`"))
}

fn list(value: &Value) -> Result<&Vec<Value>> {
    value.as_array().context("cargo metadata lacks a list")
}

#[cfg(test)]
mod tests {
    use super::super::platform::PLATFORMS;
    use super::*;

    #[test]
    fn linked_crates_bring_their_licences() {
        let [linux, _, windows, ..] = &PLATFORMS;
        let text = |platform| text(&["calmix"], platform).expect("cargo metadata");
        let on_linux = text(linux);
        assert!(on_linux.contains("\nclap 4") && on_linux.contains("Permission is hereby granted"));
        assert!(!on_linux.contains("\nproptest "), "tests alone need it");
        assert!(text(windows).contains("\nwinapi-util ") && !on_linux.contains("\nwinapi-util "));
    }
}

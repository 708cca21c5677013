//! The graph of packages, as far as the rules need it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use serde_json::Value;

/// One package of the graph.
#[derive(Debug, Default)]
pub(super) struct Package {
    pub(super) name: String,
    /// The folder below the root, of a member of the workspace.
    pub(super) folder: Option<String>,
    /// Names of direct dependencies, of any kind.
    pub(super) uses: BTreeSet<String>,
    /// Indices of the packages that an ordinary build of this one needs directly.
    pub(super) needs: Vec<usize>,
}

/// Reads the output of `cargo metadata`.
pub(super) fn packages(metadata: &Value) -> Result<Vec<Package>> {
    let root = text(&metadata["workspace_root"])?;
    let entries = array(&metadata["packages"])?;
    let position: BTreeMap<&str, usize> = (entries.iter().enumerate())
        .map(|(index, entry)| Ok((text(&entry["id"])?, index)))
        .collect::<Result<_>>()?;
    let mut packages = entries.iter().map(|entry| package(entry, root)).collect::<Result<Vec<_>>>()?;
    for node in array(&metadata["resolve"]["nodes"])? {
        let needs = (array(&node["deps"])?.iter())
            .filter(|dependency| is_ordinary(dependency))
            .map(|dependency| index_of(&position, &dependency["pkg"]))
            .collect::<Result<_>>()?;
        let index = index_of(&position, &node["id"])?;
        if let Some(package) = packages.get_mut(index) {
            package.needs = needs;
        }
    }
    Ok(packages)
}

fn package(entry: &Value, root: &str) -> Result<Package> {
    let manifest = text(&entry["manifest_path"])?;
    let inside = manifest.strip_prefix(root).filter(|_| entry["source"].is_null());
    Ok(Package {
        name: text(&entry["name"])?.to_owned(),
        folder: inside.map(|path| path.replace('\\', "/").trim_matches('/').replace("/Cargo.toml", "")),
        uses: (array(&entry["dependencies"])?.iter())
            .map(|dependency| Ok(text(&dependency["name"])?.to_owned()))
            .collect::<Result<_>>()?,
        needs: Vec::new(),
    })
}

/// Neither for tests nor for a build script.
fn is_ordinary(dependency: &Value) -> bool {
    let kinds = dependency["dep_kinds"].as_array();
    kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
}

fn index_of(position: &BTreeMap<&str, usize>, id: &Value) -> Result<usize> {
    let id = text(id)?;
    position.get(id).copied().with_context(|| format!("cargo metadata does not describe {id}"))
}

fn text(value: &Value) -> Result<&str> {
    value.as_str().with_context(|| format!("cargo metadata has {value} where a string belongs"))
}

fn array(value: &Value) -> Result<&Vec<Value>> {
    value.as_array().with_context(|| format!("cargo metadata has {value} where a list belongs"))
}

/// The members of the workspace with their folders.
pub(super) fn members(packages: &[Package]) -> impl Iterator<Item = (&Package, &str)> {
    packages.iter().filter_map(|package| Some((package, package.folder.as_deref()?)))
}

/// The crates from outside the workspace that a build of `name` needs, by name.
///
/// Procedural macros and what they are made of count too: they must be fetched, trusted and compiled like the
/// rest. Two versions of a crate are two crates.
pub(super) fn outside<'a>(packages: &'a [Package], name: &str) -> Vec<&'a str> {
    let mut seen = BTreeSet::new();
    let mut open: Vec<&Package> = packages.iter().filter(|package| package.name == name).collect();
    while let Some(package) = open.pop() {
        let new = package.needs.iter().filter(|index| seen.insert(**index));
        open.extend(new.filter_map(|index| packages.get(*index)));
    }
    let needed = seen.into_iter().filter_map(|index| packages.get(index));
    let mut names: Vec<&str> =
        needed.filter(|package| package.folder.is_none()).map(|package| package.name.as_str()).collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_are_counted_through_others_and_through_macros_but_not_through_tests() {
        let id = |name: &str| format!("registry#{name}");
        let entry = |name: &str, version: u8| {
            serde_json::json!({
                "id": id(&format!("{name}@{version}")), "name": name, "source": "registry",
                "manifest_path": "/elsewhere/Cargo.toml", "dependencies": [],
            })
        };
        let edge = |name: &str, kind: Option<&str>| serde_json::json!({"pkg": id(name), "dep_kinds": [{"kind": kind, "target": null}]});
        let metadata = serde_json::json!({
            "workspace_root": "/project",
            "packages": [
                {
                    "id": id("core"), "name": "core", "source": null,
                    "manifest_path": "/project/crates/core/Cargo.toml",
                    "dependencies": [{"name": "direct"}, {"name": "test"}],
                },
                {
                    "id": id("sibling"), "name": "sibling", "source": null,
                    "manifest_path": "/project/crates/sibling/Cargo.toml", "dependencies": [{"name": "syn"}],
                },
                entry("direct", 1), entry("derive", 1), entry("syn", 1), entry("syn", 2), entry("test", 1),
            ],
            "resolve": {"nodes": [
                {"id": id("core"), "deps": [edge("direct@1", None), edge("sibling", None), edge("test@1", Some("dev"))]},
                {"id": id("sibling"), "deps": [edge("syn@1", None)]},
                {"id": id("direct@1"), "deps": [edge("derive@1", None)]},
                {"id": id("derive@1"), "deps": [edge("syn@2", None)]},
            ]},
        });
        let packages = packages(&metadata).expect("well-formed");
        assert_eq!(packages[0].folder.as_deref(), Some("crates/core"));
        assert_eq!(packages[2].folder, None);
        assert_eq!(outside(&packages, "core"), ["derive", "direct", "syn", "syn"]);
    }
}

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
    pub(super) is_macro: bool,
    /// Names of direct dependencies, of any kind.
    pub(super) uses: BTreeSet<String>,
    /// Indices of the packages that an ordinary build of this one links.
    pub(super) links: Vec<usize>,
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
        let links = (array(&node["deps"])?.iter())
            .filter(|dependency| is_ordinary(dependency))
            .map(|dependency| index_of(&position, &dependency["pkg"]))
            .collect::<Result<_>>()?;
        let index = index_of(&position, &node["id"])?;
        if let Some(package) = packages.get_mut(index) {
            package.links = links;
        }
    }
    Ok(packages)
}

fn package(entry: &Value, root: &str) -> Result<Package> {
    let manifest = text(&entry["manifest_path"])?;
    let inside = manifest.strip_prefix(root).filter(|_| entry["source"].is_null());
    let is_macro_target = |target: &Value| target["kind"][0] == "proc-macro";
    Ok(Package {
        name: text(&entry["name"])?.to_owned(),
        folder: inside.map(|path| path.replace('\\', "/").trim_matches('/').replace("/Cargo.toml", "")),
        is_macro: array(&entry["targets"])?.iter().any(is_macro_target),
        uses: (array(&entry["dependencies"])?.iter())
            .map(|dependency| Ok(text(&dependency["name"])?.to_owned()))
            .collect::<Result<_>>()?,
        links: Vec::new(),
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

/// The crates from outside the workspace that end up in a build of `name`.
///
/// Procedural macros and what they are made of run in the compiler; they are no part of the product.
pub(super) fn linked<'a>(packages: &'a [Package], name: &str) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut open: Vec<&Package> = packages.iter().filter(|package| package.name == name).collect();
    while let Some(package) = open.pop() {
        let next = package.links.iter().filter_map(|index| packages.get(*index));
        let next = next.filter(|package| !package.is_macro && package.folder.is_none());
        open.extend(next.filter(|package| seen.insert(package.name.as_str())));
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linked_crates_are_counted_through_others_but_not_through_macros_and_tests() {
        let id = |name: &str| format!("registry#{name}@1");
        let entry = |name: &str, kind: &str| {
            serde_json::json!({
                "id": id(name), "name": name, "source": "registry", "manifest_path": "/elsewhere/Cargo.toml",
                "targets": [{"kind": [kind]}], "dependencies": [],
            })
        };
        let edge = |name: &str, kind: Option<&str>| serde_json::json!({"pkg": id(name), "dep_kinds": [{"kind": kind, "target": null}]});
        let metadata = serde_json::json!({
            "workspace_root": "/root",
            "packages": [
                {
                    "id": id("core"), "name": "core", "source": null,
                    "manifest_path": "/root/crates/core/Cargo.toml", "targets": [{"kind": ["lib"]}],
                    "dependencies": [{"name": "direct"}, {"name": "test"}],
                },
                entry("direct", "lib"), entry("indirect", "lib"), entry("derive", "proc-macro"),
                entry("syn", "lib"), entry("test", "lib"),
            ],
            "resolve": {"nodes": [
                {"id": id("core"), "deps": [edge("direct", None), edge("test", Some("dev"))]},
                {"id": id("direct"), "deps": [edge("indirect", None), edge("derive", None)]},
                {"id": id("derive"), "deps": [edge("syn", None)]},
            ]},
        });
        let packages = packages(&metadata).expect("well-formed");
        assert_eq!(packages[0].folder.as_deref(), Some("crates/core"));
        assert_eq!(packages[1].folder, None);
        assert_eq!(linked(&packages, "core"), BTreeSet::from(["direct", "indirect"]));
    }
}

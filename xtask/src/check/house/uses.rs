//! Rules about dependencies: who may use whom, who may name libtorch, how small core stays.

use std::collections::BTreeSet;

use super::graph::{Package, members};

/// The arrows between the crates of `crates/`. A crate may use whatever it can reach along them.
const ARROWS: &[(&str, &[&str])] = &[
    ("calmix", &["calmix-train", "calmix-report"]),
    ("calmix-train", &["calmix-data", "calmix-engine"]),
    ("calmix-data", &["calmix-core"]),
    ("calmix-engine", &["calmix-core", "calmix-dist"]),
    ("calmix-report", &["calmix-core"]),
    ("calmix-dist", &[]),
    ("calmix-core", &[]),
];

const LIBTORCH: &[&str] = &["tch", "torch-sys"];
const MAY_NAME_LIBTORCH: &[&str] = &["calmix-engine", "calmix-dist"];

/// Core links fewer crates from outside than this.
const CORE_LIMIT: usize = 10;

/// Crates in `crates/` use each other along the arrows and nothing else of the workspace.
pub(super) fn arrows(packages: &[Package]) -> Vec<String> {
    let ours: BTreeSet<&str> = members(packages).map(|(package, _)| package.name.as_str()).collect();
    let mut breaches = Vec::new();
    for (package, folder) in members(packages).filter(|(_, folder)| folder.starts_with("crates/")) {
        let name = package.name.as_str();
        if !ARROWS.iter().any(|(from, _)| *from == name) {
            breaches.push(format!(
                "{folder}: {name} is not in the diagram of ARCHITECTURE.md; give it its arrows there and in \
                 xtask/src/check/house/uses.rs"
            ));
            continue;
        }
        let reachable = reachable(name);
        let used = package.uses.iter().map(String::as_str).filter(|used| ours.contains(used));
        for used in used.filter(|used| *used != name && !reachable.contains(used)) {
            let allowed = match reachable.len() {
                0 => "none of ours".to_owned(),
                _ => reachable.iter().copied().collect::<Vec<_>>().join(", "),
            };
            breaches.push(format!("{folder}: {name} uses {used}, but may use {allowed}"));
        }
    }
    breaches
}

fn reachable(from: &str) -> BTreeSet<&'static str> {
    let mut seen = BTreeSet::new();
    let mut open = next(from);
    while let Some(name) = open.pop() {
        if seen.insert(name) {
            open.extend(next(name));
        }
    }
    seen
}

fn next(from: &str) -> Vec<&'static str> {
    let arrows = ARROWS.iter().find(|(start, _)| *start == from);
    arrows.map_or_else(Vec::new, |(_, ends)| ends.to_vec())
}

/// Only two crates name libtorch.
pub(super) fn libtorch(packages: &[Package]) -> Vec<String> {
    let outsiders = members(packages).filter(|(package, _)| !MAY_NAME_LIBTORCH.contains(&&*package.name));
    outsiders
        .flat_map(|(package, folder)| {
            let named = package.uses.iter().filter(|used| LIBTORCH.contains(&used.as_str()));
            named.map(move |named| {
                let allowed = MAY_NAME_LIBTORCH.join(" and ");
                format!("{folder}: {} depends on {named}; only {allowed} may", package.name)
            })
        })
        .collect()
}

/// Core stays small.
pub(super) fn small_core(outside: &[&str]) -> Vec<String> {
    if outside.len() < CORE_LIMIT {
        return Vec::new();
    }
    vec![format!(
        "crates/calmix-core needs {} crates from outside, macros counted ({}); fewer than {CORE_LIMIT} are allowed",
        outside.len(),
        outside.join(", ")
    )]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, folder: &str, uses: &[&str]) -> Package {
        Package {
            name: name.to_owned(),
            folder: Some(folder.to_owned()),
            uses: uses.iter().map(|name| (*name).to_owned()).collect(),
            ..Package::default()
        }
    }

    #[test]
    fn arrows_may_be_followed_forwards_only() {
        let breaches = arrows(&[
            member("calmix", "crates/calmix", &["calmix-train", "calmix-core", "clap"]),
            member("calmix-train", "crates/calmix-train", &["calmix-report"]),
            member("calmix-data", "crates/calmix-data", &["calmix-engine"]),
            member("calmix-engine", "crates/calmix-engine", &["calmix-core", "calmix-dist"]),
            member("calmix-report", "crates/calmix-report", &["calmix-core"]),
            member("calmix-core", "crates/calmix-core", &["xtask", "calmix-core"]),
            member("calmix-extra", "crates/calmix-extra", &[]),
            member("xtask", "xtask", &["calmix-report"]),
        ]);
        let starts = [
            "crates/calmix-train: calmix-train uses calmix-report, but may use calmix-core, calmix-data, ",
            "crates/calmix-data: calmix-data uses calmix-engine, but may use calmix-core",
            "crates/calmix-core: calmix-core uses xtask, but may use none of ours",
            "crates/calmix-extra: calmix-extra is not in the diagram",
        ];
        assert_eq!(breaches.len(), starts.len(), "{breaches:#?}");
        for (breach, start) in breaches.iter().zip(starts) {
            assert!(breach.starts_with(start), "{breach}");
        }
    }

    #[test]
    fn the_diagram_has_no_circle_and_no_unknown_end() {
        for (from, to) in ARROWS {
            assert!(!reachable(from).contains(from), "{from} reaches itself");
            for end in *to {
                assert!(ARROWS.iter().any(|(from, _)| from == end), "{end} has no entry");
            }
        }
    }

    #[test]
    fn only_the_engine_and_dist_name_libtorch() {
        let breaches = libtorch(&[
            member("calmix-engine", "crates/calmix-engine", &["tch"]),
            member("calmix-dist", "crates/calmix-dist", &["torch-sys"]),
            member("calmix-train", "crates/calmix-train", &["tch", "serde"]),
        ]);
        assert_eq!(
            breaches,
            ["crates/calmix-train: calmix-train depends on tch; only calmix-engine and calmix-dist may"]
        );
    }

    #[test]
    fn core_needs_fewer_than_ten() {
        assert!(small_core(&["a"; 9]).is_empty());
        assert_eq!(small_core(&["a"; 10]).len(), 1);
    }
}

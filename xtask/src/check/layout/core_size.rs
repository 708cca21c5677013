//! calmix-core stays small: few external crates.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};

use crate::workspace;

/// calmix-core needs fewer external crates than this.
const CORE_LIMIT: usize = 10;

/// The external crates that a build of calmix-core needs, with their versions.
///
/// Procedural macros and their dependencies count too: they are fetched, trusted and compiled like the rest.
pub(super) fn dependencies() -> Result<BTreeSet<String>> {
    let output = workspace::cargo()
        .args(["tree", "--package=calmix-core", "--edges=normal", "--target=all", "--all-features"])
        .args(["--prefix=none", "--no-dedupe", "--format={p}", "--locked"])
        .output()
        .context("cannot start cargo tree")?;
    ensure!(output.status.success(), "cargo tree failed:\n{}", String::from_utf8_lossy(&output.stderr));
    Ok(external(&String::from_utf8_lossy(&output.stdout)))
}

/// The lines of `cargo tree` without those of crates in this workspace, which end with their folder.
fn external(tree: &str) -> BTreeSet<String> {
    let name = |line: &str| line.trim().trim_end_matches(" (proc-macro)").to_owned();
    tree.lines().map(name).filter(|name| !name.is_empty() && !name.ends_with(')')).collect()
}

/// calmix-core stays small.
pub(super) fn small_core(external: &BTreeSet<String>) -> Vec<String> {
    if external.len() < CORE_LIMIT {
        return Vec::new();
    }
    let names = external.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    vec![format!(
        "crates/calmix-core needs {} external crates, macros included ({names}), but fewer than {CORE_LIMIT} are allowed",
        external.len(),
    )]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn external_crates_are_counted_once_per_version() {
        let tree = "calmix-core v0.1.0 (/project/crates/calmix-core)\nsyn v1.0.1\nderive v1.0.0 (proc-macro)\n\
                    syn v2.0.0\nsyn v1.0.1\n\n";
        assert_eq!(
            external(tree).into_iter().collect::<Vec<_>>(),
            ["derive v1.0.0", "syn v1.0.1", "syn v2.0.0"]
        );
    }

    #[test]
    fn core_needs_fewer_than_ten() {
        let crates = |count: usize| (0..count).map(|i| format!("c{i} v1.0.0")).collect();
        assert!(small_core(&crates(9)).is_empty());
        assert_eq!(small_core(&crates(10)).len(), 1);
    }
}

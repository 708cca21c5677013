//! The commit that the binary is compiled from.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What a crate of the workspace is compiled from; its tests, examples and golden files are not part of the binary.
const PARTS: [&str; 5] = ["Cargo.toml", "build.rs", "build", "shim", "src"];

/// The hash of the commit, with `-dirty` after it if a file that is compiled has changed since; `unknown` without git.
///
/// A package is built without git: there the variable `CALMIX_COMMIT` says it.
pub(crate) fn commit() -> String {
    println!("cargo::rerun-if-env-changed=CALMIX_COMMIT");
    let named = std::env::var("CALMIX_COMMIT").ok();
    let named = named.filter(|commit| !commit.is_empty() && !commit.contains(char::is_whitespace));
    named.or_else(by_git).unwrap_or_else(|| "unknown".to_owned())
}

fn by_git() -> Option<String> {
    // A copy of the package may lie inside the repository of something else, whose commit says nothing about it.
    if git(&["rev-parse", "--show-prefix"])? != "crates/calmix/" {
        return None;
    }
    let hash = git(&["rev-parse", "HEAD"])?;
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
    // The log of HEAD grows with every commit, also while the branch itself is only in `packed-refs`.
    for name in ["HEAD", "logs/HEAD"].into_iter().chain(branch.as_deref()) {
        // In a worktree these are in different folders, which git knows.
        watch(Path::new(&git(&["rev-parse", "--git-path", name])?));
    }
    let sources = sources();
    for path in &sources {
        watch(path);
    }
    let sources = sources.iter().filter_map(|path| path.to_str());
    let status = ["--no-optional-locks", "status", "--porcelain", "--"].into_iter().chain(sources);
    let is_dirty = !git(&status.collect::<Vec<_>>())?.is_empty();
    Some(if is_dirty { hash + "-dirty" } else { hash })
}

/// The files and folders that the binary is compiled from. If one of them changes, cargo compiles this package again in
/// any case; watched, they have the script look again whether the tree is dirty.
fn sources() -> Vec<PathBuf> {
    let root = Path::new("../..");
    let mut sources = ["Cargo.lock", "Cargo.toml", "recipes"].map(|name| root.join(name)).to_vec();
    for entry in std::fs::read_dir(root.join("crates")).into_iter().flatten().flatten() {
        sources.extend(PARTS.map(|part| root.join("crates").join(entry.file_name()).join(part)));
    }
    sources.retain(|path| path.exists());
    sources
}

/// Has cargo run this script again when a file changes. One that does not exist would have it run at every build.
fn watch(path: &Path) {
    if path.exists() {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}

/// What a command of git prints; none if it fails or there is no git.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let printed = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| printed.trim().to_owned())
}

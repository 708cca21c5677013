//! Limits on the length of files, the files per folder, the size of golden data, and the dependencies of calmix-core.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::workspace;

const LINE_LIMIT: usize = 500;
/// The maximum number of files in a folder that a reader can still survey.
const FOLDER_LIMIT: usize = 20;
const GOLDEN_LIMIT: u64 = 2_000_000;
const SOURCES: &[&str] = &["rs", "py", "sh", "c", "h", "cc", "cpp", "hpp", "cu"];

/// One file of the repository.
#[cfg_attr(test, derive(Clone))]
pub(super) struct File {
    /// The path relative to the root.
    pub(super) path: String,
    pub(super) bytes: u64,
    /// The text of a source file; `None` for other files.
    pub(super) source: Option<String>,
}

/// Reads every file below `root`, in order of path, without build products and hidden folders.
pub(super) fn read(root: &Path) -> Result<Vec<File>> {
    let mut files = Vec::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(folder) = open.pop() {
        let context = || format!("cannot list {}", folder.display());
        for entry in fs::read_dir(&folder).with_context(context)? {
            let entry = entry.with_context(context)?;
            let (path, kind) = (entry.path(), entry.file_type().with_context(context)?);
            let name = entry.file_name();
            if kind.is_dir() {
                if name != "target" && !name.as_encoded_bytes().starts_with(b".") {
                    open.push(path);
                }
            } else if kind.is_file() {
                files.push(file(root, &path)?);
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn file(root: &Path, path: &Path) -> Result<File> {
    let context = || format!("cannot read {}", path.display());
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let source = if SOURCES.contains(&extension) {
        Some(fs::read_to_string(path).with_context(context)?)
    } else {
        None
    };
    Ok(File {
        path: path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned(),
        bytes: fs::metadata(path).with_context(context)?.len(),
        source,
    })
}

/// Reports source files that are too long.
pub(super) fn length(files: &[File]) -> Vec<String> {
    let lines = |file: &File| file.source.as_ref().map_or(0, |source| source.lines().count());
    let long = files.iter().map(|file| (file, lines(file))).filter(|(_, lines)| *lines > LINE_LIMIT);
    long.map(|(file, lines)| {
        format!("{}: {lines} lines, but at most {LINE_LIMIT} are allowed; split it by concept", file.path)
    })
    .collect()
}

/// Reports source folders with too many files.
pub(super) fn folder_size(files: &[File]) -> Vec<String> {
    let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
    for (folder, _) in files.iter().filter_map(|file| file.path.rsplit_once('/')) {
        *sizes.entry(folder).or_default() += 1;
    }
    let is_checked = |folder: &str| {
        let mut parts = folder.split('/');
        parts.next() == Some("crates") && parts.nth(1) == Some("src")
    };
    let full = sizes.into_iter().filter(|(folder, size)| *size > FOLDER_LIMIT && is_checked(folder));
    full.map(|(folder, size)| {
        format!("{folder}: {size} files, but at most {FOLDER_LIMIT} are allowed; make folders by role")
    })
    .collect()
}

/// Reports golden data that is too large for every clone.
pub(super) fn golden_size(files: &[File]) -> Vec<String> {
    let golden = |file: &&File| {
        let mut parts = file.path.split('/');
        parts.next() == Some("crates") && parts.nth(1) == Some("tests") && parts.next() == Some("golden")
    };
    let total: u64 = files.iter().filter(golden).map(|file| file.bytes).sum();
    if total < GOLDEN_LIMIT {
        return Vec::new();
    }
    vec![format!("crates/*/tests/golden: {total} bytes in total, but fewer than {GOLDEN_LIMIT} are allowed")]
}

/// The number of external crates below which calmix-core must stay.
const CORE_LIMIT: usize = 10;

/// Returns the external crates that a build of calmix-core needs, with their versions.
///
/// Procedural macros and their dependencies count too: they are fetched, trusted and compiled like all others.
pub(super) fn core_dependencies() -> Result<BTreeSet<String>> {
    let output = workspace::cargo()
        .args(["tree", "--package=calmix-core", "--edges=normal", "--target=all", "--all-features"])
        .args(["--prefix=none", "--no-dedupe", "--format={p}", "--locked"])
        .output()
        .context("cannot start cargo tree")?;
    ensure!(output.status.success(), "cargo tree failed:\n{}", String::from_utf8_lossy(&output.stderr));
    Ok(external(&String::from_utf8_lossy(&output.stdout)))
}

/// Returns the lines of `cargo tree` without those of workspace crates, which end with their folder.
fn external(tree: &str) -> BTreeSet<String> {
    let name = |line: &str| line.trim().trim_end_matches(" (proc-macro)").to_owned();
    tree.lines().map(name).filter(|name| !name.is_empty() && !name.ends_with(')')).collect()
}

/// Reports if calmix-core needs too many external crates.
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

    fn source(path: &str, text: &str) -> File {
        File { path: path.to_owned(), bytes: text.len() as u64, source: Some(text.to_owned()) }
    }

    #[test]
    fn five_hundred_lines_are_the_most() {
        let files =
            [source("xtask/src/a.rs", &"\n".repeat(500)), source("bench/peers/b.py", &"\n".repeat(501))];
        let breaches = length(&files);
        assert_eq!(breaches.len(), 1);
        assert!(breaches[0].starts_with("bench/peers/b.py: 501 lines"), "{breaches:?}");
    }

    #[test]
    fn twenty_files_in_a_folder_are_the_most() {
        let in_folder = |folder: &str, count: usize| {
            (0..count).map(|index| source(&format!("{folder}/{index}.rs"), "")).collect::<Vec<File>>()
        };
        let files = [
            in_folder("crates/calmix-core/src", 20),
            in_folder("crates/calmix-core/src/order", 21),
            in_folder("crates/calmix-core/tests", 21),
        ]
        .concat();
        let breaches = folder_size(&files);
        assert_eq!(breaches.len(), 1);
        assert!(breaches[0].starts_with("crates/calmix-core/src/order: 21 files"), "{breaches:?}");
    }

    #[test]
    fn golden_files_are_weighed_together() {
        let golden = |path: &str| File { path: path.to_owned(), bytes: 1_000_000, source: None };
        let mut files = vec![
            golden("crates/calmix-core/tests/golden/a.json"),
            golden("crates/calmix-core/tests/b.json"),
            golden("tests/golden/c.json"),
        ];
        assert!(golden_size(&files).is_empty());
        files.push(golden("crates/calmix-data/tests/golden/images/d.png"));
        assert_eq!(golden_size(&files).len(), 1);
    }

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

//! Rules about files: how long, how named, where `unsafe` may stand, how much golden data.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

const LINE_LIMIT: usize = 500;
const GOLDEN_LIMIT: u64 = 2_000_000;
const SOURCES: &[&str] = &["rs", "py", "sh", "c", "h", "cc", "cpp", "hpp", "cu"];
const UNSAFE_HOME: &str = "crates/calmix-dist/src/binding";

/// One file of the repository.
pub(super) struct File {
    /// Below the root, with `/`.
    pub(super) path: String,
    pub(super) bytes: u64,
    /// The text of a source file; nothing for other files.
    pub(super) source: Option<String>,
}

/// Every file below `root`, in order of its path, without build products and hidden folders.
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
        path: path.strip_prefix(root).unwrap_or(path).to_string_lossy().replace('\\', "/"),
        bytes: fs::metadata(path).with_context(context)?.len(),
        source,
    })
}

/// No source file is too long to read in one sitting.
pub(super) fn length(files: &[File]) -> Vec<String> {
    let lines = |file: &File| file.source.as_ref().map_or(0, |source| source.lines().count());
    let long = files.iter().map(|file| (file, lines(file))).filter(|(_, lines)| *lines > LINE_LIMIT);
    long.map(|(file, lines)| {
        format!("{}: {lines} lines; {LINE_LIMIT} are allowed, so it holds more than one concept", file.path)
    })
    .collect()
}

/// A file is named after its concept.
pub(super) fn module_names(files: &[File]) -> Vec<String> {
    let unnamed = files.iter().filter(|file| file.path.ends_with("/mod.rs"));
    unnamed
        .map(|file| format!("{}: name it after its concept, foo.rs beside foo/, not foo/mod.rs", file.path))
        .collect()
}

/// `unsafe` stands only in the binding to libtorch's process groups.
pub(super) fn unsafe_places(files: &[File]) -> Vec<String> {
    let mut breaches = Vec::new();
    let rust = files.iter().filter(|file| is_rust(file) && !file.path.starts_with(UNSAFE_HOME));
    for file in rust {
        for (index, line) in file.source.as_deref().unwrap_or_default().lines().enumerate() {
            if code_has_word(line, "unsafe") {
                breaches.push(format!("{}:{}: `unsafe` outside {UNSAFE_HOME}", file.path, index + 1));
            }
        }
    }
    breaches
}

fn is_rust(file: &File) -> bool {
    Path::new(&file.path).extension().is_some_and(|extension| extension == "rs")
}

/// Whether a line says `word` outside string literals and line comments.
///
/// Less than a lexer: strings over several lines and the character `"` mislead it. It is the second net; the
/// first is the lint `unsafe_code`, which the whole workspace denies.
fn code_has_word(line: &str, word: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let outside_strings = code.split('"').step_by(2);
    outside_strings
        .flat_map(|part| part.split(|c: char| !c.is_alphanumeric() && c != '_'))
        .any(|found| found == word)
}

/// Golden files stay small enough for every clone.
pub(super) fn golden_size(files: &[File]) -> Vec<String> {
    let golden = |file: &&File| {
        let mut parts = file.path.split('/');
        parts.next() == Some("crates") && parts.nth(1) == Some("tests") && parts.next() == Some("golden")
    };
    let total: u64 = files.iter().filter(golden).map(|file| file.bytes).sum();
    if total < GOLDEN_LIMIT {
        return Vec::new();
    }
    vec![format!("crates/*/tests/golden: {total} bytes together; they must stay below {GOLDEN_LIMIT}")]
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
    fn modules_have_names() {
        let files = [source("crates/calmix-core/src/rng/mod.rs", ""), source("xtask/src/nomod.rs", "")];
        assert_eq!(module_names(&files).len(), 1);
    }

    #[test]
    fn unsafe_is_found_in_code_only_and_allowed_in_the_binding_only() {
        let text = "#![forbid(unsafe_code)]\n// unsafe in prose\nlet s = \"unsafe\"; unsafe { f() }\n";
        let files = [
            source("crates/calmix-core/src/lib.rs", text),
            source("crates/calmix-dist/src/binding/group.rs", text),
            source("crates/calmix-dist/src/tree.rs", text),
            source("docs/unsafe.py", text),
        ];
        assert_eq!(
            unsafe_places(&files),
            ["core/src/lib.rs", "dist/src/tree.rs"].map(|file| format!(
                "crates/calmix-{file}:3: `unsafe` outside crates/calmix-dist/src/binding"
            ))
        );
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
}

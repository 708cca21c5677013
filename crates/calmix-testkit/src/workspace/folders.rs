//! The files of a folder, to compare two.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Every file below a folder, by its name from there.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path.strip_prefix(folder).unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

/// Everything below a folder but what depends on the clock.
pub fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let is_timed = |name: &PathBuf| {
        ["calmix.lock", "timing.jsonl", "prepared/source.json"].iter().any(|timed| name.ends_with(timed))
    };
    let names = files(folder).into_iter().filter(|name| !is_timed(name));
    names.map(|name| (name.clone(), fs::read(folder.join(name)).unwrap())).collect()
}

/// Fails if two folders have other files, or files with other bytes.
#[track_caller]
pub fn is_same(found: &Path, expected: &BTreeMap<PathBuf, Vec<u8>>, case: &str) {
    let found = contents(found);
    let names = |all: &BTreeMap<PathBuf, Vec<u8>>| all.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&found), names(expected), "{case}");
    for (name, bytes) in expected {
        assert!(&found[name] == bytes, "{case}: {}", name.display());
    }
}

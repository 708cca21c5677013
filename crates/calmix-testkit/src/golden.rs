//! Texts that are compared word for word.

use std::fs;
use std::path::{Path, PathBuf};

/// The path of a golden file.
pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../calmix/tests/cli/golden").join(name)
}

/// Whether golden files are rewritten: `CALMIX_BLESS=1`.
pub fn is_rewritten() -> bool {
    std::env::var_os("CALMIX_BLESS").is_some()
}

/// Compares a text with a golden file, or rewrites the file.
#[track_caller]
pub fn golden(name: &str, text: &str) {
    let path = path(name);
    // Without the spaces that clap leaves at the end of lines.
    let text = text.lines().map(|line| line.trim_end().to_owned() + "\n").collect::<Vec<_>>().concat();
    if is_rewritten() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        return;
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(text == expected, "{} is not what is printed now:\n{text}", path.display());
}

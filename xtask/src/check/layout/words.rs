//! Words that the project avoids, because there is a better one that people of this field search for.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::files::File;

/// A word, and what to write instead.
struct Avoided {
    /// The word, case-sensitive.
    word: &'static str,
    instead: &'static str,
    /// Words directly before it that make it right.
    after: &'static [&'static str],
}

const fn avoid(word: &'static str, instead: &'static str) -> Avoided {
    Avoided { word, instead, after: &[] }
}

const AVOIDED: &[Avoided] = &[
    avoid("figures", "metrics; a plot is a plot"),
    // `<picture>` is an element of HTML.
    Avoided { word: "picture", instead: "image", after: &["<", "/"] },
    avoid("Picture", "Image"),
    avoid("judge", "evaluate"),
    avoid("promise", "guarantee"),
    avoid("learnt", "trained on, learned"),
    avoid("labels a class", "labels per class"),
    avoid("images a second", "images per second"),
    avoid("steps a second", "steps per second"),
    avoid("views a second", "views per second"),
    avoid("bytes a sample", "bytes per sample"),
    avoid("at hand", "available"),
    avoid("somebody", "name the subject: the user, another process"),
    avoid("nobody", "name the subject: no process, no reader"),
    avoid("where it is known", "if known"),
    avoid("LONGEST_", "MAX_, with the thing and its unit: MAX_LINE_BYTES"),
    avoid("FEWEST_", "MIN_, with the thing: MIN_LABELS"),
    Avoided { word: "MOST_", instead: "MAX_, with the thing: MAX_CLASSES", after: &["AL"] },
    Avoided { word: "is no ", instead: "is not a", after: &["there ", "There ", "here "] },
];

/// The extensions of the files that are read.
const READ: &[&str] = &["rs", "md", "toml"];

/// This file, which contains all of them.
const EXCEPT: &[&str] = &["xtask/src/check/layout/words.rs"];

/// Reports every line with an avoided word.
pub(super) fn avoided(root: &Path, files: &[File]) -> Result<Vec<String>> {
    let mut breaches = Vec::new();
    for file in files.iter().filter(|file| is_read(&file.path)) {
        let path = root.join(&file.path);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        breaches.extend(lines_with_avoided(&file.path, &text));
    }
    Ok(breaches)
}

fn is_read(path: &str) -> bool {
    let ending = path.rsplit('.').next().unwrap_or_default();
    READ.contains(&ending) && !EXCEPT.contains(&path)
}

fn lines_with_avoided(path: &str, text: &str) -> Vec<String> {
    let mut breaches = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        for Avoided { word, instead, after } in AVOIDED {
            let is_wrong = |at: usize| !after.iter().any(|before| line[..at].ends_with(before));
            if line.match_indices(word).any(|(at, _)| is_wrong(at)) {
                breaches.push(format!("{path}:{number}: `{}`; write: {instead}", word.trim()));
            }
        }
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn avoided_words_are_found_by_line() {
        let text = "there is no table\nthis is no table\n10 labels a class\nALMOST_ONE\nMOST_ROWS\n";
        let found = lines_with_avoided("a.md", text);
        assert_eq!(
            found,
            [
                "a.md:2: `is no`; write: is not a",
                "a.md:3: `labels a class`; write: labels per class",
                "a.md:5: `MOST_`; write: MAX_, with the thing: MAX_CLASSES",
            ]
        );
    }

    #[test]
    fn texts_are_read_and_data_is_not() {
        assert!(is_read("crates/a/src/b.rs") && is_read("README.md") && !is_read("a.csv"));
        assert!(!is_read(EXCEPT[0]));
    }
}

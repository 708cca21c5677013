//! The invariants of a manifest, checked after writing and for untrusted input.

use std::collections::BTreeSet;

use calmix_formats::error::FormatProblem;
use calmix_io::class_names;
use calmix_io::safe_path::why_unsafe_here;

use super::{Encoding, Header, MAX_SAMPLE_BYTES, MAX_SUBSETS, NO_LABEL, VERSION};

impl Header {
    /// Checks the consistency of the header.
    ///
    /// # Errors
    /// If the format version differs, classes or subsets share a name or have none, a class name is too long, the subsets
    /// are not contiguous from the first sample to the last, images have no pixels or too many, or the fingerprint is
    /// malformed.
    pub fn check(&self) -> Result<(), FormatProblem> {
        check_version(self.version)?;
        if self.classes.len() >= NO_LABEL as usize {
            return Err(FormatProblem::Limit(format!("{} classes are too many", self.classes.len())));
        }
        if self.subsets.len() > MAX_SUBSETS {
            let problem = format!("{} subsets, expected at most {MAX_SUBSETS}", self.subsets.len());
            return Err(FormatProblem::Limit(problem));
        }
        class_names::check_all(&self.classes).map_err(FormatProblem::Limit)?;
        distinct("class", self.classes.iter())?;
        distinct("subset", self.subsets.iter().map(|subset| &subset.name))?;
        let mut next = 0_u64;
        for subset in &self.subsets {
            let end = subset.first.checked_add(subset.count);
            let Some(end) = end.filter(|&end| subset.first == next && end <= self.samples) else {
                let (name, first, count) = (&subset.name, subset.first, subset.count);
                let problem =
                    format!("subset `{name}` has {count} samples from {first}, expected from {next}");
                return Err(FormatProblem::Format(format!("{problem} and within {}", self.samples)));
            };
            next = end;
        }
        if next != self.samples {
            let problem = format!("{} samples, but the subsets have {next}", self.samples);
            return Err(FormatProblem::Format(problem));
        }
        if self.encoding.sample_bytes()?.is_some_and(|bytes| bytes == 0) {
            return Err(FormatProblem::Format("the images have no pixels, or the vectors no numbers".into()));
        }
        if let Encoding::Vectors { width, .. } = self.encoding
            && !self.sets.is_empty()
            && (self.sets.len() < 2
                || self.sets.contains(&0)
                || self.sets.iter().map(|&set| u64::from(set)).sum::<u64>() != u64::from(width))
        {
            let problem = format!("vectors of {width} numbers do not have the sets {:?}", self.sets);
            return Err(FormatProblem::Format(problem));
        }
        let starts = if matches!(self.encoding, Encoding::Vectors { .. }) { self.parts as usize } else { 0 };
        if self.starts.len() != starts {
            let problem = format!("{} starts of vectors, expected {starts}", self.starts.len());
            return Err(FormatProblem::Format(problem));
        }
        if let Some(shrunk) = self.shrunk
            && (shrunk.side == 0 || shrunk.count == 0 || shrunk.count > self.samples)
        {
            let problem =
                format!("{} of {} images shrunk to {} pixels", shrunk.count, self.samples, shrunk.side);
            return Err(FormatProblem::Format(problem));
        }
        let has_table = !self.tables.groups.is_empty();
        let is_plausible = self.groups.is_none_or(|groups| groups > 0 && u64::from(groups) <= self.samples);
        if has_table != self.groups.is_some() || !is_plausible {
            let groups = self.groups.map_or_else(|| "no".to_owned(), |groups| groups.to_string());
            let problem = format!("{groups} groups of {} samples, and another table of them", self.samples);
            return Err(FormatProblem::Format(problem));
        }
        let digit = |digit: u8| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit);
        if self.fingerprint.len() != 64 || !self.fingerprint.bytes().all(digit) {
            return Err(FormatProblem::Format("the fingerprint is not 64 hexadecimal digits".into()));
        }
        Ok(())
    }
}

/// Refuses tables in another format version.
pub(crate) fn check_version(version: u32) -> Result<(), FormatProblem> {
    if version == VERSION {
        return Ok(());
    }
    let problem = format!(
        "another version of calmix wrote it in format {version}; this version reads format {VERSION}"
    );
    Err(FormatProblem::Format(problem))
}

impl Encoding {
    /// Returns the number of bytes per sample; `None` if it varies.
    ///
    /// # Errors
    /// If that is more than a sample may have.
    pub fn sample_bytes(self) -> Result<Option<u32>, FormatProblem> {
        let bytes = match self {
            Self::File => return Ok(None),
            Self::Raw { width, height, layout } => layout.bytes(width, height),
            Self::Vectors { width, views, element_type } => {
                (u64::from(width) * u64::from(views)).checked_mul(element_type.bytes() as u64)
            }
        };
        let bytes =
            bytes.and_then(|bytes| u32::try_from(bytes).ok()).filter(|&bytes| bytes <= MAX_SAMPLE_BYTES);
        match (bytes, self) {
            (Some(bytes), _) => Ok(Some(bytes)),
            (None, Self::Raw { width, height, .. }) => {
                Err(FormatProblem::Limit(format!("images of {width}×{height} pixels are too large")))
            }
            (None, _) => Err(FormatProblem::Limit("the vectors are too long".into())),
        }
    }
}

/// Checks that `path` is valid for a part: relative, with `/`, below its root on every system, and a file here.
///
/// # Errors
/// If it is not, with the reason.
pub fn check_part_path(path: &str) -> Result<(), FormatProblem> {
    match why_unsafe_here(path) {
        Some(why) => Err(FormatProblem::Format(format!("the path {:?} {why}", shortened(path)))),
        None => Ok(()),
    }
}

fn distinct<'a>(what: &str, names: impl Iterator<Item = &'a String>) -> Result<(), FormatProblem> {
    let mut seen = BTreeSet::new();
    for name in names {
        if name.is_empty() {
            return Err(FormatProblem::Format(format!("a {what} without a name")));
        }
        if !seen.insert(name) {
            return Err(FormatProblem::Format(format!("the {what} `{}` occurs twice", shortened(name))));
        }
    }
    Ok(())
}

fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use calmix_io::safe_path::MAX_PATH_BYTES;

    #[test]
    fn paths_stay_below_their_root() {
        for path in ["a.bin", "train/cat/0 1.jpg", "..a/b..", "ünïcode/…"] {
            assert!(check_part_path(path).is_ok(), "{path}");
        }
        let long = "x".repeat(MAX_PATH_BYTES + 1);
        for path in ["", "/etc/passwd", "..", "../a", "a/../b", "a/..", "./a", "a//b", "a/", "C:a", "c:/a"]
            .into_iter()
            .chain(["a\\b", "\\\\host\\a", "a\0b", long.as_str()])
        {
            assert!(check_part_path(path).is_err(), "{path:?}");
        }
    }
}

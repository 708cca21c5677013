//! JPEGs of all kinds and many sizes against Pillow: decoded to the same pixels, or refused, never something else.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use calmix_formats::decode::{DecodeLimits, DecodeProblem, decode, size};
use calmix_testkit::python::interpreter;
use calmix_testkit::tier;
use serde::Deserialize;

#[derive(Deserialize)]
struct Kinds {
    has_jpegtran: bool,
    files: Vec<JpegFile>,
}

#[derive(Deserialize)]
struct JpegFile {
    name: String,
    kind: String,
    width: u32,
    height: u32,
}

/// What became of the files of a kind.
#[derive(Default)]
struct Outcome {
    files: usize,
    refused: usize,
    largest: u8,
    mean: f64,
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// An interpreter with Pillow and NumPy, both of which TensorBoard needs.
fn python() -> PathBuf {
    interpreter("tensorboard", "CALMIX_TENSORBOARD_PYTHON")
}

/// Whether a kind is one of those that zune-jpeg decodes wrong. libjpeg-turbo decodes all.
fn is_refused(kind: &str) -> bool {
    let is_split = kind.contains("separate") || kind.contains("apart");
    let is_subsampled = !["444", "cmyk", "rgb"].iter().any(|full| kind.starts_with(full));
    let wrong = is_split && (is_subsampled || kind.contains("restart")) || kind.starts_with("finer-chroma");
    wrong && cfg!(not(feature = "turbo"))
}

#[test]
fn every_kind_is_decoded_as_by_pillow_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let output =
        Command::new(python()).arg(golden().join("jpeg_kinds.py")).arg(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let kinds: Kinds = serde_json::from_slice(&fs::read(folder.path().join("kinds.json")).unwrap()).unwrap();
    let mut outcomes: BTreeMap<&str, Outcome> = BTreeMap::new();
    for JpegFile { name, kind, width, height } in &kinds.files {
        let bytes = fs::read(folder.path().join(format!("{name}.jpg"))).unwrap();
        let expected = fs::read(folder.path().join(format!("{name}.rgb"))).unwrap();
        let outcome = outcomes.entry(kind).or_default();
        outcome.files += 1;
        match decode(&bytes, &DecodeLimits::default()) {
            Ok(image) => {
                assert_eq!((image.width(), image.height()), (*width, *height), "{name}");
                let differences = image.pixels().iter().zip(&expected).map(|(a, b)| a.abs_diff(*b));
                let mean = differences.clone().map(f64::from).sum::<f64>() / expected.len() as f64;
                outcome.largest = outcome.largest.max(differences.max().unwrap());
                outcome.mean = outcome.mean.max(mean);
            }
            Err(DecodeProblem::Scans(_) | DecodeProblem::Variant(_)) => {
                outcome.refused += 1;
            }
            Err(error) => panic!("{name}: {error}"),
        }
    }
    for (kind, Outcome { files, refused, largest, mean }) in &outcomes {
        println!(
            "{kind}: {files} files, {refused} refused, differences up to {largest}, mean up to {mean:.3}"
        );
    }
    if !kinds.has_jpegtran {
        tier::skipped(
            "the kinds that only cjpeg and jpegtran write: they are not installed (Debian: libjpeg-turbo-progs)",
        );
    }
    // Measured: upsampling of chroma rounds in other places, up to 9 levels at edges; the mean is that of 8×8 pixels.
    let wrong: Vec<&&str> = outcomes
        .iter()
        .filter(|(kind, outcome)| {
            let refused = if is_refused(kind) { outcome.files } else { 0 };
            outcome.refused != refused || outcome.largest > 9 || outcome.mean > 0.6
        })
        .map(|(kind, _)| kind)
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn jpeg_in_separate_scans_is_refused_with_a_hint() {
    let limits = DecodeLimits::default();
    for name in ["420-separate", "422-last-apart", "444-separate-restart", "finer-chroma"] {
        let bytes = fs::read(golden().join(format!("jpeg/{name}.jpg"))).unwrap();
        if cfg!(feature = "turbo") {
            assert!(decode(&bytes, &limits).is_ok(), "{name}");
            continue;
        }
        let problem = decode(&bytes, &limits).map(|_| ()).expect_err(name);
        let of_header = size(&bytes, &limits).expect_err(name);
        assert_eq!(of_header.to_string(), problem.to_string(), "{name}: seen from the header alone");
        match (name, problem) {
            ("finer-chroma", DecodeProblem::Variant(problem)) => {
                assert!(problem.contains("more chroma"), "{problem}");
            }
            (_, problem) => {
                let scans = if name == "422-last-apart" { 2 } else { 3 };
                assert_eq!(problem, DecodeProblem::Scans(scans), "{name}");
                assert!(problem.hint().contains("jpegtran -optimize"), "{}", problem.hint());
            }
        }
    }
}

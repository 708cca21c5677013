//! WebDataset: tar shards in which the members of a sample are adjacent.
//!
//! A member's name up to the first dot of its last part is its key; members of one key in a row are one sample:
//! an image (`.jpg`, `.jpeg`, `.png`, `.webp`) and its class, as a number in `.cls` or as `label` or `cls` in
//! `.json`. Other members are skipped, pickles among them; so are names without an ending, hidden ones, and
//! the format's own `__notes__`, as in the package webdataset.
//!
//! Samples stay in place: a part is a shard, a record an offset into it. This gives random access to a format designed
//! for streaming, without unpacking.
//!
//! All `*.tar` below the root are shards, by name. A shard belongs to the split that its folder, or a word of its
//! name between `-`, `_` and `.`, names (`train`, `val`, `test`, `unlabelled` and their variants), else to
//! `train`. Keys must be unique within a shard; between shards they are not compared.

mod sample;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use calmix_io::safe_path;

use super::image_files::check_image;
use super::layout::{SPLITS, UNLABELLED, split};
use super::listing::walk;
use super::{Check, Inspection};
use crate::error::{DataError, DataProblem};
use crate::manifest::{Encoding, ManifestBuilder};
use crate::prepare::Prepared;
use sample::{Label, Sample, TarSamples};

/// The largest number of classes; a label beyond it is taken for a mistake.
const MOST_CLASSES: u64 = 1 << 20;

/// With at most this many classes, labels may be sparse: a subset of ImageNet under its original numbers.
const FEW_CLASSES: u64 = 1_000;

/// How shards are read.
#[derive(Debug, Clone, Default)]
pub struct WebdatasetOptions {
    /// How images are checked; by default only by their header, because shards usually hold many images.
    pub inspection: Inspection,
    /// The classes in the order of their numbers; `None` for as many as occur, named by their numbers.
    pub classes: Option<Vec<String>>,
    /// Whether an image without a class is an unlabelled one; otherwise it is an error.
    pub unlabelled: bool,
}

struct TarShard {
    subset: &'static str,
    name: String,
    path: PathBuf,
}

/// Prepares the shards below `root` and writes the dataset to `target`.
///
/// Without `classes` the shards are read twice: the first time for their labels only.
///
/// # Errors
/// If a shard is not a sound archive, members of a sample are missing, doubled or contradict each other, none of the
/// images can be read, or `target` cannot be written.
pub fn prepare(root: &Path, target: &Path, options: &WebdatasetOptions) -> Result<Prepared, DataError> {
    let mut left_out = Vec::new();
    let shards = find_shards(root, &mut left_out)?;
    let classes = match &options.classes {
        Some(classes) => classes.clone(),
        None => count_classes(&shards)?,
    };
    let mut builder = ManifestBuilder::new(target, classes.clone(), Encoding::File)?;
    builder.left_out(left_out);
    let check = options.inspection.check.unwrap_or(Check::Header);
    let limits = &options.inspection.limits;
    let (mut subset, mut added) = ("", 0_u64);
    for shard in &shards {
        if subset != shard.subset {
            builder.subset(shard.subset);
            subset = shard.subset;
        }
        let mut samples = open(shard)?;
        let mut part = None;
        while let Some(Sample { key, image, label }) = samples.next()? {
            let at = |error: DataError| error.at(key.clone());
            let Some(image) = image else {
                let problem = DataProblem::Content("a class without an image".into());
                return Err(at(DataError::new(&shard.path, problem)).hint("create the shard again"));
            };
            let label =
                number(label, &classes).map_err(|problem| at(DataError::new(&shard.path, problem)))?;
            if label.is_none() && !options.unlabelled && subset != UNLABELLED {
                let problem = DataProblem::Content("an image without a class".into());
                return Err(at(DataError::new(&shard.path, problem)).hint(
                    "add a .cls member, or set dataset.unlabelled=true to train on it without a label",
                ));
            }
            if image.length > limits.bytes {
                let problem =
                    format!("the image has {} bytes, expected at most {}", image.length, limits.bytes);
                builder.unreadable(at(DataError::new(&shard.path, DataProblem::Limit(problem))));
                continue;
            }
            let bytes = samples.read(&image)?;
            if let Err(error) = check_image(&bytes, limits, check) {
                builder.unreadable(at(error.in_file(&shard.path)));
                continue;
            }
            let part = match part {
                Some(part) => part,
                None => *part.insert(builder.part(&shard.name, samples.length()?)?),
            };
            builder.sample(part, image.offset, &bytes, label)?;
            added += 1;
        }
    }
    if added == 0 {
        let problem = DataProblem::Content("none of the images in its shards could be read".into());
        let first = builder.first_unreadable().map(|first| format!("the first error is: {first}"));
        return Err(DataError::new(root, problem)
            .hint(first.unwrap_or_else(|| "names of images must end in .jpg, .jpeg, .png or .webp".into())));
    }
    builder.finish()
}

fn open(shard: &TarShard) -> Result<TarSamples<BufReader<File>>, DataError> {
    let file = File::open(&shard.path).map_err(|error| DataError::new(&shard.path, error))?;
    TarSamples::new(BufReader::new(file), &shard.path)
}

/// The number of a label among the classes.
fn number(label: Option<Label>, classes: &[String]) -> Result<Option<u32>, DataProblem> {
    let stray = |label: String| DataProblem::Content(format!("the label {label} is not a class"));
    match label {
        None => Ok(None),
        Some(Label::Number(label)) if label < classes.len() as u64 => Ok(Some(label as u32)),
        Some(Label::Number(label)) => Err(stray(label.to_string())),
        Some(Label::Name(label)) => match classes.iter().position(|class| *class == label) {
            Some(number) => Ok(Some(number as u32)),
            None => Err(stray(format!("{label:?}"))),
        },
    }
}

fn count_classes(shards: &[TarShard]) -> Result<Vec<String>, DataError> {
    let mut seen = BTreeSet::new();
    // The highest label, and where it is.
    let mut highest: Option<(u64, &TarShard, String)> = None;
    for shard in shards {
        let mut samples = open(shard)?;
        while let Some(sample) = samples.next()? {
            let error = |problem| DataError::new(&shard.path, problem).at(sample.key.clone());
            match sample.label {
                Some(Label::Number(label)) if label >= MOST_CLASSES => {
                    return Err(error(DataProblem::Limit(format!(
                        "the label {label}, expected less than {MOST_CLASSES}"
                    ))));
                }
                Some(Label::Number(label)) => {
                    seen.insert(label);
                    if highest.as_ref().is_none_or(|(other, ..)| *other < label) {
                        highest = Some((label, shard, sample.key.clone()));
                    }
                }
                Some(Label::Name(label)) => {
                    let problem = DataProblem::Content(format!("the label {label:?} is not a number"));
                    return Err(error(problem).hint("write the number of the class into the .cls member"));
                }
                None => {}
            }
        }
    }
    let Some((label, shard, key)) = highest else { return Ok(Vec::new()) };
    let (classes, used) = (label + 1, seen.len() as u64);
    // Memory grows with classes times samples, so one wrong label could exhaust it.
    if classes > FEW_CLASSES && used < classes / 10 {
        let problem = format!("the label is {label}, but only {used} different labels occur");
        let hint = "correct the label, or number the classes from 0 without gaps";
        return Err(DataError::new(&shard.path, DataProblem::Limit(problem)).at(key).hint(hint));
    }
    Ok((0..classes).map(|class| class.to_string()).collect())
}

fn find_shards(root: &Path, left_out: &mut Vec<DataError>) -> Result<Vec<TarShard>, DataError> {
    let mut shards = Vec::new();
    walk(root, "", left_out, &mut |name| {
        let path = root.join(name);
        let lower = name.to_ascii_lowercase();
        if [".tar.gz", ".tgz", ".tar.zst", ".tar.xz", ".tar.bz2"].iter().any(|end| lower.ends_with(end)) {
            let problem = DataProblem::Content("a compressed shard does not allow random access".into());
            return Err(DataError::new(path, problem).hint("decompress it to .tar; images hardly compress"));
        }
        if Path::new(&lower).extension().is_some_and(|ending| ending == "tar") {
            let mut words = name.split(['/', '-', '_', '.']);
            let subset = words.find_map(split).unwrap_or("train");
            safe_path::check(root, &path)?;
            shards.push(TarShard { subset, name: name.to_owned(), path });
        }
        Ok(())
    })?;
    if shards.is_empty() {
        let problem = DataProblem::Content("there is no .tar file in it".into());
        return Err(DataError::new(root, problem).hint("pass the folder that contains the shards"));
    }
    shards.sort_by_key(|shard| SPLITS.iter().position(|(name, _)| *name == shard.subset));
    Ok(shards)
}

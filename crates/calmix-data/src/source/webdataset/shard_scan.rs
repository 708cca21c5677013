//! The scan of a shard: everything that the table needs from it, found in one pass and independent of other shards.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use calmix_cloud::RemoteFolder;
use calmix_formats::error::FormatProblem;
use calmix_formats::labels::text::MAX_CLASSES;

use super::sample::{Label, Sample, TarSamples};
use crate::error::DataError;
use crate::manifest::SampleDigest;
use crate::source::image_files::check_image;
use crate::source::layout::UNLABELLED;
use crate::source::{Check, Inspection};

/// Options for tar shards.
#[derive(Debug, Clone, Default)]
pub struct WebdatasetOptions {
    /// The checks of images; by default only of the header, because shards usually hold many images.
    pub inspection: Inspection,
    /// The classes in the order of their numbers; `None` for as many as occur, named by number.
    pub classes: Option<Vec<String>>,
    /// Whether an image without a class is an unlabelled one; otherwise it is an error.
    pub unlabelled: bool,
}

/// A shard of the source.
#[derive(Debug)]
pub(super) struct TarShard {
    pub(super) subset: &'static str,
    pub(super) name: String,
    /// Its path or URL.
    pub(super) path: PathBuf,
    /// The remote folder of the shard; `None` if it is a local file.
    pub(super) remote: Option<Arc<RemoteFolder>>,
}

/// A sample for the table.
#[derive(Debug)]
pub(super) struct ScannedSample {
    /// The offset of its image in the shard.
    pub(super) offset: u64,
    pub(super) digest: SampleDigest,
    pub(super) label: Option<u32>,
}

/// The content of a shard.
#[derive(Debug, Default)]
pub(super) struct ShardScan {
    /// The length of the shard, in bytes.
    pub(super) length: u64,
    pub(super) samples: Vec<ScannedSample>,
    /// Unreadable images, which are left out.
    pub(super) unreadable: Vec<DataError>,
    pub(super) labels: FoundLabels,
}

/// The labels of a shard, including those of unreadable images.
#[derive(Debug, Default)]
pub(super) struct FoundLabels {
    pub(super) numbers: BTreeSet<u32>,
    /// The key of the first sample with the highest label.
    pub(super) highest_key: String,
}

impl FoundLabels {
    fn add(&mut self, label: u32, key: &str) {
        if self.numbers.last().is_none_or(|&highest| highest < label) {
            key.clone_into(&mut self.highest_key);
        }
        self.numbers.insert(label);
    }
}

impl TarShard {
    /// Returns the length, and the modification time or the version that a store reports. `None` if the shard cannot be
    /// found.
    pub(super) fn version(&self) -> Option<(u64, String)> {
        if let Some(remote) = &self.remote {
            let object = remote.object(&self.name)?;
            return Some((object.size, object.version.clone()));
        }
        let found = self.path.metadata().ok()?;
        let changed = found.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some((found.len(), changed.as_nanos().to_string()))
    }

    fn open(&self) -> Result<File, DataError> {
        match &self.remote {
            Some(remote) => Ok(remote.fetch(&self.name)?),
            None => File::open(&self.path).map_err(|error| DataError::new(&self.path, error)),
        }
    }

    /// Reads the shard, and calls `count` for each sample.
    ///
    /// # Errors
    /// If it is not a sound archive, or members of a sample are missing, doubled or contradict each other.
    pub(super) fn scan(&self, options: &WebdatasetOptions, count: &dyn Fn()) -> Result<ShardScan, DataError> {
        let check = options.inspection.check.unwrap_or(Check::Header);
        let limits = &options.inspection.limits;
        // Unbuffered: a header has 512 bytes, and skipping to the next one would discard the buffer.
        let file = self.open()?;
        let length = file.metadata().map_err(|error| DataError::new(&self.path, error))?.len();
        let mut samples = TarSamples::new(file, &self.path)?;
        let mut scan = ShardScan { length, ..ShardScan::default() };
        while let Some(Sample { key, image, label }) = samples.next()? {
            count();
            let at = |error: DataError| error.at(key.clone());
            let wrong = |problem: FormatProblem| at(DataError::new(&self.path, problem));
            let label = self.number(label, options.classes.as_deref()).map_err(at)?;
            if let Some(label) = label {
                scan.labels.add(label, &key);
            }
            let Some(image) = image else {
                let problem = FormatProblem::Content("a class without an image".into());
                return Err(wrong(problem).hint("create the shard again"));
            };
            if label.is_none() && !options.unlabelled && self.subset != UNLABELLED {
                let problem = FormatProblem::Content("an image without a class".into());
                return Err(wrong(problem).hint(
                    "add a .cls member, or set dataset.unlabelled=true to train on it without a label",
                ));
            }
            if image.length > limits.bytes {
                let problem =
                    format!("the image has {} bytes, expected at most {}", image.length, limits.bytes);
                scan.unreadable.push(wrong(FormatProblem::Limit(problem)));
                continue;
            }
            let bytes = samples.read(&image)?;
            if let Err(error) = check_image(&bytes, limits, check) {
                scan.unreadable.push(at(DataError::from(error).in_file(&self.path)));
                continue;
            }
            let digest = SampleDigest::new(&bytes);
            scan.samples.push(ScannedSample { offset: image.offset, digest, label });
        }
        Ok(scan)
    }

    /// Returns the number of a label: its index in `classes`, or the label itself if there are none.
    fn number(&self, label: Option<Label>, classes: Option<&[String]>) -> Result<Option<u32>, DataError> {
        let error = |problem: FormatProblem| DataError::new(&self.path, problem);
        let stray =
            |label: String| error(FormatProblem::Content(format!("the label {label} is not a class")));
        match (label, classes) {
            (None, _) => Ok(None),
            (Some(Label::Number(label)), None) if label >= MAX_CLASSES => Err(error(FormatProblem::Limit(
                format!("the label {label}, expected less than {MAX_CLASSES}"),
            ))),
            (Some(Label::Number(label)), None) => Ok(Some(label as u32)),
            (Some(Label::Name(label)), None) => {
                let problem = FormatProblem::Content(format!("the label {label:?} is not a number"));
                Err(error(problem).hint("write the number of the class into the .cls member"))
            }
            (Some(Label::Number(label)), Some(classes)) if label < classes.len() as u64 => {
                Ok(Some(label as u32))
            }
            (Some(Label::Number(label)), Some(_)) => Err(stray(label.to_string())),
            (Some(Label::Name(label)), Some(classes)) => {
                let number = classes.iter().position(|class| *class == label);
                number.map(|number| Some(number as u32)).ok_or_else(|| stray(format!("{label:?}")))
            }
        }
    }
}

//! From files as they are published to a [prepared dataset](crate::manifest), with a summary of what was found.

mod duplicates;
mod findings;
mod labelled_groups;
mod prepare_table;
mod report;
mod source_stamp;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use calmix_cloud::CloudUrl;
use calmix_formats::error::FormatProblem;
use calmix_formats::source_dir::Count;
use calmix_formats::vectors::VectorOptions;
use calmix_io::atomic_file::rename_folder;
use calmix_io::scratch_folder::ScratchFolder;

pub use duplicates::copies_of;
pub use findings::Findings;
pub use prepare_table::prepare_table;
pub use report::{ClassCount, Report, SubsetReport};
pub use source_stamp::{SourceStamp, Stale};

use crate::dataset::Dataset;
use crate::error::DataError;
use crate::manifest::{PREPARING, Prepared};
use crate::prepare_progress::PrepareProgress;
use crate::source::{
    Cifar100Labels, Inspection, SourceSpec, cifar, folder, idx, imagenet, labels_csv, parquet_images, stl10,
    svhn, vectors, webdataset, webvision,
};

/// Scans the files below `root` once, writes the prepared dataset and its summary to `target`, and returns the summary.
///
/// # Errors
/// If the files do not match `source`, or nothing can be written to `target`. Single images that cannot be
/// read are left out and listed in the summary instead.
pub fn prepare(source: &SourceSpec, root: &Path, target: &Path) -> Result<Report, DataError> {
    prepare_watched(source, root, target, None, Arc::default())
}

/// Prepares as [`prepare`] does, and counts the files read in `progress`. With a folder for `scans`, a preparation of shards
/// that was killed continues with those that it has not read.
///
/// # Errors
/// As [`prepare`].
pub fn prepare_watched(
    source: &SourceSpec,
    root: &Path,
    target: &Path,
    scans: Option<PathBuf>,
    progress: Arc<PrepareProgress>,
) -> Result<Report, DataError> {
    if target.exists() {
        let problem = FormatProblem::Content("this path already exists".into());
        return Err(DataError::new(target, problem).hint("choose another folder, or remove this one"));
    }
    if CloudUrl::is_in(root) && !matches!(source, SourceSpec::Webdataset { .. }) {
        let problem =
            FormatProblem::Content("only WebDataset's shards (.tar) are read from object storage".into());
        let hint = "pack the images into shards, or copy the dataset to a local folder";
        return Err(DataError::new(root, problem).hint(hint));
    }
    // Taken before the files are read, so that a change during the scan is noticed later.
    let stamp = SourceStamp::take(source, root)?;
    let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let scratch = ScratchFolder::new(parent, PREPARING)?;
    let made = scratch.path().join("prepared");
    let prepared = scan(source, root, &made, scans, progress)?;
    let mut report = Report::new(&Dataset::open(&made, root)?, prepared.unreadable)?;
    report.warnings.splice(0..0, prepared.warnings);
    findings::write_json(&made.join(Findings::FILE), &report)?;
    stamp.write(&made)?;
    rename_folder(&made, target).map_err(|error| DataError::new(target, error))?;
    Ok(report)
}

fn scan(
    source: &SourceSpec,
    root: &Path,
    target: &Path,
    scans: Option<PathBuf>,
    progress: Arc<PrepareProgress>,
) -> Result<Prepared, DataError> {
    let inspection = Inspection { progress: Some(progress), scans, ..Inspection::default() };
    let official = Count::Official;
    match source {
        SourceSpec::Cifar10 => cifar::prepare(root, target, cifar::Variant::Cifar10, official),
        SourceSpec::Cifar100 { labels } => {
            let variant = match labels {
                Cifar100Labels::Fine => cifar::Variant::Cifar100Fine,
                Cifar100Labels::Coarse => cifar::Variant::Cifar100Coarse,
            };
            cifar::prepare(root, target, variant, official)
        }
        SourceSpec::Idx { classes } => idx::prepare(root, target, *classes),
        SourceSpec::Svhn { extra } => svhn::prepare(root, target, *extra),
        SourceSpec::Stl10 => stl10::prepare(root, target, official),
        SourceSpec::Folder { layout, shrink, groups } => {
            let inspection = Inspection { shrink: *shrink, ..inspection };
            let options = folder::FolderOptions { inspection, layout: *layout, groups: *groups };
            folder::prepare(root, target, &options)
        }
        SourceSpec::LabelsCsv { unlisted, columns, shrink } => {
            let inspection = Inspection { shrink: *shrink, ..inspection };
            let options =
                labels_csv::LabelsCsvOptions { inspection, unlisted: *unlisted, columns: columns.clone() };
            labels_csv::prepare(root, target, &options)
        }
        SourceSpec::Webdataset { unlabelled } => {
            let options =
                webdataset::WebdatasetOptions { inspection, classes: None, unlabelled: *unlabelled };
            webdataset::prepare(root, target, &options)
        }
        SourceSpec::Parquet { columns } => {
            let options = parquet_images::ParquetOptions { inspection, columns: columns.clone() };
            parquet_images::prepare(root, target, &options)
        }
        SourceSpec::Imagenet => {
            let options = imagenet::ImagenetOptions { inspection, ..imagenet::ImagenetOptions::default() };
            imagenet::prepare(root, target, &options)
        }
        SourceSpec::Webvision => webvision::prepare(root, target, &inspection),
        SourceSpec::Vectors { labels, vector_column, columns } => {
            let options = VectorOptions { vector_column: vector_column.clone(), columns: columns.clone() };
            vectors::prepare(
                root,
                target,
                labels.as_deref().map(Path::new),
                &options,
                inspection.progress.as_deref(),
            )
        }
    }
}

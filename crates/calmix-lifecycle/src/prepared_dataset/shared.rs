//! A prepared dataset that several runs share: hard links to the same files, so that it takes disk space once.

use std::fs;
use std::path::{Path, PathBuf};

use calmix_data::dataset::Dataset;
use calmix_data::manifest::PREPARING;
use calmix_data::prepare::{SourceStamp, Stale};
use calmix_data::source::SourceSpec;
use calmix_io::atomic_file::rename_folder;
use calmix_io::scratch_folder::ScratchFolder;
use calmix_io::shown::shell_quoted;
use calmix_io::shown::shown;
use calmix_io::system;
use calmix_io::text::grouped;
use calmix_recipe::{Data, LayoutName, SourceName};

use crate::error::{LifecycleError, StartError};

/// Links the prepared dataset of an earlier run, or of `calmix prepare`, into the folder of a new run; returns where it was
/// found. `None` if none was prepared from exactly these files, or the file system has no hard links.
pub(super) fn share(spec: &SourceSpec, root: &Path, places: &[PathBuf], target: &Path) -> Option<PathBuf> {
    let candidates: Vec<PathBuf> = places.iter().flat_map(|place| prepared_in(place)).collect();
    if candidates.is_empty() {
        return None;
    }
    let now = SourceStamp::take(spec, root).ok()?;
    let is_same =
        |prepared: &PathBuf| SourceStamp::read(prepared).is_ok_and(|stamp| stamp.as_ref() == Some(&now));
    let run = target.parent()?;
    let found = candidates.into_iter().filter(|prepared| has_same_owner(prepared, run)).find(is_same)?;
    Dataset::open(&found, root).ok()?;
    link_all(&found, target)?;
    Some(found)
}

/// Refuses the prepared dataset that `--prepared` names if it does not match the files.
pub(super) fn check(
    prepared: &Path,
    dataset: &Dataset,
    data: &Data,
    root: &Path,
) -> Result<(), LifecycleError> {
    let Some(stamp) = SourceStamp::read(prepared)? else { return Ok(()) };
    let Some(stale) = stamp.stale(dataset, &data.source_spec(), root)? else { return Ok(()) };
    let root_shown = shown(root.display());
    let problem = match stale {
        Stale::OtherFolder { prepared_from } => {
            format!("prepared from another dataset: {}, not {root_shown}", shown(prepared_from))
        }
        Stale::OtherSource { prepared_as } => {
            format!("prepared as {}, but dataset.source is {}", source_name(&prepared_as), data.source)
        }
        Stale::OtherCount { before, now } => {
            let [before, now] = [before, now].map(grouped);
            format!("stale: {root_shown} has {now} files, but had {before} when it was prepared")
        }
        _ => format!("stale: files in {root_shown} have changed since it was prepared"),
    };
    let options = reading_options(data);
    Err(StartError::StalePrepared {
        prepared: prepared.to_owned(),
        folder: root.to_owned(),
        options,
        problem,
    }
    .into())
}

/// Formats the options that make `calmix prepare` read the dataset as the recipe does, each after a space.
fn reading_options(data: &Data) -> String {
    let columns = [("--path-column", &data.path_column), ("--label-column", &data.label_column)];
    let vectors = [("--labels", &data.labels), ("--vector-column", &data.vector_column)];
    let layout = match data.layout {
        LayoutName::Auto => String::new(),
        layout => layout.to_string(),
    };
    let groups = if data.groups == 0 { String::new() } else { data.groups.to_string() };
    let given = match data.source {
        SourceName::Folder => vec![("--layout", &layout), ("--groups", &groups)],
        SourceName::LabelsCsv | SourceName::Parquet => columns.to_vec(),
        SourceName::Vectors => [vectors, columns].concat(),
        _ => Vec::new(),
    };
    let option = |(option, value): (&str, &String)| {
        (!value.is_empty()).then(|| format!(" {option} {}", shell_quoted(Path::new(value))))
    };
    let mut options: String = given.into_iter().filter_map(option).collect();
    for more in &data.more_features {
        options.extend([" --more-features ", &shell_quoted(Path::new(more))]);
    }
    options
}

/// Returns the name of a source in recipes.
fn source_name(spec: &SourceSpec) -> String {
    let is_it = |source: &&SourceName| Data { source: **source, ..Data::default() }.source_spec() == *spec;
    let name = SourceName::ALL.iter().find(is_it);
    name.map_or_else(|| "another source or with other settings".to_owned(), |source| source.word().to_owned())
}

/// Lists the prepared datasets at a place: the folder itself if it is one, then those of the runs in it, by name.
fn prepared_in(place: &Path) -> Vec<PathBuf> {
    let has_stamp = |folder: &PathBuf| folder.join(SourceStamp::FILE).is_file();
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path().join("prepared")).collect();
    found.sort();
    found.insert(0, place.to_owned());
    found.retain(has_stamp);
    found
}

/// Returns whether both folders have the same owner. A prepared dataset decides labels, so one of another user must not be used
/// silently.
fn has_same_owner(prepared: &Path, run: &Path) -> bool {
    let owner = |path: &Path| {
        fs::symlink_metadata(path).ok().filter(fs::Metadata::is_dir).map(|found| system::owner(&found))
    };
    owner(prepared).is_some() && owner(prepared) == owner(run)
}

/// Links all files or none. The links are made in a scratch folder first, which the next run removes if this one is killed.
fn link_all(from: &Path, to: &Path) -> Option<()> {
    let scratch = ScratchFolder::new(to.parent()?, PREPARING).ok()?;
    let made = scratch.path().join("prepared");
    fs::create_dir(&made).ok()?;
    for entry in fs::read_dir(from).ok()? {
        let entry = entry.ok()?;
        // Do not link a symbolic link: the copy would lead elsewhere.
        if !entry.file_type().ok()?.is_file() {
            return None;
        }
        let linked = made.join(entry.file_name());
        fs::hard_link(entry.path(), &linked).ok()?;
        // Check the file that was linked: its name may have meant another file when the folder was listed.
        let found = fs::symlink_metadata(&linked).ok().filter(fs::Metadata::is_file)?;
        if system::owner(&found) != system::owner(&fs::symlink_metadata(&made).ok()?) {
            return None;
        }
    }
    rename_folder(&made, to).ok()
}

//! A prepared table that several runs share: hard links to the same files, so that each run has it and it takes disk space
//! once.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use calmix_data::dataset::Dataset;
use calmix_data::manifest::PREPARING;
use calmix_data::prepare::{SourceStamp, Stale};
use calmix_data::source::SourceSpec;
use calmix_io::atomic_file::rename_folder;
use calmix_io::counted::grouped;
use calmix_io::scratch_folder::ScratchFolder;
use calmix_io::shell_quoted::shell_quoted;
use calmix_io::shown::shown;
use calmix_recipe::{Data, LayoutName, SourceName};

use crate::error::LifecycleError;
use crate::table::table_error::TableError;

/// Links the table of an earlier run, or of `calmix prepare`, into the folder of a new run; returns its folder. Nothing is
/// linked if there is none of exactly these files, or the file system has no hard links.
pub(super) fn share(spec: &SourceSpec, root: &Path, places: &[PathBuf], target: &Path) -> Option<PathBuf> {
    let candidates: Vec<PathBuf> = places.iter().flat_map(|place| tables_in(place)).collect();
    if candidates.is_empty() {
        return None;
    }
    let now = SourceStamp::take(spec, root).ok()?;
    let is_same = |table: &PathBuf| SourceStamp::read(table).is_ok_and(|stamp| stamp.as_ref() == Some(&now));
    let run = target.parent()?;
    let found = candidates.into_iter().filter(|table| has_same_owner(table, run)).find(is_same)?;
    Dataset::open(&found, root).ok()?;
    link_all(&found, target)?;
    Some(found)
}

/// Refuses a table that `--prepared` names, if it does not match the files.
pub(super) fn check(table: &Path, dataset: &Dataset, data: &Data, root: &Path) -> Result<(), LifecycleError> {
    let Some(stamp) = SourceStamp::read(table)? else { return Ok(()) };
    let Some(stale) = stamp.stale(dataset, &data.source_spec(), root)? else { return Ok(()) };
    let root_shown = shown(root.display());
    let problem = match stale {
        Stale::OtherFolder { prepared_from } => {
            format!("prepared from another dataset: {}, not {root_shown}", shown(prepared_from))
        }
        Stale::OtherSource { prepared_as } => {
            format!("prepared as {}, but dataset.source is {}", word(&prepared_as), data.source)
        }
        Stale::OtherCount { before, now } => {
            let [before, now] = [before, now].map(grouped);
            format!("stale: {root_shown} has {now} files, but had {before} when it was prepared")
        }
        _ => format!("stale: files in {root_shown} have changed since it was prepared"),
    };
    let options = reading_options(data);
    Err(TableError::StaleTable { table: table.to_owned(), folder: root.to_owned(), options, problem }.into())
}

/// The options of `calmix prepare` that read the dataset as the recipe does, each after a space.
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
    given.into_iter().filter_map(option).collect()
}

/// The name in recipes of the source that a table was prepared from.
fn word(spec: &SourceSpec) -> String {
    let is_it = |source: &&SourceName| Data { source: **source, ..Data::default() }.source_spec() == *spec;
    let name = SourceName::ALL.iter().find(is_it);
    name.map_or_else(|| "another source or with other settings".to_owned(), |source| source.word().to_owned())
}

/// The folder itself if it is a table, and the tables of the runs in it, by name.
fn tables_in(place: &Path) -> Vec<PathBuf> {
    let has_stamp = |table: &PathBuf| table.join(SourceStamp::FILE).is_file();
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    let mut tables: Vec<PathBuf> = entries.map(|entry| entry.path().join("prepared")).collect();
    tables.sort();
    tables.insert(0, place.to_owned());
    tables.retain(has_stamp);
    tables
}

/// Whether a table and a run have the same owner. A table decides labels, so that of another user must not be used silently.
fn has_same_owner(table: &Path, run: &Path) -> bool {
    let owner =
        |path: &Path| fs::symlink_metadata(path).ok().filter(fs::Metadata::is_dir).map(|found| found.uid());
    owner(table).is_some() && owner(table) == owner(run)
}

/// Links all files or none: first under a scratch name, which is removed from a run that was killed.
fn link_all(from: &Path, to: &Path) -> Option<()> {
    let scratch = ScratchFolder::new(to.parent()?, PREPARING).ok()?;
    let made = scratch.path().join("prepared");
    fs::create_dir(&made).ok()?;
    for entry in fs::read_dir(from).ok()? {
        let entry = entry.ok()?;
        // A link would be linked as such, and lead elsewhere from there.
        if !entry.file_type().ok()?.is_file() {
            return None;
        }
        let linked = made.join(entry.file_name());
        fs::hard_link(entry.path(), &linked).ok()?;
        // Check what is linked now: the name may have meant another file when the folder was listed.
        let found = fs::symlink_metadata(&linked).ok().filter(fs::Metadata::is_file)?;
        if found.uid() != fs::symlink_metadata(&made).ok()?.uid() {
            return None;
        }
    }
    rename_folder(&made, to).ok()
}

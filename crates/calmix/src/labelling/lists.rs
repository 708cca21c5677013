//! The lists of labels of a dataset, and which of them names a sample.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use calmix_data::source::folder_lists::{FolderList, is_image, lists_of_folders};
use calmix_data::source::labels_csv::existing_lists;
use calmix_data::source::{FolderLayout, vectors};
use calmix_formats::error::{FormatError, FormatProblem};
use calmix_formats::labels::columns::LabelColumns;
use calmix_formats::labels::csv_table::{LabelTable, check_file, read_list};
use calmix_formats::labels::drawn::Drawn;
use calmix_formats::vectors::VectorOptions;
use calmix_io::confined_path::ConfinedPath;
use calmix_io::error::{FileError, FileProblem};
use calmix_io::lock::Lock;
use calmix_io::shown::shown;
use calmix_io::{atomic_file, safe_path};
use calmix_recipe::{SourceName, detect_source};

use super::label_file::{LabelFile, Listed};
use super::vector_rows::VectorRows;
use crate::error::CliError;
use crate::output::format::shell_quoted;

/// The name of a new list of images.
const NEW_LIST: &str = "labels.csv";

/// The options for reading a dataset and its lists.
#[derive(Debug)]
pub(crate) struct ListOptions {
    pub(crate) layout: FolderLayout,
    /// The level of folders that names the group of an image, 0 for none.
    pub(crate) groups: u32,
    pub(crate) columns: LabelColumns,
    pub(crate) vector_column: Option<String>,
}

/// The lists of a dataset: one, or one in each split.
#[derive(Debug)]
pub(crate) struct Lists {
    samples: Samples,
    columns: LabelColumns,
    /// Whether the lists are new, and say what class folders say.
    has_class_folders: bool,
    /// The lists, each with its folder.
    pub(crate) per_folder: Vec<ListInFolder>,
}

/// What the lists name.
#[derive(Debug)]
enum Samples {
    /// The files below a folder.
    Images(PathBuf),
    Vectors(VectorRows),
}

/// A list and its folder.
#[derive(Debug)]
pub(crate) struct ListInFolder {
    /// The folder below the root, to which its names are relative; empty for the root, and for vectors.
    folder: String,
    pub(crate) file: LabelFile,
}

/// The place of a sample.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) list: usize,
    /// Its name in the list.
    pub(crate) key: String,
}

/// Labels by how they were drawn.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LabelCounts {
    pub(crate) all: u64,
    pub(crate) given: u64,
    pub(crate) random: u64,
    pub(crate) by_class: u64,
    pub(crate) chosen: u64,
    pub(crate) audit: u64,
    pub(crate) certified: u64,
    /// Rows without a label that were drawn at random and skipped.
    pub(crate) skipped: u64,
}

impl Lists {
    /// Opens the lists of a folder of images. If there are none, makes those that say what its folders say.
    ///
    /// # Errors
    /// If the folder does not hold images, or its lists are invalid.
    pub(crate) fn of_images(root: &Path, options: &ListOptions) -> Result<Self> {
        let columns = options.columns.clone();
        let names_columns = columns.path.is_some() || columns.label.is_some();
        let mut lists = Vec::new();
        let mut has_class_folders = false;
        match detect_source(root, names_columns) {
            SourceName::LabelsCsv => {
                for place in existing_lists(root)? {
                    let path = place.path(root);
                    let text = read_list(root, &path)?;
                    let checked = LabelTable::parse(root, &place.folder, &path, &text, &columns);
                    let parsed = LabelFile::parse(&path, &text, Listed::Images, &columns);
                    // The reader of datasets refuses a list without rows, but this one will have some.
                    if !parsed.as_ref().is_ok_and(|file| file.len() == 0) {
                        checked?;
                    }
                    let file = parsed?;
                    lists.push(ListInFolder { folder: place.folder, file });
                }
            }
            SourceName::Folder => {
                if let Some(place) = existing_lists(root)?.first() {
                    if detect_source(root, names_columns) == SourceName::LabelsCsv {
                        return Err(changed(&place.path(root)).into());
                    }
                    // A second list beside it would make the folder ambiguous.
                    let problem = "this list is not read, because it has no column that names the image, or none of labels";
                    let hint = "rename it, or name its columns with --path-column and --label-column";
                    return Err(FormatError::content(place.path(root), problem).hint(hint).into());
                }
                for list in lists_of_folders(root, options.layout, options.groups)? {
                    has_class_folders |= list.rows.iter().any(|row| row.class.is_some());
                    lists.push(new_list(root, &list));
                }
            }
            source => {
                let message = format!(
                    "{}: has the format `{source}`, and labels can be added to a folder of images or a file of vectors",
                    shown(root.display())
                );
                return Err(CliError::invalid(message).into());
            }
        }
        Ok(Self { samples: Samples::Images(root.to_owned()), columns, has_class_folders, per_folder: lists })
    }

    /// Opens the list `labels` of vectors. If it does not exist, makes one with the labels that the vectors' own file has.
    ///
    /// # Errors
    /// If the vectors cannot be read, or the list is invalid.
    pub(crate) fn of_vectors(data: &Path, labels: &Path, options: &ListOptions) -> Result<Self> {
        if labels.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npy")) {
            let message = format!("{}: an .npy cannot hold names, draws and dates", shown(labels.display()));
            let hint = "name a CSV with --labels, such as --labels labels.csv";
            return Err(CliError::invalid(message).hint(hint).into());
        }
        let columns = options.columns.clone();
        let has_list = labels.exists();
        let vector_options =
            VectorOptions { vector_column: options.vector_column.clone(), columns: columns.clone() };
        let rows = VectorRows::read(data, &vector_options, has_list)?;
        let file = if has_list {
            let folder = labels.parent().filter(|folder| !folder.as_os_str().is_empty());
            // A link is followed: the user named this very file.
            let target = fs::canonicalize(labels).map_err(|error| FormatError::new(labels, error))?;
            let text = read_list(target.parent().or(folder).unwrap_or(Path::new(".")), &target)?;
            vectors::check_list(labels, &text, &columns, rows.count)?;
            LabelFile::parse(labels, &text, Listed::Vectors, &columns)?
        } else {
            let mut file = LabelFile::new(labels, Listed::Vectors, false);
            for (name, label) in &rows.own_labels {
                file.push(name, label, "");
            }
            file
        };
        let lists = vec![ListInFolder { folder: String::new(), file }];
        Ok(Self { samples: Samples::Vectors(rows), columns, has_class_folders: false, per_folder: lists })
    }

    /// Refuses an answer that the readers of a list would not take for a label.
    pub(crate) fn check_label(&self, label: &str) -> Result<(), FormatProblem> {
        if label == "-1" && matches!(self.samples, Samples::Vectors(_)) {
            let problem =
                "the label -1 stands for an unlabelled vector; leave it empty if you did not answer";
            return Err(FormatProblem::Content(problem.into()));
        }
        Ok(())
    }

    /// Finds the list that names a sample, or can name it; `at` adds the line of the review to an error.
    ///
    /// # Errors
    /// If there is no such sample, or no list can name it.
    pub(crate) fn place(
        &self,
        name: &str,
        at: &impl Fn(FormatProblem) -> FormatError,
    ) -> Result<Place, FormatError> {
        let wrong = |text: String| at(FormatProblem::Content(text));
        match &self.samples {
            Samples::Images(root) => {
                if let Some(why) = safe_path::why_unsafe_here(name) {
                    let error = wrong(format!("the file name {name:?} {why}"));
                    return Err(error.hint("name files relative to the folder of the dataset"));
                }
                let place = self.place_of_image(name).ok_or_else(|| {
                    let lists: Vec<String> =
                        self.per_folder.iter().map(|list| shown(list.file.path().display())).collect();
                    wrong(format!("no list can name {name}; there are: {}", lists.join(", ")))
                        .hint("move the image into the folder of a list, or add a list to its folder")
                })?;
                if self.per_folder[place.list].file.find(&place.key).is_none() {
                    check_file(root, name, name, &wrong)?;
                    if !is_image(root, name).unwrap_or(true) {
                        return Err(wrong(format!("{name} is not an image")).hint("remove the row"));
                    }
                }
                Ok(place)
            }
            Samples::Vectors(rows) => {
                let row = rows.find(name).ok_or_else(|| {
                    let data = shown(rows.path.display());
                    if rows.has_ids() {
                        return wrong(format!("no row of {data} has the id {name:?}"))
                            .hint("write the id as in the file of vectors");
                    }
                    wrong(format!("there is no row {name:?} in {data}, which has {} rows", rows.count))
                        .hint("rows without ids are named by their number, counted from 0")
                })?;
                let is_in_order = self.per_folder.first().is_some_and(|list| list.file.is_in_order());
                let key = if is_in_order { row.to_string() } else { name.to_owned() };
                Ok(Place { list: 0, key })
            }
        }
    }

    fn place_of_image(&self, name: &str) -> Option<Place> {
        self.per_folder.iter().enumerate().find_map(|(list, place)| {
            let key = if place.folder.is_empty() {
                name
            } else {
                name.strip_prefix(place.folder.as_str())?.strip_prefix('/')?
            };
            Some(Place { list, key: key.to_owned() })
        })
    }

    /// Returns all classes that occur.
    pub(crate) fn classes(&self) -> BTreeSet<String> {
        let files = self.per_folder.iter().map(|list| &list.file);
        files.flat_map(|file| (0..file.len()).filter_map(|row| file.label(row))).map(str::to_owned).collect()
    }

    /// Counts all labels.
    pub(crate) fn counts(&self) -> LabelCounts {
        let mut counts = LabelCounts::default();
        for file in self.per_folder.iter().map(|list| &list.file) {
            for row in 0..file.len() {
                let drawn = file.drawn(row);
                if file.label(row).is_none() {
                    counts.skipped += u64::from(drawn == Drawn::Skipped);
                    continue;
                }
                counts.all += 1;
                let count = match drawn {
                    Drawn::Given => &mut counts.given,
                    Drawn::Random | Drawn::Skipped => &mut counts.random,
                    Drawn::ByClass => &mut counts.by_class,
                    Drawn::Chosen => &mut counts.chosen,
                    Drawn::Audit => &mut counts.audit,
                    Drawn::Certified => &mut counts.certified,
                };
                *count += 1;
            }
        }
        counts
    }

    /// Writes the lists that changed, after the readers of datasets have accepted all of them; returns their paths. A new list is
    /// written with the others of its dataset, because the first one already replaces the folders.
    ///
    /// # Errors
    /// If a list would be invalid, or cannot be written. New lists are then removed.
    pub(crate) fn write(&self) -> Result<Vec<PathBuf>> {
        if !self.per_folder.iter().any(|list| list.file.is_changed()) {
            return Ok(Vec::new());
        }
        let mut texts = Vec::new();
        for list in self.per_folder.iter().filter(|list| list.file.is_new() || list.file.is_changed()) {
            let text = list.file.text()?;
            let path = list.file.path();
            match &self.samples {
                Samples::Images(root) => {
                    LabelTable::parse(root, &list.folder, path, &text, &self.columns)?;
                }
                Samples::Vectors(rows) => vectors::check_list(path, &text, &self.columns, rows.count)?,
            }
            texts.push((&list.file, text));
        }
        let mut locks = Vec::new();
        for (file, _) in &texts {
            locks.push(lock(file.path())?);
        }
        // A process that wrote before this one took the locks may have added labels, which these texts would lose.
        if let Some((file, _)) = texts.iter().find(|(file, _)| !file.is_as_read()) {
            return Err(changed(file.path()).into());
        }
        let mut written = Vec::new();
        for (file, text) in &texts {
            if let Err(error) = atomic_file::write(file.path(), text) {
                // A dataset with only some of its new lists would miss the images of the others.
                for (file, _) in texts.iter().filter(|(file, _)| file.is_new()) {
                    let _ = fs::remove_file(file.path());
                }
                return Err(error.into());
            }
            written.push(file.path().to_owned());
        }
        Ok(written)
    }

    /// Returns what calmix read labels from until new lists took precedence, in words; `None` if there were none.
    pub(crate) fn replaced_labels(&self) -> Option<&'static str> {
        match &self.samples {
            Samples::Images(_) => self.has_class_folders.then_some("the folders"),
            Samples::Vectors(rows) => {
                (!rows.own_labels.is_empty()).then_some("the labels in the file of the vectors")
            }
        }
    }

    /// Returns the command that trains on the labels.
    pub(crate) fn train_command(&self, vector_column: Option<&str>) -> String {
        let option = |name: &str, value: Option<&str>| {
            value.map(|value| format!(" {name} {}", shell_quoted(Path::new(value)))).unwrap_or_default()
        };
        let mut command = match &self.samples {
            Samples::Images(root) => format!("calmix train --data {}", shell_quoted(root)),
            Samples::Vectors(rows) => {
                let labels = self.per_folder.first().map_or(Path::new(""), |list| list.file.path());
                format!(
                    "calmix train --features {} --labels {}",
                    shell_quoted(&rows.path),
                    shell_quoted(labels)
                )
            }
        };
        command += &option("--vector-column", vector_column);
        command += &option("--path-column", self.columns.path.as_deref());
        command + &option("--label-column", self.columns.label.as_deref())
    }
}

fn changed(list: &Path) -> FormatError {
    FormatError::changed(list, "changed while the answers were being merged")
        .hint("run the same command again")
}

/// Lets only this process write to a list; `None` on a file system without locks.
fn lock(list: &Path) -> Result<Option<Lock>, FileError> {
    // A link and its target are the same list.
    let list = fs::canonicalize(list).unwrap_or_else(|_| list.to_owned());
    let folder = list.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = list.file_name().unwrap_or_default().to_string_lossy();
    match Lock::take_removed_at_end(&ConfinedPath::root(folder).join(format!(".{name}.lock"))) {
        Ok(lock) => Ok(Some(lock)),
        Err(FileError { problem: FileProblem::NoLocks(_), .. }) => Ok(None),
        Err(error @ FileError { problem: FileProblem::Foreign(_), .. }) => {
            Err(error.hint("remove this file if no other `calmix label` is running"))
        }
        Err(error) => Err(error.hint("another `calmix label` writes this list: run the same command again")),
    }
}

/// Makes a list of the images of folders.
fn new_list(root: &Path, list: &FolderList) -> ListInFolder {
    let has_groups = list.rows.iter().any(|row| row.group.is_some());
    let path = root.join(&list.folder).join(NEW_LIST);
    let mut file = LabelFile::new(&path, Listed::Images, has_groups);
    for row in &list.rows {
        let class = row.class.as_deref().unwrap_or_default();
        file.push(&row.file, class, row.group.as_deref().unwrap_or_default());
    }
    ListInFolder { folder: list.folder.clone(), file }
}

//! `calmix prepare`: scans a dataset and writes the prepared dataset that runs read.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Error, Result};
use calmix_data::dataset::Dataset;
use calmix_data::default_paths::default_prepared_folder;
use calmix_data::error::DataError;
use calmix_data::manifest::PREPARING;
use calmix_data::prepare::{Findings, Report};
use calmix_data::split::{LabelSplit, SplitPlan};
use calmix_io::atomic_file::rename_folder;
use calmix_io::safe_open;
use calmix_io::scratch_folder::ScratchFolder;
use calmix_io::shown::shown;
use calmix_recipe::{Data, Layers, SourceName, detect_source, is_own_format, recipe_for};

use super::inspect::dataset_json;
use crate::args::options::data::{absolute, existing_dataset, existing_features, on_file_system};
use crate::args::prepare::PrepareArgs;
use crate::error::CliError;
use crate::error::exit::Exit;
use crate::output::format::{shell_quoted, written_to};
use crate::output::preparation::prepare_or_stop;
use crate::output::warnings::{short_labels, warn_about_recipe};
use crate::process::stop::Stop;
use crate::terminal::{print, print_json, status, warn};

impl PrepareArgs {
    pub fn run(self) -> Result<Exit> {
        on_file_system(self.to.as_deref(), "a prepared dataset")?;
        let folder = existing_dataset(&self.folder)?;
        let source =
            self.reading.source.unwrap_or_else(|| detect_source(folder, self.reading.names_columns()));
        let target = self.to.clone().unwrap_or_else(|| default_prepared_folder(folder));
        let old = if target.exists() { Some(self.replaceable(&target)?) } else { None };
        let data = self.data(source)?;
        let stop = Stop::listen()?;
        let parent = target.parent().filter(|parent| !parent.exists());
        if let Some(parent) = parent {
            safe_open::create_folders(parent).map_err(|error| cannot_write(parent, &error.into()))?;
        }
        status(&format!("reading {} as {source} …", shown(folder.display())));
        let prepared = old.as_ref().map_or_else(|| target.clone(), ReplacedDataset::new_folder);
        let report = prepare_or_stop(&data.source_spec(), folder, &prepared, &stop).map_err(|error| {
            // Fails, as intended, unless the folder is empty.
            let _ = parent.map(fs::remove_dir);
            let place = parent.or(target.parent()).filter(|place| !place.as_os_str().is_empty());
            match error.downcast::<DataError>() {
                Ok(failed) => match place {
                    Some(place) if failed.path() == Some(place) => cannot_write(place, &failed.into()),
                    _ => failed.into(),
                },
                Err(error) => error,
            }
        })?;
        if let Some(old) = old {
            old.replace().map_err(|error| cannot_write(&target, &error))?;
        }
        self.show(folder, source, &target, &report)?;
        Ok(Exit::Done)
    }

    /// Returns the prepared dataset that is to be replaced, if `--force` allows it; refuses anything else.
    fn replaceable(&self, target: &Path) -> Result<ReplacedDataset> {
        let place = shown(target.display());
        if !is_prepared(target) {
            let message = format!("{place}: already exists and was not written by `calmix prepare`");
            return Err(CliError::invalid(message).hint("name another folder with `--to`").into());
        }
        if !self.force {
            let message = format!("{place}: this prepared dataset already exists");
            let hint = "`--force` replaces it; `--to NEW_FOLDER` keeps it for runs that were started with `--prepared`";
            return Err(CliError::invalid(message).hint(hint).into());
        }
        ReplacedDataset::new(target).map_err(|error| cannot_write(target, &error))
    }

    /// Returns the dataset section of a recipe that reads the folder with these options.
    fn data(&self, source: SourceName) -> Result<Data> {
        let layers = Layers::new().set(&format!("dataset.source={source}"));
        let mut settings = self.reading.settings();
        if let Some(labels) = &self.labels {
            settings.push(format!("dataset.labels={}", absolute(labels)?));
        }
        if let Some(column) = &self.vector_column {
            settings.push(format!("dataset.vector_column={column}"));
        }
        let mut layers = settings.iter().fold(layers, |layers, setting| layers.set(setting));
        if !self.more_features.is_empty() {
            layers = layers.set_to_list("dataset.more_features", existing_features(&self.more_features)?);
        }
        let resolved = layers.resolve()?;
        // Warns, for example, about an option that has no effect on this format.
        warn_about_recipe(&resolved);
        Ok(resolved.recipe.dataset)
    }

    /// Returns the options for vectors as on a command line, each after a space.
    fn vector_options(&self) -> String {
        let labels = self.labels.as_ref().map(|labels| format!(" --labels {}", shell_quoted(labels)));
        let column = self.vector_column.as_ref().map(Path::new);
        let column = column.map(|column| format!(" --vector-column {}", shell_quoted(column)));
        let more = self.more_features.iter().map(|more| format!(" --more-features {}", shell_quoted(more)));
        [labels, column].into_iter().flatten().chain(more).collect()
    }

    fn show(&self, folder: &Path, source: SourceName, target: &Path, report: &Report) -> Result<()> {
        let recipe = recipe_for(source);
        let labels = Layers::new().recipe(recipe).resolve()?.recipe.labels;
        // A dataset without labels can be prepared, too.
        let dataset = Dataset::open(target, folder)?;
        // The counts do not depend on which samples are trained on without a label.
        let plan = SplitPlan { unlabelled: Vec::new(), ..labels.plan() };
        let split = LabelSplit::draw(&dataset, plan).ok();
        let short = split.and_then(|split| short_labels(&labels, &split, &dataset));
        if self.json {
            let mut json = dataset_json(folder, report)?;
            json["source"] = source.word().into();
            json["prepared"] = target.display().to_string().into();
            if let Some(short) = short {
                warn(&format!("recipe {recipe}: {short}"));
            }
            return print_json(&json);
        }
        let short = short.map(|short| format!("\nwarning: recipe {recipe}: {short}")).unwrap_or_default();
        let data = shell_quoted(folder);
        let prepared = shell_quoted(target);
        let file = Findings::FILE;
        // For the user's own images, calmix chooses the recipe.
        let named = if is_own_format(source) { String::new() } else { format!("{recipe} ") };
        let by_itself = if is_own_format(source) {
            detect_source(folder, self.reading.names_columns())
        } else {
            Layers::new().recipe(recipe).resolve()?.recipe.dataset.source
        };
        // Without these options, `train` would read the folder in another way and refuse the prepared dataset.
        let mut options = self.reading.options(by_itself != source);
        options += &self.vector_options();
        let from = if source == SourceName::Vectors { "--features" } else { "--data" };
        let written = written_to(&prepared, &format!(", with this summary in {file}"));
        print(&format!(
            "{report}{short}\n\n{written}\n\
             next: calmix train {named}{from} {data}{options} --prepared {prepared}"
        ))
    }
}

fn cannot_write(folder: &Path, error: &Error) -> Error {
    let why = error.root_cause();
    let message = format!("{}: cannot write here: {why}", shown(folder.display()));
    CliError::invalid(message).hint("name a folder that you can write to with `--to`").into()
}

/// A prepared dataset that stays in place until the new one is complete.
#[derive(Debug)]
pub(crate) struct ReplacedDataset {
    folder: PathBuf,
    /// The scratch folder beside it, to which the new one is written. Dropping it also removes the old one.
    scratch: ScratchFolder,
}

impl ReplacedDataset {
    /// Creates a scratch folder beside a prepared dataset.
    pub(crate) fn new(folder: &Path) -> Result<Self> {
        let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
        let scratch = ScratchFolder::new(parent.unwrap_or(Path::new(".")), PREPARING)?;
        Ok(Self { folder: folder.to_owned(), scratch })
    }

    /// Returns the folder to write the new one to.
    pub(crate) fn new_folder(&self) -> PathBuf {
        self.scratch.path().join("new")
    }

    /// Replaces the old one by the new one. Runs that have links to files of the old one keep them.
    pub(crate) fn replace(self) -> Result<()> {
        let old = self.scratch.path().join("old");
        fs::rename(&self.folder, &old)?;
        if let Err(error) = rename_folder(&self.new_folder(), &self.folder) {
            // Restore the old one, so that there always is one.
            let _ = fs::rename(&old, &self.folder);
            return Err(error.into());
        }
        Ok(())
    }
}

/// Returns whether a folder is a prepared dataset.
pub(crate) fn is_prepared(folder: &Path) -> bool {
    folder.join("manifest.json").is_file() && folder.join("samples.bin").is_file()
}

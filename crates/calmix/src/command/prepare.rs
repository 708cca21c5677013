//! `calmix prepare`: scans a dataset and writes its table.

use std::path::{Path, PathBuf};

use anyhow::{Error, Result};
use calmix::core::shown::shown;
use calmix::data::dataset::Dataset;
use calmix::data::error::DataError;
use calmix::data::prepare::{Findings, Report};
use calmix::train::recipe::{Data, Layers, SourceName};
use clap::Args;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser as _;

use super::data_args::existing_folder;
use super::inspect::dataset_json;
use super::source_args::SourceArgs;
use crate::beside::beside;
use crate::error::CliError;
use crate::exit::Exit;
use crate::format::shell_quoted;
use crate::preparing::prepare_or_stop;
use crate::run_data::folder_recipe;
use crate::source::{detect, is_own};
use crate::stop::Stop;
use crate::summary::{short_labels, warn_about_recipe};
use crate::terminal::{print, print_json, status, warn};

/// Scan a dataset: count its samples, list its problems, and write a table for training
///
/// A dataset of your own is a folder with one subfolder per class, and one called `unlabelled`:
///
///     photos/cat/…  photos/dog/…  photos/unlabelled/…
///
/// or the same below photos/train and photos/test, or images with a list of labels, labels.csv.
/// calmix neither moves nor changes your files, and writes nothing into their folder unless `--to`
/// says so.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, after_long_help = FIELDS)]
pub(crate) struct PrepareArgs {
    /// Dataset folder
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// Format of the dataset [default: detected from file names]
    #[arg(long, value_name = "SOURCE", value_parser = sources())]
    source: Option<SourceName>,
    #[command(flatten)]
    reading: SourceArgs,
    /// Folder to write the table to; it must not exist [default: prepared/FOLDER]
    #[arg(long, value_name = "FOLDER")]
    to: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

const FIELDS: &str = "\
Fields of --json: those of `calmix inspect` of a dataset, and prepared (the folder of the table).";

fn sources() -> impl clap::builder::TypedValueParser<Value = SourceName> {
    let words = SourceName::ALL.iter().map(|source| source.word());
    PossibleValuesParser::new(words).try_map(|word| word.parse::<SourceName>())
}

impl PrepareArgs {
    pub(crate) fn run(self) -> Result<Exit> {
        let folder = existing_folder(&self.folder)?;
        let source = self.source.unwrap_or_else(|| detect(folder, self.reading.names_columns()));
        let target = self.to.clone().unwrap_or_else(|| default_table(folder));
        if target.exists() {
            let message =
                format!("{}: already exists, and calmix does not overwrite it", shown(target.display()));
            return Err(CliError::invalid(message)
                .hint("name another folder with `--to`, or delete this one")
                .into());
        }
        let data = self.data(source)?;
        let stop = Stop::listen()?;
        let parent = target.parent().filter(|parent| !parent.exists());
        if let Some(parent) = parent {
            std::fs::create_dir_all(parent).map_err(|error| cannot_write(parent, &error.into()))?;
        }
        status(&format!("reading {} as {source} …", shown(folder.display())));
        let report = prepare_or_stop(&data.source_spec(), folder, &target, &stop).map_err(|error| {
            // Fails, as it should, unless the folder is empty.
            let _ = parent.map(std::fs::remove_dir);
            let place = parent.or(target.parent()).filter(|place| !place.as_os_str().is_empty());
            match error.downcast_ref::<DataError>() {
                Some(failed) if Some(failed.path.as_path()) == place => cannot_write(&failed.path, &error),
                _ => error,
            }
        })?;
        self.show(folder, source, &target, &report)?;
        Ok(Exit::Done)
    }

    /// The dataset section of a recipe that reads the folder as asked.
    fn data(&self, source: SourceName) -> Result<Data> {
        let layers = Layers::new().set(&format!("dataset.source={source}"));
        let layers = self.reading.settings().iter().fold(layers, |layers, setting| layers.set(setting));
        let resolved = layers.resolve()?;
        // An option that means nothing to this format.
        warn_about_recipe(&resolved);
        Ok(resolved.recipe.dataset)
    }

    fn show(&self, folder: &Path, source: SourceName, target: &Path, report: &Report) -> Result<()> {
        let recipe = if is_own(source) { folder_recipe(None) } else { recipe_for(source) };
        let labels = Layers::new().recipe(recipe).resolve()?.recipe.labels;
        // A dataset without labels is no failure here.
        let short = short_labels(&labels, &Dataset::open(target, folder)?).ok().flatten();
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
        let (data, table) = (shell_quoted(folder), shell_quoted(target));
        let file = Findings::FILE;
        // For images of one's own, calmix chooses the recipe.
        let named = if is_own(source) { String::new() } else { format!("{recipe} ") };
        print(&format!(
            "{report}{short}\n\nwritten to {table}, with this report in {file}\n\
             next: calmix train {named}--data {data} --prepared {table}"
        ))
    }
}

/// Where the table of a dataset is written if the user does not say.
pub(crate) fn default_table(folder: &Path) -> PathBuf {
    let name = |path: PathBuf| path.file_name().map(PathBuf::from);
    let named = std::path::absolute(folder).ok().and_then(name);
    // `..` has no name of its own.
    let name = named.or_else(|| folder.canonicalize().ok().and_then(name)).unwrap_or_default();
    beside(folder).join("prepared").join(name)
}

fn cannot_write(folder: &Path, error: &Error) -> Error {
    let why = error.root_cause();
    let message = format!("{}: nothing can be written here: {why}", shown(folder.display()));
    CliError::invalid(message).hint("name a folder that you can write to with `--to`").into()
}

/// The recipe to suggest for a dataset: one for a CPU if there is one.
pub(crate) fn recipe_for(source: SourceName) -> &'static str {
    match source {
        SourceName::Cifar10 => "cpu-cifar10",
        SourceName::Cifar100 | SourceName::Cifar100Coarse => "cifar100",
        SourceName::Mnist | SourceName::FashionMnist => "cpu-fashion-mnist",
        SourceName::Svhn | SourceName::SvhnNoExtra => "svhn",
        SourceName::Stl10 => "stl10",
        SourceName::Imagenet => "imagenet",
        SourceName::Webvision => "webvision",
        SourceName::Folder | SourceName::LabelsCsv | SourceName::Webdataset => "cpu-folder",
    }
}

//! `calmix prepare`: scans a dataset and writes its table.

use std::path::PathBuf;

use anyhow::Result;
use calmix::core::shown::shown;
use calmix::train::recipe::{Data, SourceName};
use clap::Args;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser as _;

use super::data_args::existing_folder;
use crate::error::CliError;
use crate::exit::Exit;
use crate::format::shell_quoted;
use crate::preparing::prepare_or_stop;
use crate::source::detect;
use crate::stop::Stop;
use crate::terminal::{print, status};

/// Scan a dataset: count its samples, list its problems, and write a table for training
///
/// A dataset of your own is a folder with one subfolder per class, and one called `unlabelled`:
///
///     photos/cat/…  photos/dog/…  photos/unlabelled/…
///
/// or the same below photos/train and photos/test. calmix neither moves nor changes your files.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct PrepareArgs {
    /// Dataset folder
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// Format of the dataset [default: detected from file names]
    #[arg(long, value_name = "SOURCE", value_parser = sources())]
    source: Option<SourceName>,
    /// Folder to write the table to; it must not exist [default: prepared/FOLDER]
    #[arg(long, value_name = "FOLDER")]
    to: Option<PathBuf>,
}

fn sources() -> impl clap::builder::TypedValueParser<Value = SourceName> {
    let words = SourceName::ALL.iter().map(|source| source.word());
    PossibleValuesParser::new(words).try_map(|word| word.parse::<SourceName>())
}

impl PrepareArgs {
    pub(crate) fn run(self) -> Result<Exit> {
        let folder = existing_folder(&self.folder)?;
        let source = self.source.unwrap_or_else(|| detect(folder));
        let name = std::path::absolute(folder)?.file_name().map(PathBuf::from).unwrap_or_default();
        let target = self.to.unwrap_or_else(|| PathBuf::from("prepared").join(name));
        if target.exists() {
            let message =
                format!("{}: already exists, and calmix does not overwrite it", shown(target.display()));
            return Err(CliError::invalid(message)
                .hint("name another folder with `--to`, or delete this one")
                .into());
        }
        let stop = Stop::listen()?;
        let parent = target.parent().filter(|parent| !parent.exists());
        if let Some(parent) = parent {
            std::fs::create_dir_all(parent)?;
        }
        status(&format!("reading {} as {source} …", shown(folder.display())));
        let spec = Data { source, ..Data::default() }.source_spec();
        let report = prepare_or_stop(&spec, folder, &target, &stop).inspect_err(|_| {
            // Fails, as it should, unless the folder is empty.
            let _ = parent.map(std::fs::remove_dir);
        })?;
        let (recipe, data, table) = (recipe_for(source), shell_quoted(folder), shell_quoted(&target));
        print(&format!(
            "{report}\n\nwritten to {table}\nnext: calmix train {recipe} --data {data} --prepared {table}"
        ))?;
        Ok(Exit::Done)
    }
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

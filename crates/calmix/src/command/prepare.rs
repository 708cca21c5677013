//! `calmix prepare`: what is in a dataset, and what is wrong with it.

use std::path::PathBuf;

use anyhow::Result;
use calmix::train::recipe::{Data, Source};
use clap::Args;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser as _;

use super::place::is_folder;
use crate::exit::Exit;
use crate::failure::Mistake;
use crate::number::typed;
use crate::preparing::prepare_or_stop;
use crate::source::guess;
use crate::stop::Stop;
use crate::terminal::{say, tell};

/// Scan a dataset once: count it, list what is wrong with it, and write a table for training
///
/// A dataset of your own is a folder of images with a folder for each class, and one called `unlabelled`:
///
///     photos/cat/…  photos/dog/…  photos/unlabelled/…
///
/// or the same below photos/train and photos/test. Files stay where they are and are not changed.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Prepare {
    /// The folder of the dataset
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// What its files are [default: told by their names]
    #[arg(long, value_name = "SOURCE", value_parser = sources())]
    source: Option<Source>,
    /// Where to write the table, a folder that does not exist yet [default: prepared/FOLDER]
    #[arg(long, value_name = "FOLDER")]
    to: Option<PathBuf>,
}

fn sources() -> impl clap::builder::TypedValueParser<Value = Source> {
    let words = Source::ALL.iter().map(|source| source.word());
    PossibleValuesParser::new(words).try_map(|word| word.parse::<Source>())
}

impl Prepare {
    pub(crate) fn run(self) -> Result<Exit> {
        let folder = is_folder(&self.folder)?;
        let source = self.source.unwrap_or_else(|| guess(folder));
        let name = std::path::absolute(folder)?.file_name().map(PathBuf::from).unwrap_or_default();
        let target = self.to.unwrap_or_else(|| PathBuf::from("prepared").join(name));
        if target.exists() {
            let what = format!("{}: this is there already, and nothing is written over it", target.display());
            return Err(Mistake::new(what).or_try("name another folder with `--to`, or remove it").into());
        }
        let stop = Stop::listen()?;
        let parent = target.parent().filter(|parent| !parent.exists());
        if let Some(parent) = parent {
            std::fs::create_dir_all(parent)?;
        }
        tell(&format!("reading {} as {source} …", folder.display()));
        let spec = Data { source, ..Data::default() }.source_spec();
        let report = prepare_or_stop(&spec, folder, &target, &stop).inspect_err(|_| {
            // Ours, and empty again; otherwise this does nothing.
            let _ = parent.map(std::fs::remove_dir);
        })?;
        let (recipe, data, table) = (recipe_for(source), typed(folder), typed(&target));
        say(&format!(
            "{report}\n\nwritten to {table}\nnext: calmix train {recipe} --data {data} --prepared {table}"
        ))?;
        Ok(Exit::Done)
    }
}

/// The recipe to begin with: small ones where there are.
pub(crate) fn recipe_for(source: Source) -> &'static str {
    match source {
        Source::Cifar10 => "desk-cifar10",
        Source::Cifar100 | Source::Cifar100Coarse => "cifar100",
        Source::Mnist | Source::FashionMnist => "desk-fashion-mnist",
        Source::Svhn | Source::SvhnNoExtra => "svhn",
        Source::Stl10 => "stl10",
        Source::Imagenet => "imagenet",
        Source::Webvision => "webvision",
        Source::Folder | Source::LabelsCsv | Source::Webdataset => "desk-folder",
    }
}

//! `calmix train`: from a recipe and a dataset to a model.

use std::path::{Path, PathBuf};

use anyhow::{Error, Result};
use calmix::data::dataset::Dataset;
use calmix::data::error::DataError;
use calmix::train::launch::Place;
use calmix::train::recipe::engine::OrAuto;
use calmix::train::recipe::{Layers, Resolved, Source};
use calmix::train::run::Paths;
use calmix::train::trainer::Trainer;
use clap::Args;

use super::changes::Changes;
use super::many::Many;
use super::place::is_folder;
use super::prepare::recipe_for;
use super::resume::{ended, ended_elsewhere};
use crate::claim::Claim;
use crate::exit::Exit;
use crate::failure::Mistake;
use crate::number::typed;
use crate::preparing::prepare_or_stop;
use crate::progress::Shown;
use crate::stop::Stop;
use crate::supervise::supervise;
use crate::terminal::{tell, warn};
use crate::{opening, source};

/// Train a model: from a recipe and a dataset to weights, a temperature and figures
///
/// With a folder of images and no RECIPE, the recipe `folder` is taken, which is for a GPU; `desk-folder` is a small one
/// for a CPU. Every key of a recipe can be changed: by a FILE of your own, by the environment
/// (CALMIX_TRAIN__STEPS=2000), by --set; the later in this list wins.
///
/// A run is a folder. It can be stopped at any time with Ctrl-C, or killed, and `calmix resume` goes on to the same
/// bits as if nothing had happened.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Train {
    /// A recipe that comes with calmix; `calmix recipes` lists them
    recipe: Option<String>,
    /// A recipe of your own, in TOML, over RECIPE or over the one that it `extends`
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// The folder of the run, empty or not there yet [default: runs/RECIPE-1, -2, …]
    // Not `--run`: torchrun takes that for a beginning of an option of its own, wherever it stands.
    #[arg(long = "into", value_name = "FOLDER")]
    run: Option<PathBuf>,
    #[command(flatten)]
    many: Many,
    #[command(flatten)]
    changes: Changes,
}

const EXAMPLES: &str = "\
Examples:
  calmix train desk-folder --data photos
  calmix train desk-fashion-mnist --data fashion-mnist
  calmix train cifar10 --data cifar-10-batches-bin --set labels.count=25 --set train.seed=1
  calmix train --file mine.toml --into runs/mine";

impl Train {
    pub(crate) fn run(self) -> Result<Exit> {
        let base = self.base()?;
        let name = self.name(base.as_deref());
        let layers = |found: &str| {
            let layers = base.iter().fold(Layers::new(), |layers, name| layers.recipe(name));
            // Below everything that was asked for.
            let layers = layers.text(Path::new("what is in the folder"), found);
            let layers = self.file.iter().fold(layers, |layers, file| layers.file(file));
            self.changes.over(layers.environment(std::env::vars_os()))
        };
        let mut resolved = layers(&self.files_are(base.as_deref())?)?.resolve()?;
        resolved.ready()?;
        let root = PathBuf::from(&resolved.recipe.dataset.path);
        is_folder(&root)?;
        if let OrAuto::Is(device) = resolved.recipe.train.device {
            device.check().map_err(|error| Mistake::new(error.to_string()).or_try("calmix doctor"))?;
        }
        let place = self.many.place()?;
        let asked = resolved.hash();
        if let Some(place) = place.as_ref().filter(|place| place.rank > 0) {
            return follow(place, &resolved, asked, self.known_run()?);
        }
        let mut claim = match &place {
            Some(_) => Claim::again(self.known_run()?)?,
            None => Claim::take(self.run.as_deref(), &name)?,
        };
        let stop = Stop::listen()?;
        let dataset = self.dataset(&resolved, &root, claim.folder(), &stop)?;
        if is_for_folders(base.as_deref()) {
            let found = self.files_are(base.as_deref())? + &adapted(&dataset, self.changes.quiet);
            resolved = layers(&found)?.resolve()?;
        }
        opening::odd(&resolved);
        if !self.changes.quiet {
            let processes = place.as_ref().map(|place| place.local_world).or(self.many.to_start());
            opening::tell_about(&name, &resolved, &dataset, claim.folder(), processes.unwrap_or(1))?;
        }
        drop(dataset);
        claim.hand_over();
        if let Some(processes) = self.many.to_start() {
            Trainer::new(stop.flag()).create(resolved, claim.folder(), processes)?;
            let quiet = self.changes.quiet.then(|| "--quiet".into());
            let arguments = ["resume".into(), claim.folder().into()].into_iter().chain(quiet);
            return supervise(&arguments.collect::<Vec<_>>(), processes, claim.folder(), &stop);
        }
        let stop = stop.announced();
        let trainer =
            Trainer::new(stop.flag()).tell(Shown::new(resolved.recipe.train.steps, self.changes.quiet));
        let outcome = match &place {
            Some(place) => trainer
                .join(place, &resolved.recipe)
                .and_then(|trainer| trainer.asked(asked).start_or_resume(&resolved, claim.folder())),
            None => trainer.start(&resolved, claim.folder()),
        };
        ended(outcome.map_err(Error::from), claim.folder(), stop)
    }

    /// The folder of the run, which processes that are started again have to know.
    fn known_run(&self) -> Result<&Path> {
        self.run.as_deref().ok_or_else(|| {
            let what = "a launcher has started this process, and may start it again: it has to know the folder of the run";
            Mistake::new(what).or_try("--into FOLDER, one that all processes see").into()
        })
    }

    /// The recipe of ours to begin with.
    fn base(&self) -> Result<Option<String>> {
        if self.recipe.is_some() || self.file.is_some() {
            return Ok(self.recipe.clone());
        }
        let Some(data) = self.changes.data()? else {
            let what = "there is nothing to train: name a recipe, a file or a folder of images";
            return Err(Mistake::new(what)
                .or_try("`calmix recipes`, or `calmix train --data FOLDER`")
                .into());
        };
        let source = source::guess(data);
        if source::is_own(source) {
            return Ok(Some("folder".to_owned()));
        }
        let what = format!("{}: this is {source}, no folder of images; name a recipe", data.display());
        let next = format!("calmix train {} --data {}", recipe_for(source), typed(data));
        Err(Mistake::new(what).or_try(next).into())
    }

    /// What the run is called: by its recipe, or by the file.
    fn name(&self, base: Option<&str>) -> String {
        let file = || self.file.as_ref()?.file_stem()?.to_str().map(str::to_owned);
        self.recipe.clone().or_else(file).or(base.map(str::to_owned)).unwrap_or("run".to_owned())
    }

    /// For a folder of images: in which form it has its labels.
    fn files_are(&self, base: Option<&str>) -> Result<String> {
        let data = self.changes.data()?.filter(|_| is_for_folders(base));
        let source = data.map(source::guess);
        let other = source.filter(|source| matches!(source, Source::LabelsCsv | Source::Webdataset));
        Ok(other.map(|source| format!("dataset.source = \"{source}\"\n")).unwrap_or_default())
    }

    /// The dataset, prepared into the run's folder if it has not been prepared before.
    fn dataset(&self, resolved: &Resolved, root: &Path, run: &Path, stop: &Stop) -> Result<Dataset> {
        let data = &resolved.recipe.dataset;
        if !data.prepared.is_empty() {
            return Ok(Dataset::open(Path::new(&data.prepared), root)?);
        }
        let target = Paths::new(run).prepared();
        if !target.exists() {
            if !self.changes.quiet {
                tell(&format!("reading {} …", root.display()));
            }
            let report = prepare_or_stop(&data.source_spec(), root, &target, stop);
            opening::found(&report.map_err(|error| other_files(root, data.source, error))?);
        }
        Ok(Dataset::open(&target, root)?)
    }
}

/// Whether a recipe of ours takes whatever subsets a folder of images has.
fn is_for_folders(recipe: Option<&str>) -> bool {
    matches!(recipe, Some("folder" | "desk-folder"))
}

/// What a process does that leaves the preparing and the telling to the first one.
fn follow(place: &Place, resolved: &Resolved, asked: String, run: &Path) -> Result<Exit> {
    let stop = Stop::listen()?;
    let trainer = Trainer::new(stop.flag()).join(place, &resolved.recipe)?.asked(asked);
    let outcome = trainer.start_or_resume(resolved, run);
    ended_elsewhere(outcome, stop)
}

/// The files are not what the recipe says: what they seem to be instead.
fn other_files(root: &Path, wanted: Source, error: Error) -> Error {
    let is = source::guess(root);
    let next = recipe_for(is);
    if !error.is::<DataError>() || next == recipe_for(wanted) || source::is_own(is) {
        return error;
    }
    let what = format!("{error}; these files seem to be {is}");
    Mistake::new(what).or_try(format!("calmix train {next} --data {}", typed(root))).into()
}

/// What a folder of images has, as far as it decides which of them judge and which are learnt from.
fn adapted(dataset: &Dataset, is_quiet: bool) -> String {
    let has = |name: &str| dataset.header().subsets.iter().any(|subset| subset.name == name);
    let judge = match (has("test"), has("val")) {
        (true, _) => String::new(),
        (false, true) => "dataset.test = \"val\"\n".to_owned(),
        (false, false) => {
            if !is_quiet {
                warn("there is no test subset: a fifth of the labels is held out to judge by");
            }
            "dataset.test = \"\"\nlabels.validation = 0.2\n".to_owned()
        }
    };
    let learnt: Vec<_> = ["train", "unlabelled"].into_iter().filter(|name| has(name)).collect();
    format!("{judge}labels.unlabelled_from = {learnt:?}\n")
}

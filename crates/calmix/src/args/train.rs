//! The arguments of `calmix train`.

use std::path::{Path, PathBuf};

use anyhow::Result;
use calmix_io::shown::shown;
use calmix_recipe::{Layers, VECTORS_RECIPE, builtin, detect_source, is_own_format, recipe_for};
use clap::Args;

use crate::args::options::data::{absolute, existing, existing_dataset, existing_features, on_file_system};
use crate::args::options::recipe::{ProcessArgs, RecipeArgs};
use crate::args::options::source::SourceArgs;
use crate::error::CliError;
use crate::output::format::shell_quoted;
use crate::process::input_shard::InputShard;

/// Train a model from a recipe and a dataset
///
/// For a folder of images, the default RECIPE is `folder` on a GPU. On a CPU it is `head-folder`, a head on a pretrained
/// backbone, if you have added one (`calmix weights`), and otherwise the small `cpu-folder`.
/// You can override every key of a recipe: in a FILE, by an environment variable (CALMIX_TRAIN__STEPS=2000), or with
/// --set; --set wins over variables, and variables win over the FILE.
///
/// A run is a folder. You can stop it with Ctrl-C or kill it at any time; `calmix resume` resumes it, bit-identical to an
/// uninterrupted run.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct TrainArgs {
    /// Built-in recipe; `calmix recipes` lists them
    pub recipe: Option<String>,
    /// Train a head on vectors that you already have, one per sample, instead of images: .npy, .npz, .parquet, .safetensors,
    /// .csv, or a folder of them. Repeat it for further features of the same samples, such as those of another network
    #[arg(
        long,
        value_name = "VECTORS",
        conflicts_with_all = ["data", "source", "layout", "shrink", "features_only", "processes"]
    )]
    pub features: Vec<PathBuf>,
    /// With --features, the labels: a CSV with a column of labels and, unless its lines are in the order of the vectors, one
    /// of ids; or an .npy of whole numbers, -1 for no label [default: those in the file of the vectors]
    #[arg(long, value_name = "FILE", requires = "features")]
    pub labels: Option<PathBuf>,
    /// With --features, the column, array or tensor that holds the vectors [default: embedding, vector, features, …]
    #[arg(long, value_name = "NAME", requires = "features")]
    pub vector_column: Option<String>,
    /// Your own recipe in TOML; overrides keys of RECIPE, or of the recipe that it `extends`
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Folder of the run; it must be empty or not exist [default: runs/RECIPE-1, -2, …]
    // Not `--run`: torchrun refuses it as an ambiguous abbreviation of its own `--run-path`, wherever it stands.
    #[arg(long, value_name = "FOLDER")]
    pub run_dir: Option<PathBuf>,
    /// Seed for everything random and for the choice of the labels (train.seed and labels.seed)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: Option<u64>,
    /// Unlabelled images to train on, instead of all: a Parquet or CSV file whose column `path` names images of the dataset as
    /// `calmix predict` does
    #[arg(long, value_name = "LIST", conflicts_with = "features")]
    pub unlabelled: Option<PathBuf>,
    /// Only compute the features of a frozen backbone, for later runs; several processes can share the work
    #[arg(long)]
    pub features_only: bool,
    /// With --features-only, the part to compute, such as 2/4 [default: the rank, under torchrun or srun]
    #[arg(long, value_name = "I/N", requires = "features_only")]
    pub shard: Option<InputShard>,
    #[command(flatten)]
    pub processes: ProcessArgs,
    #[command(flatten)]
    pub reading: SourceArgs,
    #[command(flatten)]
    pub overrides: RecipeArgs,
}

impl TrainArgs {
    /// Returns all settings of the user, in order of precedence.
    ///
    /// # Errors
    /// If a dataset does not exist, or its path is not UTF-8.
    pub fn layers(&self) -> Result<Layers> {
        let layers = self.recipe.iter().fold(Layers::new(), |layers, name| layers.recipe(name));
        let layers = self.file.iter().fold(layers, |layers, file| layers.file(file));
        let layers = self.overrides.apply(layers.environment(std::env::vars_os()))?;
        let seeds =
            self.seed.into_iter().flat_map(|seed| ["train.seed", "labels.seed"].map(|key| (key, seed)));
        let layers =
            seeds.fold(layers, |layers, (key, seed)| layers.option("--seed", key, &seed.to_string()));
        let mut layers = self.reading.settings().iter().fold(layers, |layers, setting| layers.set(setting));
        if let Some(list) = &self.unlabelled {
            on_file_system(Some(list), "a list of samples")?;
            layers = layers.set_to("labels.unlabelled_file", absolute(existing(list)?)?);
        }
        self.with_vectors(layers)
    }

    /// Adds the vectors, and their recipe if the user names none.
    fn with_vectors(&self, mut layers: Layers) -> Result<Layers> {
        let [vectors, more @ ..] = &self.features[..] else { return Ok(layers) };
        if !layers.names_recipe() {
            layers = layers.recipe(VECTORS_RECIPE);
        }
        layers = layers.set("dataset.source=vectors");
        layers = layers.set_to("dataset.path", absolute(existing_dataset(vectors)?)?);
        if !more.is_empty() {
            layers = layers.set_to_list("dataset.more_features", existing_features(more)?);
        }
        if let Some(labels) = &self.labels {
            layers = layers.set_to("dataset.labels", absolute(existing_dataset(labels)?)?);
        }
        if let Some(column) = &self.vector_column {
            layers = layers.set_to("dataset.vector_column", column.clone());
        }
        Ok(layers)
    }

    /// Refuses a dataset or a file in the place of the recipe.
    ///
    /// # Errors
    /// Always if there is one; the error names the command that was most likely meant.
    pub fn refuse_path_as_recipe(&self) -> Result<(), CliError> {
        let is_builtin = |name: &str| builtin().iter().any(|recipe| recipe.name == name);
        let Some(name) = self.recipe.as_deref().filter(|name| !is_builtin(name)) else { return Ok(()) };
        let path = Path::new(name);
        let quoted = shell_quoted(path);
        let (what, meant) = if path.is_dir() {
            let source = detect_source(path, false);
            let recipe =
                if is_own_format(source) { String::new() } else { format!("{} ", recipe_for(source)) };
            ("a folder", format!("calmix train {recipe}--data {quoted}"))
        } else if path.is_file() {
            ("a file", format!("calmix train --file {quoted}"))
        } else {
            return Ok(());
        };
        let message = format!("{} is {what}, not a recipe; did you mean `{meant}`?", shown(name));
        Err(CliError::invalid(message).hint("`calmix recipes` lists the recipes"))
    }

    /// Returns the folder of the run, which the user must name: a launcher may start the same command again.
    pub fn required_run_dir(&self) -> Result<&Path, CliError> {
        self.run_dir.as_deref().ok_or_else(|| {
            let message = "a launcher started this process and may start it again, so it needs --run-dir";
            CliError::invalid(message).hint("--run-dir FOLDER, a folder that all processes share")
        })
    }

    /// Returns the name of the run: the name of its recipe or recipe file, or of the recipe that calmix chose.
    pub fn run_name(&self, chosen: Option<&str>) -> String {
        let file = || self.file.as_ref()?.file_stem()?.to_str().map(str::to_owned);
        self.recipe.clone().or_else(file).or(chosen.map(str::to_owned)).unwrap_or("run".to_owned())
    }
}

const EXAMPLES: &str = "\
Examples:
  calmix train --data photos
  calmix train --features vectors.npy --labels labels.csv
  calmix train --features clip.npy --features dino.npy --labels labels.csv
  calmix train cpu-fashion-mnist --data fashion-mnist
  calmix train cifar10 --data cifar-10-batches-bin --set labels.count=25 --seed 1
  calmix train --file mine.toml --run-dir runs/mine
  calmix train --data photos --unlabelled picked.parquet

Progress:
  loss   total loss on labels, pseudo-labels and mixed images
  used   share of the unlabelled images whose pseudo-labels are used
  gap    mean confidence minus accuracy, in points: positive if the model is over-confident
  wait   share of the time that the network waits for images";

//! Options that override keys of a recipe, and options for the processes that train it.

use anyhow::Result;
use calmix_recipe::Layers;
use calmix_recipe::device::Device;
use clap::Args;

use crate::args::options::data::DataArgs;

/// Options that override keys of a recipe, and `--quiet`.
#[derive(Debug, Args)]
pub struct RecipeArgs {
    #[command(flatten)]
    pub data: DataArgs,
    /// Set a recipe key, such as checkpoint.every=100; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// Device: cpu, cuda, cuda:1, mps [default: that of the run; for a new run the first GPU, otherwise the CPU]
    #[arg(long)]
    device: Option<Device>,
    /// CPU threads per process [default: all cores, shared by the processes]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    threads: Option<u32>,
    /// Also write TensorBoard event files
    #[arg(long)]
    tensorboard: bool,
    /// Show only warnings and the result, no progress
    #[arg(long, short)]
    pub quiet: bool,
}

impl RecipeArgs {
    /// Returns whether no key is overridden.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
            && self.settings.is_empty()
            && self.device.is_none()
            && self.threads.is_none()
            && !self.tensorboard
    }

    /// Returns the keys that `--set` sets.
    pub fn set_keys(&self) -> impl Iterator<Item = &str> {
        self.settings.iter().filter_map(|setting| setting.split_once('=')).map(|(key, _)| key.trim())
    }

    /// Returns every overridden key, each after its option.
    pub fn overridden_keys(&self) -> Vec<(String, &str)> {
        let settings = self.set_keys().map(|key| (format!("--set {key}"), key));
        let options = [
            ("--data", "dataset.path", self.data.named().is_some()),
            ("--prepared", "dataset.prepared", self.data.has_prepared()),
            ("--device", "train.device", self.device.is_some()),
            ("--threads", "train.threads", self.threads.is_some()),
            ("--tensorboard", "log.tensorboard", self.tensorboard),
        ];
        let given = options.into_iter().filter(|(.., is_given)| *is_given);
        settings.chain(given.map(|(option, key, _)| (option.to_owned(), key))).collect()
    }

    /// Overrides keys of a recipe. `--set` is applied first, so that its numbers in messages are those on the command line.
    pub fn apply(&self, layers: Layers) -> Result<Layers> {
        Ok(self.apply_with(layers, &self.data.settings()?))
    }

    /// Overrides keys of a recipe on vectors, where `--data` may also be a file.
    pub fn apply_to_vectors(&self, layers: Layers) -> Result<Layers> {
        Ok(self.apply_with(layers, &self.data.vector_settings()?))
    }

    fn apply_with(&self, layers: Layers, data: &[String]) -> Layers {
        let layers = self.settings.iter().fold(layers, |layers, setting| layers.set(setting));
        let layers = data.iter().fold(layers, |layers, setting| layers.set(setting));
        let options = [
            ("--device", "train.device", self.device.map(|device| device.to_string())),
            ("--threads", "train.threads", self.threads.map(|threads| threads.to_string())),
            ("--tensorboard", "log.tensorboard", self.tensorboard.then(|| "true".to_owned())),
        ];
        let given = options.into_iter().filter_map(|(option, key, value)| Some((option, key, value?)));
        given.fold(layers, |layers, (option, key, value)| layers.option(option, key, &value))
    }
}

/// Options for the processes that train a run.
#[derive(Debug, Args)]
pub struct ProcessArgs {
    /// Number of local processes; on several machines, use torchrun or srun
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub processes: Option<u16>,
    /// Continue a run that a process on another machine has not closed; only if you know that it has ended
    #[arg(long)]
    pub take_over: bool,
}

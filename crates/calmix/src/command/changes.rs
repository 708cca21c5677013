//! What is changed about a recipe from the command line.

use std::path::Path;

use anyhow::Result;
use calmix::train::recipe::Layers;
use clap::Args;

use super::place::Place;

/// Changes to a recipe, and how much is told.
#[derive(Debug, Args)]
pub(crate) struct Changes {
    #[command(flatten)]
    place: Place,
    /// Set a key of the recipe, such as train.steps=2000; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// Threads of the arithmetic on a CPU [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    threads: Option<u32>,
    /// Write events for TensorBoard as well
    #[arg(long)]
    tensorboard: bool,
    /// Show no progress: only warnings and the result
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

impl Changes {
    /// The folder of the dataset, if it was named and is there.
    pub(crate) fn data(&self) -> Result<Option<&Path>> {
        self.place.data()
    }

    /// Whether there is anything to change.
    pub(crate) fn are_none(&self) -> bool {
        self.place.is_none() && self.settings.is_empty() && self.threads.is_none() && !self.tensorboard
    }

    /// Lays the changes over a recipe. The settings come first, so that their numbers in messages are those on the
    /// command line.
    pub(crate) fn over(&self, layers: Layers) -> Result<Layers> {
        let layers = self.settings.iter().fold(layers, |layers, setting| layers.set(setting));
        let mut flags = self.place.settings()?;
        flags.extend(self.threads.map(|threads| format!("train.threads={threads}")));
        flags.extend(self.tensorboard.then(|| "log.tensorboard=true".to_owned()));
        Ok(flags.iter().fold(layers, |layers, flag| layers.set(flag)))
    }
}

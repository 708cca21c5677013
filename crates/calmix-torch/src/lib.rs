//! The training of whole networks by calmix: the commands that need libtorch.
//!
//! The binary `calmix-torch` runs them; `calmix` starts it. This crate re-exports the libraries that it consists of: those of
//! [`calmix`], and two on libtorch.
//!
//! | module | crate | what it does |
//! |---|---|---|
//! | [`engine`] | `calmix-engine` | networks and the training step, on libtorch |
//! | [`train`] | `calmix-train` | the trainer |
#![forbid(unsafe_code)]

mod build_info;
mod doctor;
mod networks;

use anyhow::Result;
use calmix::args::Command;
use calmix::command;
use calmix::error::exit::Exit;
use calmix::trainer::Trainers;
use calmix_engine::device;

use crate::networks::Networks;

pub use calmix::{core, data, io, metrics, recipe, report, run};
pub use calmix_engine as engine;
pub use calmix_train as train;

/// Runs a command.
#[doc(hidden)]
pub fn run_command(command: Command) -> Result<Exit> {
    match command {
        Command::Doctor(args) => doctor::run(&args),
        command => command::run(command, &Trainers::of_both(&Networks, device::fastest)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::process::Command;

    use calmix::data::split::draws;
    use calmix::io::lock::locks;
    use calmix::recipe::resolutions;
    use clap::Parser as _;

    use calmix::args::Calmix;

    use crate::run_command;
    use calmix::terminal::print;

    /// The text before the counts that the process below prints.
    const COUNTED: &str = "resolutions, draws and locks: ";
    const FOLDER: &str = "CALMIX_TEST_FOLDER";

    /// The recipe is resolved before and after the dataset is read; the split is drawn and the run locked once.
    #[test]
    fn train_resolves_twice_and_draws_and_locks_once() {
        let folder = tempfile::tempdir().unwrap();
        for class in ["cat", "dog"] {
            let images = folder.path().join("photos").join(class);
            fs::create_dir_all(&images).unwrap();
            for number in 0..4 {
                let mut encoder =
                    png::Encoder::new(File::create(images.join(format!("{number}.png"))).unwrap(), 8, 8);
                encoder.set_color(png::ColorType::Grayscale);
                encoder.write_header().unwrap().write_image_data(&[number; 64]).unwrap();
            }
        }
        // A process of its own: other tests resolve recipes, too.
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "tests::counts_its_calls", "--ignored", "--nocapture"]);
        command.env(FOLDER, folder.path()).env("CALMIX_WEIGHTS", folder.path().join("none"));
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            text.contains(&format!("{COUNTED}2 1 1\n")),
            "{text}{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    #[test]
    #[ignore = "the test above starts it"]
    fn counts_its_calls() {
        let folder = std::path::PathBuf::from(std::env::var_os(FOLDER).unwrap());
        let data = folder.join("photos").display().to_string();
        let run = folder.join("run").display().to_string();
        let settings =
            ["train.steps=1", "train.batch=2", "train.ratio=1", "network.name=wrn-10-1", "augment.size=8"];
        let arguments = ["calmix", "train", "--data", &data, "--run-dir", &run, "--threads", "1"];
        let arguments =
            arguments.into_iter().chain(settings.into_iter().flat_map(|setting| ["--set", setting]));
        run_command(Calmix::parse_from(arguments).command).unwrap();
        print(&format!("{COUNTED}{} {} {}", resolutions(), draws(), locks())).unwrap();
    }
}

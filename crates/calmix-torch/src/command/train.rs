//! `calmix train` of a whole network.

use std::path::Path;

use anyhow::{Error, Result};
use calmix::command::data_args::{existing_data, on_file_system};
use calmix::command::train_args::TrainArgs;
use calmix::cores;
use calmix::data_warnings::warn_about_labels;
use calmix::error::CliError;
use calmix::exit::Exit;
use calmix::format::counted;
use calmix::notice_printer::NoticePrinter;
use calmix::progress::ProgressSink;
use calmix::recipe::device::Device;
use calmix::recipe::{OrAuto, Resolved};
use calmix::recipe_warnings::warn_about_recipe;
use calmix::run_summary::summary;
use calmix::start_notice::{chosen_recipe, start_context};
use calmix::stop::Stop;
use calmix::terminal::{status, warn_at_once};
use calmix::vectors::start::{Draft, PreparedRun, RunPlace, prepare_run};
use calmix_engine::{device, precision};
use calmix_train::launch::LaunchInfo;
use calmix_train::trainer::{self, Trainer};

use super::resume::{show_outcome, silent_exit};
use crate::build_info;
use crate::launch_args::launch_info;
use crate::supervise::supervise;

pub(crate) fn run(args: &TrainArgs) -> Result<Exit> {
    args.refuse_path_as_recipe()?;
    on_file_system(args.run_dir.as_deref(), "a run folder")?;
    args.overrides.data_folder()?;
    let draft = Draft::new(args.layers()?, device::fastest)?;
    draft.resolved.ready()?;
    existing_data(Path::new(&draft.resolved.recipe.dataset.path))?;
    if let OrAuto::Is(device) = draft.resolved.recipe.train.device {
        device::check(device).map_err(|error| CliError::invalid(error.to_string()).hint("calmix doctor"))?;
    }
    let launch = launch_info(&args.processes)?;
    let leads = launch.as_ref().is_none_or(|launch| launch.rank == 0);
    let is_quiet = args.overrides.quiet;
    if let Some(chosen) = draft.chosen_recipe.filter(|_| leads && !is_quiet) {
        status(&chosen_recipe(chosen));
    }
    let requested = draft.resolved.hash();
    if let Some(launch) = launch.as_ref().filter(|launch| launch.rank > 0) {
        return follow(launch, &draft.resolved, requested, args.required_run_dir()?);
    }
    let stop = Stop::listen()?;
    let prepared = prepare(args, &draft, launch.is_some(), &stop)?;
    announce(args, &draft, &prepared, launch.as_ref())?;
    if let Some(processes) = args.processes.to_start() {
        let trainer = Trainer::new(stop.flag()).built_from(build_info::build());
        let run = trainer.create(prepared, processes)?;
        let quiet = is_quiet.then(|| "--quiet".into());
        let arguments = ["resume".into(), run.clone().into()].into_iter().chain(quiet);
        return supervise(&arguments.collect::<Vec<_>>(), processes, &run, &stop);
    }
    let stop = stop.announced();
    let recipe = &prepared.resolved.recipe;
    let progress = ProgressSink::new(recipe, is_quiet);
    let trainer = Trainer::new(stop.flag()).built_from(build_info::build()).warning(warn_at_once);
    let trainer = trainer.taking_over(args.processes.take_over).sink(progress);
    let run = prepared.folder.path().to_owned();
    let outcome = match &launch {
        Some(launch) => stop
            .ending_at_signal(|| trainer.join(launch, &prepared.resolved.recipe))
            .and_then(|trainer| trainer.asked(requested).start_prepared(prepared)),
        None => trainer.start_prepared(prepared),
    };
    show_outcome(outcome.map_err(Error::from), &run, stop, launch.as_ref())
}

fn prepare(args: &TrainArgs, draft: &Draft, is_launched: bool, stop: &Stop) -> Result<PreparedRun> {
    let place = match &args.run_dir {
        // A launcher may start the same command again.
        _ if is_launched => RunPlace::NewOrBegun(args.required_run_dir()?.to_owned()),
        Some(folder) => RunPlace::New(folder.clone()),
        None => RunPlace::Next { name: Some(args.run_name(draft.base())) },
    };
    let mut printer = NoticePrinter::new(args.overrides.quiet, "image");
    Ok(prepare_run(draft, &place, start_context(&mut printer, stop))?)
}

/// Shows what will be trained, and warnings about it.
fn announce(
    args: &TrainArgs,
    draft: &Draft,
    prepared: &PreparedRun,
    launch: Option<&LaunchInfo>,
) -> Result<()> {
    warn_about_recipe(&prepared.resolved);
    warn_about_labels(&prepared.resolved.recipe, &prepared.dataset, &prepared.split)?;
    if !args.overrides.quiet {
        let processes = launch.map(|launch| launch.local_world).or(args.processes.to_start());
        show_summary(&args.run_name(draft.base()), prepared, processes.unwrap_or(1))?;
    }
    Ok(())
}

/// Shows the summary of a run, with the number of processes on this machine.
fn show_summary(name: &str, prepared: &PreparedRun, processes: usize) -> Result<()> {
    let train = &prepared.resolved.recipe.train;
    let device = train.device.or_else(device::fastest);
    let precision = train.precision.or_else(|| precision::best(device));
    let each = if processes > 1 { format!(" in each of {processes} processes") } else { String::new() };
    let threads = trainer::threads(train.threads, processes);
    let shared = match device {
        Device::Cpu => format!(", {}{each}", counted(threads.into(), "thread")),
        Device::Cuda(_) | Device::Mps => each,
    };
    let precision = format!("{precision:?}").to_lowercase();
    status(&summary(name, prepared, &format!("{device}{shared}, {precision}"))?);
    if device == Device::Cpu {
        cores::warn_if_oversubscribed(threads, processes);
    }
    Ok(())
}

/// Trains on a rank other than 0, which neither prepares the dataset nor prints.
fn follow(launch: &LaunchInfo, resolved: &Resolved, requested: String, run: &Path) -> Result<Exit> {
    let stop = Stop::listen()?;
    let trainer = Trainer::new(stop.flag()).warning(warn_at_once);
    let trainer = stop.ending_at_signal(|| trainer.join(launch, &resolved.recipe))?;
    let outcome = trainer.asked(requested).start_or_resume(resolved, run);
    silent_exit(outcome, stop)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::process::Command;

    use calmix::io::lock::locks;
    use calmix::recipe::resolutions;
    use clap::Parser as _;

    use calmix::command::Calmix;

    use crate::run_command;
    use calmix::terminal::print;

    /// The text before the counts that the process below prints.
    const COUNTED: &str = "resolutions and locks: ";
    const FOLDER: &str = "CALMIX_TEST_FOLDER";

    /// The recipe is resolved before and after the dataset is read; the run is locked once.
    #[test]
    fn train_resolves_twice_and_locks_once() {
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
        command.args(["--exact", "command::train::tests::counts_its_calls", "--ignored", "--nocapture"]);
        command.env(FOLDER, folder.path()).env("CALMIX_WEIGHTS", folder.path().join("none"));
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            text.contains(&format!("{COUNTED}2 1\n")),
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
        print(&format!("{COUNTED}{} {}", resolutions(), locks())).unwrap();
    }
}

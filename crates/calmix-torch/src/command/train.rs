//! `calmix train`: trains a model from a recipe and a dataset.

use std::path::Path;

use anyhow::{Error, Result};
use calmix::command::data_args::{existing_data, on_file_system};
use calmix::command::train_args::TrainArgs;
use calmix::data_warnings::warn_about_labels;
use calmix::error::CliError;
use calmix::exit::Exit;
use calmix::format::shell_quoted;
use calmix::io::shown::shown;
use calmix::launched::shard_of_launch;
use calmix::notice_printer::NoticePrinter;
use calmix::progress::ProgressSink;
use calmix::recipe::{OrAuto, Resolved, builtin, detect_source, is_own_format, recipe_for};
use calmix::recipe_warnings::warn_about_recipe;
use calmix::run_outcome::show_stopped;
use calmix::stop::Stop;
use calmix::terminal::{status, warn_at_once};
use calmix_engine::device;
use calmix_train::launch::LaunchInfo;
use calmix_train::start::{Draft, PreparedRun, RunPlace, prepare_run};
use calmix_train::trainer::Trainer;

use super::features::make_features;
use super::resume::{show_outcome, silent_exit};
use crate::launch_args::launch_info;
use crate::start_notice::{chosen_backbone, chosen_recipe, start_context};
use crate::supervise::supervise;
use crate::{build_info, summary};

pub(crate) fn run(args: &TrainArgs) -> Result<Exit> {
    refuse_path_as_recipe(args)?;
    on_file_system(args.run_dir.as_deref(), "a run folder")?;
    args.overrides.data_folder()?;
    let draft = Draft::new(args.layers()?)?;
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
    if args.features_only {
        let shard = args.shard.or_else(|| launch.as_ref().and_then(shard_of_launch));
        return make_features(shard, draft, is_quiet);
    }
    let requested = draft.resolved.hash();
    if let Some(launch) = launch.as_ref().filter(|launch| launch.rank > 0) {
        return follow(launch, &draft.resolved, requested, required_run_dir(args)?);
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
        // A head has no checkpoints: there is nothing to wait for.
        None if recipe.has_head() => {
            let recipe = recipe.clone();
            stop.ending_soon(|| show_stopped(&run, &recipe), || trainer.start_prepared(prepared))
        }
        None => trainer.start_prepared(prepared),
    };
    show_outcome(outcome.map_err(Error::from), &run, stop, launch.as_ref())
}

fn prepare(args: &TrainArgs, draft: &Draft, is_launched: bool, stop: &Stop) -> Result<PreparedRun> {
    let place = match &args.run_dir {
        // A launcher may start the same command again.
        _ if is_launched => RunPlace::NewOrBegun(required_run_dir(args)?.to_owned()),
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
    if let Some(choice) = prepared.backbone.as_ref().filter(|_| !args.overrides.quiet) {
        status(&chosen_backbone(choice));
    }
    warn_about_recipe(&prepared.resolved);
    warn_about_labels(&prepared.resolved.recipe, &prepared.dataset, &prepared.split)?;
    if !args.overrides.quiet {
        let processes = launch.map(|launch| launch.local_world).or(args.processes.to_start());
        summary::show(&args.run_name(draft.base()), prepared, processes.unwrap_or(1))?;
    }
    Ok(())
}

/// The folder of the run: a launcher may start the same command again, so the user has to name it.
fn required_run_dir(args: &TrainArgs) -> Result<&Path> {
    args.run_dir.as_deref().ok_or_else(|| {
        let message = "a launcher started this process and may start it again, so it needs --run-dir";
        CliError::invalid(message).hint("--run-dir FOLDER, a folder that all processes share").into()
    })
}

/// Refuses a dataset or a file in the place of the recipe.
fn refuse_path_as_recipe(args: &TrainArgs) -> Result<()> {
    let Some(name) = args.recipe.as_deref().filter(|name| !is_builtin(name)) else { return Ok(()) };
    let path = Path::new(name);
    let quoted = shell_quoted(path);
    let (what, meant) = if path.is_dir() {
        let source = detect_source(path, false);
        let recipe = if is_own_format(source) { String::new() } else { format!("{} ", recipe_for(source)) };
        ("a folder", format!("calmix train {recipe}--data {quoted}"))
    } else if path.is_file() {
        ("a file", format!("calmix train --file {quoted}"))
    } else {
        return Ok(());
    };
    let message = format!("{} is {what}, not a recipe; did you mean `{meant}`?", shown(name));
    Err(CliError::invalid(message).hint("`calmix recipes` lists the recipes").into())
}

fn is_builtin(name: &str) -> bool {
    builtin().iter().any(|recipe| recipe.name == name)
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

    use calmix::data::split::draws;
    use calmix::io::lock::locks;
    use calmix::recipe::resolutions;
    use clap::Parser as _;

    use calmix::command::Calmix;

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
        command.args(["--exact", "command::train::tests::counts_its_calls", "--ignored", "--nocapture"]);
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

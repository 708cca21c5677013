//! `calmix sweep`: many runs from one file, trained by any number of workers.

use std::collections::BTreeMap;

use calmix_data::default_paths::folder_for_output;
use calmix_io::shown::shown;
use calmix_io::text::wrapped;
use calmix_recipe::must_match;
use calmix_recipe::sweep::SweepCell;
use calmix_run::sweep_folder::SweepFolder;

use crate::args::options::recipe::RecipeArgs;
use crate::args::sweep::SweepArgs;
use crate::error::CliError;
use crate::error::exit::Exit;
use crate::output::format::{counted, grouped, same_command};
use crate::terminal::print;
use crate::trainer::Trainers;
use anyhow::Result;

use crate::sweep::sweep_file::read;
use crate::sweep::sweep_run::SweepRun;
use crate::sweep::worker::SweepWorker;

pub(super) fn run(args: &SweepArgs, trainers: &Trainers<'_>) -> Result<Exit> {
    let sweep = read(args)?;
    refuse_same_runs(args, &sweep.cells)?;
    let mut cells = Vec::new();
    for cell in sweep.cells {
        let mut planned = SweepRun::new(cell, &args.overrides, args.datasets.as_deref(), trainers)?;
        record_overrides(&mut planned, &args.overrides);
        cells.push(planned);
    }
    if args.dry_run {
        print(&listed(&cells))?;
        return Ok(Exit::Done);
    }
    for cell in &cells {
        cell.ready()?;
    }
    let Some(first) = cells.first() else { return Ok(Exit::Done) };
    let folder = match &args.sweep_dir {
        Some(folder) => folder.clone(),
        None => {
            folder_for_output(first.data()).join("sweeps").join(args.sweep.file_stem().unwrap_or_default())
        }
    };
    let worker = SweepWorker {
        folder: SweepFolder::create(folder)?,
        cells,
        overrides: &args.overrides,
        retry: args.retry,
        wait: args.wait,
        again: same_command("--retry"),
    };
    worker.run()
}

/// Refuses an option that overrides a key in which the runs differ: they would be the same run under several names.
fn refuse_same_runs(args: &SweepArgs, cells: &[SweepCell]) -> Result<()> {
    let mut overridden = args.overrides.overridden_keys();
    overridden.extend(args.datasets.is_some().then(|| ("--datasets".to_owned(), "dataset.path")));
    let is_overridden = |key: &str| overridden.iter().any(|(_, overridden)| *overridden == key);
    let mut distinct: BTreeMap<Vec<String>, &SweepCell> = BTreeMap::new();
    for cell in cells {
        let settings = cell.settings.iter().filter(|(key, _)| !is_overridden(key));
        let settings = settings.map(|(key, value)| format!("{key} = {value}"));
        let settings: Vec<String> = settings.chain([cell.recipe.clone()]).collect();
        let Some(other) = distinct.insert(settings, cell) else { continue };
        let differs = |(_, key): &&(String, &str)| cell.settings.get(*key) != other.settings.get(*key);
        let Some((option, key)) = overridden.iter().find(differs) else { continue };
        let message = format!(
            "{}: the sweep has several values of {key}, and {option} sets one for all runs: {} and {} would be the same",
            shown(args.sweep.display()),
            shown(&other.name),
            shown(&cell.name)
        );
        let hint = format!("leave {option} out, or give {key} one value in the sweep file");
        return Err(CliError::invalid(message).hint(hint).into());
    }
    Ok(())
}

/// Adds the keys of `--set` to the settings of a cell, so that lists and summaries show them.
fn record_overrides(planned: &mut SweepRun<'_>, overrides: &RecipeArgs) {
    // Skip keys such as the device or logging, in which workers may differ.
    let decides = must_match();
    for key in overrides.set_keys().filter(|key| decides.iter().any(|decisive| decisive == key)) {
        if let Some(value) = planned.resolved().value(key).cloned() {
            planned.cell.settings.insert(key.to_owned(), value);
        }
    }
}

/// Lists the runs, one per line, with long lines broken.
fn listed(cells: &[SweepRun<'_>]) -> String {
    let lines = cells.iter().map(|planned| {
        let cell = &planned.cell;
        let line = format!("{}: recipe={} {}", cell.name, cell.recipe, cell.changes().join(" "));
        wrapped(&shown(line), 0, 4) + "\n"
    });
    let steps = cells.iter().map(|cell| cell.recipe().steps()).fold(0, u64::saturating_add);
    let steps = if steps == 0 { String::new() } else { format!(", {} steps in total", grouped(steps)) };
    let lines = lines.collect::<Vec<_>>().concat();
    format!("{lines}\n{}{steps}; every recipe is valid", counted(cells.len() as u64, "run"))
}

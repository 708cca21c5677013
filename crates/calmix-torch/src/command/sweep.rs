//! `calmix sweep`: trains the runs of a grid.

use std::path::Path;

use anyhow::{Context, Result};
use calmix::command::recipe_args::RecipeArgs;
use calmix::command::sweep_args::SweepArgs;
use calmix::data::default_place::folder_for_output;
use calmix::error::CliError;
use calmix::exit::Exit;
use calmix::format::{counted, grouped};
use calmix::io::shown::shown;
use calmix::io::wrapped::wrapped;
use calmix::recipe::builtin_sweeps;
use calmix::recipe::must_match;
use calmix::recipe::sweep::Sweep;
use calmix::run::sweep_folder::SweepFolder;
use calmix::same_command::same_command;
use calmix::terminal::print;

use crate::sweep::{PlannedCell, SweepWorker};

/// Bytes of the longest sweep file.
const LONGEST: u64 = 1 << 20;

pub(crate) fn run(args: &SweepArgs) -> Result<Exit> {
    let sweep = read(args)?;
    let mut cells = Vec::new();
    for cell in sweep.cells {
        let datasets = args.datasets.as_deref();
        let mut planned = PlannedCell::new(cell, &args.overrides, datasets)?;
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

/// Reads the sweep of a file, otherwise the built-in sweep of that name.
fn read(args: &SweepArgs) -> Result<Sweep> {
    let name = args.sweep.to_str().unwrap_or_default();
    let builtin = builtin_sweeps().iter().find(|sweep| sweep.name == name && !args.sweep.exists());
    let text = match builtin {
        Some(sweep) => sweep.text.to_owned(),
        None => read_text(&args.sweep)?,
    };
    Sweep::read(&args.sweep, &text).map_err(|error| CliError::invalid(error.to_string()).into())
}

/// Adds the keys of `--set` to the settings of a cell, so that lists and summaries show what its run trains with.
fn record_overrides(planned: &mut PlannedCell, overrides: &RecipeArgs) {
    // Not where it runs or what it logs: workers may differ in those.
    let decides = must_match();
    for key in overrides.set_keys().filter(|key| decides.iter().any(|decisive| decisive == key)) {
        if let Some(value) = planned.draft.resolved.value(key) {
            planned.cell.settings.insert(key.to_owned(), value.clone());
        }
    }
}

fn read_text(path: &Path) -> Result<String> {
    use std::io::Read;
    let names: Vec<_> = builtin_sweeps().iter().map(|sweep| sweep.name).collect();
    let file = std::fs::File::open(path).map_err(|error| {
        let message = format!("{}: {error}", shown(path.display()));
        CliError::invalid(message).hint(format!("name a file, or one of {}", names.join(", ")))
    })?;
    let mut text = String::new();
    let read = file.take(LONGEST + 1).read_to_string(&mut text);
    read.with_context(|| shown(path.display()))?;
    if text.len() as u64 > LONGEST {
        return Err(
            CliError::invalid(format!("{}: longer than {LONGEST} bytes", shown(path.display()))).into()
        );
    }
    Ok(text)
}

/// A line for each run, broken if it is long.
fn listed(cells: &[PlannedCell]) -> String {
    let lines = cells.iter().map(|planned| {
        let cell = &planned.cell;
        let line = format!("{}: recipe={} {}", cell.name, cell.recipe, cell.changes().join(" "));
        wrapped(&shown(line), 0, 4) + "\n"
    });
    let steps = cells.iter().map(|cell| cell.recipe().train.steps).fold(0, u64::saturating_add);
    let lines = lines.collect::<Vec<_>>().concat();
    format!(
        "{lines}\n{}, {} steps in total; every recipe is valid",
        counted(cells.len() as u64, "run"),
        grouped(steps)
    )
}

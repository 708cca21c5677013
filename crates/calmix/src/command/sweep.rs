//! `calmix sweep`: trains the runs of a grid.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use calmix::io::shown::shown;
use calmix::recipe::builtin_sweeps;
use calmix::recipe::must_match;
use calmix::recipe::sweep::Sweep;
use calmix::run::sweep_folder::SweepFolder;
use calmix::train::start::folder_for_output;
use clap::Args;

use super::recipe_args::RecipeArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::format::{counted, grouped};
use crate::same_command::same_command;
use crate::sweep::{PlannedCell, SweepWorker};
use crate::terminal::print;

/// Bytes of the longest sweep file.
const LONGEST: u64 = 1 << 20;

/// Train every run of a grid; restartable at any time, by any number of workers
///
/// SWEEP is a file, or table-1, table-2, table-3, table-4 or figure-1 of the paper. Start the same command again to
/// continue after a kill, or several times at once, on machines that share the folder, to train in parallel: each worker
/// claims the next free run, and the run of a worker that dies becomes free again. Options override keys of all runs.
///
/// At the end, the folder of the sweep has summary.json and summary.csv; `calmix compare` shows its settings side by side.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SweepArgs {
    /// Sweep file, or the name of a built-in sweep
    sweep: PathBuf,
    /// Folder of the sweep [default: sweeps/SWEEP]
    #[arg(long, value_name = "FOLDER")]
    sweep_dir: Option<PathBuf>,
    /// Folder that holds the datasets in subfolders: cifar10, cifar100, svhn, stl10, fashion-mnist, …
    #[arg(long, value_name = "FOLDER", conflicts_with = "data")]
    datasets: Option<PathBuf>,
    /// Check and list the runs without training
    #[arg(long)]
    dry_run: bool,
    /// Retry failed runs
    #[arg(long)]
    retry: bool,
    /// Wait until the runs of all other workers are done, and take over those of workers that die
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    overrides: RecipeArgs,
}

const EXAMPLES: &str = "\
Examples:
  calmix sweep mine.toml --data fashion-mnist --threads 1
  calmix sweep table-1 --datasets datasets --dry-run
  sbatch --array=1-8 --wrap 'calmix sweep table-1 --datasets datasets --sweep-dir shared/table-1'

A sweep file:
  [[grid]]
  recipe = \"cpu-fashion-mnist\"
  seeds = [1, 2, 3]
  train.steps = 500
  method.base = [\"fixmatch\", \"softmatch\"]
  method.mixup.pairing = [\"none\", \"calibratemix\"]";

impl SweepArgs {
    pub(crate) fn run(self) -> Result<Exit> {
        let sweep = self.read()?;
        let mut cells = Vec::new();
        for cell in sweep.cells {
            let datasets = self.datasets.as_deref();
            let mut planned = PlannedCell::new(cell, &self.overrides, datasets)?;
            record_overrides(&mut planned, &self.overrides);
            cells.push(planned);
        }
        if self.dry_run {
            print(&listed(&cells))?;
            return Ok(Exit::Done);
        }
        for cell in &cells {
            cell.ready()?;
        }
        let Some(first) = cells.first() else { return Ok(Exit::Done) };
        let folder = match &self.sweep_dir {
            Some(folder) => folder.clone(),
            None => folder_for_output(first.data())
                .join("sweeps")
                .join(self.sweep.file_stem().unwrap_or_default()),
        };
        let worker = SweepWorker {
            folder: SweepFolder::create(folder)?,
            cells,
            overrides: &self.overrides,
            retry: self.retry,
            wait: self.wait,
            again: same_command("--retry"),
        };
        worker.run()
    }

    /// Reads the sweep of a file, otherwise the built-in sweep of that name.
    fn read(&self) -> Result<Sweep> {
        let name = self.sweep.to_str().unwrap_or_default();
        let builtin = builtin_sweeps().iter().find(|sweep| sweep.name == name && !self.sweep.exists());
        let text = match builtin {
            Some(sweep) => sweep.text.to_owned(),
            None => read_text(&self.sweep)?,
        };
        Sweep::read(&self.sweep, &text).map_err(|error| CliError::invalid(error.to_string()).into())
    }
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

/// A line for each run.
fn listed(cells: &[PlannedCell]) -> String {
    let lines = cells.iter().map(|planned| {
        let cell = &planned.cell;
        shown(format!("{}: recipe={} {}", cell.name, cell.recipe, cell.changes().join(" "))) + "\n"
    });
    let steps = cells.iter().map(|cell| cell.recipe().train.steps).fold(0, u64::saturating_add);
    let lines = lines.collect::<Vec<_>>().concat();
    format!(
        "{lines}\n{}, {} steps in total; every recipe is valid",
        counted(cells.len() as u64, "run"),
        grouped(steps)
    )
}

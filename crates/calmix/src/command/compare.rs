//! `calmix compare`: settings side by side, with paired differences over seeds.

use std::path::{Path, PathBuf};

use anyhow::Result;
use calmix_io::shown::shown;
use calmix_recipe::{Resolved, SEEDS, is_papers, must_match};
use calmix_report::compare::{ComparedRun, Comparison};
use calmix_run::read;
use calmix_run::read::inspect;
use calmix_run::read::measured::{Measured, measured};
use clap::{Args, ValueEnum};

use crate::error::CliError;
use crate::exit::Exit;
use crate::format::counted;
use crate::run_list::runs_of;
use crate::terminal::{print, print_json, warn};

/// Compare finished runs: settings side by side, with paired differences over seeds
///
/// Runs that differ only in their seeds form one setting. Each setting is compared with the setting of --against, or by
/// default with the plain base algorithm on the same data, otherwise with the first setting there: mean difference over
/// runs with the same seeds, Student's confidence interval, and p-values with Holm's correction. Two runs per setting are
/// too few for a conclusion. If the setting is one of the paper's, the paper's result is shown next to it. For runs on
/// frozen features the tables show the recipe's own head, whichever head the run kept, and the head that was trained on
/// the labels alone. Changes no files.
#[derive(Debug, Args)]
#[command(after_long_help = FIELDS)]
pub struct CompareArgs {
    /// Runs, or folders of runs, such as the folder of a sweep
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
    /// Compare every setting with the setting of this run
    #[arg(long, value_name = "RUN")]
    against: Option<PathBuf>,
    /// Format of the tables
    #[arg(long, value_enum, default_value_t = TableFormat::Markdown, conflicts_with = "json")]
    format: TableFormat,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// The format of printed tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TableFormat {
    /// For reading and web pages
    Markdown,
    /// For LaTeX documents; needs booktabs and multirow
    Latex,
    /// One line per setting and metric, for spreadsheets and scripts
    Csv,
}

const FIELDS: &str = "\
Examples:
  calmix compare runs
  calmix compare sweeps/table-1 --format latex > table-1.tex
  calmix compare runs/a-1 runs/a-2 runs/a-3 runs/b-1 runs/b-2 runs/b-3 --against runs/a-1

Fields of --json, shares between 0 and 1:
  columns      dataset, labels (kept per class), on (the split)
  rows         names of the methods
  cells        column, row, seeds, ece (15 bins), ece_10, error: n, mean, deviation; measures (nll,
               brier, debiased, calibrated-ece, …: the same); head (recipe or labels-alone; null for
               whole networks); paper (per cent; null unless the setting is the paper's),
               chosen_on_test
  differences  column, row, against, measure, pairs, mean, interval (n, estimate, low, high, level),
               p_value, p_holm, outcome: lower, higher, not-told-apart, too-few or no-scatter
  tests        number of tests in Holm's correction
  notes        what was left out, and why";

impl CompareArgs {
    pub fn run(self) -> Result<Exit> {
        let folders = runs_of(&self.runs)?;
        if let Some(against) =
            self.against.as_deref().filter(|against| !folders.iter().any(|run| run == against))
        {
            let message = format!("--against {}: not one of the runs to compare", shown(against.display()));
            return Err(CliError::invalid(message).hint("list it among the runs, too").into());
        }
        let mut runs = Vec::new();
        let mut unfinished = 0;
        for folder in &folders {
            let compared = compared(folder)?;
            unfinished += u64::from(compared.is_empty());
            runs.extend(compared);
        }
        if unfinished > 0 {
            warn(&format!(
                "{} without metrics left out: unfinished, or never evaluated",
                counted(unfinished, "run")
            ));
        }
        if runs.is_empty() {
            let message = "no finished run to compare";
            return Err(CliError::invalid(message).hint("calmix resume RUN").into());
        }
        let against = self.against.as_deref().map(name);
        let comparison = Comparison::of(runs, against.as_deref())?;
        if self.json {
            print_json(&serde_json::to_value(&comparison)?)?;
        } else {
            print(&match self.format {
                TableFormat::Markdown => comparison.to_markdown(),
                TableFormat::Latex => comparison.to_latex(),
                TableFormat::Csv => comparison.to_csv(),
            })?;
        }
        Ok(Exit::Done)
    }
}

/// The name of a run in a comparison.
fn name(folder: &Path) -> String {
    folder.display().to_string()
}

/// Reads what a comparison needs, once per model of the run that has metrics; empty if the run has no result yet.
fn compared(folder: &Path) -> Result<Vec<ComparedRun>> {
    let Some(result) = read::has_begun(folder).then(|| read::result(folder)).transpose()?.flatten() else {
        return Ok(Vec::new());
    };
    let Some(selected) = result.finished.selected.get(&result.selection) else { return Ok(Vec::new()) };
    let recipe = inspect::recipe(folder)?;
    let summary = read::summary(folder)?;
    let fingerprint = read::environment(folder)?.dataset;
    let is_papers = summary.based_on.as_deref().is_some_and(|base| is_papers(&recipe, base));
    let mut runs = Vec::new();
    for Measured { head, on, samples, metrics, calibrated, .. } in measured(&result) {
        runs.push(ComparedRun {
            name: name(folder),
            settings: settings(&recipe),
            fingerprint: fingerprint.clone(),
            seeds: (summary.seed, summary.label_seed),
            is_papers,
            chosen_on_test: selected.chosen_on_test,
            on,
            samples,
            head,
            metrics,
            calibrated,
        });
    }
    Ok(runs)
}

/// Returns every key that affects what a run learns, except its seeds.
pub(super) fn settings(recipe: &Resolved) -> std::collections::BTreeMap<String, String> {
    let text = |key: String| {
        let value = recipe.value(&key)?;
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Some((key, text))
    };
    must_match().into_iter().filter(|key| !SEEDS.contains(&key.as_str())).filter_map(text).collect()
}

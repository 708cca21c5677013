//! `calmix compare`: settings side by side, with paired differences over seeds.

use std::path::Path;

use anyhow::Result;
use calmix_io::shown::shown;
use calmix_recipe::{Resolved, SEEDS, is_in_paper, must_match};
use calmix_report::compare::{ComparedRun, Comparison};
use calmix_run::read;
use calmix_run::read::inspect;
use calmix_run::result::{ModelMetrics, model_metrics};

use crate::args::compare::{CompareArgs, TableFormat};
use crate::error::CliError;
use crate::error::exit::Exit;
use crate::model::folder::runs_of;
use crate::output::format::counted;
use crate::terminal::{print, print_json, warn};

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

/// Returns the name of a run in a comparison.
fn name(folder: &Path) -> String {
    folder.display().to_string()
}

/// Reads the data of a run for a comparison, once per model with metrics; empty if the run has no result yet.
fn compared(folder: &Path) -> Result<Vec<ComparedRun>> {
    let Some(result) = read::has_begun(folder).then(|| read::result(folder)).transpose()?.flatten() else {
        return Ok(Vec::new());
    };
    let Some(selected) = result.finished.selected.get(&result.selection) else { return Ok(Vec::new()) };
    let recipe = inspect::recipe(folder)?;
    let summary = read::summary(folder)?;
    let fingerprint = read::environment(folder)?.dataset;
    let is_in_paper = summary.based_on.as_deref().is_some_and(|base| is_in_paper(&recipe, base));
    let mut runs = Vec::new();
    for ModelMetrics { head, on, samples, metrics, calibrated, .. } in model_metrics(&result) {
        runs.push(ComparedRun {
            name: name(folder),
            settings: settings(&recipe),
            fingerprint: fingerprint.clone(),
            seeds: (summary.seed, summary.label_seed),
            is_in_paper,
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

/// Returns every key that affects the result of a training, except the seeds.
pub(super) fn settings(recipe: &Resolved) -> std::collections::BTreeMap<String, String> {
    let text = |key: String| {
        let value = recipe.value(&key)?;
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Some((key, text))
    };
    must_match().into_iter().filter(|key| !SEEDS.contains(&key.as_str())).filter_map(text).collect()
}

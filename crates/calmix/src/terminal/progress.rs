//! The progress of a run, with a warning if it would take days. The result is shown by the command.

use std::path::Path;

use calmix_metrics::evaluate::Evaluation;
use calmix_recipe::{Layers, Recipe, recipe_for};
use calmix_run::error::RunError;
use calmix_run::events::{Event, Pace};
use calmix_run::sink::{Progress, Sink, WorkProgress};

use crate::output::format::{counted, grouped, rough_time, shell_quoted};
use crate::terminal::{self, ProgressStream, status, warn};

/// The remaining time in seconds above which a warning suggests a quicker run.
const DAY: f64 = 86_400.0;

/// Shows the events of a run, or only its warnings.
#[derive(Debug)]
pub struct ProgressSink {
    bar: Progress<ProgressStream>,
    steps: u64,
    is_quiet: bool,
    /// The recipe of the run, to suggest a quicker one; `None` after the warning.
    recipe: Option<Box<Recipe>>,
    /// Whether the user resumes the run; a start at the first step is then announced, too.
    is_resumed: bool,
    first_step: u64,
}

impl ProgressSink {
    /// Creates the sink of a run with this recipe; if quiet, it shows only warnings.
    pub fn new(recipe: &Recipe, is_quiet: bool) -> Self {
        let steps = recipe.steps();
        let sample = if recipe.has_vectors() { "vector" } else { "image" };
        let bar = Progress::new(ProgressStream, terminal::progress_style(), steps).with_sample_word(sample);
        let recipe = Some(Box::new(recipe.clone()));
        Self { bar, steps, is_quiet, recipe, is_resumed: false, first_step: 0 }
    }

    /// Announces where the run continues, even at its first step.
    #[must_use]
    pub fn resumed(self) -> Self {
        Self { is_resumed: true, ..self }
    }

    /// Warns once if the run takes days.
    fn warn_if_days(&mut self, pace: &Pace) {
        // Skip the first step, which takes longer than the others.
        let is_measured = pace.step >= self.first_step + 2;
        let left = pace.left_seconds.filter(|&left| left >= DAY && is_measured);
        if let Some((left, recipe)) = left.and_then(|left| Some((left, self.recipe.take()?))) {
            let left = rough_time(left);
            let quicker = quicker(&recipe);
            warn(&format!("at this pace the run takes {left} more (Ctrl-C saves it); {quicker}"));
        }
    }
}

impl Sink for ProgressSink {
    fn event(&mut self, event: &Event) -> Result<(), RunError> {
        match event {
            Event::Note(_) => self.bar.event(event),
            Event::Finished(_) => Ok(()),
            _ if self.is_quiet => Ok(()),
            Event::Step(_) => self.bar.event(event),
            // Drop the intervals, so that the bar does not show the evaluation as a result.
            Event::Evaluation(evaluation) => {
                let evaluation = Evaluation { intervals: None, ..Evaluation::clone(evaluation) };
                self.bar.event(&Event::Evaluation(Box::new(evaluation)))
            }
        }
    }

    fn started(&mut self, step: u64) -> Result<(), RunError> {
        self.first_step = step;
        let steps = counted(self.steps, "step");
        match step {
            _ if self.is_quiet => {}
            0 if self.is_resumed && self.steps == 0 => status("starting from the beginning"),
            0 if self.is_resumed => status(&format!("no checkpoint yet: starting at the first of {steps}")),
            0 => {}
            _ => status(&format!("continuing after {} of {steps}", grouped(step))),
        }
        Ok(())
    }

    fn pace(&mut self, pace: &Pace) -> Result<(), RunError> {
        self.warn_if_days(pace);
        if self.is_quiet { Ok(()) } else { self.bar.pace(pace) }
    }

    fn current_pace(&mut self, pace: &Pace) -> Result<(), RunError> {
        self.warn_if_days(pace);
        if self.is_quiet { Ok(()) } else { self.bar.current_pace(pace) }
    }

    fn work(&mut self, progress: &WorkProgress) -> Result<(), RunError> {
        if self.is_quiet { Ok(()) } else { self.bar.work(progress) }
    }

    fn flush(&mut self) -> Result<(), RunError> {
        self.bar.flush()
    }
}

/// The recipe whose values are suggested for other datasets.
const SMALL_RECIPE: &str = "cpu-cifar10";
/// The keys that decide how long a run takes.
const SPEED_KEYS: [&str; 5] = ["network.name", "train.batch", "train.ratio", "train.step", "train.steps"];

/// Suggests a run that takes minutes: a recipe for the same data, or else values of keys.
pub(crate) fn quicker(recipe: &Recipe) -> String {
    let name = recipe_for(recipe.dataset.source);
    let small = Layers::new().recipe(name).resolve().ok().map(|resolved| resolved.recipe);
    let is_other = small.is_some_and(|small| {
        (&small.network, &small.train.steps, &small.train.batch, &small.augment.size)
            != (&recipe.network, &recipe.train.steps, &recipe.train.batch, &recipe.augment.size)
    });
    if name.starts_with("cpu-") && is_other {
        let data = shell_quoted(Path::new(&recipe.dataset.path));
        return format!("`calmix train {name} --data {data}` takes minutes");
    }
    let small = Layers::new().recipe(SMALL_RECIPE).resolve().ok();
    let value = |key: &str| small.as_ref()?.value(key).map(|value| value.to_string().replace('"', ""));
    let settings = SPEED_KEYS.iter().filter_map(|key| Some(format!("--set {key}={}", value(key)?)));
    format!("a small network with few steps takes minutes: {}", settings.collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_for_the_same_data_or_keys() {
        let of = |name: &str| {
            let resolved = Layers::new().recipe(name).set("dataset.path=my photos").resolve().unwrap();
            quicker(&resolved.recipe)
        };
        assert_eq!(of("folder"), "`calmix train cpu-folder --data 'my photos'` takes minutes");
        assert_eq!(of("cifar10"), "`calmix train cpu-cifar10 --data 'my photos'` takes minutes");
        let keys = of("cifar100");
        assert!(
            keys.contains("--set network.name=wrn-10-2") && keys.contains("--set train.steps=2500"),
            "{keys}"
        );
        assert_eq!(of("cpu-folder"), keys);
    }
}

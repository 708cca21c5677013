//! A run: how far it is, what it was made with, what came of it.

use std::path::Path;

use anyhow::Result;
use calmix::train::inspect::{Inspected, events, has_begun, inspect};
use calmix::train::trainer::TrainError;

use crate::number::{counted, grouped};
use crate::{figures, written};

pub(super) fn shown(folder: &Path) -> Result<String> {
    if !has_begun(folder) {
        return Err(TrainError::Unborn { path: folder.to_owned() }.into());
    }
    let Inspected { recipe, environment, step, skipped, result } = inspect(folder)?;
    let events = events(folder)?;
    let steps = recipe.recipe.train.steps;
    let state = match (&result, step) {
        (Some(_), _) => format!("finished after {}", counted(steps, "step")),
        (None, Some(step)) => format!("{} of {} are kept", grouped(step), counted(steps, "step")),
        (None, None) => format!("no checkpoint yet, of {}", counted(steps, "step")),
    };
    let short = |hash: &str| hash.chars().take(12).collect::<String>();
    let mut text = format!(
        "run {}: {state}\n\
         recipe    {} ({})\n\
         network   {}\n\
         data      {} ({})\n\
         made by   calmix {}, {}, {} on {}\n\n",
        folder.display(),
        recipe.recipe.description,
        short(&recipe.hash()),
        recipe.recipe.network.name,
        recipe.recipe.dataset.path,
        short(&environment.dataset),
        environment.calmix,
        environment.engine,
        environment.system,
        environment.device,
    );
    for bad in skipped {
        text += &format!("warning: the checkpoint of step {} cannot be used: {}\n", bad.step, bad.reason);
    }
    let seen = match &result {
        Some(result) => figures::of_result(result, &events),
        None => figures::latest(&events, |_| true),
    };
    if let Some(first) = seen.first() {
        text += &format!("the model after {}\n\n", counted(first.step, "step"));
    }
    text += &figures::table(&seen).map(|table| table + "\n").unwrap_or_default();
    text += &written::run(folder).replacen("written to", "in", 1);
    let next = if result.is_some() { "evaluate" } else { "resume" };
    Ok(text + &written::next(next, folder))
}

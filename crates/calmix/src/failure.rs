//! How a failure is told: one sentence, what to try, and the exit code.

use std::io::{self, ErrorKind};

use anyhow::Error;
use calmix::train::checkpoint::CheckpointError;
use calmix::train::recipe::{RecipeError, What};
use calmix::train::run::RunError;
use calmix::train::trainer::TrainError;

use crate::exit::Exit;
use crate::number::typed;
use crate::preparing::Interrupted;
use crate::terminal::{painted, tell as say};

/// What was asked for cannot be.
#[derive(Debug)]
pub(crate) struct Mistake {
    what: String,
    next: Option<String>,
    exit: Exit,
}

impl Mistake {
    /// A mistake, in one sentence.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), next: None, exit: Exit::Mistake }
    }

    /// The command to try instead.
    pub(crate) fn or_try(self, next: impl Into<String>) -> Self {
        Self { next: Some(next.into()), ..self }
    }

    /// It was no mistake: something failed on the way.
    pub(crate) fn failed(self) -> Self {
        Self { exit: Exit::Failed, ..self }
    }
}

impl std::fmt::Display for Mistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Mistake {}

/// Tells what failed and what to try; how the command ends.
pub(crate) fn tell(error: &Error) -> Exit {
    // Whoever read our output has seen enough.
    if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe) {
        return Exit::Done;
    }
    if let Some(interrupted) = error.downcast_ref::<Interrupted>() {
        say(&interrupted.to_string());
        return Exit::Interrupted;
    }
    let said = sentence(error);
    let mut lines = said.lines();
    say(&format!("{} {}", painted("error:", "31"), lines.next().unwrap_or_default()));
    lines.for_each(|line| say(&format!("       {line}")));
    let (next, exit) = judged(error);
    if let Some(next) = next {
        say(&format!("{} {next}", painted("try:", "32")));
    }
    exit
}

/// The error and its causes; those that a sentence before has already told are left out.
fn sentence(error: &Error) -> String {
    let mut said = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if !said.contains(&cause) {
            let between = if said.is_empty() { "" } else { ": " };
            said = format!("{said}{between}{cause}");
        }
    }
    said
}

fn judged(error: &Error) -> (Option<String>, Exit) {
    if let Some(mistake) = error.downcast_ref::<Mistake>() {
        return (mistake.next.clone(), mistake.exit);
    }
    if let Some(CheckpointError::Name { .. }) = error.downcast_ref() {
        return (None, Exit::Mistake);
    }
    let train = error.downcast_ref::<TrainError>();
    let recipe = match train {
        Some(TrainError::Recipe(error)) => Some(error),
        _ => error.downcast_ref::<RecipeError>(),
    };
    if let Some(recipe) = recipe {
        return (of_recipe(recipe), Exit::Mistake);
    }
    let run = match train {
        Some(TrainError::Run(error)) => Some(error),
        _ => error.downcast_ref::<RunError>(),
    };
    match (run, train) {
        (Some(RunError::Exists { path }), _) => {
            (Some(format!("calmix resume {}", typed(path))), Exit::Mistake)
        }
        (Some(RunError::NotEmpty { .. }), _) => (None, Exit::Mistake),
        (Some(RunError::NoRun { .. }), _) => {
            (Some("`ls runs` for the runs that there are".to_owned()), Exit::Mistake)
        }
        (_, Some(TrainError::Changed { .. } | TrainError::Unborn { .. })) => {
            (Some("calmix train --help".to_owned()), Exit::Mistake)
        }
        (_, Some(TrainError::Unsupported(_))) => (None, Exit::Mistake),
        (_, Some(TrainError::Checkpoint(CheckpointError::NoneUsable { folder, .. }))) => {
            let run = folder.parent().unwrap_or(folder);
            (Some(format!("calmix inspect {}", typed(run))), Exit::Failed)
        }
        _ => (None, Exit::Failed),
    }
}

fn of_recipe(error: &RecipeError) -> Option<String> {
    match error.problems.first()?.what {
        What::NoRecipe { .. } => Some("`calmix recipes` lists them all".to_owned()),
        What::NoKey { .. } | What::Section => {
            Some("`calmix inspect RECIPE` prints every key with its value".to_owned())
        }
        What::Missing { .. } => Some("add `--data FOLDER`".to_owned()),
        _ => None,
    }
}

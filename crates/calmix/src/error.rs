//! Errors on the terminal: one sentence, a hint, and the exit code.

pub mod exit;
pub mod explained_error;

use std::fmt;
use std::io::{self, ErrorKind};

use anyhow::Error;
use calmix_data::error::DataError;
use calmix_formats::error::{FormatError, FormatProblem};
use calmix_io::error::{ErrorKind as Kind, FileError};
use calmix_io::redacted::redacted;
use calmix_io::shown::shown;
use calmix_recipe::{Layers, RecipeError, What};
use calmix_report::error::ReportError;
use calmix_run::error::RunError;
use clap::error::{ContextKind, ContextValue};

use crate::error::exit::Exit;
use crate::output::format::shell_quoted;
use crate::output::run_files;
use crate::terminal::{status, status_with};

/// An error of the command line itself, with a hint.
#[derive(Debug)]
pub struct CliError {
    message: String,
    hint: Option<String>,
    exit: Exit,
}

impl CliError {
    /// Creates the error for invalid arguments.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, exit: Exit::Invalid }
    }

    /// Creates the error for a failure after the command started.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, ..Self::invalid(message) }
    }

    /// Returns the refusal of a command that needs HTTPS, in a program built without it.
    #[cfg(not(feature = "https"))]
    pub(crate) fn without_https(command: &str) -> Self {
        Self::invalid(format!("this calmix was built without the feature `https`, which `{command}` needs"))
            .hint("cargo install --path crates/calmix --features https")
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CliError {}

/// The user stopped the preparation of a dataset.
#[derive(Debug)]
pub struct PreparationStopped;

impl fmt::Display for PreparationStopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted; the partly prepared dataset was deleted")
    }
}

impl std::error::Error for PreparationStopped {}

/// Shows an error and its hint; returns the exit of the command.
pub fn report(error: &Error) -> Exit {
    // The reader of a pipe, such as `head`, has closed it.
    if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe) {
        return Exit::Done;
    }
    if let Some(stopped) = error.downcast_ref::<PreparationStopped>() {
        status(&stopped.to_string());
        return Exit::Interrupted;
    }
    if let Some(question) = question(error) {
        show(&question, None);
        return Exit::Invalid;
    }
    let (hint, exit) = hint_and_exit(error);
    show(&sentence(error), hint.as_deref());
    exit
}

/// Shows clap's error and exits. An unknown option that is an option of other programs or a key of the recipe, such as
/// `--batch-size`, gets a hint.
pub fn exit_unparsed(error: &clap::Error) -> ! {
    let Some((option, hint)) = intended_option(error) else { error.exit() };
    let about = if option.starts_with("--epoch") { EPOCHS_HINT } else { "" };
    show(&format!("unknown option {option}{about}"), Some(&hint));
    std::process::exit(Exit::Invalid.code().into())
}

/// Options of other programs, with the equivalent in calmix. Those for `train` only come second.
const FOREIGN_OPTIONS: [(&[&str], &str); 4] = [
    (&["--gpu", "--gpus", "--cuda"], "--device cuda"),
    (&["--cpu"], "--device cpu"),
    (&["--workers", "--num-workers", "--jobs"], "--threads N"),
    (&["--verbose"], "progress is shown unless you add --quiet"),
];
const FOREIGN_TRAIN_OPTIONS: [(&[&str], &str); 3] = [
    (
        &["--model", "--net", "--network", "--arch", "--architecture", "--backbone"],
        "--set network.name=NAME, or --set network.weights=NAME for pretrained weights (`calmix weights list`)",
    ),
    (&["--out", "--output", "--output-dir", "--save-dir", "--name"], "--run-dir FOLDER"),
    (&["--config"], "--file FILE"),
];

/// Explains steps to users who look for epochs.
const EPOCHS_HINT: &str = ": calmix counts steps. A step takes train.batch labelled and\n\
                      train.batch × train.ratio unlabelled images, so an epoch over the unlabelled ones is\n\
                      their number / (train.batch × train.ratio) steps";

fn show(message: &str, hint: Option<&str>) {
    // The user may have typed a URL that contains a password or a signature.
    let message = redacted(message);
    let mut lines = message.lines();
    status_with("error:", "31", lines.next().unwrap_or_default());
    lines.for_each(|line| status(&format!("       {line}")));
    if let Some(hint) = hint {
        status_with("try:", "32", &redacted(hint));
    }
}

/// Returns the question that an error about an ambiguous folder or list asks: the finding, and one line per reading.
fn question(error: &Error) -> Option<String> {
    let file = match error.downcast_ref::<DataError>() {
        Some(DataError::File(file)) => file,
        Some(_) => return None,
        None => error.downcast_ref::<FormatError>()?,
    };
    let FormatError { path, place, problem: FormatProblem::Ambiguous { what, readings }, .. } = file else {
        return None;
    };
    let place = place.as_ref().map(|place| format!(", {place}")).unwrap_or_default();
    let found = shown(format!("{}{place}: {what}", path.display()));
    Some(readings.iter().fold(found, |text, reading| format!("{text}\n{}", shown(reading))))
}

/// Joins the error and its causes, without those that an earlier one already contains.
pub fn sentence(error: &Error) -> String {
    let mut sentence = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if !sentence.contains(&cause) {
            let between = if sentence.is_empty() { "" } else { ": " };
            sentence = format!("{sentence}{between}{cause}");
        }
    }
    sentence
}

fn hint_and_exit(error: &Error) -> (Option<String>, Exit) {
    if let Some(error) = error.downcast_ref::<CliError>() {
        return (error.hint.clone(), error.exit);
    }
    let exit = if is_mistake(error) { Exit::Invalid } else { Exit::Failed };
    let hint = match error.downcast_ref::<RunError>() {
        Some(error) => run_hint(error),
        None => error.downcast_ref().and_then(recipe_hint),
    };
    (hint, exit)
}

fn run_hint(error: &RunError) -> Option<String> {
    match error {
        RunError::Recipe(error) => recipe_hint(error),
        RunError::Exists { path } => Some(format!("calmix resume {}", shell_quoted(path))),
        RunError::NoRun { .. } => Some(run_files::find_runs().to_owned()),
        RunError::NoneUsable { folder, .. } => {
            let run = folder.parent().unwrap_or(folder);
            Some(format!("calmix inspect {}", shell_quoted(run)))
        }
        _ => None,
    }
}

/// Returns whether the same command would fail again until the user changes something; docs/reference/exit-codes.md has a table.
fn is_mistake(error: &Error) -> bool {
    let kinds = [
        error.downcast_ref().map(RunError::kind),
        error.downcast_ref().map(DataError::kind),
        error.downcast_ref().map(FormatError::kind),
        error.downcast_ref().map(FileError::kind),
        error.downcast_ref().map(ReportError::kind),
        error.downcast_ref().map(RecipeError::kind),
    ];
    kinds.contains(&Some(Kind::Mistake))
}

fn recipe_hint(error: &RecipeError) -> Option<String> {
    match error.problems.first()?.what {
        What::NoRecipe { .. } => Some("`calmix recipes` lists all recipes".to_owned()),
        What::NoKey { .. } | What::Section => {
            Some("`calmix inspect RECIPE` prints every key with its value".to_owned())
        }
        What::Missing { .. } => Some("add `--data FOLDER`".to_owned()),
        _ => None,
    }
}

/// Returns an unknown option and its likely meaning; `None` if clap's own hint is better.
pub fn intended_option(error: &clap::Error) -> Option<(&str, String)> {
    let (clap::error::ErrorKind::UnknownArgument, Some(ContextValue::String(option))) =
        (error.kind(), error.get(ContextKind::InvalidArg))
    else {
        return None;
    };
    // For a typo in an option of calmix, clap's own hint is right. Typos are rarely in the first letters, so a suggestion that
    // begins differently is not a typo: clap suggests `--processes` for `--epochs`.
    if let Some(ContextValue::String(similar)) = error.get(ContextKind::SuggestedArg)
        && similar.get(..3) == option.get(..3)
    {
        return None;
    }
    let name = option.split('=').next().unwrap_or_default();
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    let of_train = FOREIGN_TRAIN_OPTIONS.iter().filter(|_| usage.contains("calmix train"));
    let foreign = FOREIGN_OPTIONS.iter().chain(of_train).find(|(names, _)| names.contains(&name));
    if let Some((_, hint)) = foreign {
        return Some((option, (*hint).to_owned()));
    }
    let word = option.strip_prefix("--")?.replace('-', "_");
    let unknown = Layers::new().set(&format!("{word}=0")).resolve().err()?;
    match unknown.problems.into_iter().next()?.what {
        What::NoKey { nearest: Some(key) } => Some((option, format!("--set {key}=VALUE"))),
        _ => None,
    }
}

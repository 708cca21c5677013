//! Options of other programs: `--epochs` is no option here, but a recipe has a key for it.

use calmix::train::recipe::{Layers, What};
use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::exit::Exit;
use crate::terminal::{painted, tell};

/// Ends the program as clap would, unless the option can be a key of the recipe: then that is said.
pub(crate) fn exit(error: &Error) -> ! {
    let Some((option, key)) = meant(error) else { error.exit() };
    tell(&format!("{} there is no option {option}", painted("error:", "31")));
    tell(&format!("{} --set {key}=VALUE", painted("try:", "32")));
    std::process::exit(Exit::Mistake.code().into())
}

fn meant(error: &Error) -> Option<(&str, String)> {
    let (ErrorKind::UnknownArgument, Some(ContextValue::String(option))) =
        (error.kind(), error.get(ContextKind::InvalidArg))
    else {
        return None;
    };
    // A slip of the finger in one of ours: clap knows which. Hardly anybody slips in the first letter, and clap takes
    // `--epochs` for `--processes`.
    if let Some(ContextValue::String(similar)) = error.get(ContextKind::SuggestedArg)
        && similar.get(..3) == option.get(..3)
    {
        return None;
    }
    let word = option.strip_prefix("--")?.replace('-', "_");
    let unknown = Layers::new().set(&format!("{word}=0")).resolve().err()?;
    match unknown.problems.into_iter().next()?.what {
        What::NoKey { nearest: Some(key) } => Some((option, key)),
        _ => None,
    }
}

//! Which commands `calmix` runs itself, and which it leaves to `calmix-torch`.

use crate::command::Command;

/// Whether a command needs no libtorch. The arguments decide it, and for a run that exists its recipe; never the data.
pub fn runs_here(command: &Command) -> bool {
    match command {
        Command::Train(_)
        | Command::Resume(_)
        | Command::Sweep(_)
        | Command::Evaluate(_)
        | Command::Calibrate(_)
        | Command::Predict(_)
        | Command::Doctor(_) => false,
        Command::Prepare(_)
        | Command::Inspect(_)
        | Command::Compare(_)
        | Command::Push(_)
        | Command::Report(_)
        | Command::Recipes(_)
        | Command::Weights(_)
        | Command::Completions(_) => true,
        #[cfg(feature = "man")]
        Command::Man(_) => true,
    }
}

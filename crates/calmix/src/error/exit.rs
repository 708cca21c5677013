//! Exit codes, for shells and schedulers.

use std::process::ExitCode;

/// The outcome of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The command succeeded.
    Done,
    /// The command failed after it started.
    Failed,
    /// The arguments, the recipe or the dataset are invalid: the same command would fail again.
    Invalid,
    /// `calmix monitor` raised its alarm.
    Alarm,
    /// A signal such as SIGTERM stopped a run, whose state is saved: `EX_TEMPFAIL`, on which schedulers requeue.
    Requeue,
    /// Ctrl-C interrupted the command, and a run's state is saved: 128 + SIGINT, as in shells.
    Interrupted,
    /// A second Ctrl-C ended a run before its state was saved: 128 + SIGQUIT, a signal with the same effect.
    Unsaved,
}

/// The table of codes in `calmix --help`; docs/reference/exit-codes.md explains them.
pub const TABLE: &str = "\
Exit codes:
    0  success
    1  failed; earlier checkpoints are intact
    2  invalid arguments, recipe or dataset; nothing started, the same command would fail again
   10  `calmix monitor`: samples are no longer like those of training
   75  stopped by SIGTERM, SIGHUP or SIGUSR1, state saved; requeue `calmix resume RUN`
  130  interrupted by Ctrl-C; the state of a run is saved, a partly prepared dataset deleted
  131  ended at once by a second Ctrl-C; nothing was saved since the last checkpoint";

impl Exit {
    /// Returns the code that the process exits with.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Invalid => 2,
            Self::Alarm => 10,
            Self::Requeue => 75,
            Self::Interrupted => 130,
            Self::Unsaved => 131,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_documented() {
        use Exit::{Alarm, Done, Failed, Interrupted, Invalid, Requeue, Unsaved};
        for exit in [Done, Failed, Invalid, Alarm, Requeue, Interrupted, Unsaved] {
            let line = format!("{:>5}  ", exit.code());
            assert!(TABLE.lines().any(|documented| documented.starts_with(&line)), "{exit:?}");
        }
    }
}

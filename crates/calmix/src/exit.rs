//! Exit codes, for shells and schedulers.

use std::process::ExitCode;

/// How a command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The command succeeded.
    Done,
    /// The command failed after it started.
    Failed,
    /// The arguments or the recipe are invalid.
    Invalid,
    /// SIGTERM stopped a run, and its state is saved: `EX_TEMPFAIL`, which schedulers requeue on.
    Requeue,
    /// Ctrl-C interrupted the command: 128 + SIGINT, as in shells.
    Interrupted,
}

/// The codes as `calmix --help` shows them; docs/exit-codes.md explains them.
pub(crate) const TABLE: &str = "\
Exit codes:
    0  success
    1  failed; earlier checkpoints are intact
    2  invalid arguments or recipe; nothing started
   75  stopped by SIGTERM with its state saved; requeue `calmix resume RUN`
  130  interrupted by Ctrl-C; a run saves its state, a partly prepared dataset is deleted;
       a second Ctrl-C exits immediately";

impl Exit {
    /// The number.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Invalid => 2,
            Self::Requeue => 75,
            Self::Interrupted => 130,
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
        for exit in [Exit::Done, Exit::Failed, Exit::Invalid, Exit::Requeue, Exit::Interrupted] {
            let line = format!("{:>5}  ", exit.code());
            assert!(TABLE.lines().any(|documented| documented.starts_with(&line)), "{exit:?}");
        }
    }
}

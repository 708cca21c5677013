//! How a command ends, for the shell and for schedulers.

use std::process::ExitCode;

/// How a command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// What was asked for is done.
    Done,
    /// It failed on the way.
    Failed,
    /// What was asked for cannot be.
    Mistake,
    /// A run was told to stop (SIGTERM) and kept its state: `EX_TEMPFAIL`, which schedulers requeue on.
    Requeue,
    /// It was interrupted (Ctrl-C): 128 + SIGINT, as shells have it.
    Interrupted,
}

/// What `calmix --help` says about it; the README says the same.
pub(crate) const TABLE: &str = "\
Exit codes:
    0  done
    1  failed on the way; what was kept before is intact
    2  a mistake in the command, the recipe or a name: nothing was begun
   75  a run was told to stop (SIGTERM) and its state is kept: requeue `calmix resume RUN`
  130  interrupted (Ctrl-C): a run keeps its state, and a second Ctrl-C ends it at once; of a dataset
       that was being prepared nothing is left";

impl Exit {
    /// The number.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Mistake => 2,
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
        for exit in [Exit::Done, Exit::Failed, Exit::Mistake, Exit::Requeue, Exit::Interrupted] {
            let line = format!("{:>5}  ", exit.code());
            assert!(TABLE.lines().any(|documented| documented.starts_with(&line)), "{exit:?}");
        }
    }
}

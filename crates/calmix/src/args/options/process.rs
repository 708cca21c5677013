//! `--processes` and `--take-over`.

use clap::Args;

/// Options for the processes that train a run.
#[derive(Debug, Args)]
pub struct ProcessArgs {
    /// Number of local processes; on several machines, use torchrun or srun
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub processes: Option<u16>,
    /// Continue a run that a process on another machine has not closed; only if you know that it has ended
    #[arg(long)]
    pub take_over: bool,
}

//! The environment variables of launchers, and what they mean for the options of a command.

use anyhow::Result;
use calmix::command::process_args::ProcessArgs;
use calmix::error::CliError;
use calmix::launched::launch_variables;
use calmix_train::launch::LaunchInfo;

/// The rank of this process and its peers, if a launcher started it.
pub(crate) fn launch_info(args: &ProcessArgs) -> Result<Option<LaunchInfo>> {
    let launch = launch_variables()?;
    if let (Some(launch), Some(_)) = (&launch, args.processes) {
        let message = format!(
            "a launcher started this process as rank {} of {}; remove --processes",
            launch.rank, launch.world
        );
        return Err(CliError::invalid(message).into());
    }
    Ok(launch)
}

//! `calmix weights get`: downloads a model of the Hugging Face Hub into the weights folder.

#[cfg(feature = "https")]
mod fetch;

use anyhow::Result;
use calmix_run::pretrained::weights_folder::WeightsFolder;

use crate::args::weights::get::GetArgs;
use crate::error::exit::Exit;

impl GetArgs {
    #[cfg(not(feature = "https"))]
    #[expect(clippy::unused_self, reason = "as with the feature")]
    pub(super) fn run(self, _: &WeightsFolder) -> Result<Exit> {
        Err(crate::error::CliError::without_https("calmix weights get").into())
    }

    #[cfg(feature = "https")]
    pub(super) fn run(self, folder: &WeightsFolder) -> Result<Exit> {
        use std::sync::atomic::Ordering;

        use crate::process::stop::Stop;
        use crate::terminal::status;

        let stop = Stop::listen()?;
        let stopped = || status("interrupted; the same command continues");
        // A signal may arrive while a server does not answer. What has arrived by then stays.
        let done = stop.ending_soon(stopped, || self.fetch(folder, stop.flag()));
        match done {
            Err(_) if stop.flag().load(Ordering::Relaxed) => {
                stopped();
                Ok(stop.exit())
            }
            Err(error) => Err(error),
            Ok(got) => {
                self.show(&got)?;
                Ok(Exit::Done)
            }
        }
    }
}

//! `calmix man`: manual pages, only in builds with the feature `man`.

use anyhow::{Context, Result};
use clap::CommandFactory as _;

use crate::args::Calmix;
use crate::args::man::ManArgs;
use crate::error::exit::Exit;
use crate::process::version::VERSION;

impl ManArgs {
    pub fn run(self) -> Result<Exit> {
        let shown = self.folder.display();
        std::fs::create_dir_all(&self.folder).with_context(|| format!("cannot create {shown}"))?;
        // The long version describes this build, which is not the one that users have.
        let command = Calmix::command().long_version(VERSION);
        clap_mangen::generate_to(command, &self.folder)
            .with_context(|| format!("cannot write into {shown}"))?;
        Ok(Exit::Done)
    }
}

//! `calmix completions`: shell completion scripts.

use std::io;

use anyhow::Result;
use clap::CommandFactory;
use clap_complete::generate;

use crate::args::Calmix;
use crate::args::completions::CompletionsArgs;
use crate::error::exit::Exit;
use crate::terminal::print;

impl CompletionsArgs {
    pub fn run(self) -> Result<Exit> {
        let mut script = Vec::new();
        generate(self.shell, &mut Calmix::command(), "calmix", &mut script);
        let script = String::from_utf8(script).map_err(io::Error::other)?;
        print(&script)?;
        Ok(Exit::Done)
    }
}

//! `calmix completions`: shell completion scripts.

use std::io;

use anyhow::Result;
use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};

use super::Calmix;
use crate::exit::Exit;
use crate::terminal::print;

/// Print a shell completion script
///
/// bash:  calmix completions bash > ~/.local/share/bash-completion/completions/calmix
/// zsh:   calmix completions zsh > ~/.zfunc/_calmix        (a folder in $fpath)
/// fish:  calmix completions fish > ~/.config/fish/completions/calmix.fish
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct CompletionsArgs {
    /// Your shell
    shell: Shell,
}

impl CompletionsArgs {
    pub fn run(self) -> Result<Exit> {
        let mut script = Vec::new();
        generate(self.shell, &mut Calmix::command(), "calmix", &mut script);
        let script = String::from_utf8(script).map_err(io::Error::other)?;
        print(&script)?;
        Ok(Exit::Done)
    }
}

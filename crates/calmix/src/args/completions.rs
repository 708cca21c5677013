//! The arguments of `calmix completions`.

use clap::Args;
use clap_complete::Shell;

/// Print a shell completion script
///
/// bash:  calmix completions bash > ~/.local/share/bash-completion/completions/calmix
/// zsh:   calmix completions zsh > ~/.zfunc/_calmix        (a folder in $fpath)
/// fish:  calmix completions fish > ~/.config/fish/completions/calmix.fish
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct CompletionsArgs {
    /// Your shell
    pub(crate) shell: Shell,
}

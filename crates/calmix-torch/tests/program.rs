//! The program that tests start: `calmix`, which becomes `calmix-torch` where a command needs libtorch.

use std::path::PathBuf;

use calmix_testkit::workspace::Workspace;

/// The path of `calmix`, beside `calmix-torch`.
pub(crate) fn calmix() -> PathBuf {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_calmix-torch")).with_file_name("calmix");
    assert!(program.is_file(), "{} is not built: run `cargo build -p calmix`", program.display());
    program
}

/// A workspace whose commands start it.
pub(crate) fn new_workspace() -> Workspace {
    Workspace::new(calmix())
}

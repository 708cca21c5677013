//! The program that tests start: `calmix`, which becomes `calmix-torch` where a command needs libtorch.

use std::path::PathBuf;

/// The path of `calmix`, beside `calmix-torch`.
pub(crate) fn calmix() -> PathBuf {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_calmix-torch")).with_file_name("calmix");
    assert!(program.is_file(), "{} is not built: run `cargo build -p calmix`", program.display());
    program
}

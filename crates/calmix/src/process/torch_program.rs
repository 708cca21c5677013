//! `calmix-torch`, the program that links libtorch: where it is, and how this process becomes it.

use std::env;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use calmix_io::shown::shown;
use calmix_recipe::device::Device;
use serde_json::Value;

use crate::error::CliError;
use crate::process::version::COMMIT;

/// The name of the program.
const NAME: &str = "calmix-torch";
/// The variable that names another file.
const VARIABLE: &str = "CALMIX_TORCH";
/// The variable that tells the program the commit of its caller.
const CALLER: &str = "CALMIX_CALLER_COMMIT";
/// What libtorch reads when it starts: cuBLAS with the same bits every time, and a failure of NCCL that calmix reports before
/// NCCL's watchdog ends the process.
const GPU_ENVIRONMENT: [(&str, &str); 2] =
    [("CUBLAS_WORKSPACE_CONFIG", ":4096:8"), ("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0")];
/// How to install it. No package index has calmix yet, so wheels come from a folder.
const INSTALL: &str = "in a clone of calmix, `cargo xtask setup && cargo install --locked --path \
                       crates/calmix-torch`; or, with DIST the folder of its `cargo xtask wheels`, `pip install \
                       --find-links DIST \"calmix[cpu]\"`";
/// How to install both programs from one commit.
const INSTALL_BOTH: &str = "in a clone of calmix, `cargo install --locked --path crates/calmix && cargo install \
                            --locked --path crates/calmix-torch`; or, with DIST the folder of its `cargo xtask \
                            wheels`, `pip install --force-reinstall --find-links DIST \"calmix[cpu]\"`";

/// Replaces this process by `calmix-torch` with the same arguments. Returns only if that fails.
pub fn replace_process() -> CliError {
    let Some(program) = find() else {
        let message = "this command needs calmix-torch, which trains networks and is not installed: it is neither beside \
                       calmix, nor in $CALMIX_TORCH, nor on PATH";
        return CliError::invalid(message).hint(INSTALL);
    };
    let mut command = Command::new(&program);
    command.args(env::args_os().skip(1)).env(CALLER, COMMIT);
    for (variable, value) in GPU_ENVIRONMENT {
        if env::var_os(variable).is_none() {
            command.env(variable, value);
        }
    }
    let error = command.exec();
    CliError::invalid(format!("{}: cannot be started: {error}", shown(program.display()))).hint(INSTALL)
}

/// The fastest device that `calmix-torch` sees; the CPU if it is not there or does not say.
pub fn fastest_device() -> Device {
    let ask = |program: &Path| -> Option<Device> {
        let mut command = Command::new(program);
        command.args(["doctor", "--seconds", "0", "--json"]).env(CALLER, COMMIT);
        let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
        let said: Value = serde_json::from_slice(&output.stdout).ok()?;
        said.get("device")?.as_str()?.parse().ok()
    };
    find().and_then(|program| ask(&program)).unwrap_or(Device::Cpu)
}

/// Refuses to run for a `calmix` of another commit: its arguments may mean something else.
///
/// # Errors
/// If this process was started by a `calmix` of another commit.
pub fn check_caller() -> Result<(), CliError> {
    match env::var(CALLER) {
        Ok(caller) if caller != COMMIT => {
            let message = format!(
                "calmix is of commit {} and calmix-torch of commit {COMMIT}: both must be of the same",
                shown(caller)
            );
            Err(CliError::invalid(message).hint(INSTALL_BOTH))
        }
        _ => Ok(()),
    }
}

/// The file that `$CALMIX_TORCH` names, else the one beside this program, else the first on `PATH`. An entry of `PATH` that is
/// empty or relative means the working folder or a part of it, which may hold anything.
fn find() -> Option<PathBuf> {
    if let Some(named) = env::var_os(VARIABLE).filter(|named| !named.is_empty()) {
        return Some(named.into());
    }
    let own = env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent).map(|folder| folder.join(NAME));
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).filter(|folder| folder.is_absolute());
    let on_path = folders.map(|folder| folder.join(NAME)).collect::<Vec<_>>();
    beside.into_iter().chain(on_path).find(|program| program.is_file())
}

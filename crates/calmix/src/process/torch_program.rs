//! `calmix-torch`, the program that links libtorch: which commands need it, where it is, and how this process is replaced by it.

use std::env;
use std::env::consts::EXE_SUFFIX;
use std::path::{Path, PathBuf};
use std::process::{self, Stdio};

use calmix_io::shown::shown;
use calmix_io::system;
use calmix_lifecycle::start::trains_head;
use calmix_recipe::VECTORS_RECIPE;
use calmix_recipe::device::Device;
use calmix_run::read::inspect;
use serde_json::Value;

use crate::args::Command;
use crate::args::options::data::is_vector_file;
use crate::args::train::TrainArgs;
use crate::error::CliError;
use crate::process::version::COMMIT;
use crate::sweep::sweep_file::has_only_heads;
use crate::trainer::FastestDevice;

/// The name of the program.
const NAME: &str = "calmix-torch";
/// The variable with the path of another program.
const VARIABLE: &str = "CALMIX_TORCH";
/// The variable with which `calmix` passes on its commit.
const CALLER: &str = "CALMIX_CALLER_COMMIT";
/// Variables that libtorch reads at its start: deterministic cuBLAS, and no abort by NCCL's watchdog before calmix reports a
/// failure.
const GPU_ENVIRONMENT: [(&str, &str); 2] =
    [("CUBLAS_WORKSPACE_CONFIG", ":4096:8"), ("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0")];
/// The command that installs `calmix-torch`. No package index has calmix yet, so wheels come from a folder.
const INSTALL: &str = "in a clone of calmix, `cargo xtask setup && cargo install --locked --path \
                       crates/calmix-torch`; or, with DIST the folder of its `cargo xtask wheels`, `pip install \
                       --find-links DIST \"calmix[cpu]\"`";
/// What trains on every system.
const ELSEWHERE: &str = "train a head: on photos with pretrained weights (`calmix weights list`), or on vectors (`calmix \
                         train --features`); `--processes` is for networks";
/// The commands that install both programs from one commit.
const INSTALL_BOTH: &str = "in a clone of calmix, `cargo install --locked --path crates/calmix && cargo install \
                            --locked --path crates/calmix-torch`; or, with DIST the folder of its `cargo xtask \
                            wheels`, `pip install --force-reinstall --find-links DIST \"calmix[cpu]\"`";

/// Replaces this process by `calmix-torch` with the same arguments. Returns only if that fails.
pub fn replace_process() -> CliError {
    let Some(program) = find() else {
        if !cfg!(target_os = "linux") {
            let message = "this command trains a network, and calmix does that on Linux alone";
            return CliError::invalid(message).hint(ELSEWHERE);
        }
        let message = "this command needs calmix-torch, which trains networks and is not installed: it is neither beside \
                       calmix, nor in $CALMIX_TORCH, nor on PATH";
        return CliError::invalid(message).hint(INSTALL);
    };
    let mut command = process::Command::new(&program);
    command.args(env::args_os().skip(1)).env(CALLER, COMMIT);
    for (variable, value) in GPU_ENVIRONMENT {
        if env::var_os(variable).is_none() {
            command.env(variable, value);
        }
    }
    let error = system::replace_process(&mut command);
    CliError::invalid(format!("{}: cannot be started: {error}", shown(program.display()))).hint(INSTALL)
}

/// Returns the fastest device that `calmix-torch` finds; the CPU if the program is missing or does not respond.
pub fn fastest_device() -> Device {
    let ask = |program: &Path| -> Option<Device> {
        let mut command = process::Command::new(program);
        command.args(["doctor", "--seconds", "0", "--json"]).env(CALLER, COMMIT);
        let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
        let doctor: Value = serde_json::from_slice(&output.stdout).ok()?;
        doctor.get("device")?.as_str()?.parse().ok()
    };
    find().and_then(|program| ask(&program)).unwrap_or(Device::Cpu)
}

/// Refuses to run for a `calmix` of another commit, whose arguments may have another meaning.
///
/// # Errors
/// If this process was started by a `calmix` of another commit.
pub fn check_caller() -> Result<(), CliError> {
    match env::var(CALLER) {
        Ok(caller) if caller != COMMIT => {
            let message = format!(
                "calmix (commit {}) and calmix-torch (commit {COMMIT}) must be built from the same commit",
                shown(caller)
            );
            Err(CliError::invalid(message).hint(INSTALL_BOTH))
        }
        _ => Ok(()),
    }
}

/// Finds the program: the file that `$CALMIX_TORCH` names, or beside this program, or the first on `PATH`. Empty and relative
/// entries of `PATH` are skipped: they mean the working folder, which may contain anything.
fn find() -> Option<PathBuf> {
    if let Some(named) = env::var_os(VARIABLE).filter(|named| !named.is_empty()) {
        return Some(named.into());
    }
    let this_program = env::current_exe().ok();
    let name = format!("{NAME}{EXE_SUFFIX}");
    let beside = this_program.as_deref().and_then(Path::parent).map(|folder| folder.join(&name));
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).filter(|folder| folder.is_absolute());
    let on_path = folders.map(|folder| folder.join(&name)).collect::<Vec<_>>();
    beside.into_iter().chain(on_path).find(|program| program.is_file())
}

/// Returns whether a command trains no network. That depends on the arguments, on the file of a sweep, and on the recipe of an
/// existing run; never on the data.
pub fn runs_without_libtorch(command: &Command, fastest: FastestDevice) -> bool {
    match command {
        Command::Train(args) => args.features_only || names_vectors(args) || trains_head_only(args, fastest),
        Command::Resume(args) => has_head(&args.run),
        // An unfinished run of a network may have a checkpoint to evaluate.
        Command::Evaluate(args) => args.on.on.is_some() || has_head(&args.run),
        Command::Sweep(args) => has_only_heads(args),
        Command::Doctor(_) => false,
        Command::Calibrate(_)
        | Command::Predict(_)
        | Command::Guard(_)
        | Command::Monitor(_)
        | Command::Export(_)
        | Command::Prepare(_)
        | Command::Inspect(_)
        | Command::Label(_)
        | Command::Compare(_)
        | Command::Push(_)
        | Command::Report(_)
        | Command::Review(_)
        | Command::Certify(_)
        | Command::Verify(_)
        | Command::Demo(_)
        | Command::Recipes(_)
        | Command::Weights(_)
        | Command::Completions(_) => true,
        #[cfg(feature = "man")]
        Command::Man(_) => true,
    }
}

/// Returns whether a command trains on vectors, or names them in the wrong place, an error that needs no libtorch to report.
pub(crate) fn names_vectors(args: &TrainArgs) -> bool {
    let is_vectors = |recipe: &str| recipe == VECTORS_RECIPE || is_vector_file(Path::new(recipe));
    let has_vectors = args.overrides.data.named().is_some_and(is_vector_file);
    !args.features.is_empty() || has_vectors || args.recipe.as_deref().is_some_and(is_vectors)
}

/// Returns whether the recipe trains a head. Invalid arguments count as a head: either program can report them.
fn trains_head_only(args: &TrainArgs, fastest: FastestDevice) -> bool {
    if args.refuse_path_as_recipe().is_err() {
        return true;
    }
    args.layers().map_or(true, |layers| trains_head(&layers, fastest).unwrap_or(true))
}

/// Returns whether a run trains a head.
fn has_head(run: &Path) -> bool {
    inspect::recipe(run).is_ok_and(|run| run.recipe.has_head())
}

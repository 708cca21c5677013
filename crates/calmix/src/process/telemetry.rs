//! Keeps ONNX Runtime from collecting data about its users.
//!
//! From some version on it makes a database and an identifier of the device as soon as it is loaded, whatever is asked of it
//! later; only a variable that is set before keeps it from that. A process cannot set a variable for itself without `unsafe`,
//! since other threads may be reading: it starts itself again.

use std::env;
use std::os::unix::process::CommandExt;
use std::process;

use crate::args::Command;

/// The variable that ONNX Runtime reads when it is loaded.
pub(crate) const VARIABLE: &str = "ORT_DISABLE_TELEMETRY";

/// Replaces this process by itself with telemetry off, if the command may run a network and the variable is not set. Must come
/// before any signal handler, lock, thread or output. If it fails, the command goes on: events are off in any case.
pub fn restart_without(command: &Command) {
    if env::var_os(VARIABLE).is_some() || !may_run_network(command) {
        return;
    }
    if let Ok(program) = env::current_exe() {
        let mut arguments = env::args_os();
        let mut again = process::Command::new(program);
        if let Some(name) = arguments.next() {
            again.arg0(name);
        }
        let _ = again.args(arguments).env(VARIABLE, "1").exec();
    }
}

fn may_run_network(command: &Command) -> bool {
    matches!(
        command,
        Command::Train(_)
            | Command::Resume(_)
            | Command::Sweep(_)
            | Command::Evaluate(_)
            | Command::Calibrate(_)
            | Command::Predict(_)
            | Command::Export(_)
            | Command::Weights(_)
    )
}

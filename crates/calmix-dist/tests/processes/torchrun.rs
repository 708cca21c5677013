//! PyTorch's own launcher.

use std::path::Path;
use std::process::Command;

use calmix_testkit::tier;

use super::crew::{ENTRY, free_port, program};

/// The output of ranks started by `torchrun` with these options.
fn torchrun(task: &str, options: &[&str]) -> Option<String> {
    // …/lib/python3.11/site-packages/torch → …/bin/torchrun
    let torchrun = Path::new(env!("CALMIX_LIBTORCH")).ancestors().nth(4)?.join("bin/torchrun");
    if !torchrun.is_file() {
        tier::skipped(&format!("there is no {}", torchrun.display()));
        return None;
    }
    let mut command = Command::new(torchrun);
    command.args(["--no-python", "--nproc-per-node", "2"]).args(options).arg(program()).args(ENTRY);
    command.env("CALMIX_TASK", task).env("CALMIX_TIMEOUT_MS", "60000").env("OMP_NUM_THREADS", "1");
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    Some(said)
}

#[test]
fn torchrun_starts_ranks_whether_it_hosts_the_store_or_not() {
    let port = free_port().to_string();
    for options in [&["--standalone"][..], &["--master-port", &port]] {
        let Some(said) = torchrun("operations", options) else { return };
        assert_eq!(said.matches("@ done").count(), 2, "{options:?}: {said}");
    }
}

#[test]
fn torchrun_restart_ignores_the_earlier_attempt() {
    let Some(said) = torchrun("again", &["--standalone", "--max-restarts", "1"]) else { return };
    assert_eq!(said.matches("@ first").count(), 2, "{said}");
    assert_eq!(said.matches("@ done").count(), 2, "{said}");
}

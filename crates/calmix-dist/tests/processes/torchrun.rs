//! PyTorch's own launcher.

use std::path::Path;
use std::process::Command;

use crate::crew::{ENTRY, program};

/// What the ranks of `torchrun` say, run with these options.
fn torchrun(options: &[&str]) -> Option<String> {
    // …/lib/python3.11/site-packages/torch → …/bin/torchrun
    let torchrun = Path::new(env!("CALMIX_LIBTORCH")).ancestors().nth(4)?.join("bin/torchrun");
    if !torchrun.is_file() {
        println!("skipped, for this libtorch has no torchrun beside it: {}", torchrun.display());
        return None;
    }
    let mut command = Command::new(torchrun);
    command.args(["--no-python", "--nproc-per-node", "2"]).args(options).arg(program()).args(ENTRY);
    command.env("CALMIX_TASK", "operations").env("CALMIX_TIMEOUT_MS", "60000").env("OMP_NUM_THREADS", "1");
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    Some(said)
}

#[test]
fn torchrun_starts_us() {
    // The launcher keeps the store.
    let Some(said) = torchrun(&["--standalone"]) else { return };
    assert_eq!(said.matches("@ done").count(), 2, "{said}");
}

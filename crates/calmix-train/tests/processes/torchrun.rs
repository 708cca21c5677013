//! A run that PyTorch's own launcher starts, and starts again.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use calmix_testkit::run_bytes::differing;
use calmix_testkit::tier;
use calmix_train::trainer::StepPhase;

use super::crew::{Crew, ENTRY, Fault, What};
use crate::made::Bench;

const SETTINGS: [&str; 5] = [
    "train.groups=2",
    "train.micro_batches=2",
    "train.batch=8",
    "checkpoint.every=4",
    "method.base=softmatch",
];

/// PyTorch's launcher; skips the test if there is none.
pub(crate) fn torchrun() -> Option<PathBuf> {
    // …/lib/python3.11/site-packages/torch/lib → …/bin/torchrun
    let folder = Path::new(env!("CALMIX_LIBTORCH_LIBRARIES")).ancestors().nth(5).unwrap();
    let torchrun = folder.join("bin/torchrun");
    if !torchrun.is_file() {
        tier::skipped(&format!("there is no {}", torchrun.display()));
        return None;
    }
    Some(torchrun)
}

/// Two and four processes, of which one is killed on the way: torchrun starts all of them again, and the run is the one
/// that was never killed.
#[test]
fn torchrun_restarts_a_run_after_a_kill() {
    let Some(torchrun) = torchrun() else { return };
    let bench = Bench::new();
    let whole = Crew::new(&bench, "whole", &SETTINGS);
    whole.train(1);
    for (processes, rank) in [(2, 1), (4, 0)] {
        let crew = Crew::new(&bench, &format!("on-{processes}"), &SETTINGS);
        let fault = Some(Fault { rank, moment: StepPhase::Plan, step: 6, what: What::Dies });
        let mut command = Command::new(&torchrun);
        command
            .args(["--no-python", "--standalone", "--max-restarts", "1"])
            .args(["--nproc-per-node", &processes.to_string()])
            .arg(std::env::current_exe().unwrap())
            .args(ENTRY)
            .env("OMP_NUM_THREADS", "1")
            .stdout(Stdio::null());
        Crew { fault, ..crew.clone() }.set_variables(&mut command);
        let output = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
        assert!(stderr.contains("died at "), "no process died: {stderr}");
        assert_eq!(differing(&whole.run, &crew.run), Vec::<String>::new(), "{processes} processes");
    }
}

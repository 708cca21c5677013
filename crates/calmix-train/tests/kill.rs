//! Real kills at random moments: `kill -9`, again and again, until a run is done; the result must be that of a run that was
//! never killed. `CALMIX_KILLS` sets how many kills there are at least.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use calmix_lifecycle::request::RunRequest;
use calmix_run::read;
use calmix_testkit::stop_program::{Way, stop_until_done};
use calmix_testkit::{run_bytes, tier};
use calmix_train::trainer::Trainer;

use crate::made;

/// Every method with CalibrateMix, which is the recipe's default.
const METHODS: [&[&str]; 5] = [
    &["method.base=supervised"],
    &["method.base=fixmatch", "method.fixmatch.threshold=0.2"],
    &["method.base=flexmatch", "method.flexmatch.threshold=0.2", "evaluate.online=true"],
    &["method.base=softmatch", "selection=best-validation", "checkpoint.every=1"],
    &["method.base=freematch", "method.mixup.pseudo_target=blended"],
];

/// What a killed process is: not a test, but what the test below starts.
#[test]
#[ignore = "the other test of this file runs it, in a process of its own"]
fn trains() {
    let (Ok(folder), Ok(data)) = (std::env::var("CALMIX_TEST_RUN"), std::env::var("CALMIX_TEST_DATA")) else {
        return;
    };
    let method: usize = std::env::var("CALMIX_TEST_METHOD").unwrap().parse().unwrap();
    let (folder, stop) = (PathBuf::from(folder), AtomicBool::new(false));
    let trainer = Trainer::new(RunRequest::new(&stop));
    if read::has_begun(&folder) {
        trainer.resume(&folder, None).unwrap();
    } else {
        trainer.start(&made::recipe(Path::new(&data), METHODS[method]), &folder).unwrap();
    }
}

#[test]
fn kill_9_at_any_moment_changes_nothing() {
    let kills = tier::number("CALMIX_KILLS", 20, 200);
    // Few enough for each run that every method has its turn.
    let most = kills.div_ceil(METHODS.len() as u32).min(12);
    let bench = made::Bench::new();
    let mut survived = 0;
    for round in 0.. {
        let method = round % METHODS.len();
        let command = |folder: &Path| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command
                .args(["--exact", "kill::trains", "--ignored"])
                .env("CALMIX_TEST_RUN", folder)
                .env("CALMIX_TEST_DATA", bench.data())
                .env("CALMIX_TEST_METHOD", method.to_string())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            command
        };
        let whole = bench.folder(&format!("whole-{method}"));
        let killed = bench.folder(&format!("killed-{round}"));
        let (runs, kill) = ((whole.as_path(), killed.as_path()), |_| Way::Kill);
        survived += stop_until_done(&command, runs, round as u64, most, &kill, &mut |_, _, _| {});
        assert_eq!(run_bytes::differing(&whole, &killed), Vec::<String>::new(), "round {round}");
        if survived >= kills {
            return;
        }
    }
}

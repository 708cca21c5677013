//! `calmix sweep`: killed, shared by workers, failing; its results are the same bytes.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use calmix_testkit::tier;
use calmix_testkit::workspace::{TINY, Workspace};
use serde_json::Value;

use crate::program::new_workspace;

/// A sweep of two methods and the given seeds, with short runs.
fn sweep_file(workspace: &Workspace, seeds: u32, more: &str) {
    let seeds: Vec<u32> = (1..=seeds).collect();
    let keys = TINY.iter().map(|setting| setting.replacen('=', " = ", 1) + "\n").collect::<Vec<_>>().concat();
    let text = format!(
        "[all]\n{keys}train.steps = 8\n{more}\n[[grid]]\nrecipe = \"cpu-fashion-mnist\"\nseeds = {seeds:?}\n\
         method.mixup.pairing = [\"none\", \"calibratemix\"]\n"
    );
    fs::write(workspace.path("grid.toml"), text).unwrap();
}

fn worker(workspace: &Workspace, folder: &str, more: &[&str]) -> Command {
    let mut command = workspace.command(&[
        "sweep",
        "grid.toml",
        "--data",
        "garments",
        "--threads",
        "1",
        "--sweep-dir",
        folder,
    ]);
    command.args(more);
    command
}

fn started(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn results(workspace: &Workspace, folder: &str) -> [Vec<u8>; 2] {
    ["summary.json", "summary.csv"].map(|name| fs::read(workspace.path(folder).join(name)).unwrap())
}

/// The runs that a worker has begun or gone on with.
fn trained(stderr: &str) -> Vec<String> {
    let name =
        |line: &str| Some(line.strip_prefix("run ")?.split(": ").nth(1)?.split(' ').next()?.to_owned());
    stderr.lines().filter_map(name).collect()
}

fn wait_for(path: &Path) {
    let begun = Instant::now();
    while !path.exists() {
        assert!(begun.elapsed() < Duration::from_mins(2), "no {}", path.display());
        sleep(Duration::from_millis(5));
    }
}

#[test]
#[allow(clippy::print_stderr)] // How many kills counted.
fn kills_and_workers_leave_the_same_results() {
    let workspace = new_workspace().with_garments();
    let kills = if tier::is_exhaustive() { 20 } else { 2 };
    // More runs than the kills leave time for.
    let seeds = 2 + kills / 2;
    sweep_file(&workspace, seeds, "");
    let begun = Instant::now();
    workspace.end(worker(&workspace, "alone", &["--dry-run"])).with_code(0);
    let start_up = begun.elapsed();
    let alone = workspace.end(worker(&workspace, "alone", &[])).with_code(0);
    let each = begun.elapsed().saturating_sub(2 * start_up) / (2 * seeds);
    let runs = 2 * seeds;
    alone.prints(&[
        &format!("{runs} of {runs} runs finished\nwritten: alone/summary.csv, alone/summary.json\n"),
        "next: calmix compare alone/runs\n",
    ]);
    assert_eq!(trained(&alone.stderr).len(), runs as usize, "{}", alone.stderr);
    let last =
        format!("run {runs} of {runs}: cpu-fashion-mnist-calibratemix-seed-{seeds} ({} finished, ", runs - 1);
    assert!(alone.stderr.contains(&last), "{}", alone.stderr);
    let expected = results(&workspace, "alone");
    let summary: Value = serde_json::from_slice(&expected[0]).unwrap();
    let result = fs::read(workspace.path("alone/runs/cpu-fashion-mnist-none-seed-1/result.json")).unwrap();
    let result: Value = serde_json::from_slice(&result).unwrap();
    assert_eq!(summary["runs"][0]["result"]["metrics"], result["finished"]["selected"]["last"]["metrics"]);

    // Killed again and again, at other moments of a run each time.
    let mut landed = 0;
    for kill in 0..kills {
        let mut child = started(worker(&workspace, "killed", &[]));
        sleep(start_up + each * (1 + 4 * kill % 7) / 4);
        landed += u32::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    workspace.end(worker(&workspace, "killed", &[])).with_code(0);
    eprintln!("{landed} of {kills} kills landed");
    assert!(2 * landed >= kills, "{landed} of {kills} kills landed");
    assert_eq!(results(&workspace, "killed"), expected, "after {landed} kills");

    // Two workers and a third that dies while it trains: no run is trained by two, and the dead one's is taken over.
    let mut dies = started(worker(&workspace, "shared", &[]));
    wait_for(&workspace.path("shared/runs/cpu-fashion-mnist-none-seed-1/events.jsonl"));
    let one = started(worker(&workspace, "shared", &["--wait"]));
    let other = started(worker(&workspace, "shared", &["--wait"]));
    dies.kill().unwrap();
    dies.wait().unwrap();
    let outputs = [one, other].map(|child| child.wait_with_output().unwrap());
    assert!(outputs.iter().all(|output| output.status.success()));
    let mut names: Vec<String> =
        outputs.iter().flat_map(|output| trained(&String::from_utf8_lossy(&output.stderr))).collect();
    names.sort();
    let all: Vec<String> = workspace.names("alone/runs");
    assert_eq!(names, all);
    assert_eq!(results(&workspace, "shared"), expected);

    // It is done: nothing is trained again, and the settings can be compared.
    let again = workspace.end(worker(&workspace, "shared", &[])).with_code(0);
    assert_eq!(trained(&again.stderr), [""; 0]);
    workspace
        .run(&["compare", "shared"])
        .with_code(0)
        .prints(&["| Error             | FixMatch + CalibrateMix |"]);

    // Another recipe under the same name is another sweep.
    sweep_file(&workspace, seeds, "optimiser.lr = 0.5\n");
    let changed = workspace.end(worker(&workspace, "shared", &[])).with_code(2);
    changed.reports(&["the sweep has changed since this run began: optimiser.lr: 0.03 → 0.5"]);
}

#[test]
fn failed_runs_are_listed_and_retried() {
    let workspace = new_workspace().with_garments();
    let keys = TINY.iter().map(|setting| setting.replacen('=', " = ", 1) + "\n").collect::<Vec<_>>().concat();
    let text = format!(
        "[all]\n{keys}train.steps = 2\n[[grid]]\nrecipe = \"cpu-fashion-mnist\"\nlabels.from = [[\"train\"], [\"nowhere\"]]\n"
    );
    fs::write(workspace.path("grid.toml"), text).unwrap();
    let listed = workspace.run(&["sweep", "grid.toml", "--dry-run"]).with_code(0);
    listed.prints(&[
        "cpu-fashion-mnist-nowhere: recipe=cpu-fashion-mnist ",
        "\n2 runs, 4 steps in total; every recipe is valid",
    ]);
    assert!(!workspace.path("sweeps").exists());

    let failed = workspace.end(worker(&workspace, "sweep", &[])).with_code(1);
    failed.prints(&[
        "1 of 2 runs finished",
        "failed: cpu-fashion-mnist-nowhere: ",
        "--sweep-dir sweep --retry",
    ]);
    let summary: Value = serde_json::from_slice(&results(&workspace, "sweep")[0]).unwrap();
    assert_eq!(
        (&summary["runs"][0]["state"], &summary["runs"][1]["state"]),
        (&"finished".into(), &"failed".into())
    );
    let again = workspace.end(worker(&workspace, "sweep", &[])).with_code(1);
    assert_eq!(trained(&again.stderr), [""; 0]);
    again.prints(&["failed: cpu-fashion-mnist-nowhere: "]);
    let retried = workspace.end(worker(&workspace, "sweep", &["--retry"])).with_code(1);
    assert_eq!(trained(&retried.stderr), ["cpu-fashion-mnist-nowhere"]);

    workspace
        .run(&["sweep", "nothing.toml"])
        .with_code(2)
        .reports(&["try: name a file, or one of table-1, "]);
    workspace
        .run(&["sweep", "grid.toml"])
        .with_code(2)
        .reports(&["no dataset folder given", "--datasets FOLDER"]);
    let sweeps = ["table-1", "table-2", "table-3", "table-4", "figure-1"];
    for (name, runs) in sweeps.into_iter().zip(["204", "360", "16", "42", "6"]) {
        let listed = workspace.run(&["sweep", name, "--dry-run"]).with_code(0);
        listed.prints(&[&format!("\n{runs} runs, ")]);
        assert!(listed.stdout.lines().all(|line| line.chars().count() <= 100), "{}", listed.stdout);
    }
}

/// A run that ends its process, as one out of memory does, is tried last and not for ever.
#[test]
fn run_that_ends_its_process_does_not_starve_the_others() {
    let workspace = new_workspace().with_garments();
    sweep_file(&workspace, 1, "");
    let [bad, good] = ["none", "calibratemix"].map(|pairing| format!("cpu-fashion-mnist-{pairing}-seed-1"));
    fs::create_dir_all(workspace.path("sweep/attempts")).unwrap();
    let attempts = |count: u32| {
        let record = format!("{{\"attempts\":{count},\"checkpoint\":null}}");
        fs::write(workspace.path(&format!("sweep/attempts/{bad}.json")), record).unwrap();
    };
    attempts(3);
    let ended = workspace.end(worker(&workspace, "sweep", &[])).with_code(1);
    assert_eq!(trained(&ended.stderr), std::slice::from_ref(&good));
    ended.prints(&["1 of 2 runs finished", &format!("failed: {bad}: its process ended 3 times")]);

    // Tried again on request; and once more after a single kill.
    fs::remove_dir_all(workspace.path("sweep/runs").join(&good)).unwrap();
    fs::remove_file(workspace.path(&format!("sweep/failed/{bad}.json"))).unwrap();
    attempts(1);
    let ended = workspace.end(worker(&workspace, "sweep", &[])).with_code(0);
    assert_eq!(trained(&ended.stderr), [good, bad]);
}

/// What `--set` overrides is what the runs train with, so it is what the list and the summaries say; a sweep is shown by its
/// own folder.
#[test]
fn overridden_settings_are_recorded() {
    let workspace = new_workspace().with_garments();
    sweep_file(&workspace, 1, "");
    let set = ["--set", "train.steps=2", "--set", "optimiser.lr=0.01", "--set", "log.tensorboard=true"];
    let listed =
        workspace.end(worker(&workspace, "sweep", &[&set[..], &["--dry-run"]].concat())).with_code(0);
    listed.prints(&[" optimiser.lr=0.01 ", " train.steps=2 ", "2 runs, 4 steps in total"]);
    assert!(
        !listed.stdout.contains("train.steps=8") && !listed.stdout.contains("tensorboard"),
        "{}",
        listed.stdout
    );
    workspace.end(worker(&workspace, "sweep", &set)).with_code(0);
    let [json, csv] = results(&workspace, "sweep");
    let json: Value = serde_json::from_slice(&json).unwrap();
    let settings = &json["runs"][0]["settings"];
    assert_eq!((&settings["train.steps"], &settings["optimiser.lr"]), (&2.into(), &0.01.into()), "{json}");
    let csv = String::from_utf8(csv).unwrap();
    let column = csv.lines().next().unwrap().split(',').position(|name| name == "train.steps").unwrap();
    let row = csv.lines().nth(1).unwrap();
    assert_eq!(row.split(',').nth(column), Some("2"), "{csv}");
    // The same command goes on, and the sweep can be looked at as a whole.
    workspace.end(worker(&workspace, "sweep", &set)).with_code(0);
    workspace
        .run(&["inspect", "sweep"])
        .with_code(0)
        .prints(&["2 runs in sweep/runs\n", "fixmatch+calibratemix"]);
    workspace
        .run(&["report", "sweep", "--no-images"])
        .with_code(0)
        .prints(&["cpu-fashion-mnist-none-seed-1: "]);
}

//! `inspect` of every kind of thing, and `doctor`.

use std::fs;

use super::fixture::Fixture;
use crate::program::new_workspace;

#[test]
fn every_kind_is_recognised() {
    let workspace = Fixture::Garments.copy().with_photos();
    let show = |what: &str| workspace.run(&["inspect", what]).with_code(0);

    show("first").prints(&["run first: finished after 8 steps\n", "next: calmix report first\n"]);
    let checkpoint = show("first/checkpoints/step-000000004");
    checkpoint.prints(&[
        "checkpoint after 4 steps; checksums match\n",
        "  live.safetensors ",
        "  state.json ",
    ]);
    show("first/recipe.toml").prints(&["[train]\nsteps = 8  # first/recipe.toml, line "]);
    show("cpu-cifar10")
        .prints(&["steps = 2500  # recipe cpu-cifar10, line ", "# next: calmix train cpu-cifar10 "]);
    show("first/prepared").prints(&["prepared dataset\n", "140 samples: train 100, test 40\n"]);
    show("garments").prints(&[
        "dataset, mnist\n",
        "140 samples: train 100, test 40\n",
        "next: calmix prepare garments\n",
    ]);
    show("photos").prints(&[
        "dataset, folder\n",
        "32 samples: train 20, unlabelled 12\n",
        "  cat  train 10\n",
        "broken.png",
    ]);

    // The output of `inspect RECIPE` is a recipe file.
    fs::write(workspace.path("copy.toml"), show("cpu-cifar10").stdout).unwrap();
    show("copy.toml").prints(&["steps = 2500  # copy.toml, line "]);
}

#[test]
fn damage_is_reported() {
    let workspace = Fixture::Garments.copy();
    let part = workspace.path("first/checkpoints/step-000000008/live.safetensors");
    let mut bytes = fs::read(&part).unwrap();
    bytes[1000] ^= 1;
    fs::write(&part, bytes).unwrap();
    let damaged = workspace.run(&["inspect", "first/checkpoints/step-000000008"]).with_code(1);
    damaged.reports(&["step-000000008: damaged: ", "live.safetensors"]);
    workspace
        .run(&["inspect", "first"])
        .with_code(0)
        .prints(&["warning: the checkpoint of step 8 cannot be used: "]);

    // A renamed checkpoint is refused.
    fs::rename(workspace.path("first/checkpoints/step-000000004"), workspace.path("four")).unwrap();
    workspace
        .run(&["inspect", "four"])
        .with_code(2)
        .reports(&["four: not the name of a checkpoint, such as step-"]);
    fs::rename(workspace.path("four"), workspace.path("first/checkpoints/step-000000004")).unwrap();

    // With no usable checkpoint left, the run does not start over.
    for step in ["step-000000004", "step-000000008"] {
        fs::write(workspace.path("first/checkpoints").join(step).join("state.json"), "{}").unwrap();
    }
    let lost = workspace.run(&["resume", "first"]).with_code(1);
    lost.reports(&["none of its 2 checkpoints can be used", "try: calmix inspect first\n"]);
}

#[test]
fn the_doctor_trains_twice_to_the_same_bytes() {
    let output = new_workspace().run(&["doctor", "--threads", "1", "--seconds", "1"]).with_code(0);
    output.prints(&[
        "libtorch   2.",
        "devices    ",
        "threads    1 of ",
        ", bit-identical when repeated\n",
        "next: calmix recipes",
    ]);
}

#[test]
fn runs_can_be_told_apart() {
    let workspace = new_workspace().with_garments();
    fs::create_dir(workspace.path("runs")).unwrap();
    let train = |steps, more: &[&str]| workspace.end(workspace.training(steps, more)).with_code(0);
    train(4, &["--run-dir", "runs/a-2", "--set", "method.fixmatch.threshold=0.8"]);
    train(2, &["--run-dir", "runs/a-10", "--seed", "3", "--set", "method.mixup.pairing=none"]);
    let one = workspace.run(&["inspect", "runs/a-2"]).with_code(0);
    one.prints(&[
        "recipe    cpu-fashion-mnist: ",
        "\nchanged   ",
        "\n          method.fixmatch.threshold = 0.8 (recipe: 0.95)\n",
        "\n          train.steps = 4 (recipe: 2000)\n",
        "\nmethod    fixmatch, threshold 0.8, with calibratemix\n",
        "\nnetwork   wrn-10-1 at 8 pixels\n",
        "), 10 classes\n          20 labelled, 100 unlabelled, 0 validation\n",
        "\nseeds     train.seed 0, labels.seed 0\n",
    ]);
    // Where the run is and what it decided by itself are no changes.
    assert!(!one.stdout.contains("dataset.path") && !one.stdout.contains("train.threads"), "{}", one.stdout);

    // One that was killed before it began, one that is damaged, and something else.
    fs::create_dir_all(workspace.path("runs/b")).unwrap();
    fs::write(workspace.path("runs/b/run.json"), "{\"format\":1}").unwrap();
    train(2, &["--run-dir", "runs/c"]);
    fs::write(workspace.path("runs/c/summary.json"), "{}").unwrap();
    fs::create_dir_all(workspace.path("runs/notes")).unwrap();
    let all = workspace.run(&["inspect", "runs"]).with_code(0);
    let lines: Vec<Vec<&str>> = all.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0].join(" "), "4 runs in runs");
    assert_eq!(lines[2].join(" "), "run recipe method seeds step error ECE on state");
    let is_metric = |cell: &str| cell.trim_end_matches('%').parse::<f64>().is_ok();
    let row = |line: &[&str], begins: &[&str], ends: &[&str]| {
        assert!(line.starts_with(begins) && line.ends_with(ends), "{line:?}");
        // The error with its sign; an ECE of so few images is none.
        assert!(is_metric(line[begins.len()]) && line[begins.len() + 1] == "-", "{line:?}");
    };
    row(
        &lines[3],
        &["a-2", "cpu-fashion-mnist", "fixmatch+calibratemix", "0/0", "4/4"],
        &["test", "finished"],
    );
    row(&lines[4], &["a-10", "cpu-fashion-mnist", "fixmatch", "3/3", "2/2"], &["test", "finished"]);
    assert_eq!(lines[5].join(" "), "b - - - - - - - not begun");
    assert_eq!(lines[6].join(" "), "c - - - - - - - unreadable");
    all.prints(&["c cannot be read: runs/c/summary.json: ", "next: calmix inspect runs/RUN\n"]);

    // The same for programs.
    let json = workspace.run(&["inspect", "runs", "--json"]).with_code(0);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["kind"], "runs");
    let run = &json["runs"][1];
    assert_eq!(
        (&run["state"], &run["step"], &run["summary"]["seed"]),
        (&"finished".into(), &2.into(), &3.into())
    );
    assert_eq!(run["metrics"]["split"], "test");
    let json = workspace.run(&["inspect", "runs/a-2", "--json"]).with_code(0);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    let changed = json["changed"].as_array().unwrap();
    let threshold = serde_json::json!({ "key": "method.fixmatch.threshold", "recipe": 0.95, "run": 0.8 });
    assert!(changed.contains(&threshold), "{changed:?}");
}

/// A run that a process trains is known as such, and its metrics are those so far.
#[cfg(target_os = "linux")]
#[test]
fn a_run_that_is_trained_is_told() {
    use calmix_testkit::workspace::running::Running;

    let workspace = new_workspace().with_garments();
    fs::create_dir(workspace.path("runs")).unwrap();
    let mut running = Running::new(workspace.training(4_000, &["--run-dir", "runs/a"]));
    running.until("step     6/4,000");
    let listed = workspace.run(&["inspect", "runs"]).with_code(0);
    assert!(listed.stdout.contains("/4,000") && listed.stdout.contains(" running\n"), "{}", listed.stdout);
    running.signal("INT");
    running.end();
    workspace.run(&["inspect", "runs"]).with_code(0).prints(&[" unfinished\n"]);
}

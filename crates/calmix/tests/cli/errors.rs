//! The likeliest mistakes of a user, and the messages about them, word for word.

use std::fs;

use crate::workspace::{Workspace, golden};

#[test]
fn messages_are_as_expected() {
    let workspace = Workspace::new().with_garments().with_photos();
    fs::create_dir(workspace.path("empty")).unwrap();
    fs::create_dir(workspace.path("thesis")).unwrap();
    fs::write(workspace.path("thesis/chapter.tex"), "").unwrap();
    fs::write(workspace.path("mine.toml"), "extends = \"cifar10\"\n\n[train]\nepochs = 3\n").unwrap();
    let mut transcript = Vec::new();
    for line in [
        "trainn",
        "train",
        "train cpu-fashionmnist",
        "train desk-folder --data garments",
        "train cpu-fashion-mnist",
        "train cpu-fashion-mnist --data garmnets",
        "train --data garments",
        "train --data empty --device cpu",
        "train cpu-cifar10 --data garments",
        "train cifar10 --data photos",
        "train cpu-fashion-mnist --data garments --epochs 5",
        "train cpu-fashion-mnist --data garments --batch-size 16",
        "train cpu-fashion-mnist --data garments --thread 1",
        "train cpu-fashion-mnist --data garments --frobnicate",
        "train cpu-fashion-mnist --data garments --set train.stpes=5",
        "train cpu-fashion-mnist --data garments --set lr=0.1",
        "train cpu-fashion-mnist --data garments --set train.step=10",
        "train cpu-fashion-mnist --data garments --device gpu",
        "train cpu-fashion-mnist --data garments --seed one",
        "train cpu-fashion-mnist --data garments --set train.steps",
        "train cpu-fashion-mnist --data garments --set train.steps=many",
        "train cpu-fashion-mnist --data garments --threads 0",
        "train --file mine.toml --data garments",
        "train --file yours.toml --data garments",
        "train cpu-fashion-mnist --data garments --run-dir thesis",
        "resume runs/first",
        "evaluate thesis",
        "inspect cpu-cifar",
        "inspect thesis",
        "prepare garments --source cifar-10",
        "completions tcsh",
    ] {
        let output = workspace.run(&line.split(' ').collect::<Vec<_>>());
        assert_eq!(output.stdout, "", "{line}");
        transcript.push(format!("$ calmix {line}\n{}exit code {}\n\n", output.stderr, output.code));
    }
    golden("errors.txt", &transcript.concat());
    // A run that did not start leaves no files, and other files are unchanged.
    assert!(!workspace.path("runs").exists());
    assert_eq!(fs::read_dir(workspace.path("thesis")).unwrap().count(), 1);
    assert_eq!(fs::read_dir(workspace.path("empty")).unwrap().count(), 0);
}

/// Whatever would fail again exits with 2, so that no launcher repeats it; the message names the place.
#[test]
fn mistakes_are_told_from_failures() {
    let workspace = Workspace::new().with_garments().with_photos();
    workspace.end(workspace.training(2, &["--run-dir", "run"])).with_code(0);
    let refused = |more: &[&str], says: &str| {
        let output = workspace.end(workspace.training(2, more)).with_code(2);
        output.reports(&["error: ", says]);
    };
    refused(&["--processes", "3", "--set", "train.shards=2"], "3 processes cannot share 2 shards evenly");
    refused(&["--set", "train.shards=3"], "train.shards = 3: ");
    refused(&["--set", "train.shards=2", "--set", "train.batch_norm=sync"], "is not done yet");
    refused(&["--set", "train.groups=500"], "unlabelled samples are too few for 500 shards");
    refused(&["--run-dir", "run"], "there is a run here already");
    refused(&["--set", "labels.from=[\"nothing\"]"], "nothing");
    for (line, says) in [
        ("train cifar10 --data photos", "none of data_batch_1.bin"),
        ("prepare photos --source cifar10", "none of data_batch_1.bin"),
        ("evaluate run --device cuda:99", "there is no cuda:99 here"),
        ("resume run --set train.seed=1", "train.seed was 0 and would be 1"),
        ("resume photos", "there is no run here"),
        ("inspect photos/unlabelled", "photos/unlabelled"),
    ] {
        let output = workspace.run(&line.split(' ').collect::<Vec<_>>()).with_code(2);
        output.reports(&["error: ", says]);
    }
    // What another process or a damaged disk is to blame for exits with 1.
    fs::write(workspace.path("run/checkpoints/step-000000002/state.json"), "{}").unwrap();
    workspace.run(&["resume", "run"]).with_code(1);
}

/// A system's error names the file or stream.
#[cfg(target_os = "linux")]
#[test]
fn errors_of_the_system_name_the_place() {
    let workspace = Workspace::new().with_garments();
    // Nobody can make a folder there, not even root.
    let output = workspace.run(&["prepare", "garments", "--to", "/sys/nowhere/table"]).with_code(2);
    output.reports(&["error: /sys/nowhere: "]);
    let output = workspace.end(workspace.training(2, &["--run-dir", "/sys/nowhere"])).with_code(2);
    output.reports(&["error: /sys/nowhere"]);
    let mut command = workspace.command(&["recipes"]);
    command.stdout(fs::File::options().write(true).open("/dev/full").unwrap());
    let output = command.stderr(std::process::Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said, "error: cannot write to standard output: No space left on device (os error 28)\n");
    assert_eq!(output.status.code(), Some(1));
}

#[cfg(not(feature = "mlflow"))]
#[test]
fn push_without_its_feature_names_it() {
    let refused = Workspace::new().run(&["push", "run", "--mlflow", "http://127.0.0.1:5000"]).with_code(2);
    refused.reports(&["built without its feature `mlflow`", "try: cargo install", "--features mlflow"]);
}

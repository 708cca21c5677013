//! The likeliest mistakes of a user, and the messages about them, word for word.

use std::fs;

use super::fixture::Fixture;
use crate::program::new_workspace;

/// When a line is typed into a process of its own.
#[derive(PartialEq)]
enum Typed {
    /// Always: one line of each kind.
    Usual,
    /// With `CALMIX_EXHAUSTIVE=1`. What the command line refuses is also compared by the binary's own tests, without a
    /// process, and what a recipe refuses by those of calmix-train.
    Nightly,
}
use Typed::{Nightly, Usual};
use calmix_testkit::golden::{self, golden};
use calmix_testkit::tier;

const LINES: &[(Typed, &str)] = &[
    (Usual, "trainn"),
    (Usual, "train"),
    (Usual, "train cpu-fashionmnist"),
    (Nightly, "train desk-folder --data garments"),
    (Usual, "train cpu-fashion-mnist"),
    (Usual, "train cpu-fashion-mnist --data garmnets"),
    (Usual, "train --data garments"),
    (Usual, "train --data empty --device cpu"),
    (Usual, "train cpu-cifar10 --data garments"),
    (Nightly, "train cifar10 --data photos"),
    (Usual, "train cpu-fashion-mnist --data garments --epochs 5"),
    (Nightly, "train cpu-fashion-mnist --data garments --batch-size 16"),
    (Nightly, "train cpu-fashion-mnist --data garments --thread 1"),
    (Nightly, "train cpu-fashion-mnist --data garments --frobnicate"),
    (Usual, "train cpu-fashion-mnist --data garments --model resnet50"),
    (Nightly, "train cpu-fashion-mnist --data garments --gpu"),
    (Nightly, "train photos"),
    (Usual, "train cpu-fashion-mnist --data garments --set train.stpes=5"),
    (Nightly, "train cpu-fashion-mnist --data garments --set lr=0.1"),
    (Usual, "train cpu-fashion-mnist --data garments --set train.step=10"),
    (Nightly, "train cpu-fashion-mnist --data garments --device gpu"),
    (Nightly, "train cpu-fashion-mnist --data garments --seed one"),
    (Nightly, "train cpu-fashion-mnist --data garments --set train.steps"),
    (Nightly, "train cpu-fashion-mnist --data garments --set train.steps=many"),
    (Nightly, "train cpu-fashion-mnist --data garments --threads 0"),
    (Usual, "train --file mine.toml --data garments"),
    (Nightly, "train --file yours.toml --data garments"),
    (Usual, "train cpu-fashion-mnist --data garments --run-dir thesis"),
    (Usual, "resume runs/first"),
    (Nightly, "evaluate thesis"),
    (Usual, "inspect cpu-cifar"),
    (Usual, "inspect thesis"),
    (Nightly, "prepare garments --source cifar-10"),
    (Nightly, "completions tcsh"),
];

#[test]
fn messages_are_as_expected() {
    let workspace = new_workspace().with_garments().with_photos();
    fs::create_dir(workspace.path("empty")).unwrap();
    fs::create_dir(workspace.path("thesis")).unwrap();
    fs::write(workspace.path("thesis/chapter.tex"), "").unwrap();
    fs::write(workspace.path("mine.toml"), "extends = \"cifar10\"\n\n[train]\nepochs = 3\n").unwrap();
    let is_all = tier::is_exhaustive() || golden::is_rewritten();
    let expected = fs::read_to_string(golden::path("errors.txt")).unwrap();
    let mut transcript = Vec::new();
    for (_, line) in LINES.iter().filter(|(typed, _)| is_all || *typed == Usual) {
        let output = workspace.run(&line.split(' ').collect::<Vec<_>>());
        assert_eq!(output.stdout, "", "{line}");
        let said = format!("$ calmix {line}\n{}exit code {}\n\n", output.stderr, output.code);
        assert!(is_all || expected.contains(&said), "not in errors.txt:\n{said}");
        transcript.push(said);
    }
    if is_all {
        golden("errors.txt", &transcript.concat());
    }
    // A run that did not start leaves no files, and other files are unchanged.
    assert!(!workspace.path("runs").exists());
    assert_eq!(fs::read_dir(workspace.path("thesis")).unwrap().count(), 1);
    assert_eq!(fs::read_dir(workspace.path("empty")).unwrap().count(), 0);
}

/// Whatever would fail again exits with 2, so that no launcher repeats it; the message names the place.
#[test]
fn exit_codes_separate_mistakes_from_failures() {
    let workspace = Fixture::Garments.copy().with_photos();
    let refused = |more: &[&str], says: &str| {
        let output = workspace.end(workspace.training(2, more)).with_code(2);
        output.reports(&["error: ", says]);
    };
    refused(
        &["--processes", "3", "--set", "train.micro_batches=2"],
        "3 processes cannot share 2 micro-batches",
    );
    refused(&["--set", "train.micro_batches=3"], "train.micro_batches = 3: ");
    refused(
        &["--set", "train.micro_batches=2", "--set", "train.batch_norm=sync"],
        "is not supported with several micro-batches",
    );
    refused(&["--set", "train.groups=500"], "unlabelled samples are too few for 500 micro-batches");
    refused(&["--run-dir", "first"], "there is a run here already");
    refused(&["--set", "labels.from=[\"nothing\"]"], "nothing");
    for (line, says) in [
        ("train cifar10 --data photos", "none of data_batch_1.bin"),
        ("prepare photos --source cifar10", "none of data_batch_1.bin"),
        ("evaluate first --device cuda:99", "there is no cuda:99 here"),
        ("resume first --set train.seed=1", "train.seed was 0 and would be 1"),
        ("resume photos", "there is no run here"),
        ("inspect photos/unlabelled", "photos/unlabelled"),
    ] {
        let output = workspace.run(&line.split(' ').collect::<Vec<_>>()).with_code(2);
        output.reports(&["error: ", says]);
    }
    // What another process or a damaged disk is to blame for exits with 1.
    for step in ["step-000000004", "step-000000008"] {
        fs::write(workspace.path("first/checkpoints").join(step).join("state.json"), "{}").unwrap();
    }
    workspace.run(&["resume", "first"]).with_code(1);
}

/// A system's error names the file.
#[cfg(target_os = "linux")]
#[test]
fn run_folder_that_cannot_be_made_is_named() {
    let workspace = new_workspace().with_garments();
    // No user can create a folder there, not even root.
    let output = workspace.end(workspace.training(2, &["--run-dir", "/sys/nowhere"])).with_code(2);
    output.reports(&["error: /sys/nowhere"]);
}

//! The likeliest mistakes of a user, and the messages about them, word for word.

use std::fs;

use crate::workspace::{Workspace, golden};

#[test]
fn messages_are_as_expected() {
    let workspace = Workspace::new().with_garments();
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
        "train --data empty",
        "train cpu-cifar10 --data garments",
        "train cpu-fashion-mnist --data garments --epochs 5",
        "train cpu-fashion-mnist --data garments --batch-size 16",
        "train cpu-fashion-mnist --data garments --thread 1",
        "train cpu-fashion-mnist --data garments --frobnicate",
        "train cpu-fashion-mnist --data garments --set train.stpes=5",
        "train cpu-fashion-mnist --data garments --set lr=0.1",
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

//! The likeliest mistakes, with what is said about them, word for word.

use std::fs;

use crate::desk::{Desk, golden};

#[test]
fn mistakes_of_a_beginner() {
    let desk = Desk::new().with_garments();
    fs::create_dir(desk.path("empty")).unwrap();
    fs::create_dir(desk.path("thesis")).unwrap();
    fs::write(desk.path("thesis/chapter.tex"), "").unwrap();
    fs::write(desk.path("mine.toml"), "extends = \"cifar10\"\n\n[train]\nepochs = 3\n").unwrap();
    let mut transcript = Vec::new();
    for line in [
        "trainn",
        "train",
        "train desk-fashionmnist",
        "train desk-fashion-mnist",
        "train desk-fashion-mnist --data garmnets",
        "train --data garments",
        "train --data empty",
        "train desk-cifar10 --data garments",
        "train desk-fashion-mnist --data garments --epochs 5",
        "train desk-fashion-mnist --data garments --batch-size 16",
        "train desk-fashion-mnist --data garments --thread 1",
        "train desk-fashion-mnist --data garments --frobnicate",
        "train desk-fashion-mnist --data garments --set train.stpes=5",
        "train desk-fashion-mnist --data garments --set lr=0.1",
        "train desk-fashion-mnist --data garments --set train.steps",
        "train desk-fashion-mnist --data garments --set train.steps=many",
        "train desk-fashion-mnist --data garments --threads 0",
        "train --file mine.toml --data garments",
        "train --file yours.toml --data garments",
        "train desk-fashion-mnist --data garments --into thesis",
        "resume runs/first",
        "evaluate thesis",
        "inspect desk-cifar",
        "inspect thesis",
        "prepare garments --source cifar-10",
        "completions tcsh",
    ] {
        let said = desk.run(&line.split(' ').collect::<Vec<_>>());
        assert_eq!(said.stdout, "", "{line}");
        transcript.push(format!("$ calmix {line}\n{}exit code {}\n\n", said.stderr, said.code));
    }
    golden("mistakes.txt", &transcript.concat());
    // Nothing is left of a run that did not begin, and nothing of others is touched.
    assert!(!desk.path("runs").exists());
    assert_eq!(fs::read_dir(desk.path("thesis")).unwrap().count(), 1);
    assert_eq!(fs::read_dir(desk.path("empty")).unwrap().count(), 0);
}

//! From a dataset to a model, as a new user goes.

use std::fs;

use crate::desk::{Desk, golden};

#[test]
fn prepare_train_evaluate_inspect() {
    let desk = Desk::new().with_garments();
    let prepared = desk.run(&["prepare", "garments", "--source", "fashion-mnist"]).with_code(0);
    golden("prepare.txt", &prepared.stdout);
    desk.run(&["prepare", "garments"]).with_code(2).tells(&["try: name another folder with `--to`"]);

    let trained = desk.end(desk.training(8, &["--prepared", "prepared/garments"])).with_code(0);
    trained.tells(&[
        "20 labelled, 100 unlabelled, 0 validation, 40 test",
        "network   wrn-10-1, 77,866 parameters",
        "method    fixmatch with calibratemix",
        "training  8 steps of 4 + 4 images; cpu, 1 thread, ",
        "step 1/8  loss ",
        "step 8/8  loss ",
    ]);
    trained.says(&[
        "the model after 8 steps\n\ntest, 40 images ",
        "in brackets: 95 % intervals from 20 resamples",
        "written to runs/desk-fashion-mnist-1:\n  model.safetensors ",
        "next: calmix inspect runs/desk-fashion-mnist-1\n",
    ]);
    assert!(desk.path("runs/desk-fashion-mnist-1/model.safetensors").exists());
    assert!(!desk.path("runs/desk-fashion-mnist-1/prepared").exists());

    // The figures are the same wherever they are shown.
    let table = |text: &str| {
        let from = text.find("test, 40 images").expect("no table");
        text[from..].split("\n\n").next().unwrap_or_default().to_owned()
    };
    let expected = table(&trained.stdout);
    let run = "runs/desk-fashion-mnist-1";
    for (command, more) in [
        ("evaluate", "next: calmix inspect runs/desk-fashion-mnist-1\n"),
        ("inspect", "run runs/desk-fashion-mnist-1: finished after 8 steps\n"),
        ("resume", "this run was finished before\n"),
    ] {
        let shown = desk.run(&[command, run]).with_code(0);
        shown.says(&[more]);
        let found = table(&shown.stdout);
        assert!(
            expected.starts_with(&found) || found.starts_with(&expected),
            "{command}:\n{expected}\n{found}"
        );
    }

    // The next run has the next number, and quiet is quiet.
    let quiet = desk.end(desk.training(2, &["--quiet", "--tensorboard"])).with_code(0);
    quiet.says(&["next: calmix inspect runs/desk-fashion-mnist-2\n", "tensorboard/ "]);
    assert!(!quiet.stderr.contains("step 1/") && !quiet.stderr.contains("recipe  "), "{}", quiet.stderr);
    assert!(desk.path("runs/desk-fashion-mnist-2/prepared").exists());

    // What is there is never written over; what a run learns never changes on the way.
    let again = desk.end(desk.training(2, &["--into", run])).with_code(2);
    again.tells(&["there is a run here already", "try: calmix resume runs/desk-fashion-mnist-1\n"]);
    let other = desk.run(&["resume", run, "--set", "train.seed=7"]).with_code(2);
    other.tells(&["train.seed was 0 and would be 7"]);
}

#[test]
fn a_folder_of_photos_needs_no_recipe() {
    let desk = Desk::new().with_photos();
    for (recipe, run) in [(&[][..], "runs/folder-1"), (&["desk-folder"], "runs/desk-folder-1")] {
        let mut command = desk.command(&["train"]);
        command.args(recipe).args(["--data", "photos", "--threads", "1", "--set", "network.name=wrn-10-1"]);
        for setting in
            ["train.steps=2", "train.batch=4", "train.ratio=1", "augment.size=8", "evaluate.bootstrap=0"]
        {
            command.args(["--set", setting]);
        }
        let said = desk.end(command).with_code(0);
        said.tells(&[
            "warning: left out: [HERE]/photos/cat/broken.png",
            "warning: there is no test subset: a fifth of the labels is held out to judge by",
            "16 labelled, 28 unlabelled, 4 validation, 0 test",
        ]);
        said.says(&["validation, 4 images ", &format!("written to {run}:")]);
        // Where nobody looks, nothing is coloured.
        assert!(!said.stderr.contains('\x1b') && !said.stdout.contains('\x1b'));
    }
}

#[test]
fn a_device_that_is_not_here_is_refused_before_anything_is_made() {
    let desk = Desk::new().with_garments();
    let said = desk.end(desk.training(2, &["--set", "train.device=cuda:99"])).with_code(2);
    said.tells(&["error: there is no cuda:99 here; there is ", "try: calmix doctor\n"]);
    assert!(!desk.path("runs").exists());
}

#[test]
fn a_broken_dataset_leaves_no_run_behind() {
    let desk = Desk::new().with_garments();
    let labels = desk.path("garments/train-labels-idx1-ubyte");
    let bytes = fs::read(&labels).unwrap();
    fs::write(&labels, &bytes[..50]).unwrap();
    let said = desk.end(desk.training(2, &[])).with_code(1);
    said.tells(&["error: [HERE]/garments/train-labels-idx1-ubyte"]);
    assert!(!desk.path("runs").exists());
}

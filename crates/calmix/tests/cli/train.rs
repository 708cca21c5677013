//! From a dataset to a model, as a new user does it.

use std::fs;

use crate::workspace::{TINY, Workspace, golden};

/// Shards are scanned by the headers of their images. Test samples that cannot be decoded are missing from the figures, and
/// the user hears of it.
#[cfg(unix)]
#[test]
fn test_samples_that_are_left_out_are_counted() {
    let workspace = Workspace::new().with_photos();
    fs::create_dir(workspace.path("shards")).unwrap();
    for subset in ["train", "test"] {
        let folder = workspace.path(subset);
        fs::create_dir(&folder).unwrap();
        for (label, class) in ["cat", "dog"].into_iter().enumerate() {
            for n in 0..10 {
                let image = workspace.path(&format!("photos/{class}/{n}.png"));
                fs::copy(image, folder.join(format!("{class}{n}.png"))).unwrap();
                fs::write(folder.join(format!("{class}{n}.cls")), label.to_string()).unwrap();
            }
        }
        if subset == "test" {
            // Its header and its length are right, its pixels are not.
            let mut bytes = fs::read(folder.join("dog3.png")).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle..middle + 8].fill(0);
            fs::write(folder.join("dog3.png"), &bytes).unwrap();
        }
        let mut names: Vec<_> =
            fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        let mut tar = std::process::Command::new("tar");
        tar.arg("-cf")
            .arg(workspace.path(&format!("shards/{subset}.tar")))
            .arg("-C")
            .arg(&folder)
            .args(names);
        assert!(tar.status().unwrap().success());
    }
    let train = ["train", "cpu-folder", "--data", "shards", "--threads", "1", "--run-dir", "run"];
    let mut command = workspace.command(&train);
    for setting in TINY.iter().chain(&["train.steps=8"]) {
        command.args(["--set", setting]);
    }
    let trained = workspace.end(command).with_code(0);
    trained.reports(&["1 of 20 test samples are corrupt and left out", "test.tar"]);
    assert_eq!(trained.stderr.matches("left out").count(), 1, "{}", trained.stderr);
    let events = fs::read_to_string(workspace.path("run/events.jsonl")).unwrap();
    assert!(events.contains("\"samples\":19,\"skipped\":1,"), "{events}");
    let evaluated = workspace.run(&["evaluate", "run"]).with_code(0);
    evaluated.reports(&["1 of 20 test samples are corrupt and left out"]);
}

#[test]
fn prepare_train_evaluate_inspect() {
    let workspace = Workspace::new().with_garments();
    let prepared = workspace.run(&["prepare", "garments", "--source", "fashion-mnist"]).with_code(0);
    golden("prepare.txt", &prepared.stdout);
    workspace.run(&["prepare", "garments"]).with_code(2).reports(&["try: name another folder with `--to`"]);

    let trained = workspace.end(workspace.training(8, &["--prepared", "prepared/garments"])).with_code(0);
    trained.reports(&[
        "20 labelled, 100 unlabelled, 0 validation, 40 test",
        "network   wrn-10-1, 77,866 parameters",
        "method    fixmatch with calibratemix",
        "training  8 steps of 4 + 4 images; cpu, 1 thread, ",
        "step 1/8  loss ",
        "step 8/8  loss ",
    ]);
    trained.prints(&[
        "model after 8 steps\n\ntest, 40 images ",
        "  ECE, 15 bins ",
        "-confident by ",
        " points: it says ",
        " % of the time (ECE ",
        " %, 15 bins)\n",
        "in brackets: 95 % bootstrap intervals, 20 resamples",
        "pseudo-labels of 80 unlabelled images at the end: ",
        "written to runs/cpu-fashion-mnist-1:\n  model.safetensors ",
        "next: calmix inspect runs/cpu-fashion-mnist-1\n",
    ]);
    assert!(workspace.path("runs/cpu-fashion-mnist-1/model.safetensors").exists());
    assert!(!workspace.path("runs/cpu-fashion-mnist-1/prepared").exists());

    // The figures are the same wherever they are shown.
    let table = |text: &str| {
        let from = text.find("test, 40 images").expect("no table");
        text[from..].split("\n\n").next().unwrap_or_default().to_owned()
    };
    let expected = table(&trained.stdout);
    let run = "runs/cpu-fashion-mnist-1";
    for (command, more) in [
        ("evaluate", "next: calmix inspect runs/cpu-fashion-mnist-1\n"),
        ("inspect", "run runs/cpu-fashion-mnist-1: finished after 8 steps\n"),
        ("resume", "this run is already finished\n"),
    ] {
        let shown = workspace.run(&[command, run]).with_code(0);
        shown.prints(&[more]);
        let found = table(&shown.stdout);
        assert!(
            expected.starts_with(&found) || found.starts_with(&expected),
            "{command}:\n{expected}\n{found}"
        );
    }

    // The next run has the next number, and quiet is quiet.
    let quiet = workspace.end(workspace.training(2, &["--quiet", "--tensorboard"])).with_code(0);
    quiet.prints(&["next: calmix inspect runs/cpu-fashion-mnist-2\n", "tensorboard/ "]);
    assert!(!quiet.stderr.contains("step 1/") && !quiet.stderr.contains("recipe  "), "{}", quiet.stderr);
    assert!(workspace.path("runs/cpu-fashion-mnist-2/prepared").exists());

    // A run is never overwritten, and settings that affect what it learns never change.
    let again = workspace.end(workspace.training(2, &["--run-dir", run])).with_code(2);
    again.reports(&["there is a run here already", "try: calmix resume runs/cpu-fashion-mnist-1\n"]);
    let other = workspace.run(&["resume", run, "--set", "train.seed=7"]).with_code(2);
    other.reports(&["train.seed was 0 and would be 7"]);
}

#[test]
fn a_folder_of_photos_needs_no_recipe() {
    let workspace = Workspace::new().with_photos();
    for (recipe, run) in [(&[][..], "runs/folder-1"), (&["cpu-folder"], "runs/cpu-folder-1")] {
        let mut command = workspace.command(&["train"]);
        command.args(recipe).args(["--data", "photos", "--threads", "1", "--set", "network.name=wrn-10-1"]);
        for setting in
            ["train.steps=2", "train.batch=4", "train.ratio=1", "augment.size=8", "evaluate.bootstrap=0"]
        {
            command.args(["--set", setting]);
        }
        let output = workspace.end(command).with_code(0);
        output.reports(&[
            "warning: skipped: [HERE]/photos/cat/broken.png",
            "warning: there is no test subset: calmix holds out 20 % of the labels for evaluation",
            "16 labelled, 28 unlabelled, 4 validation, 0 test",
        ]);
        output.prints(&["validation, 4 images ", &format!("written to {run}:")]);
        // Colours are only for terminals.
        assert!(!output.stderr.contains('\x1b') && !output.stdout.contains('\x1b'));
    }
}

#[test]
fn a_device_that_is_not_here_is_refused_before_anything_is_made() {
    let workspace = Workspace::new().with_garments();
    let output = workspace.end(workspace.training(2, &["--set", "train.device=cuda:99"])).with_code(2);
    output.reports(&["error: there is no cuda:99 here; there is ", "try: calmix doctor\n"]);
    assert!(!workspace.path("runs").exists());
}

#[test]
fn a_broken_dataset_leaves_no_run_behind() {
    let workspace = Workspace::new().with_garments();
    let labels = workspace.path("garments/train-labels-idx1-ubyte");
    let bytes = fs::read(&labels).unwrap();
    fs::write(&labels, &bytes[..50]).unwrap();
    let output = workspace.end(workspace.training(2, &[])).with_code(1);
    output.reports(&["error: [HERE]/garments/train-labels-idx1-ubyte"]);
    assert!(!workspace.path("runs").exists());
}

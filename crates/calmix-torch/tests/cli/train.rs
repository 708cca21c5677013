//! From a dataset to a model, as a new user does it.

use std::fs;

use calmix_testkit::golden::golden;
use calmix_testkit::workspace::running::Running;
use calmix_testkit::workspace::{LAST_SCREEN, TINY};

use crate::program::new_workspace;

/// Shards are scanned by the headers of their images. Test samples that cannot be decoded are missing from the metrics, and
/// the user hears of it.
#[test]
fn test_samples_that_are_left_out_are_counted() {
    let workspace = new_workspace().with_photos();
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
    evaluated.reports(&["1 of 20 test samples are corrupt and were left out"]);
}

#[test]
fn prepare_train_evaluate_inspect() {
    let workspace = new_workspace().with_garments();
    let prepared = workspace.run(&["prepare", "garments", "--source", "fashion-mnist"]).with_code(0);
    golden("prepare.txt", &prepared.stdout);
    workspace
        .run(&["prepare", "garments"])
        .with_code(2)
        .reports(&["try: `--force` replaces it; `--to NEW_FOLDER`"]);

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
        "Too few labels for an estimate: the error may be anywhere from ",
        "(40 test images); 10",
        "\n\ntest, 40 images ",
        "  confidence gap, points ",
        "model after 8 steps written to runs/cpu-fashion-mnist-1; ",
        "next: calmix report runs/cpu-fashion-mnist-1\n",
    ]);
    assert!(trained.stdout.lines().count() <= LAST_SCREEN, "{}", trained.stdout);
    assert!(workspace.path("runs/cpu-fashion-mnist-1/model.safetensors").exists());
    assert!(!workspace.path("runs/cpu-fashion-mnist-1/prepared").exists());

    // The metrics are the same wherever they are shown.
    let table = |text: &str| {
        let from = text.find("test, 40 images").expect("no table");
        let rows = text[from..].lines().enumerate().take_while(|(n, line)| *n == 0 || line.starts_with("  "));
        // Whether a temperature is fitted, about which a sentence follows, depends on the last bits of the training.
        rows.map(|(_, line)| line).collect::<Vec<_>>().join("\n")
    };
    let expected = table(&trained.stdout);
    let run = "runs/cpu-fashion-mnist-1";
    for (command, more) in [
        ("evaluate", "next: calmix report runs/cpu-fashion-mnist-1\n"),
        ("inspect", "run runs/cpu-fashion-mnist-1: finished after 8 steps\n"),
        ("inspect", "-confident by "),
        ("inspect", " points: mean confidence "),
        (
            "inspect",
            "brackets: 95% confidence intervals, exact for the error and derived from it for the gap\n\
             the other intervals are from 20 bootstrap resamples\nan ECE needs at least 1,000 images\n",
        ),
        ("inspect", "pseudo-labels of 80 unlabelled samples at the end: "),
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
    quiet.prints(&["next: calmix report runs/cpu-fashion-mnist-2\n"]);
    workspace.run(&["inspect", "runs/cpu-fashion-mnist-2"]).with_code(0).prints(&["tensorboard/ "]);
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
    let workspace = new_workspace().with_photos();
    let said = "recipe cpu-folder, for a CPU: no pretrained weights in [HERE]/weights\n";
    for (recipe, run) in [(&[][..], "runs/cpu-folder-1"), (&["folder"], "runs/folder-1")] {
        let mut command = workspace.command(&["train"]);
        command.args(recipe).args(["--data", "photos", "--threads", "1", "--device", "cpu"]);
        command.args(["--set", "network.name=wrn-10-1"]);
        for setting in
            ["train.steps=2", "train.batch=4", "train.ratio=1", "augment.size=8", "evaluate.bootstrap=0"]
        {
            command.args(["--set", setting]);
        }
        let output = workspace.end(command).with_code(0);
        // The second run shares the table of the first, with its warnings.
        let skipped = if recipe.is_empty() {
            "warning: skipped: [HERE]/photos/cat/broken.png"
        } else {
            "warning: skipped: 1 place, as before; see runs/folder-1/prepared/report.json"
        };
        output.reports(&[
            skipped,
            "warning: there is no test subset: the model is evaluated on the held-out labels",
            "20 labelled, 32 unlabelled, 0 validation, 0 test",
        ]);
        output.prints(&[
            "no metrics: there is no test subset, and no label was held out.\n\
             Add a folder `test`, or more labels: with at least 50",
            &format!("written to {run}; "),
        ]);
        // Shows the recipe that calmix chose, and how to choose another.
        assert_eq!(output.stderr.contains(said), recipe.is_empty(), "{}", output.stderr);
        // Colours are only for terminals.
        assert!(!output.stderr.contains('\x1b') && !output.stdout.contains('\x1b'));
    }
}

#[test]
fn missing_device_is_refused_before_anything_is_written() {
    let workspace = new_workspace().with_garments();
    for device in [["--set", "train.device=cuda:99"], ["--device", "cuda:99"]] {
        let output = workspace.end(workspace.training(2, &device)).with_code(2);
        output.reports(&["error: there is no cuda:99 here; available: ", "try: calmix doctor\n"]);
    }
    assert!(!workspace.path("runs").exists());
}

#[test]
fn a_broken_dataset_leaves_no_run_behind() {
    let workspace = new_workspace().with_garments();
    let labels = workspace.path("garments/train-labels-idx1-ubyte");
    let bytes = fs::read(&labels).unwrap();
    fs::write(&labels, &bytes[..50]).unwrap();
    let output = workspace.end(workspace.training(2, &[])).with_code(2);
    output.reports(&["error: [HERE]/garments/train-labels-idx1-ubyte"]);
    assert!(!workspace.path("runs").exists());
}

#[test]
fn one_option_sets_both_seeds() {
    let workspace = new_workspace().with_photos().with_garments();
    let mut command = workspace.command(&["train", "cpu-folder", "--data", "photos", "--threads", "1"]);
    command.args(["--run-dir", "first", "--seed", "7", "--device", "cpu", "--set", "labels.validation=0"]);
    for setting in TINY.iter().chain(&["train.steps=2"]) {
        command.args(["--set", setting]);
    }
    let output = workspace.end(command).with_code(0);
    // Every label is kept, so labels.seed has no effect here, and the user did not set it by name.
    assert!(!output.stderr.contains("labels.seed"), "{}", output.stderr);
    workspace
        .end(workspace.training(2, &["--run-dir", "second", "--seed", "7", "--set", "labels.validation=0.5"]))
        .with_code(0);
    workspace.run(&["inspect", "first"]).with_code(0).prints(&["seeds     train.seed 7, labels.seed 0\n"]);
    workspace.run(&["inspect", "second"]).with_code(0).prints(&["seeds     train.seed 7, labels.seed 7\n"]);
}

/// One step is one step.
#[test]
fn counts_have_their_plurals() {
    let workspace = new_workspace().with_photos();
    let mut command = workspace.command(&["train", "cpu-folder", "--data", "photos", "--threads", "1"]);
    for setting in TINY.iter().chain(&["train.steps=1"]) {
        command.args(["--set", setting]);
    }
    let output = workspace.end(command);
    output.reports(&["), 2 classes\n", "training  1 step of "]);
}

/// A run of days is known for one after its first steps, whenever its first interval ends; in a file by one line.
#[test]
fn time_left_is_shown_and_days_warned_about() {
    let workspace = new_workspace().with_garments();
    let more = ["--run-dir", "first", "--set", "log.every=10000000", "--set", "evaluate.every=10000000"];
    let mut running = Running::new(workspace.training(2_000_000_000, &more));
    let said = running.until("warning: at this pace the run takes ");
    assert!(said.contains(" d ") && said.contains(" h more (Ctrl-C saves it); "), "{said}");
    assert!(
        said.contains("; `calmix train cpu-fashion-mnist --data ") && said.contains("` takes minutes\n"),
        "{said}"
    );
    running.until("/2,000,000,000 ");
    std::thread::sleep(std::time::Duration::from_secs(3));
    running.signal("INT");
    let (rest, code) = running.stderr();
    assert_eq!(code, Some(130), "{rest}");
    assert!(!rest.contains("/2,000,000,000 ") && !rest.contains("at this pace"), "{rest}");
}

/// What a terminal of 60 columns shows, by `script`, which every Linux has.
#[cfg(target_os = "linux")]
#[test]
fn a_narrow_terminal_shows_the_step() {
    let workspace = new_workspace().with_garments();
    let training = workspace.training(400, &["--run-dir", "first", "--set", "evaluate.every=200"]);
    let words = [training.get_program()].into_iter().chain(training.get_args());
    let words: Vec<String> = words.map(|word| format!("'{}'", word.to_str().unwrap())).collect();
    let mut command = std::process::Command::new("script");
    command.current_dir(workspace.path("")).stdin(std::process::Stdio::null());
    command.args(["-qec", &format!("stty rows 24 cols 60; exec {}", words.join(" ")), "/dev/null"]);
    let text = workspace.end(command).with_code(0).stdout;
    let drawn: Vec<&str> = text.split("\r\x1b[K").filter(|line| line.contains("  left ")).collect();
    assert!(drawn.iter().any(|line| line.contains("test error ")), "{text:?}");
    for line in drawn {
        assert!(line.chars().count() < 60 && line.contains("step ") && line.contains("/400  "), "{line:?}");
    }
}

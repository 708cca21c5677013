//! `calmix evaluate RUN --on FOLDER`: labelled images of another dataset, and human votes about them.

use std::fs;

use calmix_testkit::npy_file;
use calmix_testkit::workspace::Workspace;
use serde_json::Value;

use super::fixture::Fixture;
use super::predict::{predict, rows};

/// Classes match by their names, and the metrics are those of the rows that `predict` writes.
#[test]
fn classes_match_by_name_and_metrics_are_those_of_predict() {
    let workspace = Fixture::Photos.copy();
    let document = |arguments: &[&str]| -> Value {
        let arguments = [&["evaluate", "run", "--json", "--on"], arguments].concat();
        serde_json::from_str(&workspace.run(&arguments).with_code(0).stdout).unwrap()
    };
    let said = rows(&predict(&workspace, &["photos", "--format", "jsonl"]).stdout);
    let wrong = |class: &str| {
        let of_class = |row: &&Value| row["path"].as_str().unwrap().starts_with(&format!("photos/{class}/"));
        let of_class = said.iter().filter(of_class).filter(|row| row["error"].is_null());
        let wrong = of_class.clone().filter(|row| row["label"] != class).count();
        (wrong, of_class.count())
    };
    let (cats, dogs) = (wrong("cat"), wrong("dog"));
    let all = document(&["photos"]);
    assert_eq!(all["evaluation"]["samples"], 20);
    // The others are held out.
    assert_eq!((&all["trained_on"], &all["checked_against_training"]), (&10.into(), &true.into()));
    let warned = workspace.run(&["evaluate", "run", "--on", "photos", "--threads", "1"]).with_code(0);
    warned.reports(&[
        "warning: the model was trained on 10 of 20 labelled images (",
        "so these metrics are optimistic: evaluate on images that it was not trained on\n",
    ]);
    let error = all["evaluation"]["metrics"]["error"].as_f64().unwrap();
    assert!((error - (cats.0 + dogs.0) as f64 / 20.0).abs() < 1e-12, "{error}");
    assert!(all["sets"]["coverage"].as_f64().is_some() && all["answers"]["share"].as_f64().is_some());

    // Dogs alone: class 0 of the folder, class 1 of the model.
    fs::create_dir_all(workspace.path("pets/dog")).unwrap();
    for n in 0..10 {
        let name = format!("dog/{n}.png");
        fs::copy(workspace.path("photos").join(&name), workspace.path("pets").join(&name)).unwrap();
    }
    let pets = document(&["pets"]);
    assert_eq!(pets["evaluation"]["samples"], 10);
    let error = pets["evaluation"]["metrics"]["error"].as_f64().unwrap();
    assert!((error - dogs.0 as f64 / 10.0).abs() < 1e-12, "{error}");
    workspace
        .run(&["evaluate", "run", "--on", "pets"])
        .with_code(0)
        .prints(&["on pets\n", "90% prediction sets: "]);

    // Voters who agree on dogs 0 to 4 and disagree on the others.
    let votes = (0..10).map(|n| format!("dog/{n}.png,{},{}\n", 50 - 4 * (n / 5) * 5, 4 * (n / 5) * 5));
    fs::write(workspace.path("votes.csv"), format!("file,dog,cat\n{}", votes.collect::<Vec<_>>().concat()))
        .unwrap();
    let voted = document(&["pets", "--votes", "votes.csv"]);
    assert_eq!(voted["votes"]["samples"], 10);
    // Half of them 30 to 20: ln 2 − 0.02 at the least.
    let entropy = voted["votes"]["entropy"].as_f64().unwrap();
    assert!((entropy - 0.5 * 0.673_011_667_009).abs() < 1e-9, "{entropy}");
    assert!(voted["votes"]["cross_entropy"].as_f64().unwrap() > entropy);
    fs::write(workspace.path("votes.csv"), "file,dog,cow\n").unwrap();
    let refused = workspace.run(&["evaluate", "run", "--on", "pets", "--votes", "votes.csv"]).with_code(2);
    refused
        .reports(&["votes.csv: the column \"cow\" is not a class of the model", "the classes are cat, dog"]);
    fs::write(workspace.path("votes.csv"), "file,dog\ndog/77.png,3\n").unwrap();
    let refused = workspace.run(&["evaluate", "run", "--on", "pets", "--votes", "votes.csv"]).with_code(2);
    refused.reports(&["votes.csv, row 1: no image \"dog/77.png\""]);

    in_order(&workspace, &document);

    fs::rename(workspace.path("pets/dog"), workspace.path("pets/zebra")).unwrap();
    let unknown = workspace.run(&["evaluate", "run", "--on", "pets"]).with_code(2);
    unknown.reports(&["pets: the model has no class zebra", "the classes of the model are cat, dog\n"]);
    workspace.run(&["evaluate", "run", "--on", "nowhere"]).with_code(2).reports(&["nowhere: does not exist"]);
}

/// The options of `train` for a folder are those of `--on`.
#[test]
fn label_column_and_layout_are_taken() {
    let workspace = Fixture::Photos.copy();
    workspace.images("listed/img", 90, 4);
    let lines =
        (0..4).map(|n| format!("img/{n}.png,{}\n", ["cat", "dog"][n % 2])).collect::<Vec<_>>().concat();
    fs::write(workspace.path("listed/labels.csv"), format!("file,animal\n{lines}")).unwrap();
    let on = ["evaluate", "run", "--on", "listed", "--label-column", "animal", "--json"];
    let output = workspace.run(&on).with_code(0);
    let document: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((&document["evaluation"]["samples"], &document["trained_on"]), (&4.into(), &0.into()));
    workspace.images("nested/pets/cat", 90, 2);
    workspace.images("nested/more/dog", 91, 2);
    let on = ["evaluate", "run", "--on", "nested", "--layout", "nested", "--json"];
    let document: Value = serde_json::from_str(&workspace.run(&on).with_code(0).stdout).unwrap();
    assert_eq!(document["evaluation"]["samples"], 4);
    workspace
        .run(&["evaluate", "run", "--on", "listed", "--labels", "listed/labels.csv"])
        .with_code(2)
        .reports(&["--labels is for runs on vectors, but this run was trained on images"]);
    workspace.images("none/unlabelled", 90, 2);
    workspace.run(&["evaluate", "run", "--on", "none"]).with_code(2).reports(&["none: "]);
}

/// Votes without names, as a CSV and as NumPy saves them, belong to the images of a subset in their order.
fn in_order(workspace: &Workspace, document: &dyn Fn(&[&str]) -> Value) {
    let names = ["cat", "dog"].iter().flat_map(|class| (0..10).map(move |n| format!("{class}/{n}.png")));
    let names: Vec<_> = names.filter(|name| workspace.path("photos").join(name).exists()).collect();
    assert_eq!(names.len(), 20);
    let counts = |n: usize| [50 - n, n].map(|count| i64::try_from(count).unwrap());
    let with_names =
        names.iter().enumerate().map(|(n, name)| format!("{name},{},{}\n", counts(n)[0], counts(n)[1]));
    let named = format!("file,cat,dog\n{}", with_names.collect::<Vec<_>>().concat());
    fs::write(workspace.path("named.csv"), &named).unwrap();
    let plain = named.lines().map(|line| format!("{}\n", line.split_once(',').unwrap().1));
    fs::write(workspace.path("plain.csv"), plain.collect::<Vec<_>>().concat()).unwrap();
    let npy = |rows: usize| {
        let start = npy_file::header("<i8", &[rows, 2]);
        let numbers = (0..rows).flat_map(counts).flat_map(i64::to_le_bytes).collect::<Vec<_>>();
        fs::write(workspace.path("votes.npy"), [start, numbers].concat()).unwrap();
    };
    npy(20);
    let votes = |file| document(&["photos", "--subset", "train", "--votes", file])["votes"].clone();
    let expected = votes("named.csv");
    assert_eq!(expected["samples"], 20);
    assert_eq!((votes("plain.csv"), votes("votes.npy")), (expected.clone(), expected));
    let refused = |subset: &str| {
        let run = ["evaluate", "run", "--on", "photos", "--subset", subset, "--votes", "votes.npy"];
        workspace.run(&run).with_code(2)
    };
    npy(19);
    refused("train").reports(&["votes.npy: 19 rows for 20 images", "--subset"]);
    let whole = fs::read(workspace.path("votes.npy")).unwrap();
    fs::write(workspace.path("votes.npy"), &whole[..whole.len() - 1]).unwrap();
    refused("train").reports(&["votes.npy: 303 bytes of numbers, expected 19 × 2 of 8 bytes"]);
}

//! `calmix label`: the answers of reviews in the lists of a dataset, and what the readers of datasets make of them.

use std::collections::BTreeMap;
use std::fs;

use calmix_data::dataset::Dataset;
use calmix_data::prepare::{Report, prepare};
use calmix_data::source::labels_csv::Unlisted;
use calmix_data::source::{FolderLayout, SourceSpec};
use calmix_formats::labels::columns::LabelColumns;
use calmix_testkit::workspace::Workspace;

use super::new_workspace;
use crate::planted;

/// Writes a file of the workspace.
fn write(workspace: &Workspace, name: &str, text: &str) {
    fs::write(workspace.path(name), text).unwrap();
}

/// Reads a list, with the dates of today replaced.
fn list(workspace: &Workspace, name: &str) -> String {
    let text = fs::read_to_string(workspace.path(name)).unwrap();
    let is_date =
        |field: &str| field.len() == 10 && field.starts_with("20") && field.matches('-').count() == 2;
    let line = |line: &str| {
        let fields = line.split(',').map(|field| if is_date(field) { "TODAY" } else { field });
        fields.collect::<Vec<_>>().join(",")
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

fn labels_csv() -> SourceSpec {
    SourceSpec::LabelsCsv { unlisted: Unlisted::LeaveOut, columns: LabelColumns::default(), shrink: 0 }
}

/// Prepares a dataset; returns each sample's subset, class and draw by its name.
fn prepared(workspace: &Workspace, data: &str, source: &SourceSpec) -> (Report, BTreeMap<String, String>) {
    let temp = tempfile::tempdir().unwrap();
    let target = temp.path().join("prepared");
    let report = prepare(source, &workspace.path(data), &target).unwrap();
    let dataset = Dataset::open(&target, &workspace.path(data)).unwrap();
    let mut samples = BTreeMap::new();
    for subset in &report.subsets {
        for id in dataset.subset(&subset.name).unwrap() {
            let class = dataset.label(id).unwrap().map_or("-", |label| &dataset.classes()[label as usize]);
            let drawn = dataset.drawn(id).unwrap();
            let text = format!("{} {class} {}", subset.name, drawn.word());
            samples.insert(dataset.sample_name(id).unwrap(), text);
        }
    }
    (report, samples)
}

/// Six photos in folders of classes, and four without a label.
fn photos() -> Workspace {
    let workspace = new_workspace();
    for (class, shade, count) in [("cat", 40, 3), ("dog", 200, 3), ("unlabelled", 120, 4)] {
        workspace.images(&format!("photos/{class}"), shade, count);
    }
    workspace
}

/// Four photos and a list of their labels.
fn listed(text: &str) -> Workspace {
    let workspace = new_workspace();
    workspace.images("photos", 0, 4);
    write(&workspace, "photos/labels.csv", text);
    workspace
}

const LABEL: [&str; 3] = ["label", "photos", "review.csv"];

#[test]
fn folders_of_classes_become_a_list() {
    let workspace = photos();
    let folder = SourceSpec::Folder { layout: FolderLayout::Auto, shrink: 0, groups: 0 };
    let (_, before) = prepared(&workspace, "photos", &folder);
    write(
        &workspace,
        "review.csv",
        "file,label,given,predicted,confidence,why,drawn\n\
         unlabelled/0.png,cat,,,,random,random\n\
         unlabelled/1.png,dog,,,,typical,chosen\n\
         unlabelled/2.png,,,,,random,skipped\n\
         cat/0.png,cat,cat,dog,0.9,check,given\n\
         dog/0.png,,dog,cat,0.8,check,given\n",
    );
    let output = workspace.run(&LABEL).with_code(0);
    assert_eq!(
        output.stdout,
        "photos/labels.csv: 2 labels added, 1 confirmed, 1 row skipped\n\
         photos/labels.csv is new; from now on calmix reads it instead of the folders\n\
         8 labels now (1 random, 1 chosen, 6 given); 1 row skipped\n\
         next: calmix train --data photos\n"
    );
    assert_eq!(
        list(&workspace, "photos/labels.csv"),
        "file,label,drawn,date\n\
         cat/0.png,cat,given,TODAY\ncat/1.png,cat,,\ncat/2.png,cat,,\n\
         dog/0.png,dog,,\ndog/1.png,dog,,\ndog/2.png,dog,,\n\
         unlabelled/0.png,cat,random,TODAY\nunlabelled/1.png,dog,chosen,TODAY\n\
         unlabelled/2.png,,skipped,TODAY\nunlabelled/3.png,,,\n"
    );
    // The dataset is the same but for the answers.
    let (_, after) = prepared(&workspace, "photos", &labels_csv());
    let mut expected = before;
    for (name, sample) in [
        ("unlabelled/0.png", "train cat random"),
        ("unlabelled/1.png", "train dog chosen"),
        ("unlabelled/2.png", "unlabelled - skipped"),
    ] {
        assert!(expected.insert(name.into(), sample.into()).is_some(), "{name}");
    }
    assert_eq!(after, expected);
    workspace.run(&["prepare", "photos"]).with_code(0).prints(&["2 classes, "]);
}

#[test]
fn every_split_gets_a_list() {
    let workspace = new_workspace();
    for (folder, shade) in [("train/cat", 1), ("train/dog", 90), ("test/cat", 150), ("unlabelled", 220)] {
        workspace.images(&format!("photos/{folder}"), shade, 2);
    }
    write(
        &workspace,
        "review.csv",
        "file,label,drawn\nunlabelled/0.png,dog,random\ntest/cat/1.png,cat,given\n",
    );
    workspace.run(&LABEL).with_code(0).prints(&[
        "photos/train/labels.csv and 2 other lists: 1 label added, 1 confirmed\n",
        "7 labels now (1 random, 6 given)\n",
    ]);
    assert_eq!(
        list(&workspace, "photos/unlabelled/labels.csv"),
        "file,label,drawn,date\n0.png,dog,random,TODAY\n1.png,,,\n"
    );
    assert_eq!(
        list(&workspace, "photos/test/labels.csv"),
        "file,label,drawn,date\ncat/0.png,cat,,\ncat/1.png,cat,given,TODAY\n"
    );
    let (report, samples) = prepared(&workspace, "photos", &labels_csv());
    assert_eq!(report.left_out, 0);
    assert_eq!(samples["unlabelled/0.png"], "train dog random");
    assert_eq!(samples["unlabelled/1.png"], "unlabelled - given");
    assert_eq!(samples["test/cat/0.png"], "test cat given");
    assert_eq!(samples["train/dog/1.png"], "train dog given");
    assert_eq!(samples.len(), 8);
    // The lists now exist; one of them changes.
    write(&workspace, "review.csv", "file,label,drawn\nunlabelled/1.png,cat,chosen\n");
    workspace.run(&LABEL).with_code(0).prints(&["photos/unlabelled/labels.csv: 1 label added\n"]);
    write(&workspace, "review.csv", "file,label,drawn\nelsewhere/1.png,cat,chosen\n");
    workspace.run(&LABEL).with_code(2).reports(&["review.csv, line 2: no list can name elsewhere/1.png"]);
}

#[test]
fn pool_without_classes_gets_its_first_labels() {
    let workspace = new_workspace();
    workspace.images("photos", 7, 3);
    write(&workspace, "review.csv", "file,label\n0.png,robin\n2.png,Robin\n");
    workspace.run(&LABEL).with_code(0).prints(&[
        "photos/labels.csv is new\n2 labels without a word in the column `drawn` count as chosen",
        "new classes: Robin, robin\n",
        "`robin` and `Robin` differ only in case, spaces, _ or -: ",
        "2 labels now (2 chosen)\n",
    ]);
    let (_, samples) = prepared(&workspace, "photos", &labels_csv());
    let samples: Vec<&str> = samples.values().map(String::as_str).collect();
    assert_eq!(samples, ["train robin chosen", "unlabelled - given", "train Robin chosen"]);
}

#[test]
fn groups_of_folders_become_a_column() {
    let workspace = new_workspace();
    for (folder, shade) in [("cat/p1", 1), ("cat/p2", 60), ("dog/p1", 120), ("dog/p3", 200)] {
        workspace.images(&format!("photos/{folder}"), shade, 1);
    }
    write(&workspace, "review.csv", "file,label,drawn\ncat/p1/0.png,cat,random\n");
    workspace.run(&[&LABEL[..], &["--groups", "2", "--layout", "classes"]].concat()).with_code(0);
    let text = list(&workspace, "photos/labels.csv");
    assert!(text.starts_with("file,label,drawn,date,group\ncat/p1/0.png,cat,given,TODAY,p1\n"), "{text}");
    assert!(text.ends_with("dog/p3/0.png,dog,,,p3\n"), "{text}");
}

#[test]
fn list_keeps_its_other_columns() {
    let workspace = listed("iso,path,note,class\n100,1.png,\"on a sofa, asleep\",cat\n200,./0.png,,\n");
    write(&workspace, "review.csv", "\u{feff}file,label,drawn\r\n3.png,dog,by-class\r\n0.png,cat,random\r\n");
    workspace.run(&LABEL).with_code(0).prints(&[
        "photos/labels.csv: 2 labels added\n",
        "new classes: dog\n",
        "3 labels now (1 random, 1 by class, 1 given)\n",
    ]);
    assert_eq!(
        list(&workspace, "photos/labels.csv"),
        "iso,path,note,class,drawn,date\n100,1.png,\"on a sofa, asleep\",cat,,\n\
         200,./0.png,,cat,random,TODAY\n,3.png,,dog,by-class,TODAY\n"
    );
    let (_, samples) = prepared(&workspace, "photos", &labels_csv());
    assert_eq!(samples["3.png"], "train dog by-class");
}

#[test]
fn another_label_is_a_conflict_without_replace() {
    let list_before =
        "file,label,drawn,date\n0.png,cat,chosen,2020-01-01\n1.png,cat,,\n2.png,dog,random,2020-01-01\n";
    let workspace = listed(list_before);
    write(
        &workspace,
        "review.csv",
        "file,label,drawn\n0.png,dog,random\n1.png,dog,given\n2.png,dog,chosen\n",
    );
    let output = workspace.run(&LABEL).with_code(0);
    assert_eq!(
        output.stdout,
        "nothing to change: the other answers are in the list already (1 label confirmed)\n\
         not merged: 2 rows that have another label\n\
         \x20 0.png: cat, review: dog\n\
         \x20 1.png: cat, review: dog\n\
         \x20 to replace them: calmix label photos review.csv --replace\n\
         3 labels now (1 random, 1 chosen, 1 given)\n\
         next: calmix train --data photos\n"
    );
    assert_eq!(fs::read_to_string(workspace.path("photos/labels.csv")).unwrap(), list_before);
    let json = workspace.run(&[&LABEL[..], &["--json"]].concat()).with_code(0).json();
    assert_eq!(json["conflicts"][1], serde_json::json!({ "file": "1.png", "old": "cat", "new": "dog" }));
    assert_eq!(json["lists"], serde_json::json!([]));

    workspace.run(&[&LABEL[..], &["--replace"]].concat()).with_code(0).prints(&[
        "photos/labels.csv: 1 label confirmed, 2 corrected\n",
        "3 labels now (2 random, 1 given)\n",
    ]);
    // A corrected label keeps its mark, unless it is drawn at random now; the date of the confirmed one stays.
    assert_eq!(
        list(&workspace, "photos/labels.csv").replace("TODAY", "T"),
        "file,label,drawn,date\n0.png,dog,random,T\n1.png,dog,given,T\n2.png,dog,random,T\n"
    );
    let text = fs::read_to_string(workspace.path("photos/labels.csv")).unwrap();
    assert!(text.ends_with("2.png,dog,random,2020-01-01\n"), "{text}");
}

#[test]
fn ten_conflicts_are_listed_and_the_others_counted() {
    let workspace = new_workspace();
    workspace.images("photos", 0, 12);
    let rows = |label: &str| {
        let rows: Vec<String> = (0..12).map(|n| format!("{n}.png,{label},random\n")).collect();
        rows.concat()
    };
    write(&workspace, "photos/labels.csv", &format!("file,label,drawn\n{}", rows("cat")));
    write(&workspace, "review.csv", &format!("file,label,drawn\n{}", rows("dog")));
    let output = workspace.run(&LABEL).with_code(0);
    output.prints(&[
        "nothing was written",
        "not merged: 12 rows that have another label\n",
        "  and 2 more\n",
    ]);
    assert_eq!(output.stdout.matches("review: dog").count(), 10);
}

#[test]
fn two_people_are_compared() {
    let workspace = new_workspace();
    workspace.images("photos", 0, 8);
    // The table of counts is [[3, 1], [1, 2]].
    write(
        &workspace,
        "anna.csv",
        "file,label,drawn\n0.png,cat,random\n1.png,cat,random\n2.png,cat,chosen\n3.png,cat,random\n4.png,dog,random\n\
         5.png,dog,random\n6.png,dog,random\n7.png,,skipped\n",
    );
    write(
        &workspace,
        "ben.csv",
        "file,label,drawn\n7.png,dog,random\n6.png,dog,random\n5.png,dog,random\n4.png,cat,random\n3.png,dog,random\n\
         2.png,cat,random\n1.png,cat,random\n0.png,cat,random\n",
    );
    let arguments = ["label", "photos", "anna.csv", "ben.csv"];
    // scikit-learn 1.9.1 and statsmodels 0.15.0: kappa 0.41667, from -0.26326 to 1.09660, cut off at 1.
    let output = workspace.run(&[&arguments[..], &["--json"]].concat()).with_code(0);
    let json = output.json();
    let agreement = &json["agreement"][0];
    assert_eq!(agreement["reviews"], serde_json::json!(["anna.csv", "ben.csv"]));
    assert_eq!((agreement["samples"].as_u64(), agreement["same"].as_u64()), (Some(7), Some(5)));
    assert!((agreement["kappa"].as_f64().unwrap() - 5.0 / 12.0).abs() < 1e-12, "{agreement}");
    assert_eq!(json["disagreements"][0]["file"], "3.png");
    assert_eq!(
        json["disagreements"][0]["labels"][1],
        serde_json::json!({ "review": "ben.csv", "label": "dog" })
    );
    assert_eq!(json["added"], 6);
    // The label of one wins over the skip of the other, and the random draw of one over the choice of the other.
    assert_eq!(
        list(&workspace, "photos/labels.csv"),
        "file,label,drawn,date\n0.png,cat,random,TODAY\n1.png,cat,random,TODAY\n2.png,cat,random,TODAY\n3.png,,,\n\
         4.png,,,\n5.png,dog,random,TODAY\n6.png,dog,random,TODAY\n7.png,dog,random,TODAY\n"
    );
    workspace.run(&arguments).with_code(0).prints(&[
        "nothing to change: the other answers are in the list already (6 labels confirmed)\n",
        "anna.csv and ben.csv agree on 5 of 7 rows: Cohen's kappa 0.417 (",
        "not merged: 2 rows with different answers\n  3.png: cat (anna.csv), dog (ben.csv)\n",
    ]);
    let twice = workspace.run(&["label", "photos", "anna.csv", "./anna.csv"]).with_code(2);
    twice.reports(&["./anna.csv: this review is named twice"]);
}

#[test]
fn same_command_twice_changes_nothing() {
    let workspace = photos();
    let review =
        "file,label,drawn\nunlabelled/0.png,cat,random\nunlabelled/2.png,,skipped\ncat/0.png,dog,given\n";
    write(&workspace, "review.csv", review);
    let arguments = [&LABEL[..], &["--replace"]].concat();
    workspace.run(&arguments).with_code(0).prints(&["1 label added, 1 corrected, 1 row skipped"]);
    // Answers of an earlier day keep their date.
    let list = workspace.path("photos/labels.csv");
    let text = fs::read_to_string(&list).unwrap();
    let today = text.lines().find_map(|line| line.strip_prefix("unlabelled/0.png,cat,random,")).unwrap();
    let earlier = text.replace(today, "2020-02-29");
    assert_ne!(earlier, text);
    fs::write(&list, &earlier).unwrap();
    let output = workspace.run(&arguments).with_code(0);
    output.prints(&[
        "nothing to change: all answers are in the list already (2 labels confirmed, 1 row skipped)\n",
    ]);
    assert_eq!(fs::read_to_string(&list).unwrap(), earlier);
}

#[test]
fn skipped_row_keeps_its_label() {
    let workspace = listed("file,label\n0.png,cat\n1.png,\n");
    write(&workspace, "review.csv", "file,label,drawn\n0.png,,skipped\n1.png,,skipped\n2.png,,random\n");
    let output = workspace.run(&[&LABEL[..], &["--json"]].concat()).with_code(0);
    let json = output.json();
    assert_eq!((json["skipped"].as_u64(), json["unanswered"].as_u64()), (Some(1), Some(1)));
    let text = list(&workspace, "photos/labels.csv");
    assert_eq!(text, "file,label,drawn,date\n0.png,cat,,\n1.png,,skipped,TODAY\n");
}

/// Vectors with ids, and labels of their own for two rows.
const VECTORS: &str = "id,f_0,f_1,label\nx1,0.1,0.9,ant\nx2,0.2,0.8,\nx3,0.9,0.1,bee\nx4,0.8,0.2,\n";

fn vectors(labels: &str) -> SourceSpec {
    SourceSpec::Vectors {
        labels: Some(labels.into()),
        more_features: Vec::new(),
        vector_column: None,
        columns: LabelColumns::default(),
    }
}

#[test]
fn vectors_are_named_by_id() {
    let workspace = new_workspace();
    write(&workspace, "vectors.csv", VECTORS);
    write(&workspace, "review.csv", "file,label,drawn\nx4,bee,random\nx1,ant,chosen\n");
    let arguments = ["label", "vectors.csv", "review.csv", "--labels", "labels.csv"];
    workspace.run(&arguments[..3]).with_code(2).reports(&[
        "vectors.csv: the labels of vectors are in a file of their own, which --labels names or creates",
        "try: calmix label vectors.csv review.csv --labels labels.csv",
    ]);
    workspace.run(&arguments).with_code(0).prints(&[
        "labels.csv: 1 label added, 1 confirmed\n\
         labels.csv is new; from now on calmix reads it instead of the labels in the file of the vectors\n",
        "next: calmix train --features vectors.csv --labels labels.csv\n",
    ]);
    // The labels in the file of the vectors are in the new list, which takes their place.
    assert_eq!(
        list(&workspace, "labels.csv"),
        "id,label,drawn,date\nx1,ant,given,TODAY\nx3,bee,,\nx4,bee,random,TODAY\n"
    );
    let labels = workspace.path("labels.csv");
    let (report, _) = prepared(&workspace, "vectors.csv", &vectors(labels.to_str().unwrap()));
    let train = report.subsets.iter().find(|subset| subset.name == "train").unwrap();
    assert_eq!(train.labelled, 3);

    write(&workspace, "review.csv", "file,label,drawn\nx5,bee,random\n");
    workspace
        .run(&arguments)
        .with_code(2)
        .reports(&["review.csv, line 2: no row of vectors.csv has the id \"x5\""]);
    // In the order of the rows, an id is the line of its row.
    write(&workspace, "order.csv", "label\nant\n\nbee\n\n");
    write(&workspace, "review.csv", "file,label,drawn\nx4,bee,random\n");
    workspace.run(&["label", "vectors.csv", "review.csv", "--labels", "order.csv"]).with_code(0);
    assert_eq!(list(&workspace, "order.csv"), "label,drawn,date\nant,,\n,,\nbee,,\nbee,random,TODAY\n");
    let order = workspace.path("order.csv");
    let (report, _) = prepared(&workspace, "vectors.csv", &vectors(order.to_str().unwrap()));
    assert_eq!(report.subsets.iter().find(|subset| subset.name == "train").unwrap().labelled, 3);
}

#[test]
fn vectors_without_ids_are_named_by_row() {
    let workspace = new_workspace();
    planted::write_npy(&workspace.path("vectors.npy"), 0..300, false);
    let mut review = "file,label,drawn\n".to_owned();
    for row in 0..60 {
        review.extend([row.to_string().as_str(), ",", planted::class(row), ",random\n"]);
    }
    write(&workspace, "review.csv", &review);
    let arguments = ["label", "vectors.npy", "review.csv", "--labels", "labels.csv"];
    let output = workspace.run(&arguments).with_code(0);
    output.prints(&[
        "labels.csv: 60 labels added\n",
        "new classes: ant, bee, cow\n",
        "60 labels now (60 random)\n",
    ]);
    // The command that `next` names trains on them.
    let next = output.stdout.lines().find_map(|line| line.strip_prefix("next: calmix ")).unwrap().to_owned();
    let quick = ["--run-dir", "run", "--set", "network.folds=3", "--threads", "1", "--quiet"];
    let train: Vec<&str> = next.split(' ').chain(quick).collect();
    workspace.run(&train).with_code(0);

    for (row, problem) in [
        ("300", "there is no row \"300\" in vectors.npy, which has 300 rows"),
        ("07", "there is no row \"07\" in vectors.npy"),
        ("../1", "there is no row \"../1\" in vectors.npy"),
    ] {
        write(&workspace, "review.csv", &format!("file,label,drawn\n{row},ant,random\n"));
        workspace.run(&arguments).with_code(2).reports(&["review.csv, line 2: ", problem]);
    }
    write(&workspace, "review.csv", "file,label,drawn\n1,-1,random\n");
    workspace.run(&arguments).with_code(2).reports(&["line 2: the label -1 stands for an unlabelled vector"]);
    let npy = ["label", "vectors.npy", "review.csv", "--labels", "labels.npy"];
    workspace.run(&npy).with_code(2).reports(&["labels.npy: an .npy cannot hold names, draws and dates"]);
}

#[test]
fn wrong_reviews_are_refused_before_anything_is_written() {
    let list_before = "file,label\n0.png,cat\n1.png,dog\n";
    let workspace = listed(list_before);
    fs::create_dir(workspace.path("photos/more")).unwrap();
    write(&workspace, "photos/notes.txt", "not an image");
    let good = "2.png,cat,random\n";
    for (bad, problem) in [
        ("9.png,cat,random\n", "line 3: there is no file 9.png"),
        ("3.PNG,cat,random\n", "the file is called 3.png"),
        ("../photos/3.png,cat,random\n", "line 3: the file name \"../photos/3.png\" leads out of the folder"),
        ("/etc/passwd,cat,random\n", "line 3: the file name \"/etc/passwd\" is absolute"),
        ("more,cat,random\n", "line 3: more is a folder"),
        ("notes.txt,cat,random\n", "line 3: notes.txt is not an image"),
        ("./2.png,dog,random\n", "line 3: 2.png is already in line 2"),
        ("3.png,cat,lots\n", "line 3: \"lots\" does not say how a label was drawn"),
        ("3.png, cat,random\n", "line 3: the label \" cat\" has spaces around it"),
        ("3.png,cat\n", "line 3: the row has 2 fields, but the header has 3 columns"),
        ("3.png,nan,random\n", "line 3: the label is \"nan\""),
    ] {
        write(&workspace, "review.csv", &format!("file,label,drawn\n{good}{bad}"));
        workspace.run(&LABEL).with_code(2).reports(&["review.csv, line 3", problem]);
        assert_eq!(fs::read_to_string(workspace.path("photos/labels.csv")).unwrap(), list_before, "{bad}");
    }
    for (review, problem) in [
        ("file;label;drawn\n2.png;cat;random\n", "review.csv, line 1: columns are separated by ';'"),
        ("name,label\n2.png,cat\n", "review.csv, line 1: there is no column `file`"),
        ("file,label,drawn\n2.png,,random\n", "review.csv: no row has an answer"),
        ("", "review.csv: the review is empty"),
    ] {
        write(&workspace, "review.csv", review);
        workspace.run(&LABEL).with_code(2).reports(&[problem]);
    }
    fs::write(workspace.path("review.csv"), b"file,label,drawn\n2.png,\xe4\xf6,random\n").unwrap();
    workspace.run(&LABEL).with_code(2).reports(&["review.csv, line 2: not UTF-8"]);
    workspace.run(&["label", "photos", "no.csv"]).with_code(2).reports(&["no.csv: "]);
    workspace
        .run(&["label", "photos", "photos"])
        .with_code(2)
        .reports(&["photos: is a folder; a review is a file"]);
    workspace.run(&["label", "nowhere", "review.csv"]).with_code(2).reports(&["nowhere: does not exist"]);
    write(&workspace, "review.csv", &format!("file,label,drawn\n{good}"));
    let named = [&LABEL[..], &["--labels", "labels.csv"]].concat();
    workspace.run(&named).with_code(2).reports(&["--labels names the list of vectors"]);
    // Nothing but the list is wrong now.
    write(&workspace, "photos/labels.csv", "file,label\n0.png,cat\n0.png,dog\n");
    workspace.run(&LABEL).with_code(2).reports(&["photos/labels.csv, line 3: "]);
    write(&workspace, "photos/labels.csv", list_before);
    workspace.run(&LABEL).with_code(0);
    assert_eq!(
        workspace.names("photos"),
        ["0.png", "1.png", "2.png", "3.png", "labels.csv", "more", "notes.txt"]
    );
}

#[test]
fn class_folder_that_a_list_cannot_name_is_refused() {
    let workspace = photos();
    workspace.images("photos/nan", 77, 1);
    write(&workspace, "review.csv", "file,label,drawn\nunlabelled/0.png,cat,random\n");
    workspace.run(&LABEL).with_code(2).reports(&["photos/labels.csv, line ", "the label is \"nan\""]);
    assert!(!workspace.path("photos/labels.csv").exists());
}

#[test]
fn list_without_labels_beside_class_folders_is_refused() {
    let workspace = photos();
    write(&workspace, "photos/metadata.csv", "file,iso\ncat/0.png,100\n");
    write(&workspace, "review.csv", "file,label,drawn\nunlabelled/0.png,cat,random\n");
    workspace.run(&LABEL).with_code(2).reports(&["photos/metadata.csv: this list is not read"]);
    assert!(!workspace.path("photos/labels.csv").exists());
}

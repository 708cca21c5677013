//! Reviews in Label Studio: the tasks that `calmix review` writes, and the exports that `calmix label` reads.
//!
//! `label-studio-export.json` is what Label Studio 1.23.2 exported, from a server that `bench/labelling/label_studio.py` starts too.

use std::fs;

use calmix_testkit::workspace::Workspace;
use serde_json::{Value, json};

use super::{new_workspace, with_run};

const EXPORT: &str = include_str!("golden/label-studio-export.json");

fn tasks(workspace: &Workspace) -> Vec<Value> {
    let text = fs::read_to_string(workspace.path("label-studio.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Photos with the names in the export.
fn photos() -> Workspace {
    let workspace = new_workspace();
    for (class, shade, count) in [("cat", 40, 3), ("dog", 200, 3), ("unlabelled", 120, 7)] {
        workspace.images(&format!("photos/{class}"), shade, count);
    }
    workspace
}

/// The label and the draw of each image in the list, without dates.
fn listed(workspace: &Workspace) -> Vec<String> {
    let text = fs::read_to_string(workspace.path("photos/labels.csv")).unwrap();
    let line = |line: &str| line.rsplit_once(',').unwrap().0.to_owned();
    text.lines().skip(1).map(line).collect()
}

#[test]
fn images_become_tasks() {
    let workspace = photos();
    let to = ["review", "photos", "--count", "4", "--classes", "a & <b>", "--to", "label-studio"];
    let output = workspace.run(&to).with_code(0);
    output.prints(&[
        "4 samples to look at\n",
        "written to label-studio.json, label-studio.xml and review.csv\n",
        "  export LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED=true\n  export LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT=",
        "add the source storage Local Files with this path",
        "then: calmix label photos EXPORT.json\n",
    ]);
    assert!(!workspace.path("review.html").exists());
    let tasks = tasks(&workspace);
    assert_eq!(tasks.len(), 4);
    for task in &tasks {
        let file = task["data"]["file"].as_str().unwrap();
        let image = format!("/data/local-files/?d=photos/{file}");
        assert_eq!(
            task,
            &json!({ "data": { "image": image, "file": file, "why": "random", "drawn": "random" } })
        );
    }
    assert_eq!(
        fs::read_to_string(workspace.path("label-studio.xml")).unwrap(),
        "<View>\n  <Image name=\"sample\" value=\"$image\" zoom=\"true\"/>\n  \
         <Choices name=\"label\" toName=\"sample\" choice=\"single\" showInLine=\"true\">\n    \
         <Choice value=\"cat\" hotkey=\"1\"/>\n    <Choice value=\"dog\" hotkey=\"2\"/>\n    \
         <Choice value=\"a &amp; &lt;b&gt;\" hotkey=\"3\"/>\n  </Choices>\n</View>\n"
    );
    let json = workspace.run(&[&to[..], &["--force", "--json"]].concat()).with_code(0).json();
    assert_eq!((&json["tasks"], &json["page"]), (&json!("./label-studio.json"), &Value::Null));
}

#[test]
fn only_chosen_vectors_have_predictions() {
    let workspace = with_run();
    let to = ["review", "run", "--choose", "margin", "--to", "label-studio"];
    workspace.run(&to).with_code(0).prints(&["next: create a project in Label Studio\n"]);
    let tasks = tasks(&workspace);
    let is_random = |task: &&Value| task["data"]["why"] == "random";
    assert!(tasks.iter().filter(is_random).count() >= 10);
    for task in &tasks {
        assert_eq!(task["data"]["text"], task["data"]["file"]);
        let Some(prediction) = task["predictions"].get(0) else {
            assert!(is_random(&task), "{task}");
            continue;
        };
        assert!(!is_random(&task), "{task}");
        assert_eq!(prediction["model_version"], "calmix run");
        assert!((0.0..=1.0).contains(&prediction["score"].as_f64().unwrap()));
    }
    let interface = fs::read_to_string(workspace.path("label-studio.xml")).unwrap();
    assert!(interface.contains("<Text name=\"sample\" value=\"$text\"/>"), "{interface}");
}

#[test]
fn pool_without_classes_needs_their_names() {
    let workspace = new_workspace();
    workspace.images("photos", 7, 3);
    let to = ["review", "photos", "--to", "label-studio"];
    workspace.run(&to).with_code(2).reports(&["there are no classes yet", "--classes cat,dog"]);
    assert!(!workspace.path("review.csv").exists() && !workspace.path("label-studio.json").exists());
}

#[test]
fn export_of_a_server_is_read() {
    let workspace = photos();
    fs::write(workspace.path("export.json"), EXPORT).unwrap();
    let output = workspace.run(&["label", "photos", "export.json"]).with_code(0);
    output.prints(&[
        "photos/labels.csv: 4 labels added, 1 confirmed, 1 row skipped\n",
        "export.json, annotator 1 and export.json, annotator 2 agree on 2 of 3 rows: Cohen's kappa 0.4",
        "not merged: 1 row with different answers\n  \
         unlabelled/1.png: cat (export.json, annotator 1), dog (export.json, annotator 2)\n",
        "10 labels now (4 random, 6 given); 1 row skipped\n",
    ]);
    assert_eq!(
        listed(&workspace),
        [
            "cat/0.png,cat,",
            "cat/1.png,cat,",
            "cat/2.png,cat,",
            "dog/0.png,dog,given",
            "dog/1.png,dog,",
            "dog/2.png,dog,",
            "unlabelled/0.png,cat,random",
            "unlabelled/1.png,,",
            "unlabelled/2.png,,skipped",
            // Changed after a second annotation was added.
            "unlabelled/3.png,dog,random",
            // Skipped by one user, and labelled by the other or later.
            "unlabelled/4.png,dog,random",
            "unlabelled/5.png,dog,random",
            "unlabelled/6.png,,",
        ]
    );
    let json = workspace.run(&["label", "photos", "export.json", "--json"]).with_code(0).json();
    assert_eq!((&json["lists"], &json["unanswered"]), (&json!([]), &json!(1)));
    assert_eq!(json["disagreements"][0]["labels"][1]["review"], "export.json, annotator 2");
}

/// An export of one task with this annotation.
fn export(data: &Value, annotation: &Value) -> Value {
    json!([{ "id": 7, "data": data, "annotations": [annotation] }])
}

fn annotation(choices: &Value) -> Value {
    let part = json!({ "from_name": "label", "to_name": "sample", "type": "choices", "value": { "choices": choices } });
    json!({ "id": 1, "completed_by": { "id": 3, "email": "anna@example.org" }, "result": [part] })
}

#[test]
fn wrong_exports_are_refused() {
    let workspace = photos();
    let file = |file: &str| json!({ "file": file, "drawn": "random" });
    let cat = annotation(&json!(["cat"]));
    let good = file("unlabelled/0.png");
    let twice = [export(&good, &cat)[0].clone(), export(&good, &cat)[0].clone()];
    for (export, problem) in [
        (json!({ "id": 7 }), "export.json: invalid type: map, expected a sequence at line 1"),
        (json!([7]), "export.json, entry 1 of the list: "),
        (json!([{ "id": 7, "data": [], "annotations": {} }]), "export.json, task 7: invalid type: map"),
        (
            json!([{ "id": 7, "file": "cat/0.png", "label": "cat" }]),
            "task 7: it has no `data`; the format JSON-MIN",
        ),
        (export(&json!({ "image": "x" }), &cat), "task 7: its `data` names no `file`; import the tasks that"),
        (export(&file("../a.png"), &cat), "task 7: the file name \"../a.png\" leads out of the folder"),
        (export(&file("/etc/passwd"), &cat), "task 7: the file name \"/etc/passwd\" is absolute"),
        (export(&file("9.png"), &cat), "task 7: there is no file 9.png"),
        (
            export(&json!({ "file": "cat/0.png", "drawn": "?" }), &cat),
            "task 7: \"?\" does not say how a label",
        ),
        (
            export(&good, &annotation(&json!(["cat", "dog"]))),
            "task 7: the annotation has 2 choices; keep one",
        ),
        (export(&good, &annotation(&json!([" cat"]))), "task 7: the label \" cat\" has spaces around it"),
        (export(&good, &annotation(&json!(["nan"]))), "task 7: the label is \"nan\""),
        (
            export(&good, &annotation(&json!("cat"))),
            "task 7: invalid type: string \"cat\", expected a sequence",
        ),
        (json!(twice), "task 7: unlabelled/0.png is already in task 7; delete one of the tasks"),
        (json!([]), "export.json: no row has an answer"),
        (export(&good, &annotation(&json!([]))), "export.json: no row has an answer"),
    ] {
        fs::write(workspace.path("export.json"), export.to_string()).unwrap();
        workspace.run(&["label", "photos", "export.json"]).with_code(2).reports(&[problem]);
    }
    let deep = format!("[{{\"id\":7,\"data\":{}", "[".repeat(1 << 20));
    let deep_user =
        format!("[{{\"id\":7,\"annotations\":[{{\"id\":1,\"completed_by\":{}", "[".repeat(1 << 20));
    let closed_user = format!("{deep_user}{}}}]}}]", "]".repeat(1 << 20));
    for (text, problem) in [
        (&deep, "export.json: EOF while parsing"),
        (&closed_user, "export.json, task 7: "),
        (&"{}".to_owned(), "export.json: invalid type: map"),
        (
            &"\u{0}".repeat(64 << 20),
            "export.json: the review is larger than 67108864 bytes; export fewer tasks",
        ),
    ] {
        fs::write(workspace.path("export.json"), text).unwrap();
        workspace.run(&["label", "photos", "export.json"]).with_code(2).reports(&[problem]);
    }
    assert!(!workspace.path("photos/labels.csv").exists());
}

//! `--json`: one document on standard output, whose fields keep their names.

use std::collections::BTreeMap;

use calmix_testkit::golden::golden;
use serde_json::Value;

use super::fixture::Fixture;
use crate::program::new_workspace;

/// Every field with the type of its value; of a list, the fields of all its items.
fn fields(value: &Value, path: &str, found: &mut BTreeMap<String, &'static str>) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(items) => {
            for item in items {
                fields(item, &format!("{path}[]"), found);
            }
            "a list"
        }
        Value::Object(inner) => {
            for (name, value) in inner {
                fields(value, &format!("{path}.{name}"), found);
            }
            return;
        }
    };
    found.insert(path.to_owned(), kind);
}

#[test]
fn fields_keep_their_names() {
    let workspace = new_workspace().with_garments();
    workspace
        .end(workspace.training(8, &["--run-dir", "first", "--set", "labels.validation=0.5"]))
        .with_code(0);
    let mut transcript = Vec::new();
    for line in [
        "evaluate first",
        "inspect first",
        "inspect first/checkpoints/step-000000004",
        "inspect first/prepared",
        "doctor --threads 1 --seconds 1",
    ] {
        let arguments: Vec<_> = line.split(' ').chain(["--json"]).collect();
        let mut document = workspace.run(&arguments).with_code(0).json();
        // A run's recipe is shown below, by itself.
        if document.pointer("/recipe/train/steps").is_some() {
            document["recipe"] = "[RECIPE]".into();
        }
        let mut found = BTreeMap::new();
        fields(&document, "", &mut found);
        // Whether a build has optional features is its own affair.
        found.retain(|path, _| !path.ends_with("features[]"));
        let found = found.iter().map(|(path, kind)| format!("{path}: {kind}\n"));
        transcript.push(format!("$ calmix {line} --json\n{}\n", found.collect::<Vec<_>>().concat()));
    }
    golden("json-fields.txt", &transcript.concat());
}

/// The metrics are those of the files, to the last digit.
#[test]
fn no_second_set_of_numbers() {
    let workspace = Fixture::Garments.copy();
    let shown = workspace.run(&["inspect", "first", "--json"]).with_code(0).json();
    let evaluated = workspace.run(&["evaluate", "first", "--json"]).with_code(0).json();
    let result = std::fs::read_to_string(workspace.path("first/result.json")).unwrap();
    assert_eq!(shown["result"], serde_json::from_str::<Value>(&result).unwrap());
    assert_eq!(shown["evaluations"], evaluated["evaluations"]);
    assert_eq!(
        (&shown["finished"], &shown["step"], &shown["kind"]),
        (&true.into(), &8.into(), &"run".into())
    );
    let events = std::fs::read_to_string(workspace.path("first/events.jsonl")).unwrap();
    let last = events.lines().rfind(|line| line.contains(r#""event":"evaluation""#)).unwrap();
    let mut last: Value = serde_json::from_str(last).unwrap();
    last.as_object_mut().unwrap().remove("event");
    assert_eq!(shown["evaluations"], Value::Array(vec![last]));
}

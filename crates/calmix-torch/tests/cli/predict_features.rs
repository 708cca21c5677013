//! `calmix predict --features`: the vector before the last layer, beside the prediction.

use std::fs;
use std::process::Command;

use calmix_testkit::workspace::Workspace;
use serde_json::Value;

use super::fixture::Fixture;
use super::head;
use super::parquet;
use super::predict::{predict, rows};

/// Prints the type of the column, and each row: as pyarrow reads it.
const READ_FEATURES: &str = "
import json, sys
import pyarrow.parquet
for part in sys.argv[1:]:
    table = pyarrow.parquet.read_table(part)
    for row in table.to_pylist():
        row['type'] = str(table.schema.field('features').type)
        print(json.dumps(row))
";

/// Prints the clean vectors of a cache of features, by their ids.
const READ_CACHE: &str = "
import json, pathlib, struct, sys
found = {}
for page in pathlib.Path(sys.argv[1]).rglob('page-*.safetensors'):
    data = page.read_bytes()
    length = struct.unpack('<Q', data[:8])[0]
    header = json.loads(data[8:8 + length])
    def tensor(name, kind):
        begin, end = header[name]['data_offsets']
        part = data[8 + length + begin:8 + length + end]
        return struct.unpack(f'<{len(part) // struct.calcsize(kind)}{kind}', part)
    ids, views, vectors = tensor('ids', 'Q'), tensor('views', 'B'), tensor('vectors', 'e')
    count, kinds, width = header['vectors']['shape']
    for n, sample in enumerate(ids):
        for view in range(kinds):
            if views[2 * view] == 0:
                found[sample] = vectors[(n * kinds + view) * width:][:width]
print(json.dumps(found))
";

fn python(workspace: &Workspace, script: &str, arguments: &[String]) -> String {
    let mut command = Command::new(parquet::python());
    command.args(["-c", script]).args(arguments).current_dir(workspace.folder());
    workspace.end(command).with_code(0).stdout
}

fn read_back(workspace: &Workspace, folder: &str) -> Vec<Value> {
    let parts: Vec<String> = workspace.names(folder).iter().map(|name| format!("{folder}/{name}")).collect();
    rows(&python(workspace, READ_FEATURES, &parts))
}

fn numbers(row: &Value, name: &str) -> Vec<f32> {
    row[name].as_array().unwrap().iter().map(|number| number.as_f64().unwrap() as f32).collect()
}

/// A tensor of a safetensors file of f32.
fn tensor(bytes: &[u8], name: &str) -> Vec<f32> {
    let length = u64::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
    let header: Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    let place = |n: usize| 8 + length + header[name]["data_offsets"][n].as_u64().unwrap() as usize;
    let (numbers, _) = bytes[place(0)..place(1)].as_chunks();
    numbers.iter().map(|&number| f32::from_le_bytes(number)).collect()
}

#[test]
fn features_of_a_network_give_its_probabilities() {
    let workspace = Fixture::Photos.copy();
    let with = |out: &str| {
        let more = ["photos", "--features", "--probabilities", "--part-rows", "10", "--out", out];
        predict(&workspace, &more)
    };
    with("out.parquet").with_code(0);
    with("out.jsonl").with_code(0);
    let found = read_back(&workspace, "out.parquet");
    let json = rows(&fs::read_to_string(workspace.path("out.jsonl")).unwrap());
    assert_eq!((found.len(), json.len()), (33, 33));
    let weights = fs::read(workspace.path("run/model.safetensors")).unwrap();
    let matrix = tensor(&weights, "fc.weight");
    let bias = tensor(&weights, "fc.bias");
    let width = matrix.len() / 2;
    let info: Value = serde_json::from_slice(&fs::read(workspace.path("run/model.json")).unwrap()).unwrap();
    let temperature = info["calibration"]["calibrator"]["temperature"].as_f64().unwrap_or(1.0) as f32;
    for (row, json) in found.iter().zip(&json) {
        assert_eq!(row["type"], "list<element: float not null>");
        if !row["error"].is_null() {
            assert!(row["features"].is_null() && json.get("features").is_none(), "{row}");
            continue;
        }
        let features = numbers(row, "features");
        assert_eq!(features.len(), width);
        assert_eq!(numbers(json, "features"), features);
        // The last layer, the temperature and a softmax make the probabilities of them.
        let logit = |class: usize| -> f32 {
            let weights = &matrix[class * width..(class + 1) * width];
            let sum: f32 = weights.iter().zip(&features).map(|(weight, feature)| weight * feature).sum();
            (sum + bias[class]) / temperature
        };
        let first = 1.0 / (1.0 + (logit(1) - logit(0)).exp());
        let expected = numbers(row, "probabilities")[0];
        assert!((first - expected).abs() < 1e-4, "{first} instead of {expected}");
    }
    // Without the option, the other columns are the same, and an output does not go on with another one.
    predict(&workspace, &["photos", "--probabilities", "--out", "plain.jsonl"]).with_code(0);
    let plain = rows(&fs::read_to_string(workspace.path("plain.jsonl")).unwrap());
    for (mut with, without) in json.into_iter().zip(plain) {
        with.as_object_mut().unwrap().remove("features");
        assert_eq!(with, without);
    }
    let resumed = ["photos", "--probabilities", "--part-rows", "10", "--out", "out.parquet", "--resume"];
    predict(&workspace, &resumed).with_code(2).reports(&["it was written with features true, not false"]);
}

#[test]
fn features_of_a_head_are_those_of_its_cache() {
    let workspace = Fixture::Weights.copy();
    head::train(&workspace, "run", &[]).with_code(0);
    predict(&workspace, &["own/test", "--features", "--batch", "3", "--out", "out.parquet"]).with_code(0);
    let found = read_back(&workspace, "out.parquet");
    assert_eq!(found.len(), 8);
    let cache = python(&workspace, READ_CACHE, &["features".to_owned()]);
    let cache: Value = serde_json::from_str(&cache).unwrap();
    // The test images come after 10 for training and 12 for validation.
    for (id, row) in (22..).zip(&found) {
        let expected = numbers(&cache, &id.to_string());
        assert!(expected.len() > 8, "{expected:?}");
        let bits = |numbers: Vec<f32>| numbers.iter().map(|number| number.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(numbers(row, "features")), bits(expected), "{row}");
    }
}

#[test]
fn features_need_images_and_lists() {
    let workspace = Fixture::Photos.copy();
    for out in [&["--out", "out.csv"][..], &[]] {
        predict(&workspace, &[&["photos", "--features"], out].concat())
            .with_code(2)
            .reports(&["--features writes hundreds of numbers per image", "--out predictions.parquet"]);
    }
    assert!(!workspace.path("out.csv").exists());
}

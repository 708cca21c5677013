//! The weights of a finished run, and what `model.json` says of them.

use std::fs;

use serde_json::Value;

use crate::workspace::Workspace;

#[test]
fn weights_that_are_not_those_of_the_run_are_refused() {
    let workspace = Workspace::new().with_garments();
    workspace.end(workspace.training(8, &["--run-dir", "run"])).with_code(0);
    workspace.run(&["evaluate", "run"]).with_code(0);
    let (weights, info) = (workspace.path("run/model.safetensors"), workspace.path("run/model.json"));
    let written = fs::read(&weights).unwrap();

    // Weights of the same network, which nothing else could tell from the right ones.
    fs::copy(workspace.path("run/checkpoints/step-000000004/ema.safetensors"), &weights).unwrap();
    let swapped = workspace.run(&["evaluate", "run"]).with_code(1);
    swapped.reports(&["run/model.json: the hash of the weights is ", "but that of model.safetensors is "]);
    swapped.reports(&["; put back model.safetensors and model.json as the run wrote them\n"]);
    let mut flipped = written.clone();
    *flipped.last_mut().unwrap() ^= 1;
    fs::write(&weights, flipped).unwrap();
    workspace.run(&["evaluate", "run"]).with_code(1).reports(&["the hash of the weights is "]);
    fs::write(&weights, &written).unwrap();

    let text = fs::read_to_string(&info).unwrap();
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((json["format"].as_u64(), json["size"].as_u64()), (Some(1), Some(8)));
    assert_eq!((&json["network"], &json["block"]), (&"wrn-10-1".into(), &"google".into()));
    assert_eq!(json["classes"][0], "T-shirt/top");
    for (field, other, sentence) in [
        ("network", Value::from("wrn-16-2"), "the network is wrn-16-2 here, but wrn-10-1 in the run"),
        ("size", 9.into(), "the size of images is 9 here, but 8 in the run"),
        ("mean", vec![0.5, 0.5, 0.5].into(), "the mean of pixels is [0.5, 0.5, 0.5] here, but "),
    ] {
        let mut changed = json.clone();
        changed[field] = other;
        fs::write(&info, changed.to_string()).unwrap();
        workspace.run(&["evaluate", "run"]).with_code(1).reports(&[sentence]);
    }
    fs::remove_file(&info).unwrap();
    workspace.run(&["evaluate", "run"]).with_code(1).reports(&["run/model.json: there is no such file"]);
    fs::write(&info, text).unwrap();
    workspace.run(&["evaluate", "run"]).with_code(0);
}

//! Pretrained weights: added, listed, begun from, and refused.

use std::fs;

use serde_json::Value;

use super::fixture::Fixture;

const CONFIG: &str = r#"{"architecture": "wrn-10-1", "pretrained_cfg": {"input_size": [3, 12, 12],
    "mean": [0.1, 0.2, 0.3], "std": [0.5, 0.5, 0.5], "license": "cc0-1.0"}}"#;

#[test]
fn weights_are_added_listed_and_begun_from() {
    let workspace = Fixture::Garments.copy();
    workspace.run(&["weights", "list"]).with_code(0).prints(&["no pretrained weights in [HERE]/weights"]);
    let add = ["weights", "add", "first/model.safetensors"];
    workspace.run(&add).with_code(0).prints(&[
        "wrn-10-1: wrn-10-1, ",
        "images of 8 pixels, licence unknown",
        "next: calmix train --data FOLDER --set network.weights=wrn-10-1",
    ]);
    workspace.run(&add).with_code(0);
    // As in the cache of a hub, where names are links to files that are called by their hashes.
    {
        let (blobs, names) = (workspace.path("blobs"), workspace.path("names"));
        fs::create_dir(&blobs).and_then(|()| fs::create_dir(&names)).unwrap();
        fs::copy(workspace.path("first/model.safetensors"), blobs.join("1")).unwrap();
        fs::write(blobs.join("2"), CONFIG).unwrap();
        std::os::unix::fs::symlink(blobs.join("1"), names.join("model.safetensors")).unwrap();
        std::os::unix::fs::symlink(blobs.join("2"), names.join("config.json")).unwrap();
        workspace
            .run(&["weights", "add", "names/model.safetensors", "--name", "hub"])
            .with_code(0)
            .prints(&["cc0-1.0"]);
        fs::remove_dir_all(workspace.path("weights/hub")).unwrap();
    }
    fs::write(workspace.path("first/config.json"), CONFIG).unwrap();
    fs::write(workspace.path("first/LICENSE"), "free").unwrap();
    workspace.run(&[&add[..], &["--name", "mine"]].concat()).with_code(0);
    assert_eq!(workspace.names("weights"), ["mine", "wrn-10-1"]);
    assert_eq!(workspace.names("weights/mine"), ["LICENSE", "config.json", "model.safetensors"]);
    workspace.run(&["weights", "list"]).with_code(0).prints(&[
        "images of 12 pixels, cc0-1.0",
        "[HERE]/weights/mine/model.safetensors (",
        "your own weights go into [HERE]/weights",
    ]);
    let listed = workspace.run(&["weights", "list", "--json"]).with_code(0);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let mine = &listed["weights"][0];
    assert_eq!((mine["name"].as_str(), mine["size"].as_u64()), (Some("mine"), Some(12)));
    assert_eq!(listed["weights"][1]["licence"], Value::Null);

    // Keys that the user sets, then `config.json`, then the metadata: the size, the mean, the block.
    let begun =
        ["--set", "network.weights=mine", "--set", "dataset.std=0.25,0.25,0.25", "--run-dir", "second"];
    workspace.end(workspace.training(2, &begun)).with_code(0).reports(&[
        "weights   mine (",
        "images of 8 pixels: --set 4\n",
        "mean 0.100 0.200 0.300: [HERE]/weights/mine/config.json\n",
        "std 0.250 0.250 0.250: --set ",
    ]);
    let recipe = fs::read_to_string(workspace.path("second/recipe.toml")).unwrap();
    let hash = mine["blake3"].as_str().unwrap();
    for line in ["weights = \"mine\"", "mean = [0.1, 0.2, 0.3]", &format!("weights_hash = \"{hash}\"")] {
        assert!(recipe.contains(line), "no {line} in\n{recipe}");
    }
    // What the run is made of is in it: the weights can go.
    fs::remove_dir_all(workspace.path("weights")).unwrap();
    workspace.run(&["evaluate", "second"]).with_code(0);
}

#[test]
fn unusable_weights_are_refused_with_a_hint() {
    let workspace = Fixture::Garments.copy();
    let model = workspace.path("first/model.safetensors");
    workspace.run(&["weights", "add", "first/model.safetensors", "--name", "mine"]).with_code(0);
    let train = |weights: &str| {
        let setting = format!("network.weights={weights}");
        workspace.end(workspace.training(2, &["--run-dir", "run", "--set", &setting])).with_code(2)
    };
    train("mien").reports(&["no weights are named mien", "has mine", "calmix weights add FILE"]);
    fs::write(workspace.path("net.pth"), "\u{80}").unwrap();
    let add = |arguments: &[&str]| workspace.run(&[&["weights", "add"], arguments].concat()).with_code(2);
    for output in [train("net.pth"), add(&["net.pth"])] {
        output.reports(&["net.pth: a pickle", "weights_only=True"]);
    }
    // By what is in it, whatever it is called.
    fs::write(workspace.path("zip.safetensors"), "PK\u{3}\u{4}").unwrap();
    add(&["zip.safetensors"]).reports(&["a pickle"]);
    fs::write(workspace.path("text.safetensors"), "weights").unwrap();
    add(&["text.safetensors"]).reports(&["not a safetensors file"]);
    add(&["nothing.safetensors"]).reports(&["nothing.safetensors"]);
    add(&["first/model.safetensors", "--name", "../mine"]).reports(&["cannot be the name of weights"]);

    let beside = workspace.path("first/config.json");
    for (text, sentences) in [
        ("{", ["config.json: not JSON", "move it away"]),
        (r#"{"std": [0, 0, 0]}"#, ["config.json: `std` is [0,0,0]", "move it away"]),
        (r#"{"architecture": "resnet50"}"#, ["config.json: names resnet50", "missing"]),
        (r#"{"architecture": "vit"}"#, ["config.json: `vit` is not a network", "use wrn-28-2"]),
    ] {
        fs::write(&beside, text).unwrap();
        add(&["first/model.safetensors", "--name", "other"]).reports(&sentences);
    }
    fs::write(&beside, " ".repeat(5 << 20)).unwrap();
    add(&["first/model.safetensors", "--name", "other"]).reports(&["config.json: 5242880 bytes, more than"]);
    fs::write(&beside, r#"{"std": [0, 0, 0]}"#).unwrap();
    train("first/model.safetensors").reports(&["config.json: `std` is [0,0,0]"]);
    fs::remove_file(&beside).unwrap();
    assert_eq!(workspace.names("weights"), ["mine"]);

    // Other weights under the same name, and a damaged folder.
    workspace.end(workspace.training(2, &["--run-dir", "other", "--seed", "1"])).with_code(0);
    add(&["other/model.safetensors", "--name", "mine"]).reports(&["the name mine is taken", "--name"]);
    fs::create_dir(workspace.path("weights/half")).unwrap();
    fs::write(workspace.path("weights/half/model.safetensors"), &fs::read(model).unwrap()[..999]).unwrap();
    let listed = workspace.run(&["weights", "list"]).with_code(0);
    listed.prints(&["mine: wrn-10-1"]);
    listed.reports(&["left out: [HERE]/weights/half/model.safetensors: not a safetensors file"]);
}

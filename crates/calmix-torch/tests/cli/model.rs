//! The weights of a finished run, and what `model.json` says of them.

use std::fs;

use calmix::Model;
use calmix::formats::image::Image;
use calmix_torch::metrics::fitted_calibrator::FittedCalibrator;
use calmix_torch::metrics::held_out::HeldOut;

use calmix::model::ModelOptions;
use calmix_torch::recipe::model_spec::ModelSpec;
use calmix_torch::run::model_info::ModelInfo;
use calmix_torch::run::tensor_files::predictions_file;
use serde_json::Value;

use super::fixture::Fixture;
use super::near::assert_near;
use crate::program::new_workspace;

#[test]
fn weights_that_are_not_those_of_the_run_are_refused() {
    let workspace = Fixture::Garments.copy();
    workspace.run(&["evaluate", "first"]).with_code(0);
    let (weights, info) = (workspace.path("first/model.safetensors"), workspace.path("first/model.json"));
    let written = fs::read(&weights).unwrap();

    // Weights of the same network, which nothing else could tell from the right ones.
    fs::copy(workspace.path("first/checkpoints/step-000000004/ema.safetensors"), &weights).unwrap();
    let swapped = workspace.run(&["evaluate", "first"]).with_code(1);
    swapped.reports(&["first/model.json: the hash of the weights is ", "but that of model.safetensors is "]);
    swapped.reports(&["; restore model.safetensors and model.json as the run wrote them\n"]);
    let mut flipped = written.clone();
    *flipped.last_mut().unwrap() ^= 1;
    fs::write(&weights, flipped).unwrap();
    workspace.run(&["evaluate", "first"]).with_code(1).reports(&["the hash of the weights is "]);
    fs::write(&weights, &written).unwrap();

    let text = fs::read_to_string(&info).unwrap();
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((json["format"].as_u64(), json["size"].as_u64()), (Some(5), Some(8)));
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
        workspace.run(&["evaluate", "first"]).with_code(1).reports(&[sentence]);
    }
    fs::remove_file(&info).unwrap();
    workspace.run(&["evaluate", "first"]).with_code(1).reports(&["first/model.json: this file is missing"]);
    fs::write(&info, text).unwrap();
    workspace.run(&["evaluate", "first"]).with_code(0);
}

/// The images of the garments' test subset, as `Workspace::with_garments` writes them.
fn test_images() -> Vec<Image> {
    let pixel = |i: u32| (i / 64 % 10 * 25 + i * 7 % 13) as u8;
    let image = |n: u32| (64 * n..64 * (n + 1)).flat_map(|i| [pixel(i); 3]).collect();
    (0..40).map(|n| Image::new(8, 8, image(n)).unwrap()).collect()
}

/// Without recipe and dataset, one image at a time or many: the bits of the run's own evaluation.
#[test]
fn a_model_alone_says_what_the_run_said() {
    let workspace = new_workspace().with_garments();
    let more = ["--run-dir", "run", "--set", "labels.validation=0.5", "--set", "labels.count=6"];
    workspace.end(workspace.training(8, &more)).with_code(0);
    let said = fs::read(workspace.path("run/predictions/step-000000008-test-ema.safetensors")).unwrap();
    let said = predictions_file::from_bytes(&said).unwrap();
    let alone = workspace.path("alone");
    fs::create_dir(&alone).unwrap();
    for name in ["model.safetensors", "model.json"] {
        fs::copy(workspace.path("run").join(name), alone.join(name)).unwrap();
    }
    let options = ModelOptions { threads: Some(1), ..ModelOptions::default() };
    let model = Model::load_with(&alone, &options).unwrap();
    let info = model.info();
    assert_eq!(model.classes(), said.classes);
    assert_eq!(info.held_out.as_ref().map(HeldOut::len), Some(30));
    let map = info.calibration.as_ref().and_then(FittedCalibrator::temperature);
    let temperature = map.map_or(1.0, f64::from);
    let temperature = calmix_torch::metrics::calibrator::temperature::Temperature::new(temperature).unwrap();
    let expected = temperature.probabilities(said.matrix().unwrap());

    let images = test_images();
    let predictions = model.predict(&images).unwrap();
    for (row, prediction) in predictions.iter().enumerate() {
        let expected = &expected[10 * row..10 * (row + 1)];
        assert_near(&prediction.probabilities, expected, &format!("row {row}"));
        assert_eq!(prediction.confidence, prediction.probabilities[prediction.label]);
        let set = prediction.set.as_ref().unwrap();
        assert_eq!(set[0] as usize, prediction.label);
        // Thirty labels, not one in two of which a network of eight steps gets right.
        assert_eq!(prediction.abstain, Some(true));
    }
    assert_eq!(model.predict(&images[7..8]).unwrap(), predictions[7..8]);
    let missing = model.guarantee().missing();
    let expected = "no confidence threshold reaches 90% precision on the 30 held-out labels";
    assert!(missing[0].starts_with(expected), "{missing:?}");

    // Without held-out labels nothing is guaranteed, and the model says so.
    let path = alone.join("model.json");
    let mut info = info.clone();
    info.held_out = None;
    fs::write(&path, serde_json::to_vec(&info).unwrap()).unwrap();
    // What makes guarantees is protected by a hash of its own.
    let error = Model::load_with(&alone, &options).unwrap_err().to_string();
    assert!(error.contains("model.json: the calibration has changed since it was written"), "{error}");
    info.seal().unwrap();
    fs::write(&path, serde_json::to_vec(&info).unwrap()).unwrap();
    let model = Model::load_with(&alone, &options).unwrap();
    let prediction = &model.predict(&images[..1]).unwrap()[0];
    assert_eq!((prediction.set.as_ref(), prediction.abstain), (None, None));
    assert!(model.guarantee().missing()[0].contains("no labels were held out from training"));
    let wrong = ModelOptions { coverage: 1.0, ..options };
    assert!(Model::load_with(&alone, &wrong).unwrap_err().to_string().contains("coverage"));

    // Whatever the two files do not agree on is refused.
    for (other, sentence) in [
        (ModelInfo { blake3: ModelInfo::hash(b"others"), ..info.clone() }, "the hash of the weights is"),
        (
            ModelInfo {
                model: Some(ModelSpec { size: 16, ..info.model.unwrap() }),
                resize: 16,
                ..info.clone()
            },
            "the size of images is 16 here, but 8",
        ),
        (ModelInfo { format: 1, ..info.clone() }, "format 1, but this version of calmix reads format 5"),
        (
            ModelInfo {
                model: Some(ModelSpec { network: "wrn-994-100".parse().unwrap(), ..info.model.unwrap() }),
                ..info.clone()
            },
            "the network is wrn-994-100 here",
        ),
    ] {
        fs::write(&path, serde_json::to_vec(&other).unwrap()).unwrap();
        let error = Model::load_with(&alone, &options).unwrap_err().to_string();
        assert!(error.contains(sentence) && error.contains("model.json"), "{error}");
    }
}

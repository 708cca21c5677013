//! Runs that begin from the weights of another network.

use std::fs;
use std::path::Path;

use calmix_testkit::run_bytes::differing;
use calmix_train::trainer::Outcome;
use safetensors::SafeTensors;

use crate::made::{Bench, resume};

#[test]
fn pretrained_backbone_is_copied_into_the_run() {
    let bench = Bench::new();
    let file = bench.folder("first").join("model.safetensors");
    bench.train("first", &[]);
    let weights = format!("network.weights={}", file.display());
    let settings = [&*weights, "train.seed=1"];
    let one_step = bench.train("one", &[&settings[..], &["train.steps=1", "optimiser.lr=1e-12"]].concat());
    let (first, one) = (fs::read(&file).unwrap(), fs::read(one_step.join("model.safetensors")).unwrap());
    let apart = |name| apart(&first, &one, name);
    assert!(apart("block2.layer.0.conv1.weight") < 1e-7, "{}", apart("block2.layer.0.conv1.weight"));
    assert!(apart("fc.weight") > 0.1, "the classifier is the run's own: {}", apart("fc.weight"));

    let whole = bench.train("whole", &settings);
    let stopped = bench.train_until("stopped", 5, &settings);
    fs::remove_file(&file).unwrap();
    assert!(matches!(resume(&stopped).unwrap(), Outcome::Finished(_)));
    assert_eq!(differing(&whole, &stopped), Vec::<String>::new());
}

#[test]
fn weights_of_another_network_are_refused_first() {
    let bench = Bench::new();
    let refused = |file: &Path, settings: &[&str]| {
        let weights = format!("network.weights={}", file.display());
        let error = bench.start("run", &[&[&*weights], settings].concat()).unwrap_err().to_string();
        assert!(error.starts_with(&file.display().to_string()), "{error}");
        assert!(!bench.folder("run").exists(), "{error}");
        error
    };
    let file = bench.train("first", &[]).join("model.safetensors");
    let error = refused(&file, &["network.name=wrn-16-1"]);
    assert!(error.contains("missing") && error.contains("network.name"), "{error}");
    let wide = bench.train("wide", &["network.name=wrn-10-2", "train.steps=1"]).join("model.safetensors");
    let error = refused(&wide, &["network.name=wrn-10-3"]);
    assert!(error.contains("has the shape"), "{error}");
    // The same names and shapes, but computed otherwise, which the file says of itself.
    let torch = bench.train("torch", &["network.block=torch", "train.steps=1"]).join("model.safetensors");
    let error = refused(&torch, &[]);
    assert!(error.contains("network.block is torch here, but google in the recipe"), "{error}");
    let error = refused(&torch, &["network.block=torch", "network.weights_hash=00"]);
    assert!(error.contains("but network.weights_hash is 00: this is a different file"), "{error}");
    let pickle = bench.folder("resnet50.pth");
    fs::write(&pickle, b"\x80\x02").unwrap();
    let error = refused(&pickle, &[]);
    assert!(error.contains("a pickle") && error.contains("weights_only=True"), "{error}");
    refused(&bench.folder("nothing.safetensors"), &[]);
    let text = bench.folder("text.safetensors");
    fs::write(&text, b"weights").unwrap();
    assert!(refused(&text, &[]).contains("not a safetensors file"));
}

/// The greatest difference of a tensor.
fn apart(first: &[u8], second: &[u8], name: &str) -> f32 {
    let numbers = |file: &[u8]| -> Vec<f32> {
        let file = SafeTensors::deserialize(file).unwrap();
        let data = file.tensor(name).unwrap().data().to_vec();
        data.as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()
    };
    let pairs = numbers(first).into_iter().zip(numbers(second));
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

//! An ONNX encoder that another program exported as the backbone of a head, as whole commands: from the first look to the exported
//! model. What is hostile in a model ends in a sentence.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use calmix_testkit::foreign_model::{
    FLOAT, INT64, Parts, external_tensor, integers_attribute, node, port, tensor,
};
use calmix_testkit::png_file::{Pixels, png};
use calmix_testkit::tier;

/// How soon a hostile model is refused or ended, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(100);

/// A working folder with photos and an encoder in the layout of the Hub.
struct Scene {
    folder: tempfile::TempDir,
}

#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Scene {
    fn new() -> Self {
        let scene = Self { folder: tempfile::tempdir().unwrap() };
        scene.write("hub/onnx/model.onnx", &Parts::sample().bytes());
        let config = r#"{"image_mean": [0.5, 0.5, 0.5], "image_std": [0.25, 0.25, 0.25], "resample": 3,
            "rescale_factor": 0.00392156862745098, "size": {"shortest_edge": 9}, "do_center_crop": true,
            "crop_size": {"height": 8, "width": 8}}"#;
        scene.write("hub/preprocessor_config.json", config.as_bytes());
        for (place, lighter) in [("photos", 0), ("new", 7)] {
            for (class, shade) in [("cat", 20), ("dog", 150)] {
                for number in 0..12_u8 {
                    let name = format!("{place}/{class}/{number:02}.png");
                    scene.write_image(&name, shade + lighter, number);
                }
            }
        }
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn write_image(&self, name: &str, shade: u8, number: u8) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let pixel = |place: usize| shade + number * 5 + place as u8 % (number + 2);
        fs::write(path, png(Pixels::Grey, [10, 9], pixel)).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        let mut command = Command::new(env!("CARGO_BIN_EXE_calmix"));
        command.args(arguments).current_dir(self.folder.path()).env("CALMIX_WEIGHTS", self.path("weights"));
        let output = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ended { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    fn train(&self, run: &str) -> Ended {
        // Views, so that the head of a method is trained as well.
        let settings = [
            "network.folds=3",
            "evaluate.bootstrap=0",
            "network.dimensions=3",
            "network.weak_views=2",
            "network.strong_views=2",
            "train.steps=20",
        ];
        let settings = settings.into_iter().flat_map(|setting| ["--set", setting]);
        let arguments = ["train", "--data", "photos", "--run-dir", run, "--set", "network.weights=hub"];
        self.run(&arguments.into_iter().chain(settings).collect::<Vec<_>>())
    }

    /// What `weights check` says of a model, which it refuses.
    #[track_caller]
    fn refusal(&self, model: &Parts) -> String {
        self.write("bad/model.onnx", &model.bytes());
        let start = Instant::now();
        let ended = self.run(&["weights", "check", "bad", "--set", "network.output=map"]);
        assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains("bad/model.onnx: "), "{ended:?}");
        ended.stderr
    }
}

impl Ended {
    #[track_caller]
    fn succeeds(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }
}

#[test]
fn encoder_in_the_weights_folder_has_a_name() {
    let scene = Scene::new();
    fs::create_dir(scene.path("weights")).unwrap();
    fs::rename(scene.path("hub"), scene.path("weights/mine")).unwrap();
    let listed = scene.run(&["weights", "list"]).succeeds().stdout;
    assert!(
        listed.contains("mine: an ONNX encoder\n  ") && listed.contains("mine/onnx/model.onnx\n"),
        "{listed}"
    );
    let checked = scene.run(&["weights", "check", "mine"]).succeeds().stdout;
    assert!(checked.contains("next: calmix train --data FOLDER --set network.weights=mine"), "{checked}");
    let trained =
        scene.run(&["train", "--data", "photos", "--run-dir", "run", "--set", "network.weights=mine"]);
    assert!(trained.succeeds().stderr.contains("recipe head-folder"));
    // The run has its own copy.
    fs::remove_dir_all(scene.path("weights")).unwrap();
    scene.run(&["predict", "run", "new/cat"]).succeeds();
}

#[test]
fn head_on_encoder_is_trained_used_and_exported() {
    let scene = Scene::new();
    let checked = scene.run(&["weights", "check", "hub"]).succeeds().stdout;
    for part in [
        "hub/onnx/model.onnx: an encoder of 0 MB (",
        "4 features per image",
        "output    pooler_output  (network.output: hub/onnx/model.onnx)",
        "size      8  (augment.size: hub/onnx/model.onnx)",
        "resize    9  (augment.evaluation_resize: hub/preprocessor_config.json)",
        "filter    bicubic  (augment.filter: hub/preprocessor_config.json)",
        "views per second",
        "next: calmix train --data FOLDER --set network.weights=hub",
    ] {
        assert!(checked.contains(part), "{part}: {checked}");
    }
    let json = scene.run(&["weights", "check", "hub", "--json", "--set", "network.output=map"]).succeeds();
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((json["pooling"].as_str(), json["features"].as_u64()), (Some("mean-of-map"), Some(4)));

    let trained = scene.train("run").succeeds();
    let network = "a linear head on a frozen ONNX encoder (output pooler_output, vector): 2 weak";
    assert!(trained.stderr.contains(network), "{trained:?}");
    let shown = scene.run(&["inspect", "run"]).succeeds().stdout;
    assert!(shown.contains("onnx encoder, output pooler_output at 8 pixels"), "{shown}");
    assert!(!shown.contains("network.name"), "{shown}");
    // From here on the run's own copy is used.
    fs::remove_dir_all(scene.path("hub")).unwrap();
    scene.run(&["resume", "run"]).succeeds();
    scene.run(&["evaluate", "run"]).succeeds();
    let mut rows = Vec::new();
    for (threads, batch) in [("1", "1"), ("2", "5"), ("4", "64")] {
        let arguments = ["predict", "run", "new", "--threads", threads, "--batch", batch, "--features"];
        let arguments = arguments.into_iter().chain(["--format", "jsonl"]);
        rows.push(scene.run(&arguments.collect::<Vec<_>>()).succeeds().stdout);
    }
    assert_eq!(rows[0].lines().count(), 24);
    assert!(rows.iter().all(|found| *found == rows[0]), "bits depend on threads or batches");
    let evaluated = scene.run(&["evaluate", "run", "--on", "new"]).succeeds().stdout;
    assert!(evaluated.contains("test, 24 images"), "{evaluated}");
    let exported = scene.run(&["export", "run", "--to", "model"]).succeeds();
    assert!(exported.stdout.contains("images, u8, N × 8 × 8 × 3"), "{exported:?}");
    assert!(exported.stderr.contains("an ONNX encoder, which PyTorch does not load"), "{exported:?}");
    assert!(scene.path("model/model.onnx").exists());
    scene.run(&["calibrate", "run", "--on", "new"]).succeeds();
}

#[test]
fn photos_are_certified_and_verified() {
    let scene = Scene::new();
    scene.train("run").succeeds();
    for number in 0..120_u8 {
        let shade = if number % 2 == 0 { 20 } else { 150 };
        scene.write_image(&format!("pool/unlabelled/{number:03}.png"), shade, number / 12);
    }
    let certify = ["certify", "run", "--pool", "pool", "--error", "0.2"];
    scene.run(&certify).succeeds();
    let page = fs::read_to_string(scene.path("certificate/review-1.html")).unwrap();
    assert!(page.contains("data:image/png;base64,"), "auditors see the photos");
    let mut answers = "file,label,drawn\n".to_owned();
    let mut reader = csv::Reader::from_path(scene.path("certificate/review-1.csv")).unwrap();
    for row in reader.records().map(Result::unwrap) {
        let number: usize = row[0].trim_end_matches(".png").rsplit('/').next().unwrap().parse().unwrap();
        answers.extend([&row[0], ",", if number.is_multiple_of(2) { "cat" } else { "dog" }, ",audit\n"]);
    }
    scene.write("answers.csv", answers.as_bytes());
    let audited = scene.run(&[&certify[..], &["--answers", "answers.csv"]].concat()).succeeds().stdout;
    assert!(audited.contains("certified labels are in certificate/certified.csv"), "{audited}");
    let verify = ["verify", "certificate/certificate.json", "pool"];
    let verified = scene.run(&verify).succeeds().stdout;
    assert!(verified.contains("verified: certificate/certificate.json"), "{verified}");
    // Another photo under the same name is another pool.
    scene.write_image("pool/unlabelled/007.png", 20, 3);
    let changed = scene.run(&verify);
    assert_eq!(changed.code, Some(1), "{changed:?}");
    assert!(changed.stdout.contains("007.png has changed"), "{changed:?}");
}

#[test]
fn damaged_copy_of_an_encoder_is_refused() {
    let scene = Scene::new();
    scene.train("run").succeeds();
    let copy = scene.path("run/backbone.onnx");
    let mut bytes = fs::read(&copy).unwrap();
    // The middle of the weights of the convolution: still a model.
    let place = bytes.len() / 2;
    bytes[place] ^= 1;
    fs::remove_file(&copy).unwrap();
    fs::write(&copy, bytes).unwrap();
    for command in [&["predict", "run", "new"][..], &["export", "run", "--to", "model"], &["evaluate", "run"]]
    {
        let ended = scene.run(command);
        assert!(ended.code != Some(0) && ended.stderr.contains("backbone.onnx"), "{command:?}: {ended:?}");
    }
}

#[test]
fn weights_of_several_files_are_one_in_the_run() {
    let scene = Scene::new();
    let mut parts = Parts::sample();
    let weights: Vec<u8> = (0..192).flat_map(|n| (n as f32 / 100.0).to_le_bytes()).collect();
    parts.initialisers[0] =
        external_tensor("conv.weight", &[4, 3, 4, 4], FLOAT, &[("location", "model.onnx_data")]);
    scene.write("hub/onnx/model.onnx_data", &weights);
    scene.write("hub/onnx/model.onnx", &parts.bytes());
    scene.train("run").succeeds();
    let rows = scene.run(&["predict", "run", "new"]).succeeds().stdout;
    fs::remove_dir_all(scene.path("hub")).unwrap();
    assert_eq!(scene.run(&["predict", "run", "new"]).succeeds().stdout, rows);
    // As with the weights in the model.
    let whole = Scene::new();
    whole.train("run").succeeds();
    assert_eq!(whole.run(&["predict", "run", "new"]).succeeds().stdout, rows);
}

#[test]
fn nothing_outside_the_folder_is_read() {
    let scene = Scene::new();
    scene.write("secret", &[0; 768]);
    let at = |location: &str| {
        let mut parts = Parts::sample();
        parts.initialisers[0] =
            external_tensor("conv.weight", &[4, 3, 4, 4], FLOAT, &[("location", location)]);
        parts
    };
    let absolute = scene.path("secret").display().to_string();
    for location in ["../secret", "sub/../../secret", absolute.as_str(), "..", ""] {
        let refused = scene.refusal(&at(location));
        assert!(refused.contains("conv.weight") || refused.contains("file"), "{location}: {refused}");
    }
    fs::create_dir_all(scene.path("bad")).unwrap();
    symlink(scene.path("secret"), scene.path("bad/link")).unwrap();
    let refused = scene.refusal(&at("link"));
    assert!(refused.contains("link"), "{refused}");
}

/// The shape of a value that the model computes: only a run finds out how large it is.
#[test]
fn memory_of_the_first_run_is_limited() {
    let scene = Scene::new();
    let mut parts = Parts::sample();
    let numbers =
        |numbers: &[i64]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<_>>();
    parts.initialisers.push(tensor("factor", &[4], INT64, &numbers(&[1, 1, 10_000, 10_000])));
    parts.nodes.insert(1, node("Shape", &["map"], &["shape"], &[]));
    parts.nodes.insert(2, node("Div", &["shape", "shape"], &["ones"], &[]));
    parts.nodes.insert(3, node("Mul", &["ones", "factor"], &["repeats"], &[]));
    parts.nodes.insert(4, node("Tile", &["map", "repeats"], &["huge"], &[]));
    parts.nodes.insert(5, node("GlobalAveragePool", &["huge"], &["mean"], &[]));
    parts.outputs = vec![port("mean", FLOAT, &[None, Some(4), Some(1), Some(1)])];
    scene.write("bad/model.onnx", &parts.bytes());
    let ended = scene.run(&["weights", "check", "bad"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("its first run, in a process of its own, "), "{ended:?}");
}

#[test]
fn time_of_the_first_run_is_limited() {
    if !tier::is_exhaustive() {
        return;
    }
    let scene = Scene::new();
    let mut parts = Parts::sample();
    let zeros = vec![0; 4 * 2_048 * 2_048];
    parts.initialisers.push(tensor("square", &[2_048, 2_048], FLOAT, &zeros));
    parts.nodes.push(node("Reshape", &["average", "token.shape"], &["unused"], &[]));
    let mut before = "square".to_owned();
    for number in 0..3_000 {
        let after = format!("square.{number}");
        parts.nodes.push(node("MatMul", &[&before, "square"], &[&after], &[]));
        before = after;
    }
    parts.nodes.push(node("ReduceMax", &[&before], &["largest"], &[integers_attribute("axes", &[0, 1])]));
    parts.nodes.push(node("Add", &["map", "largest"], &["sum"], &[]));
    parts.outputs = vec![port("sum", FLOAT, &[None, Some(4), Some(2), Some(2)])];
    scene.write("bad/model.onnx", &parts.bytes());
    let start = Instant::now();
    let ended = scene.run(&["predict", "nothing", "bad"]);
    assert_ne!(ended.code, Some(0));
    let settings = ["network.folds=3", "train.steps=20"].into_iter().flat_map(|setting| ["--set", setting]);
    let arguments = ["train", "--data", "photos", "--set", "network.weights=bad", "--set", "augment.size=8"];
    let ended = scene.run(&arguments.into_iter().chain(settings).collect::<Vec<_>>());
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("more time of a processor"), "{ended:?}");
    assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
}

#[test]
fn damaged_models_end_in_a_sentence() {
    let scene = Scene::new();
    let whole = Parts::sample().bytes();
    let mutants = if tier::is_exhaustive() { 100 } else { 15 };
    let step = whole.len() / mutants;
    for number in 0..mutants {
        let mut bytes = whole.clone();
        let place = number * step + number % step;
        bytes[place] = bytes[place].wrapping_add(1 + (number as u8 % 250));
        if number % 5 == 4 {
            bytes.truncate(place);
        }
        scene.write("bad/model.onnx", &bytes);
        let start = Instant::now();
        let ended = scene.run(&["weights", "check", "bad", "--set", "augment.size=8", "--threads", "1"]);
        assert!(matches!(ended.code, Some(0 | 2)), "{number}: {ended:?}");
        assert!(!ended.stderr.contains("panicked"), "{number}: {ended:?}");
        assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
    }
}

#[test]
fn what_an_encoder_cannot_be_is_said() {
    let scene = Scene::new();
    let head =
        scene.run(&["train", "head-folder", "--data", "photos", "--set", "network.weights=missing.onnx"]);
    assert_eq!(head.code, Some(2), "{head:?}");
    assert!(head.stderr.contains("missing.onnx"), "{head:?}");
    let added = scene.run(&["weights", "add", "hub/onnx/model.onnx"]);
    assert_eq!(added.code, Some(2), "{added:?}");
    assert!(added.stderr.contains("--set network.weights=hub/onnx/model.onnx"), "{added:?}");
    let unknown = scene.run(&["weights", "check", "photos"]);
    assert!(unknown.stderr.contains("neither an ONNX file nor a folder"), "{unknown:?}");
    let output = scene.run(&["weights", "check", "hub", "--set", "network.output=nothing"]);
    assert!(output.stderr.contains("it has no output `nothing`; its outputs are `logits`"), "{output:?}");
    // A model of any size needs to be told which.
    let mut parts = Parts::sample();
    parts.inputs = vec![port("pixel_values", FLOAT, &[None, Some(3), None, None])];
    scene.write("bad/model.onnx", &parts.bytes());
    let size = scene.run(&["weights", "check", "bad"]);
    assert!(size.stderr.contains("--set augment.size=224"), "{size:?}");
    scene.run(&["weights", "check", "bad", "--set", "augment.size=8"]).succeeds();
}

//! Networks under timm's names against timm itself, where it is available: `CALMIX_TIMM` is a folder that Python finds timm
//! 1.0.30, torchvision and Pillow in. With random weights, and with the pretrained ones of the folder `CALMIX_WEIGHTS`, where
//! there are any (`cargo xtask weights`).
#![allow(clippy::print_stdout)] // what was compared, and what was not

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use calmix_core::rng::{Domain, Seed};
use calmix_engine::engine::{Engine, EngineSnapshot, Settings, Weights};
use calmix_recipe::model_spec::ModelSpec;
use calmix_recipe::network::BottleneckStride;
use calmix_testkit::tier;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::peer::python;
use super::tensors::{Tensors, distance, norm, read};
use crate::run::settings;

const NETWORKS: [&str; 4] =
    ["tf_efficientnet_lite0", "tf_efficientnet_lite1", "tf_efficientnet_lite2", "resnet50"];

const SIDES: [usize; 4] = [96, 128, 160, 224];

/// A network that timm is asked about.
struct Question {
    name: &'static str,
    side: usize,
    /// A folder of pretrained weights; none for random ones.
    weights: Option<PathBuf>,
    /// A folder of photos in folders; none for two images of noise.
    photos: Option<PathBuf>,
}

impl Question {
    fn model(&self) -> ModelSpec {
        let model = ModelSpec::new(self.name.parse().expect("a network"), self.side as u32);
        let Some(config) = self.config() else { return model };
        let channels = |key: &str| {
            let numbers = config["pretrained_cfg"][key].as_array().expect("three numbers");
            [0, 1, 2].map(|channel| numbers[channel].as_f64().expect("a number"))
        };
        let stride = config["model_args"]["stride"]
            .as_str()
            .map_or(BottleneckStride::Middle, |word| word.parse().expect("a stride"));
        ModelSpec { mean: channels("mean"), std: channels("std"), stride, ..model }
    }

    fn config(&self) -> Option<Value> {
        let text = fs::read(self.weights.as_ref()?.join("config.json")).expect("a config.json");
        Some(serde_json::from_slice(&text).expect("JSON"))
    }

    fn engine(&self, classes: usize) -> Engine {
        let settings = Settings { model: self.model(), classes, ..settings(self.side as u32) };
        Engine::new(settings, Seed(0)).expect("an engine")
    }

    fn write(&self, folder: &Path) {
        fs::create_dir(folder).expect("a folder");
        if self.photos.is_some() {
            return;
        }
        let mut stream = Seed(3).stream(Domain::Init, 0, 0);
        let pixels: Vec<u8> =
            (0..2 * self.side * self.side * 3).map(|_| (stream.uniform() * 256.0) as u8).collect();
        let view = TensorView::new(Dtype::U8, vec![2, self.side, self.side, 3], &pixels).expect("images");
        let file = safetensors::serialize([("images", view)], None).expect("a file");
        fs::write(folder.join("images.safetensors"), file).expect("written");
    }
}

/// What timm said, in a folder of its own.
struct Answer {
    folder: PathBuf,
    outputs: Tensors,
}

impl Answer {
    fn weights(&self, question: &Question) -> Vec<u8> {
        let pretrained = question.weights.as_ref().map(|folder| folder.join("model.safetensors"));
        fs::read(pretrained.unwrap_or_else(|| self.folder.join("weights.safetensors"))).expect("weights")
    }

    fn pixels(&self) -> Vec<u8> {
        let file = fs::read(self.folder.join("images.safetensors")).expect("images");
        SafeTensors::deserialize(&file)
            .and_then(|file| Ok(file.tensor("images")?.data().to_vec()))
            .expect("pixels")
    }
}

/// Asks timm everything at once: importing it takes seconds.
fn ask(packages: &Path, questions: &[Question]) -> (TempDir, Vec<Answer>) {
    let folder = tempfile::tempdir().expect("a folder");
    let cases: Vec<Value> = questions
        .iter()
        .map(|question| {
            let ModelSpec { mean, std, stride, .. } = question.model();
            let Question { name, side, weights, photos } = question;
            json!({ "name": name, "side": side, "weights": weights, "photos": photos, "stride": stride, "mean": mean,
                    "deviation": std })
        })
        .collect();
    let folders: Vec<_> = (0..questions.len()).map(|n| folder.path().join(n.to_string())).collect();
    questions.iter().zip(&folders).for_each(|(question, folder)| question.write(folder));
    fs::write(folder.path().join("cases.json"), Value::from(cases).to_string()).expect("written");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/parity/timm_reference.py");
    let mut command = Command::new(python());
    command.env("PYTHONPATH", packages).args(["-B", script]).arg(folder.path());
    assert!(command.status().expect("Python starts").success(), "what it said stands above");
    let answers = folders.into_iter().map(|folder| {
        let outputs = read(&fs::read(folder.join("outputs.safetensors")).expect("timm answered"));
        Answer { folder, outputs }
    });
    let answers = answers.collect();
    (folder, answers)
}

/// A folder that a variable names; skips the test if the variable is not set.
fn named(variable: &str) -> Option<PathBuf> {
    let folder = env::var_os(variable).map(PathBuf::from);
    if folder.is_none() {
        tier::skipped(&format!("{variable} is not set"));
    }
    folder
}

/// How far logits and features are from timm's, relative to them.
fn apart(question: &Question, answer: &Answer) -> f64 {
    let (weights, pixels) = (answer.weights(question), answer.pixels());
    let mut engine = question.engine(1000);
    let fresh = engine.snapshot().expect("a snapshot");
    let whole = EngineSnapshot { weights: weights.clone(), ema: weights.clone(), ..fresh };
    engine.restore(&whole).expect("timm's weights");
    let got = engine.predict(&pixels, Weights::Ema).expect("outputs");
    // The backbone alone, under a classifier of three classes.
    let mut backbone = question.engine(3);
    backbone.start_from(&weights).expect("timm's backbone");
    let alone = backbone.predict(&pixels, Weights::Trained).expect("outputs");
    assert_eq!(alone.logits.len(), 6);
    let pairs = [("logits", &got.logits), ("features", &got.features), ("features", &alone.features)];
    let apart = pairs.map(|(what, got)| {
        let wanted = &answer.outputs[what];
        distance(got, wanted) / norm(wanted)
    });
    apart.into_iter().fold(0.0, f64::max)
}

fn compare(packages: &Path, questions: &[Question]) {
    calmix_engine::device::set_threads(1);
    let (_folder, answers) = ask(packages, questions);
    for (question, answer) in questions.iter().zip(&answers) {
        let (apart, Question { name, side, .. }) = (apart(question, answer), question);
        println!("{name} at {side}: {apart:.1e}");
        assert!(apart < 1e-4, "{name} at {side}: {apart}");
    }
}

#[test]
fn logits_and_features_are_timms() {
    let Some(packages) = named("CALMIX_TIMM") else { return };
    let questions = NETWORKS
        .into_iter()
        .flat_map(|name| SIDES.map(|side| Question { name, side, weights: None, photos: None }));
    compare(&packages, &questions.collect::<Vec<_>>());
}

#[test]
fn logits_and_features_of_pretrained_weights_are_timms() {
    let (Some(packages), Some(weights)) = (named("CALMIX_TIMM"), named("CALMIX_WEIGHTS")) else { return };
    let folders = NETWORKS.map(|name| (name, weights.join(name)));
    let questions = folders.into_iter().filter(|(_, folder)| folder.is_dir()).flat_map(|(name, folder)| {
        SIDES.map(|side| Question { name, side, weights: Some(folder.clone()), photos: None })
    });
    let questions: Vec<_> = questions.collect();
    assert!(!questions.is_empty(), "{} has no weights of {NETWORKS:?}", weights.display());
    compare(&packages, &questions);
}

/// The ten classes of the folder of Tiny ImageNet, in the order of its folders, among ImageNet's thousand.
const TINY: [usize; 10] = [1, 30, 145, 207, 283, 386, 466, 625, 779, 817];

#[test]
fn photos_have_the_classes_that_timm_gives_them() {
    let variables = ["CALMIX_TIMM", "CALMIX_WEIGHTS", "CALMIX_DATASETS"].map(named);
    let [Some(packages), Some(weights), Some(datasets)] = variables else { return };
    calmix_engine::device::set_threads(1);
    let photos = datasets.join("tiny-imagenet-10/val");
    let (name, weights) = ("tf_efficientnet_lite0", weights.join("tf_efficientnet_lite0"));
    let question = Question { name, side: 224, weights: Some(weights), photos: Some(photos) };
    let (_folder, answers) = ask(&packages, std::slice::from_ref(&question));
    let answer = &answers[0];
    let mut engine = question.engine(1000);
    let fresh = engine.snapshot().expect("a snapshot");
    let file = answer.weights(&question);
    engine.restore(&EngineSnapshot { weights: file.clone(), ema: file, ..fresh }).expect("the weights");
    let pixels = answer.pixels();
    let batches = pixels.chunks(50 * 224 * 224 * 3);
    let logits = batches.flat_map(|batch| engine.predict(batch, Weights::Ema).expect("outputs").logits);
    let top = |logits: &[f32]| -> Vec<usize> {
        let best = |row: &[f32]| (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b])).expect("a class");
        logits.chunks(1000).map(best).collect()
    };
    let (ours, theirs) = (top(&logits.collect::<Vec<_>>()), top(&answer.outputs["logits"]));
    let equal = ours.iter().zip(&theirs).filter(|(a, b)| a == b).count();
    let right = ours.chunks(ours.len() / TINY.len()).zip(TINY);
    let right: usize =
        right.map(|(of_class, class)| of_class.iter().filter(|&&top| top == class).count()).sum();
    println!(
        "{equal} of {} photos have timm's class, {right} their own among ImageNet's thousand",
        ours.len()
    );
    assert!(ours.len() == 500 && equal >= 495, "{equal} of {}", ours.len());
    // Of photos of 64 pixels; by chance it would be one in two.
    assert!(right >= 200, "{right} of 500");
}

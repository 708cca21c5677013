//! Writes valid files of every format into `corpus/`, as seeds for the targets.

use std::fs;
use std::path::{Path, PathBuf};

use calmix_core::preset::paper;
use calmix_core::pseudo::{Base, FlexMatch};
use calmix_core::rng::Seed;
use calmix_core::samples::LabelledSamples;
use calmix_core::samples::Samples;
use calmix_data::dataset::Dataset;
use calmix_data::split::{HoldOut, LabelSplit, SplitPlan};
use calmix_fuzz::{Scene, tiny};
use calmix_metrics::evaluate::{Selection, evaluate};
use calmix_metrics::fitted_calibrator::{FittedCalibrator, FittedOn};
use calmix_metrics::held_out::HeldOut;
use calmix_metrics::predictions::{EvalModel, EvalSet, Predictions};
use calmix_recipe::model_spec::ModelSpec;
use calmix_run::events::{Event, Finished, Loss, Note, Step};
use calmix_run::label_draws::LabelDraws;
use calmix_run::model_info::ModelInfo;
use calmix_run::result::RunResult;
use calmix_run::tensor_files::predictions_file;
use calmix_run::tensor_files::sample_files::{write_labelled, write_unlabelled};
use calmix_testkit::dataset_files::Mat;
use calmix_testkit::photos::Golden;
use calmix_testkit::{dataset_files, foreign_model};

fn main() -> std::io::Result<()> {
    let golden = Golden::load();
    for case in &golden.images {
        let kind = case.name.split('-').next().unwrap_or_default();
        put(kind, &case.name, golden.bytes(case.file))?;
    }
    for case in golden.archives.iter().chain(&golden.crafted) {
        put("tar", &case.name, golden.bytes(case.file))?;
    }
    put("tar", "shard", golden.bytes(golden.shard.file))?;

    for big in [false, true] {
        let mat = Mat { big };
        let (images, labels) = (mat.images(1), mat.labels(&[10]));
        put("mat", &format!("plain-{big}"), &mat.file(&[labels.clone(), images.clone()]))?;
        put("mat", &format!("packed-{big}"), &mat.file(&[mat.compressed(&images), mat.compressed(&labels)]))?;
        let small = mat.matrix("X", 9, &[2, 3], 3, &[1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0]);
        put("mat", &format!("small-{big}"), &mat.file(&[mat.compressed(&small), labels]))?;
    }
    for entry in fs::read_dir(here().join("../crates/calmix-data/tests/golden/mat"))? {
        let entry = entry?;
        put("mat", &entry.file_name().to_string_lossy(), &fs::read(entry.path())?)?;
    }

    for (kind, name) in
        ["f2.npy", "deflated.npz", "zstd.parquet", "bf16.safetensors", "lightly.csv"].iter().enumerate()
    {
        let bytes = fs::read(here().join("../crates/calmix-formats/tests/golden/vectors").join(name))?;
        put("vectors", name, &[vec![kind as u8], bytes].concat())?;
    }

    let record = [vec![3, 99], dataset_files::planes(0, 32)].concat();
    put("cifar", "images", &[vec![0], record.clone(), record].concat())?;
    let names: String = (0..100).map(|class| format!("class {class}\n")).collect();
    put("cifar", "names", &[&[1], names.as_bytes()].concat())?;

    let images = dataset_files::idx(&[2, 2, 1], &[1, 2, 3, 4]);
    let labels = dataset_files::idx(&[2], &[7, 9]);
    let packed = [dataset_files::gzip(&images), dataset_files::gzip(&labels)];
    for (which, bytes) in [images, labels].iter().chain(&packed).enumerate() {
        put("idx", &which.to_string(), &[&[which as u8], bytes.as_slice()].concat())?;
    }

    for (number, list) in [
        "file,label\na.png,cat\nb.png,dog\nsub/c.png,\n",
        "\u{feff}labels,file_name\r\n\"cat\",\"./a.png\"\r\n",
        "file,label\n../a.png,cat\nC:\\a.png,x\n/etc/passwd,\"y\n",
    ]
    .iter()
    .enumerate()
    {
        put("csv", &number.to_string(), list.as_bytes())?;
    }

    let scene = Scene::new();
    tiny::prepare(&scene);
    for (which, name) in tiny::FILES.iter().enumerate() {
        put("manifest", name, &[vec![which as u8], fs::read(scene.target().join(name))?].concat())?;
    }
    let dataset = Dataset::open(&scene.target(), &scene.root()).map_err(std::io::Error::other)?;
    let mut plan = SplitPlan { validation: HoldOut::Share(0.25), ..SplitPlan::new(Seed(1), "train") };
    plan.unlabelled.push("extra".to_owned());
    let split = LabelSplit::draw(&dataset, plan).map_err(std::io::Error::other)?;
    let path = scene.root().join("split.json");
    split.write(&path).map_err(std::io::Error::other)?;
    put("split", "drawn", &fs::read(path)?)?;
    run_files()
}

/// Valid files of a run.
fn run_files() -> std::io::Result<()> {
    let hash = "0".repeat(64);
    let manifest = format!(
        r#"{{"format":3,"step":4,"identity":{{"recipe":"{hash}","dataset":"{hash}","split":"{hash}","groups":1,"shards":1}},"journal":{{"length":9,"blake3":"{hash}"}},"files":[{{"name":"ema.safetensors","length":12,"blake3":"{hash}"}}]}}"#
    );
    put(
        "checkpoint",
        "one-file",
        format!("{manifest}\n{}\n", blake3::hash(manifest.as_bytes()).to_hex()).as_bytes(),
    )?;
    let predictions = Predictions {
        step: 4,
        split: EvalSet::Test,
        model: EvalModel::Ema,
        classes: vec!["cat".to_owned(), "dog".to_owned()],
        ids: vec![7, 8, 9],
        labels: vec![0, 1, 1],
        logits: vec![2.0, 0.0, 0.0, 3.0, 1.0, 0.0],
        groups: vec![0, 1, 1],
    };
    put("predictions", "three", &predictions_file::to_bytes(&predictions).map_err(std::io::Error::other)?)?;
    let map =
        FittedCalibrator::fit(&predictions, FittedOn::HeldOut, &|| false).map_err(std::io::Error::other)?;
    let evaluation = evaluate(&predictions, Some(&map), None).map_err(std::io::Error::other)?;
    let loss = Loss { total: 0.75, labelled: 0.5, unlabelled: Some(0.25), ..Loss::default() };
    let note = Note { step: 3, text: "so it is".to_owned(), hint: "do this".to_owned() };
    let finished = Finished { step: 4, selected: Default::default(), pseudo: None };
    let mut lines = String::new();
    for event in [
        Event::Step(Box::new(Step::new(3, loss))),
        Event::Evaluation(Box::new(evaluation.clone())),
        Event::Note(note),
        Event::Finished(finished.clone()),
    ] {
        lines += &(event.to_line().map_err(std::io::Error::other)? + "\n");
    }
    put("events", "one-of-each", lines.as_bytes())?;
    let classes = vec!["cat".to_owned(), "dog".to_owned()];
    let result = RunResult {
        step: 4,
        selection: Selection::Last,
        classes: classes.clone(),
        scaling: map.scaling(),
        uncalibrated: None,
        evaluations: vec![evaluation.without_lists()],
        heads: None,
        pool: None,
        visits: None,
        finished,
    };
    put("result", "result", &serde_json::to_vec(&result)?)?;
    let info = ModelInfo {
        format: 3,
        blake3: hash,
        model: Some(ModelSpec {
            mean: [0.5; 3],
            std: [0.25; 3],
            ..ModelSpec::new("wrn-10-1".parse().map_err(std::io::Error::other)?, 8)
        }),
        classes,
        resize: 8,
        filter: "bilinear".to_owned(),
        shrink: None,
        head: None,
        calibration: Some(map),
        held_out: Some(HeldOut {
            label: vec![0],
            answer: vec![1.0],
            right: vec![true],
            lac: vec![0.25],
            aps: vec![0.75],
            ..HeldOut::default()
        }),
        calibration_blake3: String::new(),
        label_draws: LabelDraws::default(),
        reference: String::new(),
    };
    put("result", "model", &serde_json::to_vec(&info)?)?;
    let config = r#"{"architecture": "resnet50", "model_args": {"stride": "1x1"}, "pretrained_cfg": {"input_size": [3, 224, 224],
        "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5], "license": "mit"}}"#;
    put("config", "hub", config.as_bytes())?;
    let method = paper(Base::FlexMatch(FlexMatch::default()));
    let samples = Samples::new(&method, 2, [3]).micro_batches.remove(0);
    put("samples", "shard", &write_unlabelled(&samples).map_err(std::io::Error::other)?)?;
    let labelled = LabelledSamples::new(&method, &[3, 5]).margins;
    put("samples", "labelled", &write_labelled(labelled.as_ref()).map_err(std::io::Error::other)?)?;
    for name in ["cifar10", "cpu-folder", "imagenet"] {
        put("recipe", name, &fs::read(here().join("../recipes").join(format!("{name}.toml")))?)?;
    }
    let parts = foreign_model::Parts::sample();
    put("onnx", "model", &parts.bytes())?;
    let entries = [("location", "model.onnx_data"), ("offset", "16"), ("length", "768")];
    let weight = foreign_model::external_tensor("conv.weight", &[4, 3, 4, 4], foreign_model::FLOAT, &entries);
    let initialisers = [vec![weight], parts.initialisers[1..].to_vec()].concat();
    put("onnx", "external", &foreign_model::Parts { initialisers, ..parts }.bytes())?;
    for name in ["table-1", "figure-1"] {
        put("sweep", name, &fs::read(here().join("../recipes/sweeps").join(format!("{name}.toml")))?)?;
    }
    Ok(())
}

fn here() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn put(target: &str, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    let folder = here().join("corpus").join(target);
    fs::create_dir_all(&folder)?;
    fs::write(Path::new(&folder).join(name), bytes)
}

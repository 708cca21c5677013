//! `calmix export`: writes a model as files that other programs run, without calmix and without configuration.
//!
//! The graph is built from the files of the run; the logits of the example come from the code that predicts.

pub(crate) mod card;
pub(crate) mod example;
pub(crate) mod export_folder;
pub(crate) mod hub;
pub(crate) mod metadata;
pub(crate) mod mlflow_model;
pub(crate) mod model_parts;
pub(crate) mod pytorch;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use calmix_io::safe_open;
use calmix_metrics::shift::ReferenceFeatures;
use calmix_onnx::error::OnnxError;
use calmix_onnx::model::OnnxModel;
use calmix_run::pretrained::config::CONFIG;
use calmix_run::read;
use calmix_run::run::RunFile;
use calmix_run::tensor_files::reference_file::MAX_REFERENCE_BYTES;

use self::card::Card;
use self::example::ExampleInput;
use self::export_folder::{Files, MODEL};
use self::metadata::{calibrator_of, metadata, thresholds};
use self::model_parts::ModelParts;
use crate::error::CliError;
use crate::model::files::ModelFiles;
use crate::model::options::ModelOptions;
use crate::output::format::shell_quoted;
use crate::predict::prediction_rule::PredictionRule;
use crate::predict::shift_check::ShiftCheck;
use crate::terminal::{print, warn};

/// The name of the file that new samples are compared with.
const REFERENCE: &str = "reference.safetensors";
/// The name of the model card.
const CARD: &str = "README.md";

/// A model to export.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Export<'a> {
    /// The name of the model in its card.
    pub name: &'a str,
    /// The folder of the run.
    pub run: &'a Path,
    /// The model and its guarantees.
    pub rule: &'a PredictionRule,
    /// What new samples are compared with.
    pub check: &'a ShiftCheck,
    /// The requested coverage and precision.
    pub options: &'a ModelOptions,
    pub purpose: Purpose<'a>,
}

/// Where the folder is going to be used.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Purpose<'a> {
    pub mlflow: bool,
    /// The licence in the model card on the Hub, if the folder is for the Hub.
    pub hub: Option<&'a str>,
}

/// Writes a model and its example into a new folder, and prints the files. `logits` are those that calmix computes for `input`,
/// in f32.
pub(crate) fn write(
    folder: &Path,
    export: &Export<'_>,
    (input, logits): (&ExampleInput, &[f32]),
) -> Result<()> {
    export_folder::write(folder, &files(export, (input, logits))?)?;
    print(&written(folder, export))
}

/// Returns the files of a model and its example.
pub(crate) fn files(export: &Export<'_>, (input, logits): (&ExampleInput, &[f32])) -> Result<Files> {
    let Export { name, run, rule, check, options, purpose } = *export;
    let model_files = ModelFiles::open(run)?;
    let parts = ModelParts::read(&model_files)?;
    let metadata = metadata(rule, options)?;
    let refused = |error: OnnxError| CliError::failed(model_files.wrong(error.to_string()).to_string());
    let graph = onnx(&parts, rule, check.features(), &metadata).map_err(refused)?;
    let mut files = vec![(PathBuf::from(MODEL), graph)];
    match pytorch::files(rule.info(), &parts, parts.weight_files(&model_files)?) {
        Ok(more) => files.extend(more),
        Err(why) => warn(&format!("no files for PyTorch are written: {why}")),
    }
    if check.detector().is_some() {
        let reference = safe_open::read(&model_files.path(RunFile::Reference)?, MAX_REFERENCE_BYTES)?;
        files.push((PathBuf::from(REFERENCE), reference));
    }
    // A copied model may lack these files.
    let has_summary = safe_open::exists(&model_files.path(RunFile::Summary)?);
    let summary = has_summary.then(|| read::summary(run)).transpose()?;
    let result = read::result(run)?;
    let diagram = if purpose.hub.is_some() && has_summary { hub::reliability_diagram(run)? } else { None };
    let card = Card {
        name,
        rule,
        options,
        summary: summary.as_ref(),
        result: result.as_ref(),
        licence: purpose.hub,
        diagram: diagram.is_some().then_some(hub::DIAGRAM),
    };
    files.push((PathBuf::from(CARD), card.text().into_bytes()));
    if let Some(diagram) = diagram {
        files.push((PathBuf::from(hub::DIAGRAM), diagram.into_bytes()));
    }
    if purpose.hub.is_some() {
        hub::add_config(&mut files, &metadata)?;
    }
    if purpose.mlflow {
        files.extend(mlflow_model::files(rule.info(), input)?);
    }
    for (name, bytes) in example::files(input, logits, rule)? {
        files.push((Path::new(example::FOLDER).join(name), bytes));
    }
    Ok(files)
}

/// Returns the bytes of `model.onnx`.
fn onnx(
    parts: &ModelParts,
    rule: &PredictionRule,
    reference: Option<&ReferenceFeatures>,
    metadata: &[(String, String)],
) -> Result<Vec<u8>, OnnxError> {
    let info = rule.info();
    let thresholds = thresholds(rule.guarantee(), info.classes.len());
    let model = OnnxModel {
        body: parts.body(),
        classes: info.classes.len(),
        calibrator: calibrator_of(info),
        thresholds: thresholds.as_ref(),
        reference,
        metadata,
    };
    model.to_bytes()
}

/// Describes the written files.
fn written(folder: &Path, export: &Export<'_>) -> String {
    let rule = export.rule;
    let info = rule.info();
    let classes = info.classes.len();
    let input = match info.pixels() {
        Some(pixels) => format!("images, u8, N × {0} × {0} × 3", pixels.size),
        None => format!("vectors, float32, N × {}", info.head.as_ref().map_or(0, |head| head.features)),
    };
    let guaranteed = if rule.guarantee().sets().is_some() { ", set, abstain" } else { "" };
    let config = match export.purpose.hub {
        Some(_) => "its notes as JSON, for the Hub",
        None => "for timm.create_model(\"local-dir:…\"), with model.safetensors",
    };
    let mut lines = vec![
        (MODEL, format!("input {input};")),
        ("", format!("outputs logits, probabilities, label, confidence{guaranteed}; {classes} classes")),
        (CARD, "model card: how to use it, what its outputs mean, metrics with intervals".to_owned()),
        (pytorch::MODULE, "its logits as a PyTorch module".to_owned()),
        (REFERENCE, "what `calmix.Model` compares new samples with".to_owned()),
        (CONFIG, config.to_owned()),
        (hub::DIAGRAM, "reliability diagram, in the model card".to_owned()),
        (mlflow_model::MODEL, "MLflow model, with requirements.txt and input_example.json".to_owned()),
        (example::FOLDER, "an example: inputs, and the outputs that calmix computes".to_owned()),
    ];
    lines.retain(|(name, _)| name.is_empty() || folder.join(name).exists());
    let lines: Vec<String> = lines.iter().map(|(name, what)| format!("  {name:<16} {what}\n")).collect();
    let mut text = format!("written to {}:\n{}", shell_quoted(folder), lines.concat());
    if export.purpose.mlflow {
        let _ =
            writeln!(text, "serve it: mlflow models serve -m {} --env-manager local", shell_quoted(folder));
    }
    if export.purpose.hub.is_some() {
        let repository = shell_quoted(&Path::new("OWNER").join(export.name));
        let _ = writeln!(text, "upload it: hf upload {repository} {}", shell_quoted(folder));
    }
    text
}

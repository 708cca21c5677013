//! The files of a model that reads vectors, written without training one.

use std::fs;
use std::path::Path;

use calmix::metrics::held_out::HeldOut;
use calmix::recipe::network::HeadKind;
use calmix::recipe::precision::Precision;
use calmix::run::label_draws::LabelDraws;
use calmix::run::model_info::{FORMAT, HeadInfo, ModelInfo};
use calmix::run::tensor_files::head_files::{head_bytes, projection_bytes};
use calmix_head::network::Head;
use calmix_head::projection::Projection;

/// Writes a linear head on a projection into a new folder, with valid hashes.
pub(crate) fn write_model(
    run: &Path,
    projection: &Projection,
    head: &Head,
    classes: Vec<String>,
    held_out: Option<HeldOut>,
) {
    fs::create_dir(run).unwrap();
    let below = projection_bytes(projection).unwrap();
    let mut info = ModelInfo {
        format: FORMAT,
        blake3: String::new(),
        model: None,
        classes,
        resize: 0,
        filter: String::new(),
        shrink: None,
        head: Some(HeadInfo {
            sets: Vec::new(),
            kind: HeadKind::Linear,
            precision: Precision::F32,
            runtime: String::new(),
            features: projection.width() as u32,
            dimensions: projection.dimensions() as u32,
            neighbours: 0,
            backbone: String::new(),
            encoder: None,
            projection: ModelInfo::hash(&below),
        }),
        calibration: None,
        held_out,
        calibration_blake3: String::new(),
        reference: String::new(),
        label_draws: LabelDraws::default(),
    };
    let weights = info.embed(&head_bytes(head).unwrap()).unwrap();
    fs::write(run.join("model.safetensors"), weights).unwrap();
    fs::write(run.join("projection.safetensors"), below).unwrap();
    fs::write(run.join("model.json"), serde_json::to_vec(&info).unwrap()).unwrap();
}

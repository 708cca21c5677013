//! Predictions of images: `files|scaled|views COUNT FOLDER`.
//!
//! - `files` does what `calmix predict` does, except for writing rows: two workers read ahead and decode a list of files, and
//!   the network predicts labels with calibrated confidence. `scaled` decodes large JPEGs to a fraction of their size.
//! - `views` runs the network alone on the same images, already decoded in memory: the upper limit for `files`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use calmix::model::{Model, ModelOptions};
use calmix_core::rng::Seed;
use calmix_data::image_list::{ImageList, ListedImages};
use calmix_data::loader::{EvalLoader, ImageViews, OnCorrupt, SampleIds, SampleStream, Workers};
use calmix_engine::engine::Engine;
use calmix_recipe::model_spec::ModelSpec;
use calmix_run::label_draws::LabelDraws;
use calmix_run::model_info::{FORMAT, ModelInfo};

use crate::step::settings;

/// The number of ONNX Runtime's threads, and of workers.
const THREADS: usize = 2;
const BATCH: usize = 64;
const SIZE: u32 = 32;

/// Prepares the case. A repetition predicts all images and returns the sum of their confidences.
pub(crate) fn prepare(case: &[&str]) -> Result<Box<dyn FnMut() -> Result<f32>>> {
    let &[what @ ("files" | "scaled" | "views"), count, folder] = case else {
        bail!("the cases of predict are `files|scaled|views COUNT FOLDER`, not {case:?}");
    };
    let count: usize = count.parse().with_context(|| format!("`{count}` is not a count"))?;
    let model = model()?;
    let side = if what == "scaled" { SIZE } else { u32::MAX };
    let found: Vec<PathBuf> =
        ImageList::of_paths(vec![Path::new(folder).to_owned()]).map(|image| image.path.into()).collect();
    let paths: Vec<PathBuf> = found.iter().cycle().take(count).cloned().collect();
    if what == "views" {
        let mut views = Vec::new();
        for batch in loader(&model, &paths, side)? {
            views.push(batch?.pixels.clone());
        }
        return Ok(Box::new(move || {
            let mut total = 0.0;
            for views in &views {
                total += model.logits(views)?.iter().sum::<f32>();
            }
            Ok(total)
        }));
    }
    Ok(Box::new(move || {
        let mut total = 0.0;
        for batch in loader(&model, &paths, side)? {
            let predictions = model.predict_views(&batch?.pixels)?;
            total += predictions.iter().map(|prediction| prediction.confidence).sum::<f32>();
        }
        Ok(total)
    }))
}

fn loader(model: &Model, paths: &[PathBuf], side: u32) -> Result<EvalLoader> {
    let images: Vec<_> = ImageList::of_paths(paths.to_vec()).collect();
    let stream = SampleStream { ids: SampleIds::from(0..images.len() as u64), batch: BATCH as u32 };
    let workers = Workers { threads: THREADS.try_into().context("no threads")?, ..Workers::default() };
    let source = Arc::new(ListedImages::new(images, side, 0));
    Ok(EvalLoader::new(
        ImageViews::new(source, Arc::clone(model.transform())),
        stream,
        OnCorrupt::Stop,
        workers,
    )?)
}

/// Returns WRN-28-2 with its initial weights: its outputs do not matter here.
fn model() -> Result<Model> {
    let settings = settings("lean")?;
    let weights = Engine::new(settings, Seed(1))?.snapshot()?.ema;
    let mut info = ModelInfo {
        format: FORMAT,
        blake3: String::new(),
        model: Some(ModelSpec { size: SIZE, ..settings.model }),
        classes: (0..settings.classes).map(|class| class.to_string()).collect(),
        resize: SIZE,
        shrink: None,
        filter: "bilinear".to_owned(),
        head: None,
        calibration: None,
        held_out: None,
        calibration_blake3: String::new(),
        reference: String::new(),
        label_draws: LabelDraws::default(),
    };
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("model.safetensors"), info.embed(&weights)?)?;
    std::fs::write(folder.path().join("model.json"), serde_json::to_vec(&info)?)?;
    let options = ModelOptions { threads: Some(THREADS), batch: BATCH, ..ModelOptions::default() };
    Ok(Model::load_with(folder.path(), &options)?)
}

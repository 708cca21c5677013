//! Features of a frozen backbone: `cache|backbone FOLDER`.
//!
//! - `cache` does what `calmix train --features-only` does: the loader's workers make five views of each image, and the
//!   backbone's features of them are written into a new cache.
//! - `backbone` runs the backbone alone on as many images of the same size in memory: the upper limit for `cache`.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::{Result, bail, ensure};
use calmix_core::rng::Seed;
use calmix_data::prepare::prepare as prepare_dataset;
use calmix_engine::engine::{Engine, Settings};
use calmix_heads::images::PagePart;
use calmix_heads::trainer;
use calmix_lifecycle::request::RunRequest;
use calmix_ort::image_network::ImageNetwork;
use calmix_ort::session::RunOn;
use calmix_recipe::device::Device;
use calmix_recipe::model_spec::ModelSpec;
use calmix_recipe::{Layers, Resolved};
use calmix_run::error::RunError;
use calmix_run::sink::{Sink, Work, WorkProgress};

use crate::step::settings;

/// The number of views per repetition, as in xtask/src/bench/catalogue.rs.
const VIEWS: usize = 640;
/// One clean, two weak and two strong views.
const VIEWS_PER_IMAGE: usize = 5;
/// The number of labelled images, one per class; none of them is also drawn as an unlabelled one.
const LABELLED: usize = 10;
/// The number of ONNX Runtime's threads.
const THREADS: usize = 2;
const NETWORK: &str = "tf_efficientnet_lite0";
const SIZE: u32 = 160;

static NEVER_STOP: AtomicBool = AtomicBool::new(false);

/// Prepares the case. A repetition returns the number of views.
pub(crate) fn prepare(case: &[&str]) -> Result<Box<dyn FnMut() -> Result<usize>>> {
    let &[what @ ("cache" | "backbone"), folder] = case else {
        bail!("the cases of features are `cache|backbone FOLDER`, not {case:?}");
    };
    let settings = settings("lean")?;
    let model = ModelSpec { network: NETWORK.parse()?, size: SIZE, ..settings.model };
    let settings = Settings { model, ..settings };
    // Initial weights: their values do not affect the speed.
    let weights = Engine::new(settings, Seed(1))?.snapshot()?.ema;
    if what == "backbone" {
        let model = ModelSpec { mean: [0.5; 3], std: [0.5; 3], ..model };
        let run_on = RunOn { threads: THREADS, device: Device::Cpu };
        let backbone = ImageNetwork::backbone(&model, &weights, run_on)?;
        let images: Vec<u8> = (0..VIEWS * model.image_bytes()).map(|n| (n * 7 % 251) as u8).collect();
        return Ok(Box::new(
            move || Ok(backbone.outputs(&images)?.features.len() / backbone.feature_width()),
        ));
    }
    let temp = tempfile::tempdir()?;
    let file = temp.path().join("model.safetensors");
    let table = temp.path().join("prepared");
    std::fs::write(&file, weights)?;
    let root = PathBuf::from(folder);
    let mut repetition = 0;
    let first = recipe(&root, &table, &file, &temp.path().join("0"))?.recipe;
    prepare_dataset(&first.dataset.source_spec(), &root, &table)?;
    Ok(Box::new(move || {
        repetition += 1;
        let cache = temp.path().join(repetition.to_string());
        let recipe = recipe(&root, &table, &file, &cache)?;
        let mut views = 0;
        trainer::make_features(
            RunRequest::new(&NEVER_STOP).sink(ViewCount(&mut views)),
            &recipe,
            PagePart::ALL,
        )?;
        ensure!(views == VIEWS as u64, "made {views} views, expected {VIEWS}");
        Ok(VIEWS)
    }))
}

/// Returns a recipe that trains on all images and evaluates on none.
fn recipe(root: &Path, table: &Path, weights: &Path, cache: &Path) -> Result<Resolved> {
    let path = |path: &Path| serde_json::json!(path).to_string();
    let layers = Layers::new()
        .recipe("head-cifar10")
        .set(&format!("dataset.path={}", path(root)))
        .set(&format!("dataset.prepared={}", path(table)))
        .set("dataset.test=\"\"")
        .set("labels.count=1")
        .set(&format!("labels.unlabelled_count={}", VIEWS / VIEWS_PER_IMAGE - LABELLED))
        .set(&format!("network.weights={}", path(weights)))
        .set(&format!("network.cache={}", path(cache)))
        .set(&format!("train.threads={THREADS}"));
    Ok(layers.resolve()?)
}

/// A sink that counts the views.
struct ViewCount<'a>(&'a mut u64);

impl Sink for ViewCount<'_> {
    fn work(&mut self, progress: &WorkProgress) -> Result<(), RunError> {
        if progress.work == Work::Features {
            *self.0 = progress.done;
        }
        Ok(())
    }
}

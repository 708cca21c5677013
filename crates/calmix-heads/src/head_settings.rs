//! The settings that a recipe gives a head, and the device, precision, threads and runtime that it is trained with.

use std::path::Path;

use calmix_core::rng::Seed;
use calmix_head::settings::{Candidates, HeadSettings};
use calmix_ort::library;
use calmix_recipe::device::Device;
use calmix_recipe::precision::Precision;
use calmix_recipe::{OrAuto, Recipe, Resolved};

use crate::error::HeadsError;

/// The engine that `environment.json` names for a run on vectors, which has no backbone.
const NO_BACKBONE: &str = "no libtorch";

/// Refuses a head that cannot be trained on this machine, before a large dataset is read in vain.
pub fn check(recipe: &Recipe) -> Result<(), HeadsError> {
    check_head(recipe)?;
    runtime(recipe)?;
    Ok(())
}

/// Refuses a recipe that does not train a head, or not here.
///
/// # Errors
/// If the recipe trains a whole network, or names a precision or a device that a frozen backbone does not run on.
pub(crate) fn check_head(recipe: &Recipe) -> Result<(), HeadsError> {
    if !recipe.has_head() {
        let sentence = "network.train = \"all\" trains a whole network, which `calmix train` of calmix-torch does; set \
                        network.train = \"head\" to train a head";
        return Err(HeadsError::unsupported(sentence.to_owned()));
    }
    // With the user's own vectors there is no backbone to run.
    if recipe.has_vectors() {
        return Ok(());
    }
    if let OrAuto::Is(precision @ (Precision::Bf16 | Precision::F16)) = recipe.train.precision {
        return Err(HeadsError::unsupported(format!(
            "train.precision = \"{precision}\": the backbone of a head runs in f32 only; leave the key out, or set it to \
             \"auto\""
        )));
    }
    if recipe.train.device == OrAuto::Is(Device::Mps) {
        let sentence = "train.device = \"mps\": the backbone of a head runs on \"cpu\" or \"cuda\"; leave the key out, or \
                        use `--device cpu`";
        return Err(HeadsError::unsupported(sentence.to_owned()));
    }
    Ok(())
}

/// Checks the recipe of an existing run as [`check_head`] does: earlier versions used libtorch and also computed features in bf16
/// and f16.
pub(crate) fn check_head_of(run: &Path, recipe: &Recipe) -> Result<(), HeadsError> {
    if let OrAuto::Is(precision @ (Precision::Bf16 | Precision::F16)) = recipe.train.precision
        && recipe.has_head()
        && !recipe.has_vectors()
    {
        return Err(HeadsError::OtherPrecision { path: run.to_owned(), precision });
    }
    check_head(recipe)
}

/// Sets the keys that the recipe of a head leaves open: `auto` becomes the CPU, since ONNX Runtime runs on a GPU only if the user
/// names it. Features and heads have the same bits on any number of threads.
pub(crate) fn decide_head(resolved: &mut Resolved, threads: u32) -> Result<(), HeadsError> {
    let device = match resolved.recipe.train.device {
        OrAuto::Is(device) if !resolved.recipe.has_vectors() => device,
        _ => Device::Cpu,
    };
    Ok(resolved.decide(device, Precision::F32, threads, 1)?)
}

/// Returns the engine of a head's run, with its version: ONNX Runtime, if there is a backbone to run. A GPU is named, since its
/// results differ from the CPU's in the last bits.
pub(crate) fn runtime(recipe: &Recipe) -> Result<String, HeadsError> {
    if recipe.has_vectors() {
        return Ok(NO_BACKBONE.to_owned());
    }
    let version = library::version()?;
    Ok(match recipe.train.device {
        OrAuto::Is(Device::Cuda(_)) => format!("{version}, cuda"),
        _ => version,
    })
}

pub fn head_settings(recipe: &Recipe) -> HeadSettings {
    let Recipe { train, optimiser, network, .. } = recipe;
    HeadSettings {
        method: recipe.method,
        hidden: network.head.hidden(),
        steps: recipe.steps(),
        batch: train.batch as usize,
        unlabelled_batch: recipe.unlabelled() as usize,
        lr: optimiser.lr,
        schedule: optimiser.schedule,
        momentum: optimiser.momentum,
        nesterov: optimiser.nesterov,
        weight_decay: optimiser.weight_decay,
        clip: Some(optimiser.clip).filter(|&clip| clip > 0.0),
        ema_decay: recipe.ema.decay,
        folds: network.folds as usize,
        candidates: if recipe.has_one_vector() { Candidates::OneVector } else { Candidates::Method },
        labels_alone: network.labels_alone,
        neighbours: network.neighbours,
        log_every: recipe.log.every,
        seed: Seed(train.seed),
    }
}

#[cfg(test)]
mod tests {
    use calmix_recipe::Layers;

    use super::*;

    fn refused(settings: &[&str]) -> Option<String> {
        let layers = Layers::new().set("network.train=head").set("network.weights=some");
        let layers = settings.iter().fold(layers, |layers, setting| layers.set(setting));
        check_head(&layers.resolve().unwrap().recipe).err().map(|error| error.to_string())
    }

    #[test]
    fn head_runs_in_f32_on_cpu_or_cuda() {
        for fine in [&[][..], &["train.precision=f32"], &["train.precision=auto"], &["train.device=cuda"]] {
            assert_eq!(refused(fine), None, "{fine:?}");
        }
        for (setting, expected) in [
            ("train.precision=bf16", "f32 only"),
            ("train.precision=f16", "f32 only"),
            ("train.device=mps", "--device cpu"),
            ("network.train=all", "whole network"),
        ] {
            let error = refused(&[setting]).unwrap();
            assert!(error.contains(expected), "{setting}: {error}");
        }
    }

    #[test]
    fn old_run_in_bf16_is_named() {
        let layers = Layers::new().set("network.train=head").set("train.precision=bf16");
        let recipe = layers.set("network.weights=some").resolve().unwrap().recipe;
        let error = check_head_of(Path::new("runs/old"), &recipe).unwrap_err().to_string();
        assert!(error.starts_with("runs/old: ") && error.contains("bf16"), "{error}");
    }

    #[test]
    fn automatic_device_is_the_cpu() {
        let mut resolved = Layers::new().set("network.train=head").resolve().unwrap();
        decide_head(&mut resolved, 3).unwrap();
        let train = &resolved.recipe.train;
        assert_eq!((train.device, train.threads), (OrAuto::Is(Device::Cpu), 3));
        assert_eq!(train.precision, OrAuto::Is(Precision::F32));
    }
}

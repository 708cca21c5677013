//! Checks of a model's description: it may come from an untrusted source, with valid hashes.

use calmix_metrics::calibrator::any_calibrator::Calibrator;
use calmix_metrics::held_out::HeldOut;
use calmix_run::model_info::ModelInfo;

/// The largest shift or scale of pixels, in units of 0 to 255: beyond it f32 overflows on the way through a network.
const LARGEST: f64 = 1e6;

/// Refuses implausible values in `model.json`, by key.
pub(super) fn check(info: &ModelInfo) -> Result<(), String> {
    if let Some(std) = info.model.std.iter().find(|&&std| !(1.0 / LARGEST..=LARGEST).contains(&std)) {
        return Err(format!("std has {std}, which is not between {} and {LARGEST}", 1.0 / LARGEST));
    }
    if let Some(mean) = info.model.mean.iter().find(|mean| !(-LARGEST..=LARGEST).contains(*mean)) {
        return Err(format!("mean has {mean}, which is not between -{LARGEST} and {LARGEST}"));
    }
    if let Some(eps) = info.model.norm_eps.filter(|eps| !(0.0..=LARGEST).contains(eps)) {
        return Err(format!("norm_eps is {eps}, which is not between 0 and {LARGEST}"));
    }
    let classes = info.classes.len();
    if let Some(calibration) = &info.calibration {
        calibrates(&calibration.calibrator, classes).map_err(|problem| format!("calibration: {problem}"))?;
    }
    match &info.held_out {
        Some(held_out) => scores(held_out, classes).map_err(|problem| format!("held_out: {problem}")),
        None => Ok(()),
    }
}

/// Checks that a calibrator gives finite probabilities for this number of classes.
fn calibrates(map: &Calibrator, classes: usize) -> Result<(), String> {
    let mut probabilities = vec![0.0; classes];
    map.probabilities_into(&vec![0.0; classes], &mut probabilities).map_err(|error| error.to_string())?;
    let is_one = (probabilities.iter().sum::<f32>() - 1.0).abs() < 1e-3;
    if is_one { Ok(()) } else { Err("its probabilities are not finite".to_owned()) }
}

/// Checks that labels and scores are in range.
fn scores(held_out: &HeldOut, classes: usize) -> Result<(), String> {
    if let Some(label) = held_out.label.iter().find(|&&label| label as usize >= classes) {
        return Err(format!("label {label} is not one of the {classes} classes"));
    }
    let mut all = held_out.lac.iter().chain(&held_out.aps);
    // Sums of probabilities may exceed 1 by rounding.
    match all.find(|score| !(-1e-3..=1.001).contains(*score)) {
        Some(score) => Err(format!("a score of {score}, which is not between 0 and 1")),
        None => Ok(()),
    }
}

//! Whether a description of a model can be meant: it may come from somebody else, with the right hashes.

use calmix_metrics::calibrator::any_calibrator::Calibrator;
use calmix_metrics::held_out::HeldOut;
use calmix_run::model_info::ModelInfo;

/// What pixels are shifted or scaled by, in parts of 0 to 255: beyond it f32 overflows on the way through a network.
const LARGEST: f64 = 1e6;

/// Says what in `model.json` cannot be meant, by its key.
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

/// Whether a calibrator takes the logits of so many classes.
fn calibrates(map: &Calibrator, classes: usize) -> Result<(), String> {
    let mut probabilities = vec![0.0; classes];
    map.probabilities_into(&vec![0.0; classes], &mut probabilities).map_err(|error| error.to_string())?;
    let is_one = (probabilities.iter().sum::<f32>() - 1.0).abs() < 1e-3;
    if is_one { Ok(()) } else { Err("its probabilities are not finite".to_owned()) }
}

/// Whether scores of labels are those of some probabilities.
fn scores(held_out: &HeldOut, classes: usize) -> Result<(), String> {
    if let Some(label) = held_out.label.iter().find(|&&label| label as usize >= classes) {
        return Err(format!("a label {label} of {classes} classes"));
    }
    let mut all = held_out.lac.iter().chain(&held_out.aps);
    // Sums of probabilities are rounded.
    match all.find(|score| !(-1e-3..=1.001).contains(*score)) {
        Some(score) => Err(format!("a score of {score}, which is not between 0 and 1")),
        None => Ok(()),
    }
}

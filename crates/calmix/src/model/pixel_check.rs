//! Checks of the pixel format in a model's description: it may come from an untrusted source, with valid hashes.

use calmix_run::model_info::PixelFormat;

/// The largest shift or scale of pixels, in units of 0 to 255: beyond it f32 overflows on the way through a network.
const LARGEST: f64 = 1e6;

/// Refuses implausible values in `model.json`, by key.
pub(super) fn check_pixels(pixels: &PixelFormat, norm_eps: Option<f64>) -> Result<(), String> {
    if let Some(std) = pixels.std.iter().find(|&&std| !(1.0 / LARGEST..=LARGEST).contains(&std)) {
        return Err(format!("std has {std}, which is not between {} and {LARGEST}", 1.0 / LARGEST));
    }
    if let Some(mean) = pixels.mean.iter().find(|mean| !(-LARGEST..=LARGEST).contains(*mean)) {
        return Err(format!("mean has {mean}, which is not between -{LARGEST} and {LARGEST}"));
    }
    match norm_eps.filter(|eps| !(0.0..=LARGEST).contains(eps)) {
        Some(eps) => Err(format!("norm_eps is {eps}, which is not between 0 and {LARGEST}")),
        None => Ok(()),
    }
}

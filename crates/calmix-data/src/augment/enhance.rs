//! Operations that blend an image with a degenerate version of itself, as Pillow's `ImageEnhance`.
//!
//! Factor 0 gives the degenerate version and 1 the image; factors above 1 extrapolate and clip.

use super::canvas::{Canvas, Scratch, refill};
use super::resize::Rgb;
use super::table::map_all;

/// Interpolates from `from` at factor 0 to `to` at factor 1, in f32 and truncated, as `ImagingBlend`.
fn blend(from: u8, to: u8, factor: f32) -> u8 {
    truncate(f32::from(from) + factor * (f32::from(to) - f32::from(from)))
}

/// Computes `x as u8` in steps that compilers turn into vector instructions.
fn truncate(x: f32) -> u8 {
    /// After adding this to a small number, the last bits hold the nearest whole number.
    const WHOLE: f32 = 8_388_608.0;
    let x = if x > 0.0 { x } else { 0.0 };
    let x = if x < 255.0 { x } else { 255.0 };
    let nearest = (x + WHOLE) - WHOLE;
    let floor = if nearest > x { nearest - 1.0 } else { nearest };
    (floor + WHOLE).to_bits() as u8
}

/// Blends channel by channel; `to` holds the image and receives the result.
fn blend_all(from: &[u8], to: &mut [u8], factor: f32) {
    for (from, to) in from.iter().zip(to) {
        *to = blend(*from, *to, factor);
    }
}

/// Computes the ITU-R 601 luma in 16.16 fixed point, as Pillow converts RGB to L.
fn luma([red, green, blue]: Rgb) -> u8 {
    let sum = u32::from(red) * 19_595 + u32::from(green) * 38_470 + u32::from(blue) * 7_471;
    ((sum + 0x8000) >> 16) as u8
}

/// Blends with black.
pub(super) fn brightness(canvas: &mut Canvas, factor: f64) {
    map_all(canvas.pixels, |value| blend(0, value, factor as f32));
}

/// Blends with the grey of the mean luma.
pub(super) fn contrast(canvas: &mut Canvas, factor: f64) {
    let sum: u64 = canvas.pixels.iter().map(|&pixel| u64::from(luma(pixel))).sum();
    let mean = (sum as f64 / canvas.pixels.len() as f64 + 0.5) as u8;
    map_all(canvas.pixels, |value| blend(mean, value, factor as f32));
}

/// Blends with the grey image.
pub(super) fn colour(canvas: &mut Canvas, factor: f64, scratch: &mut Scratch) {
    let grey = &mut scratch.before;
    grey.clear();
    grey.extend(canvas.pixels.iter().map(|&pixel| [luma(pixel); 3]));
    blend_all(grey.as_flattened(), canvas.pixels.as_flattened_mut(), factor as f32);
}

/// Blends with the image smoothed by the kernel (1 1 1, 1 5 1, 1 1 1)/13, which leaves the border unchanged.
pub(super) fn sharpness(canvas: &mut Canvas, factor: f64, scratch: &mut Scratch) {
    let Canvas { width, height, ref mut pixels } = *canvas;
    if width < 3 || height < 3 {
        return;
    }
    let Scratch { before, sums, row: smooth, .. } = scratch;
    refill(before, pixels);
    let stride = 3 * width;
    let before = before.as_flattened();
    let inner_rows = pixels.as_flattened_mut()[stride..].chunks_exact_mut(stride);
    for (y, row) in inner_rows.take(height - 2).enumerate() {
        let above = &before[y * stride..][..3 * stride];
        let (above, rest) = above.split_at(stride);
        let (middle, below) = rest.split_at(stride);
        sums.clear();
        sums.extend(above.iter().zip(middle).zip(below).map(|((a, b), c)| three(*a, *b, *c)));
        smooth.clear();
        let columns = sums.iter().zip(&sums[3..]).zip(&sums[6..]).zip(&middle[3..]);
        smooth.extend(columns.map(|(((left, here), right), centre)| {
            let sum = left + here + right + 4 * u16::from(*centre);
            // Rounded to nearest. Pillow sums in f32, but sum/13 is never within 1/26 of a half, which is far more than its
            // rounding errors, so integers give the same result.
            ((2 * sum + 13) / 26) as u8
        }));
        blend_all(smooth, &mut row[3..stride - 3], factor as f32);
    }
}

fn three(a: u8, b: u8, c: u8) -> u16 {
    u16::from(a) + u16::from(b) + u16::from(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncation_equals_the_cast() {
        let around = |x: f32| [x.next_down(), x, x.next_up()];
        let whole = (-300_i16..600).map(|x| f32::from(x) / 2.0);
        let special = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MIN_POSITIVE, -0.0];
        for x in whole.flat_map(around).chain(special) {
            assert_eq!(truncate(x), x as u8, "{x}");
        }
    }
}

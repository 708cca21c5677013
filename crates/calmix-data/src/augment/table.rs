//! Operations that map each channel's value through a table, as Pillow's `ImageOps`.

use super::canvas::Canvas;
use super::resize::Rgb;

type LookupTable = [u8; 256];

/// Counts the values of each channel.
fn histograms(pixels: &[Rgb]) -> [[u32; 256]; 3] {
    let mut counts = [[0; 256]; 3];
    for &[red, green, blue] in pixels {
        counts[0][usize::from(red)] += 1;
        counts[1][usize::from(green)] += 1;
        counts[2][usize::from(blue)] += 1;
    }
    counts
}

fn map_channels(pixels: &mut [Rgb], [reds, greens, blues]: &[LookupTable; 3]) {
    for [red, green, blue] in pixels {
        *red = reds[usize::from(*red)];
        *green = greens[usize::from(*green)];
        *blue = blues[usize::from(*blue)];
    }
}

/// Maps every channel of every pixel through the same table.
pub(super) fn map_all(pixels: &mut [Rgb], value: impl Fn(u8) -> u8) {
    let table: LookupTable = std::array::from_fn(|old| value(old as u8));
    for channel in pixels.as_flattened_mut() {
        *channel = table[usize::from(*channel)];
    }
}

fn unchanged() -> LookupTable {
    std::array::from_fn(|value| value as u8)
}

/// Stretches each channel so that its darkest value becomes 0 and its lightest 255.
pub(super) fn autocontrast(canvas: &mut Canvas) {
    let tables = histograms(canvas.pixels).map(|counts| {
        let lowest = counts.iter().position(|&count| count > 0).unwrap_or(0);
        let highest = counts.iter().rposition(|&count| count > 0).unwrap_or(0);
        if highest <= lowest {
            return unchanged();
        }
        let scale = 255.0 / (highest - lowest) as f64;
        let offset = -(lowest as f64) * scale;
        // The cast truncates and saturates, which is Pillow's `int` followed by its clipping.
        std::array::from_fn(|value| (value as f64 * scale + offset) as u8)
    });
    map_channels(canvas.pixels, &tables);
}

/// Flattens the histogram of each channel.
pub(super) fn equalise(canvas: &mut Canvas) {
    let tables = histograms(canvas.pixels).map(|counts| {
        let last = counts.iter().rfind(|&&count| count > 0).copied().unwrap_or(0);
        // Zero also where a channel has a single value.
        let step = (counts.iter().sum::<u32>() - last) / 255;
        if step == 0 {
            return unchanged();
        }
        // ⌊(step/2 + pixels below)/step⌋, kept as quotient and remainder.
        let (mut level, mut rest) = (0, step / 2);
        counts.map(|count| {
            let here = level;
            rest += count;
            while rest >= step && level < 255 {
                rest -= step;
                level += 1;
            }
            here
        })
    });
    map_channels(canvas.pixels, &tables);
}

/// Keeps the highest `bits` bits of each channel, one to eight of them.
pub(super) fn posterise(canvas: &mut Canvas, bits: u32) {
    let mask = u8::MAX << (8 - bits.clamp(1, 8));
    for channel in canvas.pixels.as_flattened_mut() {
        *channel &= mask;
    }
}

/// Inverts every value that is not below `threshold`.
pub(super) fn solarise(canvas: &mut Canvas, threshold: f64) {
    // For integer values, `value < threshold` is equivalent to `value < ⌈threshold⌉`.
    let threshold = threshold.ceil() as u16;
    for channel in canvas.pixels.as_flattened_mut() {
        *channel = if u16::from(*channel) < threshold { *channel } else { 255 - *channel };
    }
}

//! Resizing as Pillow does it for 8-bit images: two passes with fixed-point weights, and bytes between the passes.
//!
//! When an image shrinks, the filter widens accordingly, so that every pixel counts.
//!
//! Written by hand because the bytes must be Pillow's: fast_image_resize rounds its weights as pillow-simd does. The two
//! have not been compared for speed.

use std::ops::Range;

use calmix_core::settings::choice;
use calmix_formats::image::Image;

/// A pixel: red, green, blue.
pub(super) type Rgb = [u8; 3];

/// The buffers of a resize.
#[derive(Debug, Default)]
pub(super) struct ResizeScratch {
    pub(super) across: Taps,
    pub(super) down: Taps,
    /// The result of the first pass.
    pub(super) between: Vec<u8>,
}

choice! {
    /// How pixels are weighted.
    Filter = Bilinear {
        /// A triangle, one pixel to each side.
        Bilinear = "bilinear",
        /// Keys' cubic, two pixels to each side.
        ///
        /// With a = −½.
        Bicubic = "bicubic",
    }
}

impl Filter {
    fn support(self) -> f64 {
        match self {
            Self::Bilinear => 1.0,
            Self::Bicubic => 2.0,
        }
    }

    fn weight(self, x: f64) -> f64 {
        let x = x.abs();
        match self {
            Self::Bilinear if x < 1.0 => 1.0 - x,
            Self::Bicubic if x < 1.0 => (1.5 * x - 2.5) * x * x + 1.0,
            Self::Bicubic if x < 2.0 => (((x - 5.0) * x + 8.0) * x - 4.0) * -0.5,
            _ => 0.0,
        }
    }
}

/// Fraction bits of a weight: 32 minus 8 for the value and 2 for the overshoot of a cubic.
const FRACTION: u32 = 22;

/// The source pixels and the weights of each target pixel.
#[derive(Debug, Default)]
pub(super) struct Taps {
    /// The first source pixel of each target pixel, relative to the first source pixel that any of them needs.
    starts: Vec<usize>,
    /// The number of source pixels per target pixel: the same for all, so that loops are predictable.
    count: usize,
    /// `count` weights for each target pixel, some of them zero.
    weights: Vec<i32>,
    /// Weights of one pixel before normalisation.
    raw: Vec<f64>,
}

impl Taps {
    /// Computes the taps of the target pixels `wanted`, and returns the range of source pixels that they need.
    fn prepare(
        &mut self,
        filter: Filter,
        source: usize,
        target: usize,
        wanted: Range<usize>,
    ) -> Range<usize> {
        let scale = source as f64 / target as f64;
        let stretch = scale.max(1.0);
        let (support, inverse) = (filter.support() * stretch, 1.0 / stretch);
        let centre = |pixel: usize| (pixel as f64 + 0.5) * scale;
        let span = |pixel: usize| {
            let first = (centre(pixel) - support + 0.5).max(0.0) as usize;
            first..((centre(pixel) + support + 0.5) as usize).min(source)
        };
        let count = wanted.clone().map(|pixel| span(pixel).len()).max().unwrap_or(0);
        // A window that is longer than needed starts earlier, so that it ends inside the source.
        let start = |pixel: usize| span(pixel).start.min(source - count);
        let used = start(wanted.start)..start(wanted.end.saturating_sub(1)) + count;
        self.count = count;
        self.starts.clear();
        self.weights.clear();
        self.weights.resize(count * wanted.len(), 0);
        for (pixel, weights) in wanted.zip(self.weights.chunks_exact_mut(count.max(1))) {
            let span = span(pixel);
            let skipped = span.start - start(pixel);
            self.starts.push(start(pixel) - used.start);
            let weight = |x: usize| filter.weight((x as f64 - centre(pixel) + 0.5) * inverse);
            self.raw.clear();
            self.raw.extend(span.map(weight));
            let sum: f64 = self.raw.iter().sum();
            for (fixed_weight, weight) in weights[skipped..].iter_mut().zip(&self.raw) {
                *fixed_weight = fixed(weight / sum);
            }
        }
        used
    }

    /// Iterates over the first source pixel and the weights of each target pixel.
    fn iter(&self) -> impl Iterator<Item = (usize, &[i32])> {
        self.starts.iter().copied().zip(self.weights.chunks_exact(self.count.max(1)))
    }
}

fn fixed(weight: f64) -> i32 {
    let scaled = weight * f64::from(1 << FRACTION);
    (if weight < 0.0 { scaled - 0.5 } else { scaled + 0.5 }) as i32
}

const HALF: i32 = 1 << (FRACTION - 1);

fn to_byte(sum: i32) -> u8 {
    (sum >> FRACTION).clamp(0, 255) as u8
}

/// A rectangle of RGB pixels inside a larger image; its first row starts at the beginning of `bytes`.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) bytes: &'a [u8],
    /// Bytes from a row to the next.
    pub(super) stride: usize,
    pub(super) width: usize,
    pub(super) height: usize,
}

impl<'a> View<'a> {
    pub(super) fn row(&self, y: usize) -> &'a [u8] {
        &self.bytes[y * self.stride..][..3 * self.width]
    }

    fn part(&self, columns: &Range<usize>, rows: &Range<usize>) -> Self {
        let bytes = &self.bytes[rows.start * self.stride + 3 * columns.start..];
        Self { bytes, stride: self.stride, width: columns.len(), height: rows.len() }
    }

    fn over(bytes: &'a [u8], width: usize, height: usize) -> Self {
        Self { bytes, stride: 3 * width, width, height }
    }
}

/// Resizes `source` to `target` (width, height), computing only the requested columns and rows.
pub(super) fn resize(
    source: View,
    target: [usize; 2],
    [columns, rows]: [Range<usize>; 2],
    filter: Filter,
    scratch: &mut ResizeScratch,
    out: &mut Vec<u8>,
) {
    let ResizeScratch { across, down, between } = scratch;
    let (width, height) = (columns.len(), rows.len());
    let [same_width, same_height] = [source.width == target[0], source.height == target[1]];
    let used_columns = across.prepare(filter, source.width, target[0], columns.clone());
    let used_rows = down.prepare(filter, source.height, target[1], rows.clone());
    if same_width {
        pass_down(source.part(&columns, &used_rows), down, out);
    } else if same_height {
        pass_across(source.part(&used_columns, &rows), across, out);
    } else if down_first(&source, target) {
        pass_down(source.part(&used_columns, &used_rows), down, between);
        pass_across(View::over(between, used_columns.len(), height), across, out);
    } else {
        pass_across(source.part(&used_columns, &used_rows), across, between);
        pass_down(View::over(between, width, used_rows.len()), down, out);
    }
}

/// Resizes a whole image.
pub(crate) fn resized(image: &Image, width: u32, height: u32, filter: Filter) -> Image {
    let (from, to) = ([image.width(), image.height()], [width, height].map(|side| side as usize));
    let [w, h] = from.map(|side| side as usize);
    let (mut scratch, mut pixels) = (ResizeScratch::default(), Vec::new());
    let source = View::over(image.pixels(), w, h);
    resize(source, to, [0..to[0], 0..to[1]], filter, &mut scratch, &mut pixels);
    Image::new(width, height, pixels).unwrap_or_else(|| image.clone())
}

/// Returns whether the vertical pass comes first. The order affects the last bit, because the bytes between the passes are
/// rounded. From version 13, Pillow starts with the rows if the height shrinks by more than twice the factor of the width.
fn down_first(source: &View, [width, height]: [usize; 2]) -> bool {
    let lost = source.height.saturating_sub(height);
    lost > 2 * source.width.saturating_sub(width)
}

fn pass_across(from: View, taps: &Taps, out: &mut Vec<u8>) {
    // If the number of taps is known at compile time, they are added up without a loop.
    let across = match taps.count {
        2 => across_by::<2>,
        3 => across_by::<3>,
        4 => across_by::<4>,
        5 => across_by::<5>,
        6 => across_by::<6>,
        7 => across_by::<7>,
        8 => across_by::<8>,
        _ => across_by_any,
    };
    let stride = 3 * taps.starts.len();
    out.resize(from.height * stride, 0);
    for (y, row) in out.chunks_exact_mut(stride).enumerate() {
        across(from.row(y).as_chunks().0, taps, row.as_chunks_mut().0);
    }
}

fn across_by<const COUNT: usize>(from: &[Rgb], taps: &Taps, row: &mut [Rgb]) {
    let (weights, _) = taps.weights.as_chunks::<COUNT>();
    for ((start, weights), pixel) in taps.starts.iter().zip(weights).zip(row) {
        if let Some(window) = from[*start..].first_chunk::<COUNT>() {
            *pixel = weigh(window, weights);
        }
    }
}

fn across_by_any(from: &[Rgb], taps: &Taps, row: &mut [Rgb]) {
    for ((start, weights), pixel) in taps.iter().zip(row) {
        *pixel = weigh(&from[start..], weights);
    }
}

#[inline]
fn weigh(window: &[Rgb], weights: &[i32]) -> Rgb {
    let mut sums = [HALF; 3];
    for (pixel, weight) in window.iter().zip(weights) {
        for (sum, value) in sums.iter_mut().zip(pixel) {
            *sum += i32::from(*value) * weight;
        }
    }
    sums.map(to_byte)
}

fn pass_down(from: View, taps: &Taps, out: &mut Vec<u8>) {
    const LANES: usize = 16;
    let stride = 3 * from.width;
    out.resize(taps.starts.len() * stride, 0);
    for ((first, weights), row) in taps.iter().zip(out.chunks_exact_mut(stride)) {
        let rows = &from.bytes[first * from.stride..];
        let (chunks, rest) = row.as_chunks_mut::<LANES>();
        let mut start = 0;
        for chunk in chunks {
            *chunk = mix(&rows[start..], from.stride, weights);
            start += LANES;
        }
        for byte in rest {
            [*byte] = mix(&rows[start..], from.stride, weights);
            start += 1;
        }
    }
}

/// Sums columns of `N` bytes, with a row every `stride` bytes, by their weights.
///
/// A weight is split into halves of at most sixteen bits, whose products vector instructions add up directly.
fn mix<const N: usize>(rows: &[u8], stride: usize, weights: &[i32]) -> [u8; N] {
    const LOW: u32 = 11;
    let (mut high_sums, mut low_sums) = ([0; N], [HALF; N]);
    for (row, weight) in rows.chunks(stride).zip(weights) {
        let Some(row) = row.first_chunk::<N>() else { break };
        let (high, low) = ((weight >> LOW) as i16, (weight & ((1 << LOW) - 1)) as i16);
        for i in 0..N {
            let value = i32::from(row[i]);
            high_sums[i] += value * i32::from(high);
            low_sums[i] += value * i32::from(low);
        }
    }
    std::array::from_fn(|i| to_byte((high_sums[i] << LOW) + low_sums[i]))
}

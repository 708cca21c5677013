//! Resizing as Pillow does it for eight bits: two passes, weights in fixed point, a byte between the passes.
//!
//! When a picture shrinks, the filter widens with it, so that every pixel counts.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::canvas::{ResizeScratch, Rgb};

/// How pixels are weighted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Filter {
    /// A triangle, one pixel to each side.
    #[default]
    Bilinear,
    /// Keys' cubic with a = −½, two pixels to each side.
    Bicubic,
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

/// Fraction bits of a weight: 32 less 8 for the value and 2 for what a cubic overshoots.
const FRACTION: u32 = 22;

/// For each target pixel, which source pixels make it and with what weights.
#[derive(Debug, Default)]
pub(super) struct Taps {
    /// The source pixels that make each target pixel.
    windows: Vec<Range<usize>>,
    /// The first source pixel of each target pixel, counted from the first one that is used at all.
    firsts: Vec<usize>,
    /// So many weights for each target pixel: where the window is shorter, the others are zero.
    count: usize,
    weights: Vec<i32>,
    /// Weights of one pixel before they are scaled to one.
    raw: Vec<f64>,
}

impl Taps {
    /// For the pixels `wanted` of `target`, from `source` pixels; gives those of the source that are used.
    fn prepare(
        &mut self,
        filter: Filter,
        source: usize,
        target: usize,
        wanted: Range<usize>,
    ) -> Range<usize> {
        let scale = source as f64 / target as f64;
        let stretch = scale.max(1.0);
        let support = filter.support() * stretch;
        let inverse = 1.0 / stretch;
        let centre = |pixel: usize| (pixel as f64 + 0.5) * scale;
        self.windows.clear();
        self.windows.extend(wanted.clone().map(|pixel| {
            let first = (centre(pixel) - support + 0.5).max(0.0) as usize;
            first..((centre(pixel) + support + 0.5) as usize).min(source)
        }));
        let used = match (self.windows.first(), self.windows.last()) {
            (Some(first), Some(last)) => first.start..last.end,
            _ => 0..0,
        };
        self.count = self.windows.iter().map(Range::len).max().unwrap_or(0);
        self.firsts.clear();
        self.weights.clear();
        for (pixel, window) in wanted.zip(&self.windows) {
            self.raw.clear();
            let weight = |x: usize| filter.weight((x as f64 - centre(pixel) + 0.5) * inverse);
            self.raw.extend(window.clone().map(weight));
            let sum: f64 = self.raw.iter().sum();
            // The last windows are lengthened to the left.
            let first = window.start.min(used.end - self.count);
            self.weights.resize(self.weights.len() + window.start - first, 0);
            self.weights.extend(self.raw.iter().map(|weight| fixed(weight / sum)));
            self.firsts.push(first - used.start);
            self.weights.resize(self.firsts.len() * self.count, 0);
        }
        used
    }

    /// The first source pixel and the weights of each target pixel.
    fn iter(&self) -> impl Iterator<Item = (usize, &[i32])> {
        self.firsts.iter().copied().zip(self.weights.chunks_exact(self.count.max(1)))
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

/// A rectangle of RGB pixels inside a larger picture: its first row begins with `bytes`.
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

/// Resizes `source` to `target` (width, height), but computes only the columns and rows asked for.
pub(super) fn resize(
    source: View,
    target: [usize; 2],
    [columns, rows]: [Range<usize>; 2],
    filter: Filter,
    scratch: &mut ResizeScratch,
    out: &mut Vec<u8>,
) {
    let ResizeScratch { across, down, between, .. } = scratch;
    let (width, height) = (columns.len(), rows.len());
    let used_columns = across.prepare(filter, source.width, target[0], columns);
    let used_rows = down.prepare(filter, source.height, target[1], rows);
    let source_part = source.part(&used_columns, &used_rows);
    if down_first(&source, target) {
        pass_down(source_part, down, between);
        pass_across(View::over(between, used_columns.len(), height), across, out);
    } else {
        pass_across(source_part, across, between);
        pass_down(View::over(between, width, used_rows.len()), down, out);
    }
}

/// Which pass is first shows in the last bit, because the bytes between the passes are rounded. From version
/// 13 on, Pillow begins with the rows where the height loses more than twice what the width loses.
fn down_first(source: &View, [width, height]: [usize; 2]) -> bool {
    let lost = source.height.saturating_sub(height);
    lost > 2 * source.width.saturating_sub(width)
}

fn pass_across(from: View, taps: &Taps, out: &mut Vec<u8>) {
    // With their number known to the compiler, the taps of a pixel are added up without a loop.
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
    let stride = 3 * taps.firsts.len();
    out.resize(from.height * stride, 0);
    for (y, row) in out.chunks_exact_mut(stride).enumerate() {
        across(from.row(y).as_chunks().0, taps, row.as_chunks_mut().0);
    }
}

fn across_by<const COUNT: usize>(from: &[Rgb], taps: &Taps, row: &mut [Rgb]) {
    let (weights, _) = taps.weights.as_chunks::<COUNT>();
    for ((first, weights), pixel) in taps.firsts.iter().zip(weights).zip(row) {
        if let Some(window) = from[*first..].first_chunk::<COUNT>() {
            *pixel = weighed(window, weights);
        }
    }
}

fn across_by_any(from: &[Rgb], taps: &Taps, row: &mut [Rgb]) {
    for ((first, weights), pixel) in taps.iter().zip(row) {
        *pixel = weighed(&from[first..], weights);
    }
}

#[inline]
fn weighed(window: &[Rgb], weights: &[i32]) -> Rgb {
    let mut sums = [HALF; 3];
    for (pixel, weight) in window.iter().zip(weights) {
        for (sum, value) in sums.iter_mut().zip(pixel) {
            *sum += i32::from(*value) * weight;
        }
    }
    sums.map(to_byte)
}

/// Low bits of a weight that is split in two.
const LOW: u32 = FRACTION / 2;

fn pass_down(from: View, taps: &Taps, out: &mut Vec<u8>) {
    const LANES: usize = 16;
    let stride = 3 * from.width;
    out.resize(taps.firsts.len() * stride, 0);
    for ((first, weights), row) in taps.iter().zip(out.chunks_exact_mut(stride)) {
        let (chunks, rest) = row.as_chunks_mut::<LANES>();
        for (n, chunk) in chunks.iter_mut().enumerate() {
            // The high and the low half of each weight fit 16 bits, for which every machine has a vector
            // multiplication.
            let (mut high, mut low) = ([0; LANES], [HALF; LANES]);
            for (y, weight) in (first..).zip(weights).filter(|(_, weight)| **weight != 0) {
                let [of_high, of_low] = [weight >> LOW, weight & ((1 << LOW) - 1)].map(|half| half as i16);
                let Some(values) = from.row(y)[n * LANES..].first_chunk::<LANES>() else { continue };
                for ((high, low), value) in high.iter_mut().zip(&mut low).zip(values) {
                    *high += i32::from(*value) * i32::from(of_high);
                    *low += i32::from(*value) * i32::from(of_low);
                }
            }
            for ((byte, high), low) in chunk.iter_mut().zip(high).zip(low) {
                *byte = to_byte((high << LOW) + low);
            }
        }
        let start = stride - rest.len();
        for (x, byte) in (start..).zip(rest) {
            let values = (first..).zip(weights).filter(|(_, weight)| **weight != 0);
            *byte = to_byte(values.map(|(y, weight)| i32::from(from.row(y)[x]) * weight).sum::<i32>() + HALF);
        }
    }
}

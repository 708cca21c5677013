//! Resizing as Pillow does it for eight bits: two passes, weights in fixed point, a byte between the passes.
//!
//! When a picture shrinks, the filter widens with it, so that every pixel counts.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::canvas::ResizeScratch;

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
    /// The first source pixel, counted from the first one that is used at all, and the range of its weights.
    spans: Vec<(usize, Range<usize>)>,
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
        self.spans.clear();
        self.weights.clear();
        let scale = source as f64 / target as f64;
        let stretch = scale.max(1.0);
        let support = filter.support() * stretch;
        let inverse = 1.0 / stretch;
        let mut used: Option<Range<usize>> = None;
        for pixel in wanted {
            let centre = (pixel as f64 + 0.5) * scale;
            let first = (centre - support + 0.5).max(0.0) as usize;
            let end = ((centre + support + 0.5) as usize).min(source);
            self.raw.clear();
            self.raw.extend((first..end).map(|x| filter.weight((x as f64 - centre + 0.5) * inverse)));
            let sum: f64 = self.raw.iter().sum();
            let from = self.weights.len();
            self.weights.extend(self.raw.iter().map(|weight| fixed(weight / sum)));
            let used = used.get_or_insert(first..end);
            used.end = end;
            self.spans.push((first - used.start, from..self.weights.len()));
        }
        used.unwrap_or(0..0)
    }

    /// The first source pixel and the weights of each target pixel.
    fn iter(&self) -> impl Iterator<Item = (usize, &[i32])> {
        self.spans.iter().map(|(first, weights)| (*first, &self.weights[weights.clone()]))
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
    let stride = 3 * taps.spans.len();
    out.resize(from.height * stride, 0);
    for (y, row) in out.chunks_exact_mut(stride).enumerate() {
        let (from, _) = from.row(y).as_chunks::<3>();
        let (row, _) = row.as_chunks_mut::<3>();
        for ((first, weights), pixel) in taps.iter().zip(row) {
            let mut sums = [HALF; 3];
            for (source, weight) in from[first..].iter().zip(weights) {
                for (sum, value) in sums.iter_mut().zip(source) {
                    *sum += i32::from(*value) * weight;
                }
            }
            *pixel = sums.map(to_byte);
        }
    }
}

fn pass_down(from: View, taps: &Taps, out: &mut Vec<u8>) {
    const LANES: usize = 16;
    let stride = 3 * from.width;
    out.resize(taps.spans.len() * stride, 0);
    for ((first, weights), row) in taps.iter().zip(out.chunks_exact_mut(stride)) {
        let mut start = 0;
        for chunk in row.chunks_mut(LANES) {
            let mut sums = [HALF; LANES];
            for (y, weight) in (first..).zip(weights) {
                for (sum, value) in sums.iter_mut().zip(&from.row(y)[start..start + chunk.len()]) {
                    *sum += i32::from(*value) * weight;
                }
            }
            for (byte, sum) in chunk.iter_mut().zip(sums) {
                *byte = to_byte(sum);
            }
            start += LANES;
        }
    }
}

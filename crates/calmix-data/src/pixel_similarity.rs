//! Detects copies of an image by pixels: flipped, brighter, shifted or cropped ones.
//!
//! Both images are compared as small grey thumbnails, by the largest normalised cross-correlation over shifts, scales and
//! flips. It is invariant to brightness and contrast, and distinct photos seldom reach the threshold. Drawings do: most
//! images of a handwritten digit correlate above 0.9 with another image of that digit, so this comparison alone does not
//! prove that two images are copies.

use calmix_core::lanes;
use calmix_formats::image::Image;

use crate::augment::{Filter, resized};

/// The side of the thumbnails, in pixels.
pub const SIDE: usize = 32;
/// The sides to which a thumbnail is shrunk when it is searched for in another: from nearly the whole to a crop of three
/// quarters.
const CROPS: [usize; 5] = [30, 28, 26, 25, 24];
/// The maximum shift between two images: an eighth of a side.
const SHIFT: isize = 4;
/// The minimum correlation of copies.
const MIN_CORRELATION: f64 = 0.9;
/// The minimum standard deviation of the grey values (of 255) in a compared region: a plain region is similar to any other.
const MIN_DEVIATION: f64 = 2.0;

/// A thumbnail for comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct GreyThumbnail {
    side: usize,
    pixels: Vec<f32>,
    /// Summed-area tables of the pixels and of their squares.
    sums: Vec<[f64; 2]>,
}

/// A rectangle of a thumbnail: its top left corner, height and width.
#[derive(Debug, Clone, Copy)]
struct Region {
    top: usize,
    left: usize,
    height: usize,
    width: usize,
}

impl GreyThumbnail {
    /// Makes the thumbnail of an image.
    pub fn of(image: &Image) -> Self {
        let small = resized(image, SIDE as u32, SIDE as u32, Filter::Bilinear);
        let grey = |rgb: &[u8]| rgb.iter().copied().map(f32::from).sum::<f32>() / 3.0;
        Self::new(SIDE, small.pixels().chunks_exact(3).map(grey).collect())
    }

    fn new(side: usize, pixels: Vec<f32>) -> Self {
        let mut sums = vec![[0.0; 2]; (side + 1) * (side + 1)];
        for (row, pixels) in pixels.chunks_exact(side).enumerate() {
            let mut of_row = [0.0; 2];
            for (column, &pixel) in pixels.iter().enumerate() {
                let pixel = f64::from(pixel);
                of_row = [of_row[0] + pixel, of_row[1] + pixel * pixel];
                let above = sums[row * (side + 1) + column + 1];
                sums[(row + 1) * (side + 1) + column + 1] = [above[0] + of_row[0], above[1] + of_row[1]];
            }
        }
        Self { side, pixels, sums }
    }

    /// Returns whether two images are copies of each other.
    pub fn is_copy_of(&self, other: &Self) -> bool {
        let flipped = other.flipped();
        let mut pairs = [(self, other), (self, &flipped)].into_iter();
        pairs.any(|(a, b)| is_shifted(a, b) || is_crop(a, b) || is_crop(b, a))
    }

    fn flipped(&self) -> Self {
        let rows = self.pixels.chunks_exact(self.side);
        Self::new(self.side, rows.flat_map(|row| row.iter().rev()).copied().collect())
    }

    /// Shrinks the thumbnail; each pixel is the mean of the area that it covers.
    fn shrunk(&self, side: usize) -> Self {
        let shrunk_rows = self.pixels.chunks_exact(SIDE).map(|row| shrunk_line(row.iter().copied(), side));
        let rows: Vec<f32> = shrunk_rows.flatten().collect();
        let mut pixels = vec![0.0; side * side];
        for column in 0..side {
            let line = rows.iter().skip(column).step_by(side).copied();
            for (row, pixel) in shrunk_line(line, side).into_iter().enumerate() {
                pixels[row * side + column] = pixel;
            }
        }
        Self::new(side, pixels)
    }

    /// Returns the mean and the variance of a region.
    fn moments(&self, region: Region) -> [f64; 2] {
        let Region { top, left, height, width } = region;
        let corner = |row: usize, column: usize| self.sums[row * (self.side + 1) + column];
        let corners = [
            corner(top + height, left + width),
            corner(top, left),
            corner(top, left + width),
            corner(top + height, left),
        ];
        let count = (height * width) as f64;
        let [mean, square] =
            [0, 1].map(|n| (corners[0][n] + corners[1][n] - corners[2][n] - corners[3][n]) / count);
        [mean, square - mean * mean]
    }

    /// Iterates over the pixels of a region, row by row.
    fn rows(&self, region: Region) -> impl Iterator<Item = &[f32]> {
        let Region { top, left, height, width } = region;
        self.pixels.chunks_exact(self.side).skip(top).take(height).map(move |row| &row[left..left + width])
    }
}

/// Returns whether the overlap of two images correlates at some shift.
fn is_shifted(a: &GreyThumbnail, b: &GreyThumbnail) -> bool {
    let mut shifts = (-SHIFT..=SHIFT).flat_map(|down| (-SHIFT..=SHIFT).map(move |right| [down, right]));
    shifts.any(|[down, right]| {
        let in_a = Region {
            top: down.max(0).unsigned_abs(),
            left: right.max(0).unsigned_abs(),
            height: SIDE - down.unsigned_abs(),
            width: SIDE - right.unsigned_abs(),
        };
        let in_b =
            Region { top: (-down).max(0).unsigned_abs(), left: (-right).max(0).unsigned_abs(), ..in_a };
        correlation(a, in_a, b, in_b) > MIN_CORRELATION
    })
}

/// Returns whether an image is a crop of the other.
fn is_crop(crop: &GreyThumbnail, whole: &GreyThumbnail) -> bool {
    CROPS.iter().any(|&side| {
        let small = crop.shrunk(side);
        let of_small = Region { top: 0, left: 0, height: side, width: side };
        let places = SIDE - side + 1;
        (0..places * places).any(|place| {
            let of_whole = Region { top: place / places, left: place % places, ..of_small };
            correlation(whole, of_whole, &small, of_small) > MIN_CORRELATION
        })
    })
}

/// Returns the correlation of two regions of the same size; 0 if one of them is plain.
fn correlation(a: &GreyThumbnail, in_a: Region, b: &GreyThumbnail, in_b: Region) -> f64 {
    let [mean_a, variance_a] = a.moments(in_a);
    let [mean_b, variance_b] = b.moments(in_b);
    if variance_a.min(variance_b) < MIN_DEVIATION * MIN_DEVIATION {
        return 0.0;
    }
    let products = a.rows(in_a).zip(b.rows(in_b)).map(|(a, b)| f64::from(lanes::dot(a, b)));
    let mean = products.sum::<f64>() / (in_a.height * in_a.width) as f64;
    (mean - mean_a * mean_b) / libm::sqrt(variance_a * variance_b)
}

/// Shrinks a line of [`SIDE`] pixels to `length` pixels.
fn shrunk_line(line: impl Iterator<Item = f32>, length: usize) -> Vec<f32> {
    let mut shrunk = vec![0.0; length];
    // In units of 1/SIDE of a result pixel, a source pixel has the length `length`.
    for (n, pixel) in line.enumerate() {
        let start = n * length;
        let end = start + length;
        let first = start / SIDE;
        let within = end.min((first + 1) * SIDE) - start;
        shrunk[first] += pixel * within as f32 / SIDE as f32;
        if within < length {
            shrunk[first + 1] += pixel * (length - within) as f32 / SIDE as f32;
        }
    }
    shrunk
}

#[cfg(test)]
mod tests {
    use calmix_core::rng::{Domain, Seed};

    use super::*;

    const WIDE: u32 = 96;

    /// Makes a photo-like image: overlapping discs with random grey values.
    fn photo(seed: u64) -> Image {
        let mut stream = Seed(seed).stream(Domain::Init, 0, 0);
        let mut image = Image::filled(WIDE, WIDE, [120; 3]);
        for _ in 0..25 {
            let place = [0, 1].map(|_| stream.uniform() * f64::from(WIDE));
            let radius = 4.0 + stream.uniform() * 20.0;
            let colour = [0, 1, 2].map(|_| (stream.uniform() * 255.0) as u8);
            for (n, pixel) in image.pixels_mut().chunks_exact_mut(3).enumerate() {
                let down = f64::from(n as u32 / WIDE) - place[0];
                let right = f64::from(n as u32 % WIDE) - place[1];
                if down * down + right * right < radius * radius {
                    pixel.copy_from_slice(&colour);
                }
            }
        }
        image
    }

    /// Crops an image and enlarges the crop to the original size.
    fn crop(image: &Image, [top, left]: [u32; 2], side: u32) -> Image {
        let mut pixels = Vec::new();
        for row in top..top + side {
            let start = (row * WIDE + left) as usize * 3;
            pixels.extend_from_slice(&image.pixels()[start..start + side as usize * 3]);
        }
        resized(&Image::new(side, side, pixels).unwrap(), WIDE, WIDE, Filter::Bicubic)
    }

    fn changed(image: &Image, change: impl Fn(f64) -> f64) -> Image {
        let mut image = image.clone();
        image.pixels_mut().iter_mut().for_each(|pixel| *pixel = change(f64::from(*pixel)) as u8);
        image
    }

    fn mirrored(image: &Image) -> Image {
        let rows = image.pixels().chunks_exact(WIDE as usize * 3);
        let pixels = rows.flat_map(|row| row.chunks_exact(3).rev().flatten()).copied().collect();
        Image::new(WIDE, WIDE, pixels).unwrap()
    }

    #[test]
    fn copies_are_recognised_both_ways() {
        for seed in 0..5 {
            let image = photo(seed);
            let copies = [
                image.clone(),
                mirrored(&image),
                changed(&image, |grey| grey * 0.7),
                changed(&image, |grey| 60.0 + grey * 0.6),
                crop(&image, [5, 14], 82),
                crop(&image, [20, 3], 74),
                mirrored(&crop(&image, [9, 9], 78)),
            ];
            let original = GreyThumbnail::of(&image);
            for (n, copy) in copies.iter().map(GreyThumbnail::of).enumerate() {
                assert!(original.is_copy_of(&copy) && copy.is_copy_of(&original), "{seed}: copy {n}");
            }
        }
    }

    #[test]
    fn distinct_images_are_not_copies() {
        let images: Vec<GreyThumbnail> = (0..10).map(|seed| GreyThumbnail::of(&photo(seed))).collect();
        for (n, a) in images.iter().enumerate() {
            assert!(!images[..n].iter().any(|b| a.is_copy_of(b)), "{n}");
        }
    }

    #[test]
    fn plain_images_are_not_copies() {
        let plain = GreyThumbnail::of(&Image::filled(50, 40, [90; 3]));
        assert!(!plain.is_copy_of(&plain) && !plain.is_copy_of(&GreyThumbnail::of(&photo(0))));
    }

    #[test]
    fn shrinking_keeps_the_mean() {
        let line: Vec<f32> = (0..SIDE).map(|n| (n * n) as f32).collect();
        let mean = line.iter().sum::<f32>() / SIDE as f32;
        for length in CROPS {
            let small = shrunk_line(line.iter().copied(), length);
            assert!((small.iter().sum::<f32>() / length as f32 - mean).abs() < 0.01, "{length}");
        }
    }
}

//! Rotation, shear and shift with nearest-neighbour sampling and black outside the image, as in Pillow's `transform` and
//! `rotate`.

use std::ops::Range;

use super::canvas::{Canvas, Scratch, refill};
use super::resize::Rgb;

/// The source position of a pixel on the new canvas: `x' = a·x + b·y + c`, `y' = d·x + e·y + f`.
struct Affine {
    x: [f64; 3],
    y: [f64; 3],
}

const BLACK: Rgb = [0; 3];

/// Rotates counterclockwise by `degrees` around the centre.
pub(super) fn rotate(canvas: &mut Canvas, degrees: f64, scratch: &mut Scratch) {
    let angle = -degrees.rem_euclid(360.0).to_radians();
    let (sin, cos) = (round_15(libm::sin(angle)), round_15(libm::cos(angle)));
    let (cx, cy) = (canvas.width as f64 / 2.0, canvas.height as f64 / 2.0);
    let x = [cos, sin, cos * -cx + sin * -cy + cx];
    let y = [-sin, cos, -sin * -cx + cos * -cy + cy];
    transform(canvas, &Affine { x, y }, scratch);
}

/// Moves each row by `factor` times its y coordinate.
pub(super) fn shear_x(canvas: &mut Canvas, factor: f64, scratch: &mut Scratch) {
    transform(canvas, &Affine { x: [1.0, factor, 0.0], y: [0.0, 1.0, 0.0] }, scratch);
}

/// Moves each column by `factor` times its x coordinate.
pub(super) fn shear_y(canvas: &mut Canvas, factor: f64, scratch: &mut Scratch) {
    transform(canvas, &Affine { x: [1.0, 0.0, 0.0], y: [factor, 1.0, 0.0] }, scratch);
}

/// Rounds to fifteen decimals, so that quarter turns are exact.
///
/// Python rounds the decimal expansion and has a different sine; a difference in the fifteenth decimal changes a pixel about
/// once in 10⁸ rotations.
fn round_15(x: f64) -> f64 {
    libm::round(x * 1e15) / 1e15
}

/// Samples in 16.16 fixed point, as Pillow does for canvases below 32768 pixels per side.
fn transform(canvas: &mut Canvas, affine: &Affine, scratch: &mut Scratch) {
    let Canvas { width, height, ref mut pixels } = *canvas;
    refill(&mut scratch.before, pixels);
    let before = &scratch.before;
    let ([x_step, x_next_row, mut x_row], [y_step, y_next_row, mut y_row]) =
        (fixed(affine.x), fixed(affine.y));
    for row in pixels.chunks_exact_mut(width) {
        if x_step == ONE && y_step == 0 {
            match usize::try_from(y_row >> 16).ok().filter(|&y| y < height) {
                Some(y) => copy_shifted(&before[y * width..][..width], (x_row >> 16) as isize, row),
                None => row.fill(BLACK),
            }
        } else {
            let (columns, lines) = (steps_within(x_row, x_step, width), steps_within(y_row, y_step, height));
            let start = columns.start.max(lines.start).min(width);
            let end = columns.end.min(lines.end).clamp(start, width);
            row[..start].fill(BLACK);
            row[end..].fill(BLACK);
            let skipped = start.cast_signed() as i64;
            let (mut x, mut y) = (x_row + skipped * x_step, y_row + skipped * y_step);
            for pixel in &mut row[start..end] {
                *pixel = before[(y >> 16) as usize * width + (x >> 16) as usize];
                x += x_step;
                y += y_step;
            }
        }
        x_row += x_next_row;
        y_row += y_next_row;
    }
}

/// Returns the range of n for which `first + n·step`, in 16.16, lies in `0..len`.
fn steps_within(first: i64, step: i64, len: usize) -> Range<usize> {
    let end = (len.cast_signed() as i64) << 16;
    let (from, to) = match step {
        0 if (0..end).contains(&first) => return 0..usize::MAX,
        0 => return 0..0,
        // The first n inside the range, and the first n beyond it.
        1.. => (ceil_div(-first, step), ceil_div(end - first, step)),
        _ => (ceil_div(first - end + 1, -step), ceil_div(first + 1, -step)),
    };
    from.max(0) as usize..to.max(0) as usize
}

fn ceil_div(a: i64, b: i64) -> i64 {
    (a + b - 1).div_euclid(b)
}

const ONE: i64 = 1 << 16;

/// Converts the coefficients to 16.16 and moves the last one to the centre of the first pixel.
fn fixed([step, next_row, first]: [f64; 3]) -> [i64; 3] {
    // The bound is Pillow's condition for using fixed point, and keeps sums over a canvas in range.
    let fix = |v: f64| ((v * 65536.0 + 0.5).floor() as i64).clamp(-(1 << 31), 1 << 31);
    [fix(step), fix(next_row), fix(first + step * 0.5 + next_row * 0.5)]
}

/// Moves the image by `by` pixels to the left.
pub(super) fn translate_x(canvas: &mut Canvas, by: f64, scratch: &mut Scratch) {
    let by = whole_shift(by, canvas.width);
    let before = &mut scratch.before;
    for row in canvas.rows() {
        refill(before, row);
        copy_shifted(before, by, row);
    }
}

/// Moves the image by `by` pixels up.
pub(super) fn translate_y(canvas: &mut Canvas, by: f64, scratch: &mut Scratch) {
    let by = whole_shift(by, canvas.height);
    refill(&mut scratch.before, canvas.pixels);
    copy_shifted(&scratch.before, by * canvas.width.cast_signed(), canvas.pixels);
}

/// Returns the number of whole pixels of a shift.
///
/// Without rotation or shear, Pillow starts at `by + ½`, adds one per pixel in f64, and truncates coordinates that are not
/// negative.
fn whole_shift(by: f64, len: usize) -> isize {
    let len = len.cast_signed();
    let mut source = by + 0.5;
    for x in 0..len {
        if source >= 0.0 {
            return (source as isize).min(len) - x;
        }
        source += 1.0;
    }
    -len
}

/// Sets `row[x] = from[x + by]`, and black where `from` has no such pixel.
fn copy_shifted(from: &[Rgb], by: isize, row: &mut [Rgb]) {
    let gap = by.unsigned_abs().min(row.len());
    let kept = row.len() - gap;
    if by < 0 {
        row[..gap].fill(BLACK);
        row[gap..].copy_from_slice(&from[..kept]);
    } else {
        row[..kept].copy_from_slice(&from[gap..]);
        row[kept..].fill(BLACK);
    }
}

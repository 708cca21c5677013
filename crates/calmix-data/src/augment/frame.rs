//! The geometry of a view: which part of an image it shows. The frame is drawn first and rendered later.

use std::ops::Range;

use calmix_formats::image::Image;

use super::canvas::{Canvas, Scratch};
use super::resize::{Filter, Rgb, View, resize};

/// A rectangle of an image, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rect {
    /// Its first column.
    pub left: u32,
    /// Its first row.
    pub top: u32,
    /// Its columns.
    pub width: u32,
    /// Its rows.
    pub height: u32,
}

impl Rect {
    /// Returns the rectangle that covers an image of this size.
    pub fn whole(width: u32, height: u32) -> Self {
        Self { left: 0, top: 0, width, height }
    }
}

/// A view's geometry: the part that is cut out, the size that it is resized to, and the window that is shown.
///
/// A window that extends beyond the resized image shows its reflection without repeating the border pixel (`numpy.pad` with
/// `reflect`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// The part of the image that is used.
    pub from: Rect,
    /// The width and height to which it is resized.
    pub resized: [u32; 2],
    /// The first column of the window in the resized image; negative if it lies to the left of it.
    pub left: i64,
    /// The first row of the window.
    pub top: i64,
    /// Whether the window is mirrored left to right.
    pub mirrored: bool,
}

impl Frame {
    /// Renders the frame of `image` on the canvas; returns false if the frame is empty or lies outside the image.
    pub fn show(&self, image: &Image, filter: Filter, canvas: &mut Canvas, scratch: &mut Scratch) -> bool {
        let Some(mut view) = cut(image, self.from) else { return false };
        let target = self.resized.map(|side| side as usize);
        if target.contains(&0) {
            return false;
        }
        let Scratch { columns, rows, resized, resize: resizing, .. } = scratch;
        reflected(self.left, canvas.width, self.resized[0], columns);
        reflected(self.top, canvas.height, self.resized[1], rows);
        if target != [view.width, view.height] {
            // Only the pixels of the window are computed, even in a large image.
            let [wide, high] = [rebase(columns), rebase(rows)];
            let (width, height) = (wide.len(), high.len());
            resize(view, target, [wide, high], filter, resizing, resized);
            view = View { bytes: resized, stride: 3 * width, width, height };
        }
        let run = straight_run(columns);
        for (y, row) in rows.iter().zip(canvas.rows()) {
            let (from, _) = view.row(*y).as_chunks::<3>();
            gather(from, &columns[..run.start], &mut row[..run.start]);
            if let Some(first) = columns.get(run.start) {
                row[run.clone()].copy_from_slice(&from[*first..][..run.len()]);
            }
            gather(from, &columns[run.end..], &mut row[run.end..]);
            if self.mirrored {
                row.reverse();
            }
        }
        true
    }
}

/// Finds the longest prefix of consecutive columns, which can be copied at once.
fn straight_run(columns: &[usize]) -> Range<usize> {
    let follows = |pair: &[usize]| pair[1] == pair[0] + 1;
    let start = columns.windows(2).position(follows).unwrap_or(0);
    let len = columns[start..].windows(2).take_while(|pair| follows(pair)).count();
    start..(start + len + 1).min(columns.len())
}

fn gather(from: &[Rgb], columns: &[usize], row: &mut [Rgb]) {
    for (pixel, column) in row.iter_mut().zip(columns) {
        *pixel = from[*column];
    }
}

/// Returns the pixels of a rectangle; `None` if it is empty or not fully inside the image.
fn cut(image: &Image, rect: Rect) -> Option<View<'_>> {
    let inside =
        |first: u32, len: u32, side: u32| len > 0 && first.checked_add(len).is_some_and(|end| end <= side);
    if !inside(rect.left, rect.width, image.width()) || !inside(rect.top, rect.height, image.height()) {
        return None;
    }
    let stride = 3 * image.width() as usize;
    let start = rect.top as usize * stride + 3 * rect.left as usize;
    let bytes = image.pixels().get(start..)?;
    Some(View { bytes, stride, width: rect.width as usize, height: rect.height as usize })
}

/// Lists the coordinates in an image of `side` pixels for a window of `len` pixels that starts at `first`.
fn reflected(first: i64, len: usize, side: u32, coordinates: &mut Vec<usize>) {
    coordinates.clear();
    coordinates.extend((0..).take(len).map(|x| reflect(first.saturating_add(x), side)));
}

/// Subtracts the start of their range from the coordinates, and returns the range.
fn rebase(coordinates: &mut [usize]) -> Range<usize> {
    let first = coordinates.iter().copied().min().unwrap_or(0);
    let last = coordinates.iter().copied().max().unwrap_or(0);
    for coordinate in coordinates {
        *coordinate -= first;
    }
    first..last + 1
}

/// Reflects a coordinate into `0..len`; the pattern repeats as often as needed.
fn reflect(x: i64, len: u32) -> usize {
    let last = i64::from(len) - 1;
    if last <= 0 {
        return 0;
    }
    let x = if (0..=last).contains(&x) { x } else { x.rem_euclid(2 * last) };
    (if x > last { 2 * last - x } else { x }) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reflections_repeat_without_the_border() {
        let seen: Vec<usize> = (-5..8).map(|x| reflect(x, 3)).collect();
        assert_eq!(seen, [1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1]);
        assert_eq!(reflect(-7, 1), 0);
        assert_eq!(reflect(i64::MAX, 2), 1);
    }

    #[test]
    fn a_frame_outside_the_image_shows_nothing() {
        let image = Image::filled(4, 4, [9; 3]);
        let mut bytes = [7; 12];
        let frame = |from, resized| Frame { from, resized, left: 0, top: 0, mirrored: false };
        let mut show = |frame: Frame| {
            let mut canvas = Canvas::new(2, 2, &mut bytes).unwrap();
            frame.show(&image, Filter::Bilinear, &mut canvas, &mut Scratch::default())
        };
        let rect = |left, top, width, height| Rect { left, top, width, height };
        assert!(show(frame(Rect::whole(4, 4), [2, 2])));
        for outside in [rect(3, 0, 2, 1), rect(0, 0, 0, 1), rect(u32::MAX, 0, 2, 1), rect(0, 4, 1, 1)] {
            assert!(!show(frame(outside, [2, 2])), "{outside:?}");
        }
        assert!(!show(frame(Rect::whole(4, 4), [0, 2])));
    }
}

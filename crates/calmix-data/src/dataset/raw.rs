//! Raw bytes as a picture.

use crate::manifest::{Encoding, Layout};
use crate::picture::Picture;

/// The picture that `bytes` are; none if they are not as many as its size says.
pub(super) fn picture(width: u32, height: u32, layout: Layout, bytes: &[u8]) -> Option<Picture> {
    let expected = Encoding::Raw { width, height, layout }.sample_bytes().ok()??;
    if bytes.len() != expected as usize {
        return None;
    }
    let pixels = match layout {
        Layout::Grey => bytes.iter().flat_map(|&grey| [grey; 3]).collect(),
        Layout::Planes => {
            let (red, green, blue) = planes(bytes)?;
            red.iter().zip(green).zip(blue).flat_map(|((&r, &g), &b)| [r, g, b]).collect()
        }
        Layout::PlanesByColumn => {
            let planes = planes(bytes)?;
            let (width, height) = (width as usize, height as usize);
            let mut pixels = Vec::with_capacity(bytes.len());
            for y in 0..height {
                for x in 0..width {
                    let at = x * height + y;
                    pixels.extend([*planes.0.get(at)?, *planes.1.get(at)?, *planes.2.get(at)?]);
                }
            }
            pixels
        }
    };
    Picture::new(width, height, pixels)
}

fn planes(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (red, rest) = bytes.split_at_checked(bytes.len() / 3)?;
    let (green, blue) = rest.split_at_checked(bytes.len() / 3)?;
    Some((red, green, blue))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_layout_puts_each_byte_in_its_place() {
        // Three columns, two rows; the value of a byte is 10·row + column, plus 100 for each plane.
        let grey = picture(3, 2, Layout::Grey, &[0, 1, 2, 10, 11, 12]).unwrap();
        assert_eq!(grey.pixels(), [0, 0, 0, 1, 1, 1, 2, 2, 2, 10, 10, 10, 11, 11, 11, 12, 12, 12]);
        let expected =
            [0, 100, 200, 1, 101, 201, 2, 102, 202, 10, 110, 210, 11, 111, 211, 12, 112, 212].as_slice();
        let rows = [0, 1, 2, 10, 11, 12];
        let columns = [0, 10, 1, 11, 2, 12];
        for (layout, plane) in [(Layout::Planes, rows), (Layout::PlanesByColumn, columns)] {
            let bytes: Vec<u8> = (0..3).flat_map(|p| plane.map(|value| value + 100 * p)).collect();
            assert_eq!(picture(3, 2, layout, &bytes).unwrap().pixels(), expected);
            assert_eq!(picture(3, 2, layout, &bytes[1..]), None);
            assert_eq!(picture(2, 2, layout, &bytes), None);
            assert_eq!(picture(4, 2, layout, &bytes), None);
        }
        assert_eq!(picture(3, 2, Layout::Grey, &[0; 7]), None);
    }
}

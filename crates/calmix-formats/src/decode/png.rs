//! PNG: chunks are parsed here for size, orientation and end; pixels are decoded by the crate png.

use std::io::Cursor;

use png::{ColorType, Decoder, Limits, Transformations};

use super::image_format::{Head, ImageFormat, image};
use super::orientation::Orientation;
use super::problem::DecodeProblem;
use crate::image::Image;

const KIND: &str = "PNG";
/// The colour type of palette images.
const INDEXED: u8 = 3;

/// The PNG format.
pub(super) struct Png;

impl ImageFormat for Png {
    /// Walks all chunks. `eXIf` may come before or after the pixels.
    fn head(&self, bytes: &[u8]) -> Result<Head, DecodeProblem> {
        let mut size = None;
        let mut is_indexed = false;
        let mut orientation = None;
        let mut at = 8_usize;
        loop {
            let start = at + 8;
            let Some(&[l3, l2, l1, l0, ref name @ ..]) = bytes.get(at..start) else {
                return Err(DecodeProblem::Short(KIND));
            };
            let length = u32::from_be_bytes([l3, l2, l1, l0]) as usize;
            let data = start.checked_add(length).and_then(|end| bytes.get(start..end.checked_add(4)?));
            let data = data.and_then(|data| data.get(..length)).ok_or(DecodeProblem::Short(KIND))?;
            at = start + length + 4;
            match (name, size) {
                (b"IHDR", None) => {
                    size = Some(read_size(data)?);
                    is_indexed = data.get(9) == Some(&INDEXED);
                }
                (b"IHDR", Some(_)) => return Err(damaged("two headers")),
                (_, None) => return Err(damaged("its first chunk is not a header")),
                // The crate png panics on an incomplete palette colour.
                (b"PLTE", _) if is_indexed && !length.is_multiple_of(3) => {
                    return Err(damaged("a palette that ends within a colour"));
                }
                (b"eXIf", _) if orientation.is_none() => orientation = Some(Orientation::from_exif(data)),
                (b"IEND", Some((width, height))) => {
                    let orientation = orientation.unwrap_or(Orientation::UPRIGHT);
                    return Ok(Head { width, height, orientation, end: at });
                }
                _ => {}
            }
        }
    }

    /// Decodes to RGB.
    fn pixels(&self, bytes: &[u8], head: Head, _side: u32) -> Result<Image, DecodeProblem> {
        let count = head.width as usize * head.height as usize;
        // Memory for rows of 16-bit RGBA, palette and EXIF; the buffer for the pixels is allocated here.
        let limits = Limits { bytes: (16 << 20) + head.width as usize * 16 };
        let mut decoder = Decoder::new_with_limits(Cursor::new(bytes), limits);
        // Text and profiles may decompress to any size and are not used.
        decoder.set_ignore_text_chunk(true);
        decoder.set_ignore_iccp_chunk(true);
        decoder.set_transformations(Transformations::EXPAND | Transformations::STRIP_16);
        let mut reader = decoder.read_info().map_err(|error| damaged(&error.to_string()))?;
        let stored = (reader.info().width, reader.info().height);
        if stored != (head.width, head.height) {
            return Err(damaged("two sizes in one file"));
        }
        let length = reader.output_buffer_size().filter(|&length| length <= 4 * count);
        let mut stored = vec![0; length.ok_or_else(|| damaged("more bytes than pixels"))?];
        let info = reader.next_frame(&mut stored).map_err(|error| damaged(&error.to_string()))?;
        let pixels = match info.color_type {
            ColorType::Rgb => stored,
            ColorType::Rgba => stored.as_chunks::<4>().0.iter().flat_map(|&[r, g, b, _]| [r, g, b]).collect(),
            ColorType::Grayscale => stored.iter().flat_map(|&grey| [grey; 3]).collect(),
            ColorType::GrayscaleAlpha => {
                stored.as_chunks::<2>().0.iter().flat_map(|&[grey, _]| [grey; 3]).collect()
            }
            ColorType::Indexed => return Err(damaged("its palette was not applied")),
        };
        image(KIND, head.width, head.height, pixels)
    }
}

fn read_size(header: &[u8]) -> Result<(u32, u32), DecodeProblem> {
    let &[w3, w2, w1, w0, h3, h2, h1, h0, ..] = header else {
        return Err(damaged("a header without a size"));
    };
    Ok((u32::from_be_bytes([w3, w2, w1, w0]), u32::from_be_bytes([h3, h2, h1, h0])))
}

fn damaged(what: &str) -> DecodeProblem {
    DecodeProblem::Damaged(KIND, what.trim().to_owned())
}

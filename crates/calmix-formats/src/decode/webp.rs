//! WebP: chunks are parsed here for size and orientation; pixels are decoded by the crate image-webp.

use std::io::Cursor;

use image_webp::WebPDecoder;

use super::image_format::{Head, ImageFormat, image};
use super::orientation::Orientation;
use super::problem::DecodeProblem;
use crate::image::Image;

const KIND: &str = "WebP";

/// The WebP format.
pub(super) struct Webp;

impl ImageFormat for Webp {
    /// Walks all chunks.
    ///
    /// An extended file has two sizes, for the canvas and for the pixels. A decoder allocates by the second before it
    /// compares them, so they must already agree here.
    fn head(&self, bytes: &[u8]) -> Result<Head, DecodeProblem> {
        let mut canvas = None;
        let mut pixels = None;
        let mut orientation = Orientation::UPRIGHT;
        // The declared length of the file; no chunk may lie beyond it.
        let declared = match bytes.get(4..8) {
            Some(&[l0, l1, l2, l3]) => (u32::from_le_bytes([l0, l1, l2, l3]) as usize).saturating_add(8),
            _ => 0,
        };
        let mut at = 12_usize;
        while pixels.is_none() || at < declared {
            let Some(&[c0, c1, c2, c3, l0, l1, l2, l3]) = bytes.get(at..at + 8) else { break };
            let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
            let start = at + 8;
            let data = start.checked_add(length).and_then(|end| bytes.get(start..end));
            let data = data.ok_or(DecodeProblem::Short(KIND))?;
            at = start + length + length % 2;
            match &[c0, c1, c2, c3] {
                b"VP8X" => canvas = Some(canvas_size(data)?),
                b"ANIM" | b"ANMF" => {
                    return Err(DecodeProblem::Variant("calmix does not read animated WebP".into()));
                }
                b"VP8 " | b"VP8L" if pixels.is_some() => return Err(damaged("two images in one file")),
                b"VP8 " => pixels = Some(lossy_size(data)?),
                b"VP8L" => pixels = Some(lossless_size(data)?),
                b"EXIF" => orientation = Orientation::from_exif(data),
                _ => {}
            }
        }
        let (width, height) = pixels.ok_or(DecodeProblem::Short(KIND))?;
        let end = at.min(bytes.len());
        if canvas.is_some_and(|canvas| canvas != (width, height)) {
            return Err(damaged("two sizes in one file"));
        }
        Ok(Head { width, height, orientation, end })
    }

    /// Decodes to RGB.
    fn pixels(&self, bytes: &[u8], head: Head, _side: u32) -> Result<Image, DecodeProblem> {
        let mut decoder =
            WebPDecoder::new(Cursor::new(bytes)).map_err(|error| damaged(&error.to_string()))?;
        if decoder.dimensions() != (head.width, head.height) || decoder.is_animated() {
            return Err(damaged("two sizes in one file"));
        }
        let length = decoder.output_buffer_size().ok_or_else(|| damaged("more bytes than memory"))?;
        let mut stored = vec![0; length];
        decoder.read_image(&mut stored).map_err(|error| damaged(&error.to_string()))?;
        let pixels = if decoder.has_alpha() {
            stored.as_chunks::<4>().0.iter().flat_map(|&[r, g, b, _]| [r, g, b]).collect()
        } else {
            stored
        };
        image(KIND, head.width, head.height, pixels)
    }
}

fn canvas_size(data: &[u8]) -> Result<(u32, u32), DecodeProblem> {
    let &[flags, _, _, _, w0, w1, w2, h0, h1, h2, ..] = data else {
        return Err(damaged("a header without a size"));
    };
    if flags & 2 != 0 {
        return Err(DecodeProblem::Variant("calmix does not read animated WebP".into()));
    }
    Ok((u32::from_le_bytes([w0, w1, w2, 0]) + 1, u32::from_le_bytes([h0, h1, h2, 0]) + 1))
}

/// Reads the size of a lossy frame (RFC 6386, section 9.1): a key frame's start code, then 14 bits per side, below two bits
/// of scale.
fn lossy_size(data: &[u8]) -> Result<(u32, u32), DecodeProblem> {
    let &[_, _, _, 0x9d, 0x01, 0x2a, w0, w1, h0, h1, ..] = data else {
        return Err(damaged("a frame without a size"));
    };
    let side = |low, high| u32::from(u16::from_le_bytes([low, high]) & 0x3fff);
    Ok((side(w0, w1), side(h0, h1)))
}

/// Reads the size of a lossless frame (RFC 9649, section 3.4): a signature, then 14 bits each of width − 1 and height − 1.
fn lossless_size(data: &[u8]) -> Result<(u32, u32), DecodeProblem> {
    let &[0x2f, b0, b1, b2, b3, ..] = data else {
        return Err(damaged("a frame without a size"));
    };
    let bits = u32::from_le_bytes([b0, b1, b2, b3]);
    Ok(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
}

fn damaged(what: &str) -> DecodeProblem {
    DecodeProblem::Damaged(KIND, what.trim().to_owned())
}

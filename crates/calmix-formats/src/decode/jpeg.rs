//! JPEG: segments are parsed here; pixels are decoded by zune-jpeg or, with the feature `turbo`, by libjpeg-turbo.

use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::image_format::{Head, ImageFormat, image};
use super::orientation::Orientation;
use super::problem::DecodeProblem;
use crate::image::Image;

const KIND: &str = "JPEG";

/// The properties of the pixels that the segments declare.
struct Segments {
    frame: Frame,
    orientation: Orientation,
    scans: u32,
    /// The end of the end marker.
    end: usize,
    /// Whether restart markers allow a decoder to resynchronise after damage.
    has_restarts: bool,
}

/// The frame: size and sampling of the components.
#[derive(Clone, Copy)]
struct Frame {
    width: u32,
    height: u32,
    is_progressive: bool,
    /// Whether some component has fewer samples than another.
    is_subsampled: bool,
    /// Whether some component has more samples than the first one, the luma.
    has_finer_chroma: bool,
}

/// The JPEG format.
pub(super) struct Jpeg;

impl ImageFormat for Jpeg {
    /// Reads size and orientation; refuses files that the decoder would decode incorrectly.
    fn head(&self, bytes: &[u8]) -> Result<Head, DecodeProblem> {
        let segments = walk(bytes)?;
        // libjpeg-turbo decodes every kind correctly.
        if !cfg!(feature = "turbo") {
            segments.check()?;
        }
        let Segments { frame: Frame { width, height, .. }, orientation, end, .. } = segments;
        Ok(Head { width, height, orientation, end })
    }

    /// Decodes to RGB; with the feature `turbo` at reduced size, if the shorter side then still has `side` pixels.
    fn pixels(&self, bytes: &[u8], head: Head, side: u32) -> Result<Image, DecodeProblem> {
        #[cfg(feature = "turbo")]
        {
            if let Some(image) = super::turbo::pixels(bytes, head, side) {
                return Ok(image);
            }
            walk(bytes)?.check()?;
        }
        #[cfg(not(feature = "turbo"))]
        let _ = side;
        decode_with_zune(bytes, head, true)
    }
}

impl Segments {
    /// Refuses valid files that zune-jpeg decodes to wrong pixels without an error (0.5.15 and 0.5.16-rc3):
    /// `tests/jpeg_kinds.rs` compares all kinds with Pillow.
    fn check(&self) -> Result<(), DecodeProblem> {
        let Frame { is_progressive, is_subsampled, has_finer_chroma, .. } = self.frame;
        if !is_progressive && self.scans > 1 && (is_subsampled || self.has_restarts) {
            return Err(DecodeProblem::Scans(self.scans));
        }
        if has_finer_chroma {
            let problem = "calmix does not read JPEG with more chroma than luma samples";
            return Err(DecodeProblem::Variant(problem.into()));
        }
        Ok(())
    }
}

/// Walks all segments: the frame, the orientation from the first EXIF, the scans, and the end marker. A file without an end
/// marker is truncated, and decoders silently fill the missing part with grey.
fn walk(bytes: &[u8]) -> Result<Segments, DecodeProblem> {
    let mut frame = None;
    let mut orientation = None;
    let mut scans = 0;
    let mut has_restarts = false;
    let mut at = 2;
    loop {
        let (marker, start) = next_marker(bytes, at).ok_or(DecodeProblem::Short(KIND))?;
        at = start;
        match marker {
            0x01 | 0xd0..=0xd8 => continue,
            0xd9 => break,
            _ => {}
        }
        let length = match bytes.get(at..at + 2) {
            Some(&[high, low]) => usize::from(u16::from_be_bytes([high, low])),
            _ => return Err(DecodeProblem::Short(KIND)),
        };
        if length < 2 {
            return Err(damaged("a segment is shorter than its declared length"));
        }
        let segment = bytes.get(at + 2..at + length).ok_or(DecodeProblem::Short(KIND))?;
        at += length;
        match marker {
            0xc4 | 0xc8 | 0xcc => {}
            0xc0..=0xcf if frame.is_some() => return Err(damaged("two frames in one file")),
            0xc0..=0xcf => frame = Some(read_frame(marker, segment)?),
            0xe1 if orientation.is_none() && segment.starts_with(b"Exif\0\0") => {
                orientation = Some(Orientation::from_exif(segment));
            }
            // An interval of 0 blocks disables restarts; a single scan with restarts is enough for wrong pixels.
            0xdd => has_restarts |= segment.iter().any(|&byte| byte > 0),
            0xda if frame.is_none() => return Err(damaged("pixels before their frame")),
            0xda => scans += 1,
            _ => {}
        }
    }
    let frame = frame.filter(|_| scans > 0).ok_or_else(|| damaged("it contains no pixels"))?;
    Ok(Segments {
        frame,
        orientation: orientation.unwrap_or(Orientation::UPRIGHT),
        scans,
        end: at,
        has_restarts,
    })
}

/// Finds the next marker at or after `at`, and the start of its segment. Other bytes are skipped, as in every decoder: they
/// are compressed pixels or harmless padding.
fn next_marker(bytes: &[u8], mut at: usize) -> Option<(u8, usize)> {
    loop {
        at += bytes.get(at..)?.iter().position(|&byte| byte == 0xff)?;
        match *bytes.get(at + 1)? {
            0xff => at += 1,
            0x00 => at += 2,
            marker => return Some((marker, at + 2)),
        }
    }
}

fn read_frame(marker: u8, segment: &[u8]) -> Result<Frame, DecodeProblem> {
    let &[precision, h1, h0, w1, w0, _, ref components @ ..] = segment else {
        return Err(damaged("a frame without a size"));
    };
    if !matches!(marker, 0xc0..=0xc2) {
        return Err(DecodeProblem::Variant("calmix does not read lossless or arithmetic-coded JPEG".into()));
    }
    if precision != 8 {
        return Err(DecodeProblem::Variant(format!(
            "calmix does not read JPEG with {precision} bits per channel"
        )));
    }
    // Three bytes per component: its number, its horizontal and vertical sampling factors in four bits each, its table.
    let (components, _) = components.as_chunks::<3>();
    let samples = components.iter().map(|&[_, samples, _]| (samples >> 4, samples & 15));
    let first = samples.clone().next().unwrap_or_default();
    Ok(Frame {
        width: u32::from(u16::from_be_bytes([w1, w0])),
        height: u32::from(u16::from_be_bytes([h1, h0])),
        is_progressive: marker == 0xc2,
        is_subsampled: samples.clone().any(|other| other != first),
        has_finer_chroma: samples.clone().any(|(across, down)| across > first.0 || down > first.1),
    })
}

/// Decodes with zune-jpeg; `vector` allows its vector instructions, which do not change the result.
fn decode_with_zune(bytes: &[u8], head: Head, vector: bool) -> Result<Image, DecodeProblem> {
    let options = DecoderOptions::default()
        .set_strict_mode(false)
        .set_use_unsafe(vector)
        .set_max_width(head.width as usize)
        .set_max_height(head.height as usize)
        .jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().map_err(|error| damaged(&error.to_string()))?;
    // The limits were checked against the size read by this module, so the decoder must agree with it.
    if decoder.dimensions() != Some((head.width as usize, head.height as usize)) {
        return Err(damaged("two sizes in one file"));
    }
    let mut pixels = vec![0; head.width as usize * head.height as usize * 3];
    decoder.decode_into(&mut pixels).map_err(|error| damaged(&error.to_string()))?;
    image(KIND, head.width, head.height, pixels)
}

fn damaged(what: &str) -> DecodeProblem {
    DecodeProblem::Damaged(KIND, what.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use calmix_testkit::photos::Golden;

    use super::*;

    #[test]
    fn vector_instructions_change_nothing() {
        let golden = Golden::load();
        for case in golden.images.iter().filter(|case| case.name.starts_with("jpeg")) {
            let bytes = golden.bytes(case.file);
            let head = Jpeg.head(bytes).unwrap();
            assert_eq!(
                decode_with_zune(bytes, head, true).unwrap(),
                decode_with_zune(bytes, head, false).unwrap(),
                "{}",
                case.name
            );
        }
    }

    #[test]
    fn markers_are_found_behind_padding_and_stuffed_bytes() {
        assert_eq!(next_marker(&[1, 2, 0xff, 0, 0xff, 0xff, 0xd9], 0), Some((0xd9, 7)));
        assert_eq!(next_marker(&[0xff, 0], 0), None);
        assert_eq!(next_marker(&[0xff], 0), None);
        assert_eq!(next_marker(&[], 9), None);
    }
}
